"""Tells whoever waits for a review that something happened to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]


class News:
    """Listeners are called with a review's id from whichever thread changed it, and must not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Listener] = {}

    @contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """Have a listener called as long as the block runs."""
        key = object()
        with self._lock:
            self._listeners[key] = listener
        try:
            yield
        finally:
            with self._lock:
                self._listeners.pop(key, None)

    def tell(self, review_id: str) -> None:
        """Say that a review changed."""
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener(review_id)
