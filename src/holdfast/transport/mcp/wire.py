"""Pure: answers, errors and the tool list in the words of the protocol."""

import base64
from collections.abc import Iterable
from typing import Any

from pydantic_core import to_json

from holdfast.call import InputNeeded, Question
from holdfast.errors import HoldfastError
from holdfast.text.surrogates import replace_in_data, replace_lone_surrogates
from holdfast.tools.answer import Answer, Media, Text
from holdfast.tools.registry import Effect, Tool

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""Written here, because loading the protocol's types takes longer than a command that needs no server."""


def tool_entry(entry: Tool) -> dict[str, Any]:
    """Return one entry of `tools/list`."""
    listed: dict[str, Any] = {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "inputSchema": entry.input_schema,
        "annotations": _hints(entry),
    }
    if entry.output_schema is not None:
        listed["outputSchema"] = entry.output_schema
    return listed


def tool_list(entries: Iterable[Tool]) -> dict[str, Any]:
    """Return the result of `tools/list`."""
    return {"tools": [tool_entry(entry) for entry in entries]}


def answered(answer: Answer) -> dict[str, Any]:
    """Return the result of a `tools/call` that succeeded."""
    result: dict[str, Any] = {"content": [_block(block) for block in answer.blocks], "isError": False}
    if answer.data is not None:
        result["structuredContent"] = _make_sendable(
            answer.data.model_dump(mode="json", by_alias=True, exclude_none=True)
        )
    return result


def question(asked: Question) -> dict[str, Any]:
    """Return method and parameters of a question to the person."""
    form = {"mode": "form", "message": replace_lone_surrogates(asked.message), "requestedSchema": dict(asked.schema)}
    return {"method": "elicitation/create", "params": form}


def input_required(needed: InputNeeded) -> dict[str, Any]:
    """Return the result of a `tools/call` that is to be made again with the reply to a question."""
    asked = {needed.question.key: question(needed.question)}
    return {"resultType": "input_required", "inputRequests": asked, "requestState": needed.state}


def stamped(result: dict[str, Any], server_info: dict[str, Any]) -> dict[str, Any]:
    """Return a result as the stateless protocol wants it: complete or not, and with the name of the server."""
    return {"resultType": "complete", **result, "_meta": {SERVER_INFO: server_info}}


def refused(error: HoldfastError) -> dict[str, Any]:
    """Return the result of a `tools/call` that failed: the error's payload as text and as data."""
    payload = _make_sendable(error.payload())
    text = to_json(payload).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": payload, "isError": True}


def _hints(entry: Tool) -> dict[str, bool]:
    return {
        "readOnlyHint": entry.effect is Effect.READ,
        "destructiveHint": entry.effect is Effect.DESTROY,
        "idempotentHint": entry.idempotent or entry.effect is Effect.READ,
        "openWorldHint": False,
    }


def _block(block: Text | Media) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": replace_lone_surrogates(block.text)}
    data = base64.b64encode(block.data).decode("ascii")
    if block.kind == "blob":
        return {"type": "resource", "resource": {"uri": block.uri, "mimeType": block.mime_type, "blob": data}}
    return {"type": block.kind, "data": data, "mimeType": block.mime_type}


def _make_sendable(data: dict[str, Any]) -> dict[str, Any]:
    """Return data that JSON can hold: a file's text may have put a lone surrogate into it, and the caller needs an answer.

    The encoder finds out many times faster than a walk through the data would.
    """
    try:
        to_json(data)
    except ValueError:
        sendable: dict[str, Any] = replace_in_data(data)
        return sendable
    return data
