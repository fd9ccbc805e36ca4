"""Locks places against other changes: one holder per place, and nobody beside the holder of a whole tree.

A path may name another place by the time its lock is held, because its directory was moved; `lock_place` then starts again.
"""

import os
import stat
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.call import Call
from holdfast.errors import HoldfastError, NotFound
from holdfast.folders.access.jail import Jail, Place

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


@contextmanager
def lock_place(jail: Jail, locks: Locks, call: Call, path: str, *, follow: bool) -> Iterator[Place]:
    """Lock the place that a path names; when its directory was moved while we waited, the place it names then.

    Without this a change would go into the moved directory and be journalled under its old path.
    """
    while True:
        with open_place(jail, path, follow=follow) as place, locks.hold(call, [place.lock_key]):
            call.check()
            if is_same_place(jail, path, place, follow=follow):
                yield place
                return


@contextmanager
def open_place(jail: Jail, path: str, *, follow: bool) -> Iterator[Place]:
    """Open a place as the jail does; the NotFound of a missing parent directory says what to do."""
    try:
        context = jail.place(path, follow=follow)
        place = context.__enter__()
    except NotFound:
        raise NotFound(f"The directory of {path} does not exist. Call create_directory first.") from None
    try:
        yield place
    finally:
        context.__exit__(None, None, None)


def is_same_place(jail: Jail, path: str, place: Place, *, follow: bool) -> bool:
    """Return whether a path still names this place, and still a directory or still none."""
    try:
        with jail.place(path, follow=follow) as now:
            is_same = now.path == place.path and now.lock_key == place.lock_key
            return is_same and is_directory(now.status) is is_directory(place.status)
    except HoldfastError:
        return False


def is_directory(status: os.stat_result | None) -> bool:
    """Return whether a status is that of a directory."""
    return status is not None and stat.S_ISDIR(status.st_mode)
