"""Pure: parses bytes into a JSON-RPC message and a message into a tool call, or names what is wrong with them."""

import json
from typing import Any, NamedTuple

import mcp_types as types
from pydantic_core import from_json

from holdfast.text.decode import has_lone_surrogate
from holdfast.transport.client.frames import RequestId

Fault = tuple[int, str]
"""A JSON-RPC error code and its message."""

NOT_JSON: Fault = (types.PARSE_ERROR, "Parse error: not valid JSON")
NO_OBJECT: Fault = (types.INVALID_REQUEST, "Invalid request: expected one JSON object")
NOT_FINITE: Fault = (types.INVALID_PARAMS, "Invalid params: numbers must be finite")
LONE_SURROGATE: Fault = (types.INVALID_PARAMS, "Invalid params: text must be valid Unicode, without lone surrogates")

_CALL_PARAMS = frozenset({"name", "arguments", "_meta", "inputResponses", "requestState"})


class ToolCall(NamedTuple):
    """A well-formed `tools/call`."""

    request_id: RequestId
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    params: dict[str, Any]


def parse(raw: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Return the message and its fault, None when it has none. With a fault, the message is what could be read."""
    try:
        return _as_object(from_json(raw, allow_inf_nan=False), None)
    except ValueError:
        return _parse_leniently(raw)


def parse_call(message: dict[str, Any]) -> ToolCall | None:
    """Return the tool call in a message; None for any other message, and for a call with parameters unknown here."""
    params, request_id = message.get("params"), parse_id(message.get("id"))
    if message.get("method") != "tools/call" or request_id is None or not isinstance(params, dict):
        return None
    name, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
    replies, state = params.get("inputResponses"), params.get("requestState")
    if (
        params.keys() <= _CALL_PARAMS
        and isinstance(name, str)
        and (arguments is None or isinstance(arguments, dict))
        and (meta is None or isinstance(meta, dict))
        and (replies is None or isinstance(replies, dict))
        and (state is None or isinstance(state, str))
    ):
        return ToolCall(request_id, name, arguments or {}, meta or {}, params)
    return None


def parse_id(value: object) -> RequestId | None:
    """Return a value that can be the id of a request and can be sent back, None for any other."""
    if isinstance(value, str):
        return None if has_lone_surrogate(value) else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parse_leniently(raw: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Read what the strict parser refused, to find its fault and its id."""
    constants: list[str] = []
    try:
        value = json.loads(raw, parse_constant=constants.append)
    except (ValueError, RecursionError):
        return {}, NOT_JSON
    return _as_object(value, NOT_FINITE if constants else LONE_SURROGATE)


def _as_object(value: object, fault: Fault | None) -> tuple[dict[str, Any], Fault | None]:
    return (value, fault) if isinstance(value, dict) else ({}, NO_OBJECT)
