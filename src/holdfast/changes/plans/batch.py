"""One batch of a plan's items: places opened through the jail, checked once they are held, moved, synced together."""

import os
import stat
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import NamedTuple

from holdfast.call import Call
from holdfast.changes.disk import files
from holdfast.changes.disk.cross_device import CrossDeviceMove
from holdfast.changes.disk.files import stat_entry, temp_name
from holdfast.changes.disk.identity import is_as_planned, was_moved_to
from holdfast.changes.disk.links import Links
from holdfast.changes.disk.locks import Locks
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.disk.tree import TreeOptions, read_tree
from holdfast.changes.model import Abandoned, Item, ItemOutcome, ItemStatus, NodeType
from holdfast.changes.plans.parents import Parent, Parents
from holdfast.errors import (
    AccessDenied,
    AlreadyExists,
    Cancelled,
    Conflict,
    HoldfastError,
    NotDirectory,
    NotFound,
    TimedOut,
)
from holdfast.folders.access.jail import Jail, Place
from holdfast.folders.access.roots import Identity

GONE = "It is not there any more."
CHANGED = "It changed since the plan was made."
TAKEN = "Something else is at the destination; both were left in place."
ELSEWHERE = "A directory on the way is another one than when the plan was made."
_MOVED = "Its directory was moved at the same moment."
UNSYNCED = "The disk did not confirm the move; it was taken back."


class Opened(NamedTuple):
    """An item whose two ends are known."""

    item: Item
    source_parent: Parent
    source_name: str
    target_parent: Parent
    target_name: str

    @property
    def source(self) -> Place:
        """Return the place it is moved from; nothing was looked at there."""
        parent = self.source_parent
        return Place(parent.root, parent.fd, self.source_name, self.item.src_path, None)

    @property
    def target(self) -> Place:
        """Return the place it is moved to; nothing was looked at there."""
        parent = self.target_parent
        return Place(parent.root, parent.fd, self.target_name, self.item.dest_path or "", None)


