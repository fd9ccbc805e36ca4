"""Pure: the JSON of the protocol: parses messages and tool calls, and writes tools, answers, errors and questions."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from holdfast.auth.context import Caller, declare_client
from holdfast.call import InputNeeded, Question
from holdfast.errors import HoldfastError
from holdfast.text.decode import has_lone_surrogate, replace_in_data, replace_lone_surrogates
from holdfast.tools.answer import Answer, Media, Text, length_of
from holdfast.tools.declarations import mcp_declaration
from holdfast.tools.registry import Tool
from holdfast.transport.client.frames import EDGE_BYTES, OversizedLine, RequestId

MAX_VALUES = 25_000
"""More than the values that the arguments of a call may hold, with the message around them."""
MAX_BYTES_OUTSIDE_STRINGS = 1_000_000
_WINDOW_BYTES = 1 << 18
_CHARACTERS = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SEPARATORS = (b",", b"[", b"{")

Fault = tuple[int, str]
"""A JSON-RPC error code and its message."""

NOT_JSON: Fault = (-32700, "Parse error: not valid JSON")
NO_OBJECT: Fault = (-32600, "Invalid request: expected one JSON object")
NOT_FINITE: Fault = (-32602, "Invalid params: numbers must be finite")
TOO_MANY_VALUES: Fault = (-32600, f"Invalid request: more than {MAX_VALUES} values in one message")
LONE_SURROGATE: Fault = (-32602, "Invalid params: text must be valid Unicode, without lone surrogates")

_CALL_PARAMS = frozenset({"name", "arguments", "_meta", "inputResponses", "requestState"})
_PIECE_CHARS, _PIECE_ENTRIES = 1 << 17, 1_000
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""Copies of the SDK's constants: importing its types takes longer than a command that needs no server."""
PANEL_META = "holdfast/panel"
"""Where the `_meta` of a result has what is for the client's panel alone."""


class ToolCall(NamedTuple):
    """A well-formed `tools/call`."""

    request_id: RequestId
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    params: dict[str, Any]

    def declared(self, caller: Caller) -> Caller:
        """Return the caller with the client that the call itself declares, as each one does in the stateless era."""
        return declare_client(caller, self.meta.get(CLIENT_INFO), self.meta.get(CLIENT_CAPABILITIES))


