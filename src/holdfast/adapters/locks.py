"""Named locks for the threads of one process, with a bounded wait and without polling."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ThreadLocks:
    """A table of the locks in use; a lock that nobody uses is removed, so it does not grow."""

    def __init__(self) -> None:
        self._table = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, name: str, deadline: float) -> Iterator[bool]:
        """Hold the lock, and give whether it could be taken before the deadline."""
        lock = self._acquire_entry(name)
        try:
            is_held = lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
            try:
                yield is_held
            finally:
                if is_held:
                    lock.release()
        finally:
            self._release_entry(name)

    def _acquire_entry(self, name: str) -> threading.Lock:
        with self._table:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
            return lock

    def _release_entry(self, name: str) -> None:
        with self._table:
            lock, users = self._locks[name]
            if users == 1:
                del self._locks[name]
            else:
                self._locks[name] = (lock, users - 1)
