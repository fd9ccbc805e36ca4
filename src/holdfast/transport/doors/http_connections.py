"""Divides the HTTP connections between callers, and bounds those whose caller is not known yet."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.shares import LARGE, Shares

CONNECTION = "holdfast.connection"
"""Where a request's scope has its connection, in `state`."""


@dataclass(eq=False)
class HttpConnection:
    """One open connection: the remote address, whose it is once a request showed a key, and whether it has a request.

    A WebSocket always counts as busy.
    """

    address: str
    drop: Callable[[], None]
    share: str = ""
    is_busy: bool = False


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
        return len(self._strangers) + self._shares.taken

    def open(self, address: str, drop: Callable[[], None]) -> HttpConnection:
        """Count a new connection, of which nothing is known but its address. `drop` closes it at once."""
        if len(self._strangers) >= self._max_strangers:
            by_address = Counter(connection.address for connection in self._strangers)
            crowded, _ = by_address.most_common(1)[0]
            self._drop(next(connection for connection in self._strangers if connection.address == crowded))
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

    def _drop(self, connection: HttpConnection) -> None:
        self.close(connection)
        connection.drop()
