"""The uvicorn server of the HTTP door: its listening sockets, its connections, and a deadline for each request's head.

The sockets are bound before anything else starts, so that a port in use is reported at once.
"""

import asyncio
import errno
import socket
from contextlib import AbstractContextManager, nullcontext

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast.config.settings import ServerSettings
from holdfast.errors import Internal, InvalidArgument, ResourceBusy
from holdfast.transport.doors.connections import CONNECTION, Connections, HttpConnection
from holdfast.transport.doors.guard import MAX_HEAD_BYTES

_BACKLOG = 2048
_GRACE_SECONDS = 1
_KEEP_ALIVE_SECONDS = 5
_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


def listen_on(host: str, port: int, *, or_any_port: bool = False) -> socket.socket:
    """Return a listening socket; with `or_any_port`, on any free port when this one is in use.

    Raises ResourceBusy when the port is in use, InvalidArgument when there is no such address.
    It listens at once: two sockets can be bound to one port, and only the second `listen` fails.
    """
    try:
        family, kind, _protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidArgument(f"{host!r} is not an address of this machine: {error.strerror}.") from None
    # With the protocol left at 0 asyncio does not switch Nagle's delay off, which costs each call 40 ms.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if or_any_port and error.errno in (errno.EADDRINUSE, errno.EACCES) and port != 0:
            return listen_on(host, 0)
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


def base_url(listener: socket.socket) -> str:
    """Return the address by which programs of this machine reach the listener."""
    host, port = address_of(listener)
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{reachable}:{port}"


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


def http_config(app: ASGIApp, limits: ServerSettings, connections: Connections) -> uvicorn.Config:
    """Return how uvicorn serves an app that the guard is in front of."""
    return uvicorn.Config(
        app,
        http=protocol_with_head_deadline(limits.slow_client_seconds, connections),
        ws=counted_websocket(connections),
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


def protocol_with_head_deadline(head_seconds: float, connections: Connections) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol with a deadline for each request's head, and 503 for a connection without room.

    Each connection is counted from its beginning to its end, also as a WebSocket, and a request finds it in its state.
    """

    class HeadDeadlineProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _connection: HttpConnection | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._connection = connections.open_http(self.client[0] if self.client else "", transport.abort)
            if self._connection is not None:
                self.app_state = {**self.app_state, CONNECTION: self._connection}
                self._start_deadline()
            else:
                transport.write(_UNAVAILABLE)
                transport.close()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            request = self.cycle
            super().data_received(data)
            if self.cycle is not request:
                self._cancel_deadline()
            elif getattr(request, "response_complete", True):
                self._start_deadline()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._cancel_deadline()
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_deadline()
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

    return HeadDeadlineProtocol


def counted_websocket(connections: Connections) -> type[WebSocketsSansIOProtocol]:
    """Return uvicorn's WebSocket protocol, which takes over a connection of the HTTP protocol and counts its end."""

    class CountedWebSocket(WebSocketsSansIOProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            connections.http.close(self.app_state[CONNECTION])
            super().connection_lost(exc)

    return CountedWebSocket
