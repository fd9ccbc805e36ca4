"""Locks by name for the threads of one process, with a bounded wait and without polling."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ThreadLocks:
    """The table holds only what is in use, so it does not grow."""

    def __init__(self) -> None:
        self._table = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, name: str, deadline: float) -> Iterator[bool]:
        """Give whether the lock was free before the deadline, and hold it if so."""
        lock = self._joined(name)
        try:
            is_held = lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
            try:
                yield is_held
            finally:
                if is_held:
                    lock.release()
        finally:
            self._left(name)

    def _joined(self, name: str) -> threading.Lock:
        with self._table:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
            return lock

    def _left(self, name: str) -> None:
        with self._table:
            lock, users = self._locks[name]
            if users == 1:
                del self._locks[name]
            else:
                self._locks[name] = (lock, users - 1)
