"""The uvicorn server of the HTTP door: its listening sockets, its connections, and the bounds of what a client sends.

The sockets are bound before anything else starts, so that a port in use is reported at once.
"""

import asyncio
import errno
import socket
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from holdfast.config.server_settings import ServerSettings
from holdfast.errors import Internal, InvalidArgument, ResourceBusy
from holdfast.shares import Shares
from holdfast.transport.doors.connections import CONNECTION, Connections, HttpConnection
from holdfast.transport.doors.guard import MAX_HEAD_BYTES, HeldBytes
from holdfast.transport.doors.hosts import is_loopback
from holdfast.transport.doors.intake import PIECE_BYTES, Intake, PacedTransport
from holdfast.transport.doors.tls import Certificate, speak_tls

_BACKLOG = 2048
_GRACE_SECONDS = 1
_KEEP_ALIVE_SECONDS = 5
_MAX_PIECE_BYTES = 65_536
"""How much of a body whose length was announced is parsed at once: it is one event, whatever it holds."""
_MAX_FIELDS = 200
_MAX_UPGRADE_LINE_BYTES = 8_100
"""The WebSocket library answers nothing when a line of the handshake is longer than 8 KiB with its end."""
_FREE_PARTS = 256
_MIN_PART_BYTES = 64
"""After the first of them, the chunks of a body and the fragments of a message have this size on average."""
_CONTROL_FRAMES = 100
_CONTROL_FRAMES_EACH_SECOND = 10
_BAD_REQUEST, _TOO_LARGE_HEAD = 400, 431
_POLICY, _TRY_AGAIN_LATER = 1008, 1013
_UNPROTECTED = (
    "Other machines reach {host!r}, and nothing protects what they send: tokens and files would cross the network as plain "
    "text. Name a certificate in settings.server.tls.certificate and settings.server.tls.key, or the proxy that speaks "
    "TLS for this server in settings.server.trusted_proxies; or listen on 127.0.0.1, for this machine alone."
)
_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


