"""Counts the open connections of all doors, divides those of HTTP between callers, and drains them when the server ends."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import anyio

from holdfast.errors import ResourceBusy
from holdfast.observe.metrics import Metrics, Reading
from holdfast.shares import LARGE, Shares

CONNECTION = "holdfast.connection"
"""Where a request's scope has its connection, in `state`."""

Value = TypeVar("Value")
_SOCKET, _HTTP = "socket", "http"


@dataclass(eq=False)
class HttpConnection:
    """One open connection: the remote address, whose it is once a request showed a key, and whether it has a request.

    `peer` is who is at its other end; `address` is whom a trusted proxy there speaks for, request by request.
    A WebSocket always counts as busy. `wait_until_sent` waits until the client has taken nearly all that was sent.
    """

    peer: str
    drop: Callable[[], None]
    share: str = ""
    is_busy: bool = False
    wait_until_sent: Callable[[], Awaitable[object]] = anyio.sleep_forever
    address: str = ""

    def __post_init__(self) -> None:
        self.address = self.address or self.peer


class HttpConnections:
    """The open connections of the HTTP door; it belongs to the event loop.

    A quarter of the places is for connections that have shown no key yet: half-sent requests, strangers. Over it the
    oldest one is dropped, of the address that has the most, so that a newcomer who sends a whole request is served
    whatever others hold open. The other places are shared out by caller; over its part a caller loses its own idle ones.
    """

    def __init__(self, places: int) -> None:
        self._max_strangers = max(1, places // 4)
        self._shares = Shares(max(1, places - self._max_strangers), LARGE)
        self._strangers: dict[HttpConnection, None] = {}
        self._by_caller: dict[str, dict[HttpConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._strangers) + self._shares.taken_places

    def open(self, address: str, drop: Callable[[], None]) -> HttpConnection:
        """Count a new connection, of which nothing is known but its address. `drop` closes it at once."""
        if len(self._strangers) >= self._max_strangers:
            by_address = Counter(connection.address for connection in self._strangers)
            busiest_address, _ = by_address.most_common(1)[0]
            self._drop(next(connection for connection in self._strangers if connection.address == busiest_address))
        connection = HttpConnection(address, drop)
        self._strangers[connection] = None
        return connection

    def identify(self, connection: HttpConnection, share: str) -> bool:
        """Count a connection as a caller's from now on; False when the caller has too many, all of them busy."""
        if connection.share != share:
            while not self._shares.has_room(share):
                idle = next((own for own in self._by_caller.get(share, ()) if not own.is_busy), None)
                if idle is None:
                    return False
                self._drop(idle)
            self.close(connection)
            self._shares.take(share)
            connection.share = share
        own = self._by_caller.setdefault(share, {})
        own.pop(connection, None)
        own[connection] = None  # at the end: the longest idle one comes first
        return True

    def close(self, connection: HttpConnection) -> None:
        """Count a connection no longer."""
        self._strangers.pop(connection, None)
        if connection.share:
            own = self._by_caller[connection.share]
            del own[connection]
            if not own:
                del self._by_caller[connection.share]
            self._shares.give_back(connection.share)
            connection.share = ""

    def drop_all_of(self, share: str) -> None:
        """Close every connection of a caller at once, busy ones too."""
        for connection in list(self._by_caller.get(share, ())):
            self._drop(connection)

    def _drop(self, connection: HttpConnection) -> None:
        self.close(connection)
        connection.drop()


class Connections:
    """The connections of the socket, those of HTTP, and the streams that a drain waits for.

    A quarter of the limit is reserved for the socket: any process of this machine may connect to a port, so HTTP alone
    must not be able to shut the relays out.
    """

    def __init__(self, limit: int, metrics: Metrics | None = None) -> None:
        self.limit = limit
        self.event_streams = 0
        self._metrics = metrics or Metrics()
        self._metrics.watch(
            Reading.CONNECTIONS, lambda: {(_SOCKET,): float(self._at_socket), (_HTTP,): float(len(self.http))}
        )
        self._metrics.watch(Reading.EVENT_STREAMS, lambda: self.event_streams)
        self.http = HttpConnections(max(2, limit * 3 // 4))
        self.is_draining = False
        self.is_ending_for_good = False
        self._at_socket = 0
        self._streams = 0
        self._no_stream = anyio.Event()
        self._waits: set[anyio.CancelScope] = set()

    @property
    def count(self) -> int:
        """Return how many connections are open."""
        return self._at_socket + len(self.http)

    @contextmanager
    def at_socket(self) -> Iterator[None]:
        """Count one connection of the Unix socket. Raises ResourceBusy when there are too many already."""
        if self.count >= self.limit:
            self._metrics.connection_refused(_SOCKET)
            raise ResourceBusy(f"The server has {self.limit} connections already, its limit; try again later.")
        self._at_socket += 1
        self._metrics.connection_opened(_SOCKET)
        try:
            yield
        finally:
            self._at_socket -= 1

    def open_http(self, address: str, drop: Callable[[], None]) -> HttpConnection | None:
        """Count a new connection of the HTTP door, which `drop` closes at once; None when there are too many already."""
        if self.count >= self.limit:
            self._metrics.connection_refused(_HTTP)
            return None
        self._metrics.connection_opened(_HTTP)
        return self.http.open(address, drop)

    @contextmanager
    def event_stream(self) -> Iterator[None]:
        """Count a stream of notifications over HTTP."""
        self.event_streams += 1
        try:
            yield
        finally:
            self.event_streams -= 1

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one stream of messages, or one request, that a drain waits for."""
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1
            if self.is_draining and not self._streams:
                self._no_stream.set()

    async def next_or_none(self, wait: Callable[[], Awaitable[Value]]) -> Value | None:
        """Wait for the next input from a client; None when a drain has begun or begins meanwhile."""
        if self.is_draining:
            return None
        with anyio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                return await wait()
            finally:
                self._waits.discard(scope)
        return None

    async def drain(self, seconds: float) -> None:
        """Read nothing more from any stream, and give running calls that many seconds to be answered."""
        self.is_draining = True
        for scope in list(self._waits):
            scope.cancel()
        with anyio.move_on_after(seconds):
            if self._streams:
                await self._no_stream.wait()
