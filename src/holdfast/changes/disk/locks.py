"""Who may change which place: one holder per place, and nobody beside the holder of a whole tree."""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.call import Call

_LOOK_EVERY_SECONDS = 0.1


class Locks:
    """Threads of one server. The table holds only what is held, so it does not grow."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: set[Hashable] = set()
        self._all_held = False
        self._all_wanted = 0

    @contextmanager
    def hold(self, call: Call, keys: Sequence[Hashable]) -> Iterator[None]:
        """Hold several places at once; raises Cancelled or TimedOut when the call must stop waiting."""
        wanted = set(keys)
        with self._changed:
            while self._all_held or self._all_wanted or wanted & self._held:
                self._changed.wait(_LOOK_EVERY_SECONDS)
                call.check()
            self._held |= wanted
        try:
            yield
        finally:
            with self._changed:
                self._held -= wanted
                self._changed.notify_all()

    @contextmanager
    def hold_all(self, call: Call) -> Iterator[None]:
        """Hold every place, for a change of a whole tree."""
        with self._changed:
            self._all_wanted += 1
            try:
                while self._all_held or self._held:
                    self._changed.wait(_LOOK_EVERY_SECONDS)
                    call.check()
            finally:
                self._all_wanted -= 1
                self._changed.notify_all()
            self._all_held = True
        try:
            yield
        finally:
            with self._changed:
                self._all_held = False
                self._changed.notify_all()
