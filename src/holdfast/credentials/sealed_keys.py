"""The port of the store of sealed keys, and one in the memory of this process."""

import threading
import time
from collections import OrderedDict
from typing import Protocol

MAX_KEYS = 20_000


class KeyStoreUnavailable(Exception):
    """The store of sealed keys does not answer."""


class SealedKeyStore(Protocol):
    """Keeps sealed keys by name for a time. Safe to use from any thread; KeyStoreUnavailable when it does not answer."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes see what is put here."""

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for that time."""

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when there is none or it has expired."""

    def drop(self, name: str) -> None:
        """Drop a sealed key."""

    def close(self) -> None:
        """Close the connection."""


class MemoryKeyStore:
    """Keeps sealed keys in this process; the oldest are dropped when there are too many."""

    is_shared = False

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._keys: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, sealed: bytes, ttl_seconds: int) -> None:
        """Keep a sealed key for that time."""
        with self._lock:
            self._keys.pop(name, None)
            self._keys[name] = (time.monotonic() + ttl_seconds, sealed)
            while self._keys and (len(self._keys) > self._max_keys or self._is_expired(next(iter(self._keys)))):
                self._keys.popitem(last=False)

    def get(self, name: str) -> bytes | None:
        """Return a sealed key, None when there is none or it has expired."""
        with self._lock:
            if name in self._keys and self._is_expired(name):
                del self._keys[name]
            return self._keys[name][1] if name in self._keys else None

    def drop(self, name: str) -> None:
        """Drop a sealed key."""
        with self._lock:
            self._keys.pop(name, None)

    def close(self) -> None:
        """Drop every key."""
        with self._lock:
            self._keys.clear()

    def _is_expired(self, name: str) -> bool:
        return time.monotonic() >= self._keys[name][0]
