"""Makes directories one by one, and removes those that we made while they are empty."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from holdfast.call import Call
from holdfast.changes.disk.files import error_from_os, stat_entry, sync_directory
from holdfast.changes.disk.places import Locks
from holdfast.changes.model import ChangeAbandoned, Item, ItemStatus, NodeType, Op, Outcome, Plan, PlanStatus
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.errors import AccessDenied, HoldfastError, NotDirectory, NotEmpty, NotFound, PermissionDenied
from holdfast.folders.access.jail import Jail, Place

_Exceptions = dict[int, tuple[ItemStatus, str | None]]


class Directories:
    """Makes and removes directories; each is an item of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def make(self, jail: Jail, path: str, request: ChangeRequest) -> tuple[str | None, str]:
        """Make a directory and those missing above it; returns the change id (None when it exists) and its real path."""
        missing, root, final = missing_directories(jail, path)
        if not missing:
            return None, final
        items = [Item(Op.MKDIR, directory, node=NodeType.DIRECTORY) for directory in missing]
        return self.run(jail, root, items, request), final

    def run(self, jail: Jail, root: str, items: Sequence[Item], request: ChangeRequest) -> str:
        """Execute MKDIR or RMDIR items in order; a directory that is not empty, or missing, is SKIPPED with the reason."""
        plan = new_plan(request, root, items, None)
        self._recorder.run(plan, [], lambda: _run(jail, plan), lambda unfinished: self.recover(jail, unfinished))
        return plan.id

    def recover(self, jail: Jail, plan: Plan) -> Outcome:
        """Finish a change that took effect in part; what cannot be finished is SKIPPED with the reason."""
        exceptions: _Exceptions = {}
        for position, item in enumerate(plan.items):
            if _exists(jail, item.src_path) is (item.op is Op.MKDIR):
                _sync_parent(jail, item.src_path)
            elif len(exceptions) == position or not _finish(jail, item):
                exceptions[position] = (ItemStatus.SKIPPED, "It was interrupted before this step.")
        if len(exceptions) == len(plan.items):
            return Outcome.failed("It was interrupted before it took effect.")
        return Outcome(PlanStatus.EXECUTED, ItemStatus.DONE, exceptions=exceptions)


def _run(jail: Jail, plan: Plan) -> Outcome:
    exceptions: _Exceptions = {}
    for position, item in enumerate(plan.items):
        try:
            _make_or_remove(jail, item)
        except (HoldfastError, OSError) as error:
            if not _is_harmless(item, error):
                refusal = error_from_os(error, item.src_path) if isinstance(error, OSError) else None
                if refusal is None:
                    raise
                raise refusal from error
            reason = error.strerror if isinstance(error, OSError) else "It does not exist."
            exceptions[position] = (ItemStatus.SKIPPED, reason)
    if len(exceptions) == len(plan.items) and plan.first.op is Op.RMDIR:
        raise ChangeAbandoned(NotEmpty(f"{plan.first.src_path} is not empty or no longer exists; it was not removed."))
    return Outcome(PlanStatus.EXECUTED, ItemStatus.DONE, exceptions=exceptions)


def _is_harmless(item: Item, error: HoldfastError | OSError) -> bool:
    """Return whether an item can be skipped after an error; any other error stops the change."""
    if item.op is Op.MKDIR:
        return isinstance(error, FileExistsError)
    if isinstance(error, OSError):
        return error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY)
    return isinstance(error, (AccessDenied, NotDirectory, NotFound))


def _make_or_remove(jail: Jail, item: Item) -> None:
    with jail.place(item.src_path, follow=False) as place:
        if item.op is Op.MKDIR:
            os.mkdir(place.name, 0o777, dir_fd=place.parent_fd)
        else:
            os.rmdir(place.name, dir_fd=place.parent_fd)
        sync_directory(place.parent_fd)


@contextmanager
def lock_missing_directories(jail: Jail, locks: Locks, call: Call, path: str) -> Iterator[list[str]]:
    """Lock the topmost directory that is missing on a path, as long as it is that one; give all that are missing."""
    while True:
        missing, _, _ = missing_directories(jail, path)
        with locks.hold_trees(call, *missing[:1]):
            if missing_directories(jail, path)[0] == missing:
                yield missing
                return


def missing_directories(jail: Jail, path: str) -> tuple[list[str], str, str]:
    """Return the directories to make, top first, the root they lie beneath, and the real path of the last one."""
    jailed = jail.parse(path)
    root, real_path = jailed.root.path, jailed.root.path
    missing: list[str] = []
    for depth, part in enumerate(jailed.parts, start=1):
        if part == "..":
            if missing:
                raise NotFound(f"{path}: '..' cannot follow a directory that does not exist.")
            continue
        if missing:
            real_path = f"{real_path}/{part}"
            missing.append(real_path)
            continue
        prefix = "/".join(jailed.parts[:depth])
        absolute = f"{jailed.root.path.rstrip('/')}/{prefix}"
        with _open_place(jail, absolute, path) as place:
            real_path, root = place.path, place.root.path
            if place.status is None:
                _check_free(place)
                missing.append(real_path)
            elif not stat.S_ISDIR(place.status.st_mode):
                raise NotDirectory(f"{place.path} is a file, not a directory.")
    return missing, root, real_path


@contextmanager
def _open_place(jail: Jail, absolute: str, display_path: str) -> Iterator[Place]:
    try:
        with jail.place(absolute, follow=True) as place:
            yield place
    except AccessDenied:
        raise AccessDenied.outside(display_path) from None


def _check_free(place: Place) -> None:
    """Refuse the state folder, which the jail shows as missing."""
    if stat_entry(place.parent_fd, place.name) is not None:
        raise PermissionDenied(f"{place.path} belongs to Holdfast itself.")


def _finish(jail: Jail, item: Item) -> bool:
    try:
        _make_or_remove(jail, item)
    except (HoldfastError, OSError):
        return False
    return True


def _sync_parent(jail: Jail, path: str) -> None:
    """Make an interrupted item durable; a directory that is gone with those above it needs no sync."""
    with suppress(HoldfastError), jail.place(path, follow=False) as place:
        sync_directory(place.parent_fd)


def _exists(jail: Jail, path: str) -> bool:
    try:
        with jail.place(path, follow=False) as place:
            return stat_entry(place.parent_fd, place.name) is not None
    except HoldfastError:
        return False