def listen_on(host: str, port: int, *, or_any_port: bool = False, is_protected: bool = False) -> socket.socket:
    """Return a listening socket; with `or_any_port`, on any free port when this one is in use.

    Raises ResourceBusy when the port is in use, InvalidArgument when there is no such address, or when other machines
    reach it and nothing protects what they send. It listens at once: two sockets can be bound to one port, and only the
    second `listen` fails.
    """
    try:
        family, kind, _protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidArgument(f"{host!r} is not an address of this machine: {error.strerror}.") from None
    if not is_protected and not is_loopback(str(address[0])):
        raise InvalidArgument(_UNPROTECTED.format(host=host))
    # With the protocol left at 0 asyncio does not switch Nagle's delay off, which costs each call 40 ms.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if or_any_port and error.errno in (errno.EADDRINUSE, errno.EACCES) and port != 0:
            return listen_on(host, 0, is_protected=is_protected)
        if error.errno == errno.EADDRINUSE:
            raise ResourceBusy(
                f"Port {port} on {host} is in use by another program. Choose another with --port; 0 takes any."
            ) from None
        raise InvalidArgument(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    return listener


def address_of(listener: socket.socket) -> tuple[str, int]:
    """Return the host and port that a bound socket listens on."""
    host, port = listener.getsockname()[:2]
    return str(host), int(port)


def base_url(listener: socket.socket, *, has_tls: bool = False) -> str:
    """Return the address by which programs of this machine reach the listener."""
    host, port = address_of(listener)
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"{'https' if has_tls else 'http'}://{reachable}:{port}"


class HttpServer(uvicorn.Server):
    """uvicorn without its own handling of signals: they end the whole server, not this door alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._is_listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and let `wait_until_listening` return."""
        await super().startup(sockets)
        self._is_listening.set()

    async def wait_until_listening(self, serving: "asyncio.Task[None]") -> None:
        """Wait until connections are accepted; a serving task that ends before that has failed, and its error is raised."""
        waiting = asyncio.create_task(self._is_listening.wait())
        try:
            await asyncio.wait([waiting, serving], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
                raise Internal("The HTTP door did not open.")
        finally:
            waiting.cancel()

    def stop_listening(self) -> None:
        """Accept no new connections; those that are open go on."""
        for server in self.servers:
            server.close()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave the signals alone."""
        return nullcontext()


def http_config(
    app: ASGIApp,
    limits: ServerSettings,
    connections: Connections,
    held_bytes: Shares,
    certificate: Certificate | None = None,
) -> uvicorn.Config:
    """Return how uvicorn serves an app that the guard is in front of, over TLS when there is a certificate."""
    intake = Intake()
    protocol: Any = bounded_http(limits.slow_client_seconds, connections, intake)
    if certificate is not None:
        protocol = speak_tls(protocol, certificate, limits.slow_client_seconds, connections)
    return uvicorn.Config(
        app,
        http=protocol,
        ws=bounded_websocket(connections, intake, held_bytes),
        ws_max_size=limits.max_body_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


class _BoundedParser(h11.Connection):
    """Parses HTTP, and refuses what costs much more than its bytes: heads of very many fields, bodies in tiny chunks."""

    def __init__(self, max_incomplete_event_size: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self.body_left = 0
        self.refusal: tuple[int, str] | None = None
        self._lines = self._chunks = self._chunk_bytes = 0
        self._is_chunked = False

    def receive_data(self, data: bytes) -> None:
        """Take received bytes; lines are counted until they make an event, which those of a head or a trailer do together."""
        self._lines += data.count(b"\n")
        super().receive_data(data)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. RemoteProtocolError for one that is refused."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _TOO_LARGE_HEAD:
                self.refusal = _TOO_LARGE_HEAD, f"The request's head is larger than {MAX_HEAD_BYTES} bytes."
            raise
        if event is h11.NEED_DATA and self._lines > _MAX_FIELDS:
            self._refuse(_TOO_LARGE_HEAD, f"More than {_MAX_FIELDS} header fields.")
        if event is not h11.NEED_DATA and event is not h11.PAUSED:
            self._lines = 0
        if isinstance(event, h11.Request):
            self._begin_body(event)
        elif isinstance(event, h11.Data):
            self._count_data(len(event.data))
        return event

    def _begin_body(self, request: h11.Request) -> None:
        if len(request.headers) > _MAX_FIELDS:
            self._refuse(_TOO_LARGE_HEAD, f"More than {_MAX_FIELDS} header fields.")
        fields = dict(request.headers)
        self._is_chunked = b"transfer-encoding" in fields
        self.body_left = 0 if self._is_chunked else int(fields.get(b"content-length", b"0"))
        self._chunks = self._chunk_bytes = 0

    def _count_data(self, count: int) -> None:
        if not self._is_chunked:
            self.body_left -= count
            return
        self._chunks += 1
        self._chunk_bytes += count
        if self._chunks > _FREE_PARTS and self._chunk_bytes < _MIN_PART_BYTES * self._chunks:
            self._refuse(_BAD_REQUEST, "The body's chunks are too small; send larger ones, or the Content-Length.")

    def _refuse(self, status: int, text: str) -> NoReturn:
        self.refusal = status, text
        raise h11.RemoteProtocolError(text, status)


def bounded_http(head_seconds: float, connections: Connections, intake: Intake) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol with a deadline for each request's head, and 503 for a connection without room.

    Each connection is counted from its beginning to its end, also as a WebSocket, and a request finds it in its state.
    What it receives is parsed by turns.
    """

    class BoundedHttp(H11Protocol):
        accepted: HttpConnection | None = None
        _deadline: asyncio.TimerHandle | None = None
        _connection: HttpConnection | None = None
        _paced: PacedTransport | None = None
        _is_websocket = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self.conn: _BoundedParser = _BoundedParser(MAX_HEAD_BYTES)
            address = transport.get_extra_info("peername")
            host = str(address[0]) if address else ""
            self._connection = self.accepted or connections.open_http(host, transport.abort)
            if self._connection is None:
                super().connection_made(transport)
                transport.write(_UNAVAILABLE)
                transport.close()
                return
            self._paced = PacedTransport(transport, intake, self._connection, self._parse, self._piece_bytes)
            super().connection_made(self._paced)  # type: ignore[arg-type]
            self._connection.wait_until_sent = self.flow.drain
            self.app_state = {**self.app_state, CONNECTION: self._connection}
            self._start_deadline()

        def data_received(self, data: bytes) -> None:
            if self._paced is not None and not self.transport.is_closing():
                self._paced.receive(data)

        def _piece_bytes(self) -> int:
            return max(PIECE_BYTES, min(self.conn.body_left, _MAX_PIECE_BYTES))

        def _parse(self, data: bytes) -> None:
            request = self.cycle
            try:
                super().data_received(data)
            except h11.LocalProtocolError:  # refused in the middle of its answer
                self.transport.abort()
            if self.transport.is_closing():
                self._end_request(self.cycle)
            if self._is_websocket or self.cycle is not request:
                self._cancel_deadline()
            elif getattr(request, "response_complete", True):
                self._start_deadline()

        def _end_request(self, cycle: RequestResponseCycle | None) -> None:
            """Tell the app that a request was refused while it was served, so that it answers nothing more."""
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

        def send_400_response(self, msg: str) -> None:
            status, text = self.conn.refusal or (_BAD_REQUEST, msg)
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            for event in (
                h11.Response(status_code=status, headers=headers),
                h11.Data(f"{text}\n".encode()),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            longest = max(len(event.target), *(len(name) + len(value) for name, value in event.headers))
            if longest > _MAX_UPGRADE_LINE_BYTES:
                self.conn.refusal = _TOO_LARGE_HEAD, f"A line of more than {_MAX_UPGRADE_LINE_BYTES} bytes."
                self.send_400_response("")
                return
            self._is_websocket = True
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_deadline()
            if self._paced is not None:
                self._paced.drop()
            if self._connection is not None:
                connections.http.close(self._connection)
            super().connection_lost(exc)

        def _start_deadline(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(head_seconds, self._close)

        def _cancel_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _close(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return BoundedHttp


def bounded_websocket(connections: Connections, intake: Intake, held_bytes: Shares) -> type[WebSocketsSansIOProtocol]:
    """Return uvicorn's WebSocket protocol, which takes over a connection of the HTTP protocol and counts its end.

    What it receives is parsed by turns, unfinished messages count as bytes that their caller holds, and a client that
    sends messages in tiny fragments, or very many pings, is cut off.
    """

    class BoundedWebSocket(WebSocketsSansIOProtocol):
        _held_bytes: HeldBytes | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            if isinstance(transport, PacedTransport):
                transport.drop()
                transport = transport.inner
            self._connection: HttpConnection = self.app_state[CONNECTION]
            self._paced = PacedTransport(transport, intake, self._connection, self._parse)
            self._connection.wait_until_sent = self.writable.wait
            self._made_at = self.loop.time()
            self._control_frames = self._fragment_bytes = 0
            super().connection_made(self._paced)  # type: ignore[arg-type]

        def data_received(self, data: bytes) -> None:
            if not self.transport.is_closing():
                self._paced.receive(data)

        def _parse(self, data: bytes) -> None:
            super().data_received(data)
            if self._held_bytes is None and self._connection.share:
                self._held_bytes = HeldBytes(held_bytes, self._connection.share)
            if self._held_bytes is not None and not self._held_bytes.grow(
                len(self.conn.reader.buffer) + self._fragment_bytes
            ):
                self._cut_off(_TRY_AGAIN_LATER, "your requests hold too much memory already")

        def handle_events(self) -> None:
            super().handle_events()
            if not self.frames:
                self._fragment_bytes = 0

        def handle_cont(self, event: Frame) -> None:
            self._fragment_bytes += len(event.data)
            if len(self.frames) > _FREE_PARTS and self._fragment_bytes < _MIN_PART_BYTES * len(self.frames):
                self._cut_off(_POLICY, "messages in tiny fragments are refused")
            else:
                super().handle_cont(event)

        def handle_ping(self) -> None:
            self._count_control_frame()
            if not self.close_sent:
                super().handle_ping()

        def handle_pong(self, event: Frame) -> None:
            self._count_control_frame()
            super().handle_pong(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._paced.drop()
            if self._held_bytes is not None:
                self._held_bytes.grow(0)
            connections.http.close(self._connection)
            super().connection_lost(exc)

        def _count_control_frame(self) -> None:
            """Count a ping or pong: a burst, then some each second, while the client reads what answers them."""
            self._control_frames += 1
            allowed = _CONTROL_FRAMES + _CONTROL_FRAMES_EACH_SECOND * (self.loop.time() - self._made_at)
            if self._control_frames > allowed or self._paced.inner.get_write_buffer_size() > MAX_HEAD_BYTES:
                self._cut_off(_POLICY, "too many pings")

        def _cut_off(self, code: int, reason: str) -> None:
            if not self.close_sent and not self.transport.is_closing():
                self.conn.fail(code, reason)
                if self.conn.close_sent is None:  # the handshake is not over
                    self.transport.abort()
                else:
                    self.handle_parser_exception()

    return BoundedWebSocket
