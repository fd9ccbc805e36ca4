"""The HTTP door: MCP over streamable HTTP at /mcp, WebSocket at /ws, /health, and the person's pages."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import PROTOCOL_VERSION_META_KEY
from pydantic_core import from_json, to_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from holdfast import __version__
from holdfast.auth.context import Caller
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors.browser_sessions import COOKIE, SESSION_SECONDS, ConsoleLinks
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import CALLER
from holdfast.transport.doors.websocket import WebSocketDoor
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import RESPONSE_ENDED
from holdfast.transport.mcp.parse import HALF_CHARACTERS, id_of, is_call, parse
from holdfast.transport.mcp.protocol import Context, build_server
from holdfast.transport.mcp.run import run_tool

_MAX_SESSIONS = 1_000
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_PAGE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class McpDoor:
    """ASGI endpoint for both protocol eras.

    A client that initializes gets a session. The SDK refuses any other handshake request without a session header;
    here such a request is served on its own, as a sessionless one.
    """

    def __init__(self, dispatcher: Dispatcher, max_body_bytes: int, connections: Connections) -> None:
        self._dispatcher = dispatcher
        self._connections = connections
        server = build_server(dispatcher, _caller_of)
        self._server_info = server.server_info_stamp
        self._with_session = StreamableHTTPSessionManager(
            server, max_request_body_size=max_body_bytes, max_sessions=_MAX_SESSIONS
        )
        self._without_session = StreamableHTTPSessionManager(
            build_server(dispatcher, _caller_of), stateless=True, max_request_body_size=max_body_bytes
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
                await self._with_session.handle_request(scope, receive, send)
                return
            message = await receive()
            body = message.get("body", b"")
            answer = await self._answer_half_characters(scope, body)
            if answer is not None:
                await answer(scope, receive, send)
                return
            has_session = "mcp-session-id" in Headers(scope=scope) or _is_initialize(body)
            manager = self._with_session if has_session else self._without_session
            scope[RESPONSE_ENDED] = ended = anyio.Event()
            try:
                await manager.handle_request(scope, _again(message, receive), send)
            finally:
                ended.set()

    async def _answer_half_characters(self, scope: Scope, body: bytes) -> Response | None:
        """Answer a call whose text holds half a character: the SDK refuses it unread, and it is the tool's to refuse."""
        if not _HALF_CHARACTER.search(body):
            return None
        message, fault = parse(body)
        params, number = message.get("params"), id_of(message)
        if fault != HALF_CHARACTERS or number is None or message.get("method") != "tools/call":
            return None
        if not isinstance(params, dict) or not is_call(params):
            return None
        result = await run_tool(self._dispatcher, scope[CALLER], params["name"], params.get("arguments") or {}, None)
        if PROTOCOL_VERSION_META_KEY in (params.get("_meta") or {}):
            result = wire.stamped(result, self._server_info)
        return Response(to_json({"jsonrpc": "2.0", "id": number, "result": result}), media_type="application/json")

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a session's stream of notices, which would last for ever, until the server drains."""
        await self._connections.next_or_none(partial(self._with_session.handle_request, scope, receive, send))
        if self._connections.draining:
            with suppress(RuntimeError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def http_app(
    dispatcher: Dispatcher, mcp: McpDoor | None, connections: Connections, links: ConsoleLinks | None
) -> Starlette:
    """Return the routes that are switched on; the guard goes around it."""
    routes: list[BaseRoute] = [Route("/health", _health)]
    if mcp is not None:
        routes.append(Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]))
        routes.append(WebSocketRoute("/ws", WebSocketDoor(dispatcher, connections)))
    if links is not None:
        routes.append(Route("/session", _session(links)))
        routes.append(Route("/", _front))
    return Starlette(routes=routes)


def _caller_of(ctx: Context) -> Caller:
    if not isinstance(ctx.request, Request):
        raise TypeError("a message without its HTTP request")
    caller: Caller = ctx.request.scope[CALLER]
    return caller


def _is_initialize(body: bytes) -> bool:
    if b'"initialize"' not in body:
        return False
    try:
        message = from_json(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _again(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


async def _health(_request: Request) -> Response:
    return JSONResponse(
        {"status": "ok", "name": "holdfast", "version": __version__}, headers={"cache-control": "no-store"}
    )


def _session(links: ConsoleLinks) -> Callable[[Request], Awaitable[Response]]:
    async def exchange(request: Request) -> Response:
        """Turn a one-use link into a cookie that scripts cannot read and other sites cannot send."""
        session = links.redeem(request.query_params.get("token", "")) if request.method == "GET" else None
        if session is None:
            text = "This link was used before or is older than a minute. Run `holdfast open` for a new one.\n"
            return PlainTextResponse(text, 403, _PAGE_HEADERS)
        response = RedirectResponse("/", 303, _PAGE_HEADERS)
        response.set_cookie(COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict", path="/")
        return response

    return exchange


async def _front(_request: Request) -> Response:
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Holdfast</title>"
        f"<h1>Holdfast {__version__}</h1>"
        "<p>This server is running. Agents reach it at <code>/mcp</code> and <code>/ws</code>, "
        "and through <code>holdfast stdio</code>.</p>"
        "<p>There is no console in this version: what agents changed is listed by <code>list_changes</code>.</p>"
    )
    return HTMLResponse(page, headers=_PAGE_HEADERS)
