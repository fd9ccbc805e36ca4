"""Pure: bytes as a JSON-RPC message, or what keeps them from being one."""

import json
from typing import Any

import mcp_types as types
from pydantic_core import from_json

RequestId = str | int
Fault = tuple[int, str]

NOT_JSON: Fault = (types.PARSE_ERROR, "Parse error: not valid JSON")
NO_OBJECT: Fault = (types.INVALID_REQUEST, "Invalid request: expected one JSON object")
NOT_FINITE: Fault = (types.INVALID_PARAMS, "Invalid params: numbers must be finite")
HALF_CHARACTERS: Fault = (types.INVALID_PARAMS, "Invalid params: text must be valid Unicode")

_OF_A_CALL = frozenset({"name", "arguments", "_meta", "inputResponses", "requestState"})


def parse(raw: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Return the message, and the fault that keeps it from being one; what can be read of it comes either way."""
    try:
        return _as_object(from_json(raw, allow_inf_nan=False), None)
    except ValueError:
        return _parse_leniently(raw)


def id_of(message: dict[str, Any]) -> RequestId | None:
    """Return the id of a request, None where there is none that JSON-RPC allows."""
    return as_id(message.get("id"))


def as_id(value: object) -> RequestId | None:
    """Return a value that can be an id and can be sent back, None for any other."""
    if isinstance(value, str):
        return value if value.isascii() or _is_whole(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_call(params: dict[str, Any]) -> bool:
    """Return whether these are the well-formed parameters of a call; anything beyond, as tasks, is the SDK's."""
    arguments = params.get("arguments")
    meta = params.get("_meta")
    replies, state = params.get("inputResponses"), params.get("requestState")
    return (
        params.keys() <= _OF_A_CALL
        and isinstance(params.get("name"), str)
        and (arguments is None or isinstance(arguments, dict))
        and (meta is None or isinstance(meta, dict))
        and (replies is None or isinstance(replies, dict))
        and (state is None or isinstance(state, str))
    )


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse_leniently(raw: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Read what the strict parser refused, to tell what is wrong with it and under which id."""
    constants: list[str] = []
    try:
        value = json.loads(raw, parse_constant=constants.append)
    except (ValueError, RecursionError):
        return {}, NOT_JSON
    return _as_object(value, NOT_FINITE if constants else HALF_CHARACTERS)


def _as_object(value: object, fault: Fault | None) -> tuple[dict[str, Any], Fault | None]:
    return (value, fault) if isinstance(value, dict) else ({}, NO_OBJECT)
