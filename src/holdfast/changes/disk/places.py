"""Locks places against other changes: one holder per place, and nobody inside a tree beside the holder of that tree.

A path may name another place by the time its lock is held, because its directory was moved; `lock_place` then starts again.
"""

import os
import stat
import threading
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.changes.model import is_beneath
from holdfast.errors import HoldfastError, NotFound
from holdfast.folders.access.jail import HiddenByPolicy, Jail, Place
from holdfast.text.display import display_name

_CHECK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class _LockRequest:
    """What one change holds or waits for: single places by key and path, and whole trees by path."""

    keys: frozenset[Hashable]
    paths: tuple[str, ...]
    trees: tuple[str, ...]

    def conflicts_with(self, other: "_LockRequest") -> bool:
        """Return whether the two changes share a place, or one touches the other's tree."""
        return (
            not self.keys.isdisjoint(other.keys)
            or _touches(self.paths, other.trees)
            or _touches(other.paths, self.trees)
            or _touches(self.trees, other.trees)
            or _touches(other.trees, self.trees)
        )


class Locks:
    """Locks between the threads of one server, granted in the order of requests.

    A request waits for every earlier one that it conflicts with, held or waiting, so neither a tree nor a single place
    waits for ever, and a change in one tree keeps nobody out of another.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: list[_LockRequest] = []

    @contextmanager
    def hold(
        self, call: Call, keys: Sequence[Hashable], *, paths: Sequence[str] = (), trees: Sequence[str] = ()
    ) -> Iterator[None]:
        """Lock several places at once, and whole trees by their real paths; no lock is taken within another.

        `paths` are the real paths of the places, by which the holder of a tree above them is waited for. Cancelled or
        TimedOut when the call ends while it waits.
        """
        request = _LockRequest(frozenset(keys), tuple(map(_fold_path, paths)), tuple(map(_fold_path, trees)))
        with self._changed:
            self._requests.append(request)
        try:
            with self._changed:
                while self._must_wait(request):
                    self._changed.wait(_CHECK_SECONDS)
                    call.check()
            yield
        finally:
            with self._changed:
                self._requests.remove(request)
                self._changed.notify_all()

    def hold_places(self, call: Call, places: Sequence[Place]) -> AbstractContextManager[None]:
        """Lock single places."""
        return self.hold(call, [place.lock_key for place in places], paths=[place.path for place in places])

    def hold_trees(self, call: Call, *paths: str) -> AbstractContextManager[None]:
        """Lock whole trees, each from its top down; what they are is looked up once the lock is held."""
        return self.hold(call, (), trees=paths)

    def _must_wait(self, request: _LockRequest) -> bool:
        for earlier in self._requests:
            if earlier is request:
                return False
            if earlier.conflicts_with(request):
                return True
        return False


def _touches(paths: Sequence[str], trees: Sequence[str]) -> bool:
    return bool(trees) and any(is_beneath(path, trees) for path in paths)


def _fold_path(path: str) -> str:
    """Return a path as file systems compare it that ignore case: spellings of one place must share its lock."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


@contextmanager
def lock_place(jail: Jail, locks: Locks, call: Call, path: str, *, follow: bool) -> Iterator[Place]:
    """Lock the place that a path names; when its directory was moved while we waited, the place it names then.

    Without this a change would go into the moved directory and be journalled under its old path.
    """
    while True:
        with open_place(jail, path, follow=follow) as place, locks.hold_places(call, [place]):
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
    except HiddenByPolicy:
        raise
    except NotFound:
        message = f"The directory of {display_name(path)} does not exist. Call create_directory first."
        raise NotFound(message, path=path) from None
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
