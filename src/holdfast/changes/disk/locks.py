"""Locks on places: one holder per place, and a lock on everything for changes of whole trees."""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.call import Call

_CHECK_SECONDS = 0.1


class Locks:
    """Locks between the threads of one server. Only locked keys are in the table, so it does not grow."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._locked: set[Hashable] = set()
        self._is_all_locked = False
        self._waiting_for_all = 0

    @contextmanager
    def hold(self, call: Call, keys: Sequence[Hashable]) -> Iterator[None]:
        """Lock several places at once; Cancelled or TimedOut when the call ends while it waits."""
        requested = set(keys)
        with self._changed:
            while self._is_all_locked or self._waiting_for_all or requested & self._locked:
                self._changed.wait(_CHECK_SECONDS)
                call.check()
            self._locked |= requested
        try:
            yield
        finally:
            with self._changed:
                self._locked -= requested
                self._changed.notify_all()

    @contextmanager
    def hold_all(self, call: Call) -> Iterator[None]:
        """Lock every place, for a change of a whole tree."""
        with self._changed:
            self._waiting_for_all += 1
            try:
                while self._is_all_locked or self._locked:
                    self._changed.wait(_CHECK_SECONDS)
                    call.check()
            finally:
                self._waiting_for_all -= 1
                self._changed.notify_all()
            self._is_all_locked = True
        try:
            yield
        finally:
            with self._changed:
                self._is_all_locked = False
                self._changed.notify_all()
