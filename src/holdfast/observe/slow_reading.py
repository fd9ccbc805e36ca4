"""Reads a figure that takes long in a thread of its own, at most every few seconds, so that whoever asks never waits for it."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SlowReading(Generic[T]):
    """Keeps the latest value of a slow function, and asks again when somebody wants it and it is old.

    `latest` waits a little for a new value and returns None when the function failed or does not return: a database that
    is down is no reason to wait for it.
    """

    def __init__(self, read: Callable[[], T], seconds: float = 5.0, patience_seconds: float = 0.5) -> None:
        self._read = read
        self._seconds = seconds
        self._patience_seconds = patience_seconds
        self._condition = threading.Condition()
        self._value: T | None = None
        self._read_at = float("-inf")
        self._began_at: float | None = None

    def latest(self) -> T | None:
        """Return a value that is a few seconds old at most, None when there is none."""
        with self._condition:
            now = time.monotonic()
            if self._began_at is None and now - self._read_at > self._seconds:
                self._began_at = now
                threading.Thread(target=self._refresh, name="holdfast-reading", daemon=True).start()
            if self._began_at is None:
                return self._value
            waits_until = self._began_at + self._patience_seconds
            is_done = self._condition.wait_for(lambda: self._began_at is None, max(0.0, waits_until - now))
            return self._value if is_done or time.monotonic() - self._read_at <= 2 * self._seconds else None

    def _refresh(self) -> None:
        value: T | None = None
        try:
            value = self._read()
        except Exception:  # noqa: BLE001 - no value is the answer
            value = None
        finally:
            with self._condition:
                self._value, self._read_at, self._began_at = value, time.monotonic(), None
                self._condition.notify_all()
