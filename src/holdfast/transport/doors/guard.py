"""Checks every HTTP and WebSocket request first: Host, Origin, key, size and speed; then it has a caller.

400 for a query that is not understood, 421 for a Host that is not ours, 403 for a foreign Origin, 401 without a key, 413
and 408 for too much and too slow, 503 for a caller that has more connections or holds more bytes than its share.
The raw key is taken out of the request here; below, there is only `scope["holdfast.caller"]`.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import Self

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.auth.authenticate import Authenticator
from holdfast.auth.context import METRICS_READER, AuthContext, Caller, CallerKind, Door
from holdfast.console.faults import refuse
from holdfast.console.gate import KEY_HEADER, SESSION, ConsoleRefusal, Gate, caller_of
from holdfast.errors import InvalidArgument, describe_place
from holdfast.secret import Secret
from holdfast.shares import Shares
from holdfast.transport.doors.connections import CONNECTION, HttpConnection, HttpConnections
from holdfast.transport.doors.cors import MODEL_KEY_HEADER, add_cors_headers, answer_preflight, is_preflight
from holdfast.transport.doors.hosts import (
    HostRules,
    Network,
    client_address,
    is_loopback,
    is_trusted,
    last_value,
)
from holdfast.transport.doors.oauth_door import WELL_KNOWN, OAuthDoor
from holdfast.transport.doors.restrictions import restrictions_from_query

_log = logging.getLogger(__name__)

CALLER = "holdfast.caller"
MAX_HEAD_BYTES = 65_536
MAX_STRANGERS_BODY_BYTES = 65_536
HEALTH_PATH = "/health"
MCP_PATHS = frozenset({"/mcp", "/ws"})
METRICS_PATH = "/metrics"
_UNSENT_BYTES = 65_536
"""What a connection may be behind with reading; more than that counts as held until it is read."""
_FRAMES = 6
_VERSIONS = frozenset({"1.0", "1.1"})
_SECURE_SCHEMES = frozenset({"https", "wss"})
_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss"}
_CLOSE = {"connection": "close"}
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SECRET_HEADERS = frozenset({b"authorization", b"cookie", KEY_HEADER.encode(), MODEL_KEY_HEADER.encode()})


@dataclass(frozen=True)
class RequestLimits:
    """How much a client may send, how long it may take, and what callers share: connections, bytes that are held."""

    max_body_bytes: int
    body_seconds: float
    connections: HttpConnections
    held_bytes: Shares
    trusted_proxies: tuple[Network, ...] = ()


class HeldBytes:
    """Counts what one request holds of its caller's part of the bytes, until the context is left."""

    def __init__(self, shares: Shares, share: str) -> None:
        self._shares = shares
        self._share = share
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._shares.give_back(self._share, self._count)

    def grow(self, count: int) -> bool:
        """Count a request that has become larger; False when its caller has no room for that."""
        has_room = self._shares.has_room(self._share)
        self._shares.take(self._share, count - self._count)
        self._count = count
        return has_room


