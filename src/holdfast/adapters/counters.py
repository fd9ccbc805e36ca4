"""Counts calls over a moving window of a minute, in this process or in Redis, with the library `limits`."""

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limits.storage import MemoryStorage, RedisStorage

_MAX_NAMES = 50_000


class WindowCounters:
    """A moving window over a store of the library: never more than the limit in any sixty seconds."""

    def __init__(self, storage: "MemoryStorage | RedisStorage") -> None:
        from limits.strategies import MovingWindowRateLimiter

        self._window = MovingWindowRateLimiter(storage)

    def hit(self, name: str, per_minute: int) -> float | None:
        """Count one call and return None, or count nothing and return the seconds until one will be admitted."""
        from limits import RateLimitItemPerMinute

        item = RateLimitItemPerMinute(per_minute, namespace="calls")
        if self._window.hit(item, name):
            return None
        return max(0.0, self._window.get_window_stats(item, name).reset_time - time.time())


class MemoryCounters:
    """Counts in this process. The library is imported by the first call that is counted; most servers count none."""

    is_remote = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window: WindowCounters | None = None
        self._storage: MemoryStorage | None = None

    def hit(self, name: str, per_minute: int) -> float | None:
        """Count one call and return None, or count nothing and return the seconds until one will be admitted."""
        with self._lock:
            return self._get_window().hit(name, per_minute)

    def close(self) -> None:
        """Forget every count."""
        if self._storage is not None:
            self._storage.timer.cancel()

    def _get_window(self) -> WindowCounters:
        if self._window is None or self._storage is None:
            from limits.storage import MemoryStorage

            self._storage = MemoryStorage()
            self._window = WindowCounters(self._storage)
        if len(self._storage.events) > _MAX_NAMES:
            # The library never forgets a name. A reset now and then lets a few more calls through, and nothing else.
            self._storage.reset()
        return self._window
