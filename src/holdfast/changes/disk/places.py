"""The place that a path names, held against other changes, and still the one that it names once it is held."""

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
    """Hold what a path names; when its directory was moved while we waited, what it names then.

    Without this a change would go into the moved directory and be journalled where that was before.
    """
    while True:
        with open_place(jail, path, follow=follow) as place, locks.hold(call, [place.lock_key]):
            call.check()
            if is_same_place(jail, path, place, follow=follow):
                yield place
                return


@contextmanager
def open_place(jail: Jail, path: str, *, follow: bool) -> Iterator[Place]:
    """Find a place as the jail does; a missing directory above it is said with what to do."""
    try:
        found = jail.place(path, follow=follow)
        place = found.__enter__()
    except NotFound:
        raise NotFound(f"The directory of {path} does not exist. Call create_directory first.") from None
    try:
        yield place
    finally:
        found.__exit__(None, None, None)


def is_same_place(jail: Jail, path: str, place: Place, *, follow: bool) -> bool:
    """Return whether a path names the same place as before, and a directory there only if it was one before."""
    try:
        with jail.place(path, follow=follow) as now:
            same = now.path == place.path and now.lock_key == place.lock_key
            return same and is_directory(now.status) is is_directory(place.status)
    except HoldfastError:
        return False


def is_directory(status: os.stat_result | None) -> bool:
    """Return whether a directory stands there."""
    return status is not None and stat.S_ISDIR(status.st_mode)
