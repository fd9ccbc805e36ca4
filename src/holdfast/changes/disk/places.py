"""Locks the place that a path names, and checks that the path still names it once it is locked."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.call import Call
from holdfast.changes.disk.locks import Locks
from holdfast.errors import HoldfastError, NotFound
from holdfast.folders.access.jail import Jail, Place


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
