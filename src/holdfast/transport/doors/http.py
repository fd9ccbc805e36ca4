"""The HTTP door: MCP over streamable HTTP at /mcp, WebSocket at /ws, /health, /api/logs, and the console."""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import PROTOCOL_VERSION_META_KEY
from pydantic_core import from_json, to_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from holdfast import __version__
from holdfast.auth.context import Caller
from holdfast.auth.rates import Rate
from holdfast.config.server_settings import ServerSettings
from holdfast.errors import NotFound, PermissionDenied, RateLimited, ResourceBusy
from holdfast.observe.metrics import Reading
from holdfast.shares import Shares
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.frames import SERVER_ERROR
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import CALLER, replay_first
from holdfast.transport.doors.http_calls import HttpCalls
from holdfast.transport.doors.http_logs import CallLogDoor
from holdfast.transport.doors.http_metrics import answer_scrapes
from holdfast.transport.doors.http_sessions import SESSION_HEADER, HttpSessions
from holdfast.transport.doors.oauth_door import OAuthDoor
from holdfast.transport.doors.streams.stream import serve_stream
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import RESPONSE_ENDED
from holdfast.transport.mcp.protocol import Context, build_server
from holdfast.transport.mcp.run import (
    LARGE_BYTES,
    TURN,
    TURN_BYTES,
    Turn,
    Turns,
    check_room,
    parent_span,
    parse_message,
    run_tool,
)
from holdfast.transport.mcp.wire import LONE_SURROGATE, TOO_MANY_VALUES, Fault, edge_id, parse_call

_SUBPROTOCOL = "mcp"
_GOING_AWAY = 1001
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class McpDoor:
    """ASGI endpoint for both protocol eras.

    A client that initializes gets a session. The SDK refuses any other handshake request without a session header;
    here such a request is served on its own, as a sessionless one.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: ServerSettings,
        connections: Connections,
        oauth: OAuthDoor | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._connections = connections
        self._oauth = oauth
        self._turns = Turns()
        server = build_server(dispatcher, _get_caller)
        self._server_info = server.server_info_stamp
        self._calls = HttpCalls(dispatcher, self._server_info)
        self._with_session = StreamableHTTPSessionManager(
            server, max_request_body_size=settings.max_body_bytes, max_sessions=settings.max_sessions
        )
        self._sessions = HttpSessions(self._with_session, settings.max_sessions)
        dispatcher.metrics.watch(Reading.HTTP_SESSIONS, lambda: len(self._sessions))
        self._without_session = StreamableHTTPSessionManager(
            build_server(dispatcher, _get_caller), stateless=True, max_request_body_size=settings.max_body_bytes
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep sessions alive for as long as the context is open."""
        async with self._with_session.run(), self._without_session.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] == "GET":
            await self._listen(scope, receive, send)
            return
        with self._connections.stream():
            if scope["method"] != "POST":
                await self._sessions.serve(scope, receive, send)
                return
            message = await receive()
            body = message.get("body", b"")
            try:
                traits = await self._inspect(scope[CALLER], body)
            except ResourceBusy as busy:
                await _refuse(body, 503, (SERVER_ERROR, busy.message))(scope, receive, send)
                return
            if not traits.is_cheap:
                await _refuse(body, 400, TOO_MANY_VALUES)(scope, receive, send)
                return
            if traits.is_call and await self._exceeds_grant(scope[CALLER], body):
                assert self._oauth is not None
                await self._oauth.ask_to_write()(scope, receive, send)
                return
            if traits.has_surrogate:
                response = await self._run_call_with_lone_surrogate(scope[CALLER], body)
                if response is not None:
                    await response(scope, receive, send)
                    return
            scope[RESPONSE_ENDED] = ended = anyio.Event()
            scope[TURN] = turn = self._turns.of(scope[CALLER].share)
            send = _end_turn_with_body(turn, send)
            try:
                if await self._calls.serve(scope[CALLER], body, scope, receive, send):
                    return
                check_room(self._dispatcher, scope[CALLER])
                send = _hold_bodies(self._dispatcher.held_bytes, scope[CALLER].share, send)
                if len(body) > TURN_BYTES or not traits.is_call:
                    await turn.take()
                if SESSION_HEADER in Headers(scope=scope):
                    await self._sessions.serve(scope, replay_first(message, receive), send)
                elif traits.is_initialize:
                    await self._open_session(body, scope, replay_first(message, receive), send)
                else:
                    await self._without_session.handle_request(scope, replay_first(message, receive), send)
            except ResourceBusy as busy:
                await _refuse(body, 503, (SERVER_ERROR, busy.message))(scope, receive, send)
            finally:
                ended.set()
                turn.end()

    async def _exceeds_grant(self, caller: Caller, body: bytes) -> bool:
        """Return whether a body calls a tool that changes something, and its caller's token may only read.

        The dispatcher refuses it as well; here its client is told in the words of the protocol which scope it lacks.
        """
        if caller.auth.may_write or self._oauth is None:
            return False
        message, fault = await parse_message(self._dispatcher, caller, body)
        call = parse_call(message) if fault is None else None
        try:
            return call is not None and not self._dispatcher.find(caller, call.name)
        except PermissionDenied:
            return True
        except NotFound:
            return False

    async def _open_session(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session, which counts as a call that reads; refused when there are too many in a minute, or all busy."""
        caller: Caller = scope[CALLER]
        try:
            await self._dispatcher.admit(caller, Rate.READ)
        except RateLimited as limited:
            refusal = _refuse(body, 429, (SERVER_ERROR, limited.message))
            refusal.headers["retry-after"] = str(limited.payload()["retry_after_seconds"])
            await refusal(scope, receive, send)
            return
        except PermissionDenied as denied:
            await _refuse(body, 401, (SERVER_ERROR, denied.message))(scope, receive, send)
            return
        if not await self._sessions.open(caller.share, scope, receive, send):
            text = "Too many open sessions of yours, and none is idle; end some."
            await _refuse(body, 503, (SERVER_ERROR, text))(scope, receive, send)

    async def _inspect(self, caller: Caller, body: bytes) -> "_BodyTraits":
        """Look at a body before it is parsed, in a thread of the caller's share when it is large."""
        if len(body) <= LARGE_BYTES:
            return _inspect_body(body)
        return await self._dispatcher.in_thread(caller, _inspect_body, body)

    async def _run_call_with_lone_surrogate(self, caller: Caller, body: bytes) -> Response | None:
        """Run a call with a lone surrogate in it, as streams do; None for any other body.

        The SDK refuses the whole message, and it is the tool's to refuse the argument in its own words.
        """
        message, fault = await parse_message(self._dispatcher, caller, body)
        call = parse_call(message) if fault == LONE_SURROGATE else None
        if call is None:
            return None
        parent = parent_span(call.meta)
        result = await run_tool(self._dispatcher, caller, call.name, call.arguments, None, parent=parent)
        if PROTOCOL_VERSION_META_KEY in call.meta:
            result = wire.stateless_result(result, self._server_info)
        response = {"jsonrpc": "2.0", "id": call.request_id, "result": result}
        return Response(to_json(response), media_type="application/json")

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a session's stream of notifications, which has no end of its own, until the server drains."""
        with self._connections.event_stream():
            await self._connections.next_or_none(partial(self._sessions.serve, scope, receive, send))
        if self._connections.is_draining:
            with suppress(RuntimeError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})


