"""Making directories one by one, and removing those that we made while they are empty."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from holdfast.changes.disk.files import error_from_os, stat_entry, sync_directory
from holdfast.changes.model import Abandoned, Item, ItemStatus, NodeType, Op, Outcome, Plan, PlanStatus
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.errors import AccessDenied, HoldfastError, NotDirectory, NotEmpty, NotFound, PermissionDenied
from holdfast.folders.access.jail import Jail, Place

_Exceptions = dict[int, tuple[ItemStatus, str | None]]


class Directories:
    """Every directory made or removed is an item of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def make(self, jail: Jail, path: str, intent: ChangeRequest) -> tuple[str | None, str]:
        """Make a directory and the missing ones above it; returns the change (None when it was there) and its path."""
        missing, root, final = missing_directories(jail, path)
        if not missing:
            return None, final
        items = [Item(Op.MKDIR, one, node=NodeType.DIRECTORY) for one in missing]
        return self.run(jail, root, items, intent), final

    def run(self, jail: Jail, root: str, items: Sequence[Item], intent: ChangeRequest) -> str:
        """Carry out MKDIR or RMDIR items in order; what is not empty, or not there, is skipped and said."""
        plan = new_plan(intent, root, items, None)
        self._recorder.carry_out(plan, [], lambda: _run(jail, plan), lambda unfinished: self.settle(jail, unfinished))
        return plan.id

    def settle(self, jail: Jail, plan: Plan) -> Outcome:
        """Finish what took effect in part; what cannot be finished is skipped and said."""
        exceptions: _Exceptions = {}
        for position, item in enumerate(plan.items):
            if _is_there(jail, item.src_path) is (item.op is Op.MKDIR):
                _sync_above(jail, item.src_path)
            elif len(exceptions) == position or not _is_finished(jail, item):
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
                told = error_from_os(error, item.src_path) if isinstance(error, OSError) else None
                if told is None:
                    raise
                raise told from error
            why = error.strerror if isinstance(error, OSError) else "It is not there."
            exceptions[position] = (ItemStatus.SKIPPED, why)
    if len(exceptions) == len(plan.items) and plan.first.op is Op.RMDIR:
        raise Abandoned(NotEmpty(f"{plan.first.src_path} is not empty or not there any more; it was left alone."))
    return Outcome(PlanStatus.EXECUTED, ItemStatus.DONE, exceptions=exceptions)


def _is_harmless(item: Item, error: HoldfastError | OSError) -> bool:
    """Return whether a step is not needed, or not ours to make; any other error stops all the steps after it."""
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


def missing_directories(jail: Jail, path: str) -> tuple[list[str], str, str]:
    """Return the directories to make, top first, the root they lie beneath, and the real path of the last one."""
    jailed = jail.parse(path)
    root, made = jailed.root.path, jailed.root.path
    missing: list[str] = []
    for depth, part in enumerate(jailed.parts, start=1):
        if part == "..":
            if missing:
                raise NotFound(f"{path}: '..' cannot be taken from a directory that does not exist.")
            continue
        if missing:
            made = f"{made}/{part}"
            missing.append(made)
            continue
        prefix = "/".join(jailed.parts[:depth])
        absolute = f"{jailed.root.path.rstrip('/')}/{prefix}"
        with _found(jail, absolute, path) as place:
            made, root = place.path, place.root.path
            if place.status is None:
                _check_free(place)
                missing.append(made)
            elif not stat.S_ISDIR(place.status.st_mode):
                raise NotDirectory(f"{place.path} is a file, not a directory.")
    return missing, root, made


@contextmanager
def _found(jail: Jail, absolute: str, asked: str) -> Iterator[Place]:
    try:
        with jail.place(absolute, follow=True) as place:
            yield place
    except AccessDenied:
        raise AccessDenied.outside(asked) from None


def _check_free(place: Place) -> None:
    """Refuse the one name that looks free and is not: that of the state folder."""
    if stat_entry(place.parent_fd, place.name) is not None:
        raise PermissionDenied(f"{place.path} belongs to Holdfast itself.")


def _is_finished(jail: Jail, item: Item) -> bool:
    try:
        _make_or_remove(jail, item)
    except (HoldfastError, OSError):
        return False
    return True


def _sync_above(jail: Jail, path: str) -> None:
    """Make durable what an interrupted step left; a directory that is gone with those above it needs none."""
    with suppress(HoldfastError), jail.place(path, follow=False) as place:
        sync_directory(place.parent_fd)


def _is_there(jail: Jail, path: str) -> bool:
    try:
        with jail.place(path, follow=False) as place:
            return stat_entry(place.parent_fd, place.name) is not None
    except HoldfastError:
        return False