class Batch:
    """Moves of files and links, or of one directory. Open it with `prepare`, then `run` it once the intents are durable."""

    def __init__(self, jail: Jail, parents: Parents, quarantine: Quarantine, locks: Locks, links: Links) -> None:
        self._jail = jail
        self._parents = parents
        self._quarantine = quarantine
        self._locks = locks
        self._links = links
        self._opened: list[Opened] = []
        self.steps: list[ItemOutcome] = []

    def prepare(self, plan_id: str, items: Sequence[Item]) -> list[Item]:
        """Open the places of the items; returns them as they are intended, those that are copied with their helpers.

        What crosses devices is copied, and so is a link that must say something else at its destination.
        What cannot be opened has its outcome in `steps`.
        """
        refused: list[tuple[Item, ItemOutcome]] = []
        for item in items:
            found = self._open(item)
            if isinstance(found, ItemOutcome):
                refused.append((item, found))
                continue
            try:
                is_copied = self._is_copied(found)
            except OSError as error:
                refused.append((item, ItemOutcome(item.position, ItemStatus.ERROR, _told(error))))
                continue
            if not is_copied:
                self._opened.append(found)
            else:
                shelf = self._quarantine.folder_for(self._jail, found.source)
                crossing = item._replace(temp_name=temp_name(), quarantine_path=f"{shelf}/{plan_id}.{item.position}")
                self._opened.append(found._replace(item=crossing))
        self.steps += [step for _, step in refused]
        self._leave_units(refused)
        return [opened.item for opened in self._opened]

    def run(self, call: Call) -> None:
        """Move all that is as planned. `steps` holds an outcome for every item that was looked at, whatever is raised."""
        with self._held(call):
            gone = self._parents.moved()
            done: list[Opened] = []
            try:
                for unit, members in groupby(self._opened, key=_unit):
                    if unit is None:
                        for opened in members:
                            self._move(opened, gone, done, call)
                    else:
                        self._move_unit(list(members), gone, done, call)
            finally:
                self._sync(done)

    def settle(self, items: Sequence[Item], staying: Collection[str]) -> list[ItemOutcome]:
        """Say by what is on the disk which of these intended items took effect; the others have no step.

        What was moved of a unit comes back when the rest of it was not, or is known to be `staying`.
        """
        steps = []
        for unit, members in groupby(items, key=lambda item: item.unit):
            found = [self._open(item) for item in members]
            moved = [(one, step) for one in found if isinstance(one, Opened) and (step := self._settle(one))]
            is_torn = unit is not None and (len(moved) < len(found) or unit in staying)
            steps += [step for one, step in moved if not (is_torn and self._came_back(one))]
        return steps

    def _came_back(self, opened: Opened) -> bool:
        if opened.item.quarantine_path is not None or not self._taken_back(opened):
            return False
        files.sync_directory(opened.source.parent_fd)
        files.sync_directory(opened.target.parent_fd)
        return True

    def _is_copied(self, opened: Opened) -> bool:
        """Return whether an item cannot be moved by a rename. OSError when the disk does not say what a link says."""
        if opened.source_parent.identity[0] != opened.target_parent.identity[0]:
            return True
        if opened.item.node is not NodeType.LINK:
            return False
        source = opened.source
        status = stat_entry(source.parent_fd, source.name)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return False
        text = os.readlink(source.name, dir_fd=source.parent_fd)
        return self._links.rewrite(source.path, text, opened.target.path) != text

    def _held(self, call: Call) -> AbstractContextManager[None]:
        if any(opened.item.node is NodeType.DIRECTORY for opened in self._opened):
            return self._locks.hold_all(call)
        sources = [(opened.source_parent.identity, opened.source_name) for opened in self._opened]
        targets = [(opened.target_parent.identity, opened.target_name) for opened in self._opened]
        return self._locks.hold(call, sources + targets)

    def _open(self, item: Item) -> Opened | ItemOutcome:
        try:
            source, source_name = self._parents.find(item.src_path)
        except (AccessDenied, NotDirectory, NotFound):
            return ItemOutcome(item.position, ItemStatus.SKIPPED, GONE)
        except (HoldfastError, OSError) as error:
            return ItemOutcome(item.position, ItemStatus.ERROR, _told(error))
        if not source.is_real:
            return ItemOutcome(item.position, ItemStatus.SKIPPED, ELSEWHERE)
        try:
            target, target_name = self._parents.find(item.dest_path or "")
        except (AccessDenied, NotDirectory, NotFound):
            return ItemOutcome(item.position, ItemStatus.ERROR, "The directory of its destination is not there.")
        except (HoldfastError, OSError) as error:
            return ItemOutcome(item.position, ItemStatus.ERROR, _told(error))
        if not target.is_real:
            return ItemOutcome(item.position, ItemStatus.ERROR, ELSEWHERE)
        return Opened(item, source, source_name, target, target_name)

    def _leave_units(self, refused: Sequence[tuple[Item, ItemOutcome]]) -> None:
        """Let what belongs to items that cannot be moved stay too."""
        for item, step in refused:
            if item.unit is not None:
                self._leave([opened for opened in self._opened if opened.item.unit == item.unit], item, step)
                self._opened = [opened for opened in self._opened if opened.item.unit != item.unit]

    def _leave(self, members: Sequence[Opened], item: Item, step: ItemOutcome) -> None:
        for opened in members:
            self._end(opened, step.status, stays_with(item.src_path, step.message))

    def _move(self, opened: Opened, gone: set[Identity], done: list[Opened], call: Call) -> None:
        step = self._looked_at(opened, gone)
        if step is None:
            self._carry_out(opened, done, call)
        elif step.status is ItemStatus.DONE:
            done.append(opened)
        else:
            self.steps.append(step)

    def _move_unit(self, members: Sequence[Opened], gone: set[Identity], done: list[Opened], call: Call) -> None:
        """Move all of a unit, or none of it; what an earlier execution had moved of it is where it should be."""
        seen = [(opened, self._looked_at(opened, gone) or _is_taken(opened)) for opened in members]
        done += [opened for opened, step in seen if step is not None and step.status is ItemStatus.DONE]
        refused = [(opened, step) for opened, step in seen if step is not None and step.status is not ItemStatus.DONE]
        waiting = [opened for opened, step in seen if step is None]
        if refused:
            self.steps += [step for _, step in refused]
            self._leave(waiting, refused[0][0].item, refused[0][1])
        else:
            self._carry_out_all(waiting, done, call)

    def _carry_out_all(self, members: Sequence[Opened], done: list[Opened], call: Call) -> None:
        """Move one after the other; where one cannot be moved after all, those before it come back.

        Those that cannot come back, or not for certain, have no outcome: the next execution looks where they are.
        """
        known = len(done)
        for number, opened in enumerate(members):
            told = len(self.steps)
            self._carry_out(opened, done, call)
            refused = [step for step in self.steps[told:] if step.status is not ItemStatus.DONE]
            if refused:
                back = [one for one in done[known:] if self._taken_back(one)]
                del done[known:]
                fds = {fd for one in back for fd in (one.source.parent_fd, one.target.parent_fd)}
                confirmed = back if all(is_synced(fd) for fd in fds) else []
                self._leave([*confirmed, *members[number + 1 :]], opened.item, refused[0])
                return

    def _looked_at(self, opened: Opened, gone: set[Identity]) -> ItemOutcome | None:
        """Return None for a source that can be moved, DONE for one that is at its destination already, else why not."""
        position = opened.item.position
        if gone and gone & {opened.source_parent.identity, opened.target_parent.identity}:
            return ItemOutcome(position, ItemStatus.ERROR, _MOVED)
        try:
            if is_as_planned(opened.item, opened.source_parent.fd, opened.source_name):
                return None
            is_gone = stat_entry(opened.source_parent.fd, opened.source_name) is None
            if is_gone and was_moved_to(opened.item, opened.target):
                return ItemOutcome(position, ItemStatus.DONE)
        except OSError as error:
            return ItemOutcome(position, ItemStatus.ERROR, _told(error))
        return ItemOutcome(position, ItemStatus.SKIPPED, GONE if is_gone else CHANGED)

    def _carry_out(self, opened: Opened, done: list[Opened], call: Call) -> None:
        if opened.item.quarantine_path is not None:
            self._cross(opened, call)
            return
        source, target = opened.source_parent.fd, opened.target_parent.fd
        try:
            self._check_inside(opened, call)
            files.move_entry(source, opened.source_name, target, opened.target_name)
        except FileExistsError:
            self._end(opened, ItemStatus.ERROR, TAKEN)
        except FileNotFoundError:
            self._end(opened, ItemStatus.SKIPPED, GONE)
        except OSError as error:
            self._end(opened, ItemStatus.ERROR, error.strerror)
        except HoldfastError as error:
            self._end(opened, ItemStatus.ERROR, error.message)
        else:
            done.append(opened)

    def _check_inside(self, opened: Opened, call: Call) -> None:
        """Refuse a directory that holds the state folder."""
        if opened.item.node is NodeType.DIRECTORY and opened.source.root.walk_only:
            names = TreeOptions.without_hashes(call, self._jail.is_hidden)
            read_tree(opened.source.parent_fd, opened.source.name, opened.source.path, names)

    def _crossing(self, opened: Opened) -> CrossDeviceMove:
        item = opened.item
        links = self._links if item.node is NodeType.LINK else None
        return CrossDeviceMove(
            self._jail,
            self._quarantine,
            opened.source,
            opened.target,
            item.temp_name or "",
            item.quarantine_path or "",
            links,
        )

    def _cross(self, opened: Opened, call: Call) -> None:
        crossing = self._crossing(opened)
        try:
            identity = crossing.run(crossing.read_source(call), call)
        except Abandoned as abandoned:
            taken = isinstance(abandoned.error, AlreadyExists)
            self._end(opened, ItemStatus.ERROR if taken else ItemStatus.SKIPPED, TAKEN if taken else CHANGED)
        except (Cancelled, TimedOut):
            crossing.recover()
            raise
        except (OSError, HoldfastError) as error:
            self._end_as_found(opened, crossing, _told(error))
        else:
            self.steps.append(ItemOutcome(opened.item.position, ItemStatus.DONE, identity=identity))

    def _end_as_found(self, opened: Opened, crossing: CrossDeviceMove, why: str | None) -> None:
        """After an error look at the disk; when even that fails the item waits for the next execution."""
        try:
            identity = crossing.recover()
        except Conflict as conflict:
            self._end(opened, ItemStatus.ERROR, conflict.message)
        except (OSError, HoldfastError):
            return
        else:
            if identity is None:
                self._end(opened, ItemStatus.ERROR, why)
            else:
                self.steps.append(ItemOutcome(opened.item.position, ItemStatus.DONE, identity=identity))

    def _end(self, opened: Opened, status: ItemStatus, message: str | None) -> None:
        self.steps.append(ItemOutcome(opened.item.position, status, message))

    def _sync(self, done: Sequence[Opened]) -> None:
        """Make the moves durable, destinations first; where the disk refuses, its moves are taken back."""
        parents = dict.fromkeys([opened.target_parent for opened in done])
        parents |= dict.fromkeys([opened.source_parent for opened in done])
        failed = {parent for parent in parents if not is_synced(parent.fd)}
        for opened in done:
            if failed & {opened.source_parent, opened.target_parent} and self._taken_back(opened):
                self._end(opened, ItemStatus.ERROR, UNSYNCED)
            else:
                self.steps.append(ItemOutcome(opened.item.position, ItemStatus.DONE))

    @staticmethod
    def _taken_back(opened: Opened) -> bool:
        source, target = opened.source, opened.target
        try:
            files.move_entry(target.parent_fd, target.name, source.parent_fd, source.name)
        except OSError:
            return False
        return True

    def _settle(self, opened: Opened) -> ItemOutcome | None:
        item, source, target = opened.item, opened.source, opened.target
        if item.quarantine_path is None:
            if stat_entry(source.parent_fd, source.name) is not None or not was_moved_to(item, target):
                return None
            files.sync_directory(target.parent_fd)
            files.sync_directory(source.parent_fd)
            return ItemOutcome(item.position, ItemStatus.DONE)
        try:
            identity = self._crossing(opened).recover()
        except Conflict as conflict:
            return ItemOutcome(item.position, ItemStatus.ERROR, conflict.message)
        return None if identity is None else ItemOutcome(item.position, ItemStatus.DONE, identity=identity)


def stays_with(path: str, why: str | None) -> str:
    """Return why something stays that belongs to what is at a path."""
    return f"It belongs to {path.rpartition('/')[2]}, which stays. {why or ''}".rstrip()


def _unit(opened: Opened) -> str | None:
    return opened.item.unit


def _is_taken(opened: Opened) -> ItemOutcome | None:
    """Return the outcome of an item at whose destination something stands."""
    try:
        is_free = stat_entry(opened.target.parent_fd, opened.target.name) is None
    except OSError as error:
        return ItemOutcome(opened.item.position, ItemStatus.ERROR, _told(error))
    return None if is_free else ItemOutcome(opened.item.position, ItemStatus.ERROR, TAKEN)


def _told(error: HoldfastError | OSError) -> str | None:
    return error.strerror if isinstance(error, OSError) else error.message


def is_synced(dir_fd: int) -> bool:
    """Make a directory's entries durable; False when the disk does not confirm it."""
    try:
        files.sync_directory(dir_fd)
    except OSError:
        return False
    return True
