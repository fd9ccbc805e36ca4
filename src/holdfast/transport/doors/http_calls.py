"""Serves stateless tool calls over HTTP without the SDK, whose every step with a message holds the event loop.

A call that asks for progress or for a tool that is not there, and every request that is not quite in order, is left to the
SDK and its words.
"""

import anyio
import mcp_types as types
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request, find_duplicated_routing_header
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.auth.context import Caller
from holdfast.call import Elicit
from holdfast.errors import HoldfastError, NotFound
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import elicit_statelessly
from holdfast.transport.mcp.run import check_room, held_response, parent_span, parse_message, run_tool, write_result
from holdfast.transport.mcp.stateless_elicitation import BadState
from holdfast.transport.mcp.wire import ToolCall, parse_call

_VERSION_HEADER = "mcp-protocol-version"
_PING_SECONDS = 15.0
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class HttpCalls:
    """Answers tool calls of the stateless era: as JSON, or as a stream that begins once a call takes long."""

    def __init__(self, dispatcher: Dispatcher, server_info: dict[str, object]) -> None:
        self._dispatcher = dispatcher
        self._server_info = server_info

    async def serve(self, caller: Caller, body: bytes, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve a request; False, with nothing done, for one that is the SDK's. ResourceBusy when the caller holds too much."""
        call = await self._read_call(caller, body, Request(scope))
        if call is None:
            return False
        check_room(self._dispatcher, caller)
        caller = call.declared(caller)
        try:
            elicit = elicit_statelessly(caller, call.meta[types.PROTOCOL_VERSION_META_KEY], call.params)
        except BadState:
            return False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
            await self._answer(caller, call, elicit, scope, receive, send)
            tasks.cancel_scope.cancel()
        return True

    async def _read_call(self, caller: Caller, body: bytes, request: Request) -> ToolCall | None:
        """Return the call in a request that says the same in its headers and in its body, None for any other request."""
        headers = request.headers
        if headers.get(_VERSION_HEADER) not in MODERN_PROTOCOL_VERSIONS or not all(check_accept_headers(request)):
            return None
        if find_duplicated_routing_header(headers.items()) is not None:
            return None
        message, fault = await parse_message(self._dispatcher, caller, body)
        call = parse_call(message) if fault is None and message.get("jsonrpc") == "2.0" else None
        if call is None or call.meta.get("progressToken") is not None or not self._has_tool(caller, call):
            return None
        verdict = classify_inbound_request(message, headers=dict(headers))
        return None if isinstance(verdict, InboundLadderRejection) else call

    def _has_tool(self, caller: Caller, call: ToolCall) -> bool:
        """Return whether there is a tool of that name for the caller, be it one that this connection may not call."""
        try:
            self._dispatcher.find(call.declared(caller), call.name)
        except HoldfastError as error:
            return not isinstance(error, NotFound)
        return True

    async def _answer(
        self, caller: Caller, call: ToolCall, elicit: Elicit | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answers: list[bytes] = []
        is_done = anyio.Event()

        async def run() -> None:
            parent = parent_span(call.meta, Headers(scope=scope).get("traceparent"))
            result = await run_tool(self._dispatcher, caller, call.name, call.arguments, None, elicit, parent=parent)
            stamped = wire.stateless_result(result, self._server_info)
            answers.append(await write_result(self._dispatcher, caller, call.request_id, stamped))
            is_done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.move_on_after(_PING_SECONDS):
                await is_done.wait()
            if answers:
                with held_response(self._dispatcher, caller, call.request_id, answers[0]) as answer:
                    await Response(answer, media_type="application/json")(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            while not answers:
                # A proxy closes a stream that is silent for long, and with it the call.
                await send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})
                with anyio.move_on_after(_PING_SECONDS):
                    await is_done.wait()
            with held_response(self._dispatcher, caller, call.request_id, answers[0]) as answer:
                event = b"event: message\r\ndata: " + answer + b"\r\n\r\n"
                await send({"type": "http.response.body", "body": event, "more_body": False})


async def _cancel_when_gone(receive: Receive, calls: anyio.CancelScope) -> None:
    """Cancel the call when its client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    calls.cancel()