def parse(raw: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Return the message and its fault, None when it has none. With a fault, the message is what could be read."""
    if not is_cheap(raw):
        return {"id": edge_id(raw)}, TOO_MANY_VALUES
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


def edge_id(raw: bytes) -> RequestId | None:
    """Return the id of a message that is not parsed, None when neither end of it shows one."""
    return OversizedLine(raw[:EDGE_BYTES], raw[-EDGE_BYTES:]).request_id()


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


def tool_list(entries: Iterable[Tool], *, with_panels: bool = False) -> dict[str, Any]:
    """Return the result of `tools/list`; with panels, what shows a tool's answers and what is for panels alone."""
    return {"tools": [mcp_declaration(entry, with_panels=with_panels) for entry in entries]}


def answer_result(answer: Answer) -> dict[str, Any]:
    """Return the result of a `tools/call` that succeeded."""
    result: dict[str, Any] = {"content": [_block(block) for block in answer.blocks], "isError": False}
    if answer.data is not None:
        result["structuredContent"] = _make_sendable(
            answer.data.model_dump(mode="json", by_alias=True, exclude_none=True)
        )
    if answer.for_panel is not None:
        result["_meta"] = {PANEL_META: dict(answer.for_panel)}
    return result


def dump(value: Any) -> bytes:
    """Return a value as JSON, what is long in it made piece by piece: no single step holds the interpreter for long."""
    return b"".join(_pieces_of(value))


def _pieces_of(value: Any) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > _PIECE_CHARS:
        yield b'"'
        for start in range(0, len(value), _PIECE_CHARS):
            yield to_json(value[start : start + _PIECE_CHARS])[1:-1]
        yield b'"'
    elif not isinstance(value, dict | list) or length_of(value) <= _PIECE_CHARS:
        yield to_json(value)
    elif isinstance(value, dict):
        for number, (key, inner) in enumerate(value.items()):
            yield (b"," if number else b"{") + to_json(key) + b":"
            yield from _pieces_of(inner)
        yield b"}"
    else:
        yield from _pieces_of_list(value)


def _pieces_of_list(entries: list[Any]) -> Iterator[bytes]:
    """Return the pieces of a list: of few entries each on its own, of many entries a thousand at a time."""
    is_many = len(entries) > _PIECE_ENTRIES
    yield b"["
    for start in range(0, len(entries), _PIECE_ENTRIES if is_many else 1):
        if start:
            yield b","
        if is_many:
            yield to_json(entries[start : start + _PIECE_ENTRIES])[1:-1]
        else:
            yield from _pieces_of(entries[start])
    yield b"]"


def content_size(result: dict[str, Any]) -> int:
    """Return about how long a result is as JSON."""
    return length_of(result.get("content")) + length_of(result.get("structuredContent"))


def elicitation_request(question: Question) -> dict[str, Any]:
    """Return the method and parameters of a question to the person."""
    form = {
        "mode": "form",
        "message": replace_lone_surrogates(question.message),
        "requestedSchema": dict(question.schema),
    }
    return {"method": "elicitation/create", "params": form}


def input_required_result(needed: InputNeeded) -> dict[str, Any]:
    """Return the result of a `tools/call` that is to be made again with the reply to a question."""
    requests = {needed.question.key: elicitation_request(needed.question)}
    return {"resultType": "input_required", "inputRequests": requests, "requestState": needed.state}


def stateless_result(result: dict[str, Any], server_info: dict[str, Any]) -> dict[str, Any]:
    """Return a result with what the stateless protocol adds: whether it is complete, and who the server is."""
    return {"resultType": "complete", **result, "_meta": {**result.get("_meta", {}), SERVER_INFO: server_info}}


def error_result(error: HoldfastError) -> dict[str, Any]:
    """Return the result of a `tools/call` that failed: the error's payload as text and as data."""
    payload = _make_sendable(error.payload())
    text = to_json(payload).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": payload, "isError": True}


def _block(block: Text | Media) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": replace_lone_surrogates(block.text)}
    data = base64.b64encode(block.data).decode("ascii")
    if block.kind == "blob":
        return {"type": "resource", "resource": {"uri": block.uri, "mimeType": block.mime_type, "blob": data}}
    return {"type": block.kind, "data": data, "mimeType": block.mime_type}


def _make_sendable(data: dict[str, Any]) -> dict[str, Any]:
    """Return data that JSON can hold: a file's text may have put a lone surrogate into it, and the caller needs an answer.

    The encoder finds out many times faster than a walk through the data would; it holds the interpreter for all of a long
    text, so those are looked at one by one.
    """
    long_texts = {name: text for name, text in data.items() if isinstance(text, str) and len(text) > _PIECE_CHARS}
    is_sendable = not any(map(has_lone_surrogate, long_texts.values()))
    with suppress(ValueError):
        to_json({name: value for name, value in data.items() if name not in long_texts})
        if is_sendable:
            return data
    sendable: dict[str, Any] = replace_in_data(data)
    return sendable


def is_cheap(raw: bytes) -> bool:
    """Return whether a JSON text is cheap to parse: few values and few bytes outside its strings.

    A parser holds the interpreter until it is done: a second for a million names, or for numbers of thousands of digits.
    Strings are cheap, so a message may be one large text, and its other parts are bounded here before it is parsed.
    """
    if len(raw) <= MAX_VALUES:
        return True
    values, outside, at = 0, 0, 0
    while at < len(raw):
        # A window at a time: no call into the interpreter's own code is long, so other threads get their turn.
        quote = raw.find(b'"', at, at + _WINDOW_BYTES)
        end = min(at + _WINDOW_BYTES, len(raw)) if quote < 0 else quote
        outside += end - at
        values += sum(raw.count(mark, at, end) for mark in _SEPARATORS)
        if values > MAX_VALUES or outside > MAX_BYTES_OUTSIDE_STRINGS:
            return False
        at = end if quote < 0 else _end_of_string(raw, quote + 1)
    return True


def _end_of_string(raw: bytes, start: int) -> int:
    """Return the position after the quote that ends a string, the end of the text when there is none."""
    at = start
    while at < len(raw):
        window = min(at + _WINDOW_BYTES, len(raw))
        quote = raw.find(b'"', at, window)
        escape = raw.find(b"\\", at, window if quote < 0 else quote)
        if escape >= 0:
            match = _CHARACTERS.match(raw, escape, window)
            at = match.end() if match and match.end() > escape else min(escape + 2, len(raw))
            quote = at if raw[at : at + 1] == b'"' else -1
        elif quote < 0:
            at = window
        if quote >= 0:
            return quote + 1
    return len(raw)