class WebSocketDoor:
    """ASGI endpoint: one text frame is one JSON-RPC message. Frames over the size limit are refused by uvicorn."""

    def __init__(self, dispatcher: Dispatcher, connections: Connections) -> None:
        self._dispatcher = dispatcher
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept and serve one connection until either side ends it."""
        await receive()
        is_offered = _SUBPROTOCOL in scope.get("subprotocols", [])
        await send({"type": "websocket.accept", "subprotocol": _SUBPROTOCOL if is_offered else None})
        is_open = True

        async def next_message() -> bytes | None:
            nonlocal is_open
            event = await self._connections.next_or_none(receive)
            if event is None:
                return None
            is_open = event["type"] == "websocket.receive"
            if not is_open:
                return None
            text = event.get("text")
            return text.encode() if text is not None else event.get("bytes") or b""

        async def send_message(message: bytes) -> None:
            if is_open:
                await send({"type": "websocket.send", "text": message.decode()})

        with self._connections.stream():
            await serve_stream(self._dispatcher, scope[CALLER], next_message, send_message)
        if is_open:
            await send({"type": "websocket.close", "code": _GOING_AWAY})


def build_app(
    dispatcher: Dispatcher,
    mcp: McpDoor | None,
    connections: Connections,
    console: Iterable[BaseRoute] = (),
    *,
    has_metrics: bool = False,
    oauth: OAuthDoor | None = None,
) -> Starlette:
    """Return the routes that are switched on, for the guard to wrap."""
    routes: list[BaseRoute] = [Route("/health", answer_health), *(oauth.routes() if oauth else [])]
    if has_metrics:
        routes.append(Route("/metrics", answer_scrapes(dispatcher.metrics)))
    if mcp is not None:
        routes.append(Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]))
        routes.append(WebSocketRoute("/ws", WebSocketDoor(dispatcher, connections)))
        routes.append(Route("/api/logs", CallLogDoor(dispatcher).__call__, methods=["GET"]))
    return Starlette(routes=[*routes, *console])


def _get_caller(ctx: Context) -> Caller:
    if not isinstance(ctx.request, Request):
        raise TypeError("a message without its HTTP request")
    caller: Caller = ctx.request.scope[CALLER]
    return caller


def _end_turn_with_body(turn: Turn, send: Send) -> Send:
    """Return a `send` that ends the turn when a body goes out: that it is made held up the others, not how it is read."""

    async def send_and_end(message: Message) -> None:
        if message.get("body"):
            turn.end()
        await send(message)

    return send_and_end


def _hold_bodies(held_bytes: Shares, share: str, send: Send) -> Send:
    """Return a `send` that counts each part of an answer as its caller's bytes until it is read."""

    async def send_and_hold(message: Message) -> None:
        with held_bytes.holding(share, len(message.get("body", b""))):
            await send(message)

    return send_and_hold


class _BodyTraits(NamedTuple):
    """What decides how a body is served, known before it is parsed as a message."""

    is_cheap: bool
    is_call: bool
    is_initialize: bool
    has_surrogate: bool


def _inspect_body(body: bytes) -> _BodyTraits:
    if not wire.is_cheap(body):
        return _BodyTraits(is_cheap=False, is_call=False, is_initialize=False, has_surrogate=False)
    return _BodyTraits(
        is_cheap=True,
        is_call=b'"tools/call"' in body,
        is_initialize=_is_initialize(body),
        has_surrogate=_SURROGATE_ESCAPE.search(body) is not None,
    )


def _refuse(body: bytes, status: int, fault: Fault) -> Response:
    code, text = fault
    error = {"jsonrpc": "2.0", "id": edge_id(body), "error": {"code": code, "message": text}}
    return Response(to_json(error), status, media_type="application/json")


def _is_initialize(body: bytes) -> bool:
    if b'"initialize"' not in body:
        return False
    try:
        message = from_json(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


async def answer_health(_request: Request) -> Response:
    """Say that this process serves, and which version it is."""
    return JSONResponse(
        {"status": "ok", "name": "holdfast", "version": __version__}, headers={"cache-control": "no-store"}
    )
