"""Locks places against other changes: one holder per place, and none inside a tree but the holder of that tree.

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
from holdfast.changes.disk.files import error_from_os
from holdfast.changes.disk.identity import is_same_entry
from holdfast.changes.model import is_beneath
from holdfast.errors import AccessDenied, AlreadyExists, Conflict, HoldfastError, NotFound
from holdfast.folders.access.file_version import identity_text
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
def lock_entry(jail: Jail, locks: Locks, call: Call, path: str) -> Iterator[Place]:
    """Lock the entry that a path names, with everything in it when it is a directory. NotFound when nothing is there."""
    while True:
        with jail.place(path, follow=False) as place, _hold_entry(locks, call, path, place):
            if is_same_place(jail, path, place, follow=False):
                yield place
                return


@contextmanager
def lock_move(jail: Jail, locks: Locks, call: Call, source: str, destination: str) -> Iterator[tuple[Place, Place]]:
    """Lock the entry that is to move and the place that it is to move to. NotFound when there is no such entry."""
    while True:
        with (
            jail.place(source, follow=False) as old,
            open_place(jail, destination, follow=False) as new,
            _hold_entry(locks, call, source, old, new),
        ):
            is_same = is_same_place(jail, source, old, follow=False)
            if is_same and is_same_place(jail, destination, new, follow=False):
                yield old, new
                return


def _hold_entry(locks: Locks, call: Call, path: str, source: Place, *others: Place) -> AbstractContextManager[None]:
    """Lock the places, or the trees there when the source is a directory; NotFound when it does not exist."""
    call.check()
    if source.status is None:
        raise NotFound.at(path, display_name(path))
    if is_directory(source.status):
        return locks.hold_trees(call, *(place.path for place in (source, *others)))
    return locks.hold_places(call, (source, *others))


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Turn errors of the system into HoldfastErrors that name the path."""
    try:
        yield
    except HiddenByPolicy:
        raise AccessDenied(f"Access denied: {path} is closed to this client. Nothing was changed.") from None
    except FileExistsError:
        raise AlreadyExists(f"{path} exists already.") from None
    except OSError as error:
        refusal = error_from_os(error, path)
        if refusal is None:
            raise
        raise refusal from None


def check_directory(place: Place, path: str, expected: str | None) -> None:
    """Raise Conflict when a place is not at that path, or not in the directory of that identity; None accepts any."""
    is_expected = expected is None or is_same_entry(identity_text(os.fstat(place.parent_fd)), expected)
    if place.path != path or not is_expected:
        raise Conflict(
            f"Another directory is in the place of the one that held {path} when the change was proposed. "
            "Nothing was changed.",
            hint="Look at it again and propose the change again, without session_path.",
        )


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
