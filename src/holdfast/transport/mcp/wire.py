"""Pure: converts tools, answers, errors and questions to the JSON of the protocol."""

import base64
from collections.abc import Iterable
from typing import Any

from pydantic_core import to_json

from holdfast.call import InputNeeded, Question
from holdfast.errors import HoldfastError
from holdfast.text.decode import replace_in_data, replace_lone_surrogates
from holdfast.tools.answer import Answer, Media, Text
from holdfast.tools.registry import Effect, Tool

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""A copy of the SDK's constant: importing its types takes longer than a command that needs no server."""


def tool_entry(entry: Tool) -> dict[str, Any]:
    """Return one entry of `tools/list`."""
    tool: dict[str, Any] = {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "inputSchema": entry.input_schema,
        "annotations": _hints(entry),
    }
    if entry.output_schema is not None:
        tool["outputSchema"] = entry.output_schema
    return tool


def tool_list(entries: Iterable[Tool]) -> dict[str, Any]:
    """Return the result of `tools/list`."""
    return {"tools": [tool_entry(entry) for entry in entries]}


def answer_result(answer: Answer) -> dict[str, Any]:
    """Return the result of a `tools/call` that succeeded."""
    result: dict[str, Any] = {"content": [_block(block) for block in answer.blocks], "isError": False}
    if answer.data is not None:
        result["structuredContent"] = _make_sendable(
            answer.data.model_dump(mode="json", by_alias=True, exclude_none=True)
        )
    return result


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
    return {"resultType": "complete", **result, "_meta": {SERVER_INFO: server_info}}


def error_result(error: HoldfastError) -> dict[str, Any]:
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