class Guard:
    """ASGI middleware; nothing below it sees a request that was refused."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: HostRules,
        authenticator: Authenticator,
        console: Gate | None,
        local_roots: tuple[str, ...],
        limits: RequestLimits,
        oauth: OAuthDoor | None = None,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._authenticator = authenticator
        self._console = console
        self._local_roots = local_roots
        self._limits = limits
        self._oauth = oauth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or answer it here."""
        if scope["type"] not in {"http", "websocket"}:
            return
        refusal = self._refuse_insecure(scope)
        headers = Headers(scope=scope)
        refusal = refusal or self._refuse(scope, headers) or await self._let_in(scope, headers)
        origin = headers.get("origin", "")
        if origin and self._hosts.is_configured(origin):
            send = add_cors_headers(send, origin)
        if refusal is not None:
            await _answer(refusal, scope, receive, send)
            return
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name not in _SECRET_HEADERS]
        connection: HttpConnection = scope["state"][CONNECTION]
        connection.is_busy = True
        expiry = _drop_at_expiry(scope, connection)
        try:
            if scope["type"] == "http" and scope["method"] in _BODY_METHODS:
                await self._read_body_and_run(scope, receive, send)
            else:
                await self._run_app(scope, receive, send)
        finally:
            connection.is_busy = False
            if expiry is not None:
                expiry.cancel()

    def _refuse_insecure(self, scope: Scope) -> Response | None:
        """Take over what a trusted proxy says of a request; refuse plain text from another machine that is none."""
        headers = Headers(scope=scope)
        connection: HttpConnection = scope["state"][CONNECTION]
        if is_trusted(connection.peer, self._limits.trusted_proxies):
            for_, forwarded = headers.getlist("x-forwarded-for"), headers.getlist("forwarded")
            connection.address = client_address(
                connection.peer, ",".join(for_), ",".join(forwarded), self._limits.trusted_proxies
            )
            _forward(scope, headers)
        elif (
            scope["scheme"] not in _SECURE_SCHEMES and not is_loopback(connection.peer) and scope["path"] != HEALTH_PATH
        ):
            return _text(403, "Plain HTTP is for trusted proxies alone; use the https address of this server.", _CLOSE)
        return None

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        if _head_bytes(scope) > MAX_HEAD_BYTES:
            return _text(431, f"The request's head is larger than {MAX_HEAD_BYTES} bytes.", _CLOSE)
        if not scope["path"].isprintable():
            # A route's expression also matches a path with a line end after it, which is another path to every check here.
            return _text(400, "A path has printable characters only.", _CLOSE)
        if scope["http_version"] not in _VERSIONS:
            return _text(505, "HTTP/1.1 and HTTP/1.0 are spoken here.", _CLOSE)
        if "transfer-encoding" in headers and "content-length" in headers:
            return _text(400, "A request has Content-Length or Transfer-Encoding, never both.", _CLOSE)
        host, origin = headers.get("host", ""), _joined_origin(headers)
        if not self._hosts.accepts_host(host):
            return _text(421, "That Host header is not allowed; see server.allowed_hosts.")
        is_secure = scope["scheme"] in _SECURE_SCHEMES
        if origin is not None and not self._hosts.accepts_origin(origin, host, is_secure=is_secure):
            return _text(403, "Requests from that web origin are refused; see server.allowed_origins.")
        if origin is not None and is_preflight(scope, headers):
            return (
                answer_preflight(origin)
                if self._hosts.is_configured(origin)
                else _text(403, "No cross-origin requests.")
            )
        return None

    async def _let_in(self, scope: Scope, headers: Headers) -> Response | None:
        """Give a request its caller, unless its path is open to all; refuse it without one."""
        path: str = scope["path"]
        if path.startswith(WELL_KNOWN):
            is_ours = self._oauth is not None and path in self._oauth.metadata_paths
            return None if is_ours else _text(404, "There is no such page.")
        if path == HEALTH_PATH or (self._console is not None and self._console.is_shell(path)):
            return None
        if self._console is not None and self._console.is_api(path):
            return self._refuse_page(self._console, scope, headers)
        caller = await self._authenticate(path, headers)
        if isinstance(caller, Response):
            return caller
        caller = replace(caller, door=Door.WEBSOCKET if scope["type"] == "websocket" else Door.HTTP)
        if scope["path"] in MCP_PATHS:
            try:
                restrictions = restrictions_from_query(scope["query_string"].decode("latin-1"))
            except InvalidArgument as error:
                return _text(400, error.message)
            caller = replace(caller, restrictions=restrictions)
        return self._count(caller, scope, headers)

    def _refuse_page(self, console: Gate, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request to the console's API, or let it in with its session."""
        checked = console.check(scope, headers)
        if isinstance(checked, ConsoleRefusal):
            return refuse(checked.error, checked.status)
        if checked is None:
            return None
        scope[SESSION] = checked
        return self._count(caller_of(checked, CallerKind.PERSON), scope, headers)

    def _count(self, caller: Caller, scope: Scope, headers: Headers) -> Response | None:
        """Count a request as its caller's; refused when the caller has too many connections or sends too much."""
        connection: HttpConnection = scope["state"][CONNECTION]
        if not self._limits.connections.identify(connection, caller.share):
            return _text(503, "You have too many connections already; close some.", {**_CLOSE, "retry-after": "1"})
        scope[CALLER] = caller
        scope["user"] = _sdk_user(caller.auth)
        if _announced_bytes(headers) > self._limits.max_body_bytes:
            return self._body_too_large()
        return None

    async def _authenticate(self, path: str, headers: Headers) -> Caller | Response:
        scheme, _, text = headers.get("authorization", "").partition(" ")
        key = Secret(text.strip()) if scheme.lower() == "bearer" else Secret("")
        if path == METRICS_PATH:
            opens = self._authenticator.opens_metrics(key)
            return Caller(METRICS_READER, CallerKind.AGENT) if opens else _unauthorized(path)
        model_key = headers.get(MODEL_KEY_HEADER, "").strip()
        own_model_key = Secret(model_key) if model_key else None
        auth = self._authenticator.identify(key, own_model_key) if key.reveal() else None
        if auth is None and self._oauth is not None:
            checked = await self._oauth.authenticate(key) if key.reveal() else self._oauth.ask_for_token()
            if isinstance(checked, Response):
                return checked
            auth = replace(checked, model_key=own_model_key)
        if auth is None:
            return _unauthorized(path)
        return Caller(auth, CallerKind.AGENT, self._local_roots if auth.is_local else ())

    async def _read_body_and_run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, bounded in size and time, before the app below runs."""
        share = scope[CALLER].share if CALLER in scope else ""
        with HeldBytes(self._limits.held_bytes, share) as held_bytes:
            whole = await self._read_body(scope, receive, send, held_bytes)
            if whole is not None:
                await self._run_app(scope, replay_first(whole, receive), send)

    async def _read_body(self, scope: Scope, receive: Receive, send: Send, held_bytes: HeldBytes) -> Message | None:
        """Return the whole body as one message; None when the request was answered here, or its client has gone."""
        body = bytearray()
        max_bytes = self._limits.max_body_bytes if CALLER in scope else MAX_STRANGERS_BODY_BYTES
        with anyio.move_on_after(self._limits.body_seconds) as deadline:
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > max_bytes:
                    await self._body_too_large()(scope, receive, send)
                    return None
                if not held_bytes.grow(len(body)):
                    busy = _text(503, "Your requests hold too much memory already.", {**_CLOSE, "retry-after": "1"})
                    await busy(scope, receive, send)
                    return None
        if deadline.cancelled_caught:
            await _text(408, "The request's body took too long.", _CLOSE)(scope, receive, send)
            return None
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    async def _run_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; its errors are logged by place alone, since a message may hold content, and a path a name."""
        started = False
        connection: HttpConnection = scope["state"][CONNECTION]

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            if len(message.get("body", b"")) > _UNSENT_BYTES:
                # uvicorn waits before it sends, and never after the last piece, so an empty one ends the answer.
                await send({**message, "more_body": True})
                await connection.wait_until_sent()
                if message.get("more_body", False):
                    return
                message = {"type": message["type"], "body": b"", "more_body": False}
            await send(message)
            if message["type"] == "websocket.send":
                await connection.wait_until_sent()

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:  # noqa: BLE001 - uvicorn would log the message
            _log.error("fault in a request over %s: %s", scope["type"], describe_place(error, _FRAMES))
            if scope["type"] == "http" and not started:
                await _text(500, "The server failed.")(scope, receive, send)

    def _body_too_large(self) -> Response:
        return _text(413, f"The request's body is larger than {self._limits.max_body_bytes} bytes.", _CLOSE)


def replay_first(first: Message, receive: Receive) -> Receive:
    """Return a `receive` that gives a message that was received already, then those that follow."""
    unread = [first]

    async def replay() -> Message:
        return unread.pop() if unread else await receive()

    return replay


def _drop_at_expiry(scope: Scope, connection: HttpConnection) -> asyncio.TimerHandle | None:
    """End a connection that has no end of its own when the token that opened it does."""
    grant = scope[CALLER].auth.grant if CALLER in scope else None
    if grant is None or (scope["type"] != "websocket" and scope["method"] != "GET"):
        return None
    return asyncio.get_running_loop().call_later(max(0.0, grant.expires_at - time.time()), connection.drop)


def _forward(scope: Scope, headers: Headers) -> None:
    """Put the scheme and the host that a client used at its proxy in the place of those that the proxy used here."""
    scheme = last_value(headers.getlist("x-forwarded-proto")).lower()
    if scheme in _WEBSOCKET_SCHEMES:
        scope["scheme"] = scheme if scope["type"] == "http" else _WEBSOCKET_SCHEMES[scheme]
    if host := last_value(headers.getlist("x-forwarded-host")):
        others = [field for field in scope["headers"] if field[0] != b"host"]
        scope["headers"] = [*others, (b"host", host.encode("latin-1"))]


def _head_bytes(scope: Scope) -> int:
    """Return the size of the head; h11 limits only heads that arrive in several pieces."""
    fields = sum(len(name) + len(value) for name, value in scope["headers"])
    return fields + len(scope["raw_path"]) + len(scope["query_string"])


def _announced_bytes(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _joined_origin(headers: Headers) -> str | None:
    """Return the Origin header; several are joined, which matches no origin, since readers differ in which they use."""
    origins = headers.getlist("origin")
    return ", ".join(origins) if origins else None


def _sdk_user(auth: AuthContext) -> AuthenticatedUser:
    """Return the tenant as the SDK's user: the SDK lets only the user who opened a session use it."""
    return AuthenticatedUser(AccessToken(token="", client_id=auth.apikey_hash, scopes=[]))


def _unauthorized(path: str) -> Response:
    if path == METRICS_PATH:
        text = "A key is needed: Authorization: Bearer KEY, with the one in metrics.token in the state folder and no other."
    else:
        text = "A key is needed: Authorization: Bearer KEY. The local one is in agent.token in the state folder."
    return _text(401, text, {"www-authenticate": "Bearer"})


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(text + "\n", status, headers)


async def _answer(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    await response(scope, receive, send)
