"""Lets one large message of each caller at a time through the event loop.

The SDK copies and writes an answer of megabytes in steps that each hold the loop; the steps of many at once would keep
a small call waiting for their sum.
"""

import asyncio
from weakref import WeakValueDictionary

LARGE_BYTES = 1 << 16
"""Above it, what is ours to do with a message is done in a thread."""
TURN_BYTES = 1 << 19
"""Above it, a message waits for its turn at what the SDK does on the event loop."""
TURN = "holdfast.turn"
"""Where the scope of an HTTP request has its turn."""


class Turn:
    """One request's turn, which it takes when it turns out to be large."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> None:
        """Wait until no other large message of the caller is under way."""
        if not self._is_taken:
            await self._lock.acquire()
            self._is_taken = True

    def end(self) -> None:
        """Let the next one go on."""
        if self._is_taken:
            self._is_taken = False
            self._lock.release()


class Turns:
    """The turns of all callers; it belongs to the event loop."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, share: str) -> Turn:
        """Return a turn of a caller, not taken yet."""
        return Turn(self._locks.setdefault(share, asyncio.Lock()))
