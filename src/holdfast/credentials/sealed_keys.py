"""Where sealed keys lie until a worker takes them: in this process, or where several processes reach them."""

import threading
import time
from collections import OrderedDict
from typing import Protocol

MAX_KEPT = 20_000


class KeyStoreUnavailable(Exception):
    """The cabinet does not answer."""


class SealedKeyStore(Protocol):
    """Keeps sealed keys by name for a time. Safe to use from any thread; KeyStoreUnavailable when it does not answer."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes see what is put here."""

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for so long."""

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when it is not there or its time is over."""

    def drop(self, name: str) -> None:
        """Forget a sealed key."""

    def close(self) -> None:
        """Let go of the cabinet."""


class MemoryKeyStore:
    """Keeps sealed keys in this process; the oldest go when there are too many."""

    is_shared = False

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for so long."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = (time.monotonic() + ttl_seconds, sealed)
            while self._kept and (len(self._kept) > self._max_kept or self._is_over(next(iter(self._kept)))):
                self._kept.popitem(last=False)

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when it is not there or its time is over."""
        with self._lock:
            if name in self._kept and self._is_over(name):
                del self._kept[name]
            return self._kept[name][1] if name in self._kept else None

    def drop(self, name: str) -> None:
        """Forget a sealed key."""
        with self._lock:
            self._kept.pop(name, None)

    def close(self) -> None:
        """Forget every one."""
        with self._lock:
            self._kept.clear()

    def _is_over(self, name: str) -> bool:
        return time.monotonic() >= self._kept[name][0]
