"""One batch of a plan's moves: opens the places through the jail, locks and checks them, moves, syncs each directory once."""

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
from holdfast.changes.disk.places import Locks
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.disk.tree import TreeOptions, read_tree
from holdfast.changes.model import ChangeAbandoned, Item, ItemOutcome, ItemStatus, NodeType
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

SOURCE_MISSING = "It no longer exists."
CHANGED = "It changed since the plan was made."
DESTINATION_EXISTS = "Something else is at the destination; both were left in place."
ELSEWHERE = "A directory in its path was replaced since the plan was made."
PARENT_MOVED = "Its directory was moved at the same moment."
UNSYNCED = "The disk did not confirm the move; it was reverted."


class OpenMove(NamedTuple):
    """An item with the open directories of its source and its destination."""

    item: Item
    source_parent: Parent
    source_name: str
    target_parent: Parent
    target_name: str

    @property
    def source(self) -> Place:
        """Return the place it is moved from, without a status."""
        parent = self.source_parent
        return Place(parent.root, parent.fd, self.source_name, self.item.src_path, None)

    @property
    def target(self) -> Place:
        """Return the place it is moved to, without a status."""
        parent = self.target_parent
        return Place(parent.root, parent.fd, self.target_name, self.item.dest_path or "", None)


class Batch:
    """Moves of files and links, or of one directory: call `prepare`, make the intents durable, then call `run`.

    `outcomes` has an outcome for every item that was refused, moved or found at its destination.
    """

    def __init__(self, jail: Jail, parents: Parents, quarantine: Quarantine, locks: Locks, links: Links) -> None:
        self._jail = jail
        self._parents = parents
        self._quarantine = quarantine
        self._locks = locks
        self._links = links
        self._moves: list[OpenMove] = []
        self.outcomes: list[ItemOutcome] = []

    def prepare(self, plan_id: str, items: Sequence[Item]) -> list[Item]:
        """Open the places of the items; returns the items to intend, those to copy with temporary name and quarantine.

        Items that cross devices are copied, and so are links that need another text at their destination. An item that
        cannot be opened gets its outcome here, and so do the other items of its unit.
        """
        refused: list[tuple[Item, ItemOutcome]] = []
        for item in items:
            move = self._open(item)
            if isinstance(move, ItemOutcome):
                refused.append((item, move))
                continue
            try:
                must_copy = self._must_copy(move)
            except OSError as error:
                refused.append((item, ItemOutcome(item.position, ItemStatus.ERROR, _error_text(error))))
                continue
            if must_copy:
                quarantine_path = f"{self._quarantine.folder_for(self._jail, move.source)}/{plan_id}.{item.position}"
                move = move._replace(item=item._replace(temp_name=temp_name(), quarantine_path=quarantine_path))
            self._moves.append(move)
        self.outcomes += [outcome for _, outcome in refused]
        for item, outcome in refused:
            if item.unit is not None:
                self._leave([move for move in self._moves if move.item.unit == item.unit], item, outcome)
                self._moves = [move for move in self._moves if move.item.unit != item.unit]
        return [move.item for move in self._moves]

    def run(self, call: Call) -> None:
        """Move every source that is as planned; `outcomes` is complete for what was moved, whatever is raised."""
        with self._lock_places(call):
            moved_parents = self._parents.find_moved()
            done_moves: list[OpenMove] = []
            try:
                for unit, members in groupby(self._moves, key=lambda move: move.item.unit):
                    if unit is None:
                        for move in members:
                            self._move_single(move, moved_parents, done_moves, call)
                    else:
                        self._move_unit(list(members), moved_parents, done_moves, call)
            finally:
                self._sync(done_moves)

    def recover(self, items: Sequence[Item], staying_units: Collection[str]) -> list[ItemOutcome]:
        """Return the outcomes of interrupted items, decided by what is on the disk; items that did not move have none.

        Moved items of a unit go back when others of it were not moved, or when the unit is one of `staying_units`.
        """
        outcomes = []
        for unit, members in groupby(items, key=lambda item: item.unit):
            moves = [self._open(item) for item in members]
            moved = [
                (move, outcome) for move in moves if isinstance(move, OpenMove) and (outcome := self._recover(move))
            ]
            is_torn = unit is not None and (len(moved) < len(moves) or unit in staying_units)
            outcomes += [outcome for move, outcome in moved if not (is_torn and self._move_back_durably(move))]
        return outcomes

    def _recover(self, move: OpenMove) -> ItemOutcome | None:
        item, source, target = move.item, move.source, move.target
        if item.quarantine_path is None:
            if stat_entry(source.parent_fd, source.name) is not None or not was_moved_to(item, target):
                return None
            files.sync_directory(target.parent_fd)
            files.sync_directory(source.parent_fd)
            return ItemOutcome(item.position, ItemStatus.DONE)
        try:
            identity = self._cross_device_move(move).recover()
        except Conflict as conflict:
            return ItemOutcome(item.position, ItemStatus.ERROR, conflict.message)
        return None if identity is None else ItemOutcome(item.position, ItemStatus.DONE, identity=identity)

    def _move_back_durably(self, move: OpenMove) -> bool:
        if move.item.quarantine_path is not None or not _move_back(move):
            return False
        files.sync_directory(move.source.parent_fd)
        files.sync_directory(move.target.parent_fd)
        return True

    def _must_copy(self, move: OpenMove) -> bool:
        """Return whether a rename is not enough. OSError when a link cannot be read."""
        if move.source_parent.identity[0] != move.target_parent.identity[0]:
            return True
        if move.item.node is not NodeType.LINK:
            return False
        source = move.source
        status = stat_entry(source.parent_fd, source.name)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return False
        text = os.readlink(source.name, dir_fd=source.parent_fd)
        return self._links.rewrite(source.path, text, move.target.path) != text

    def _lock_places(self, call: Call) -> AbstractContextManager[None]:
        sources = [(move.source_parent.identity, move.source_name) for move in self._moves]
        targets = [(move.target_parent.identity, move.target_name) for move in self._moves]
        paths: list[str] = []
        trees: list[str] = []
        for move in self._moves:
            (trees if move.item.node is NodeType.DIRECTORY else paths).extend((move.source.path, move.target.path))
        return self._locks.hold(call, sources + targets, paths=paths, trees=trees)

    def _open(self, item: Item) -> OpenMove | ItemOutcome:
        try:
            source, source_name = self._parents.find(item.src_path)
        except (AccessDenied, NotDirectory, NotFound):
            return ItemOutcome(item.position, ItemStatus.SKIPPED, SOURCE_MISSING)
        except (HoldfastError, OSError) as error:
            return ItemOutcome(item.position, ItemStatus.ERROR, _error_text(error))
        if not source.is_real or not source.is_planned(item.source_directory):
            return ItemOutcome(item.position, ItemStatus.SKIPPED, ELSEWHERE)
        try:
            target, target_name = self._parents.find(item.dest_path or "")
        except (AccessDenied, NotDirectory, NotFound):
            return ItemOutcome(item.position, ItemStatus.ERROR, "The directory of its destination does not exist.")
        except (HoldfastError, OSError) as error:
            return ItemOutcome(item.position, ItemStatus.ERROR, _error_text(error))
        if not target.is_real or not target.is_planned(item.dest_directory):
            return ItemOutcome(item.position, ItemStatus.ERROR, ELSEWHERE)
        return OpenMove(item, source, source_name, target, target_name)

    def _leave(self, members: Sequence[OpenMove], item: Item, outcome: ItemOutcome) -> None:
        """Leave the other members of a unit in place because of what became of one item."""
        for move in members:
            self._add_outcome(move, outcome.status, stays_with(item.src_path, outcome.message))

    def _move_single(
        self, move: OpenMove, moved_parents: set[Identity], done_moves: list[OpenMove], call: Call
    ) -> None:
        outcome = self._check(move, moved_parents)
        if outcome is None:
            self._move_entry(move, done_moves, call)
        elif outcome.status is ItemStatus.DONE:
            done_moves.append(move)
        else:
            self.outcomes.append(outcome)

    def _move_unit(
        self, members: Sequence[OpenMove], moved_parents: set[Identity], done_moves: list[OpenMove], call: Call
    ) -> None:
        """Move all of a unit, or none of it; members that an earlier execution moved are at their destination already."""
        checked = [(move, self._check(move, moved_parents) or _check_target(move)) for move in members]
        done_moves += [move for move, outcome in checked if outcome is not None and outcome.status is ItemStatus.DONE]
        refused = [
            (move, outcome)
            for move, outcome in checked
            if outcome is not None and outcome.status is not ItemStatus.DONE
        ]
        waiting = [move for move, outcome in checked if outcome is None]
        if refused:
            self.outcomes += [outcome for _, outcome in refused]
            self._leave(waiting, refused[0][0].item, refused[0][1])
        else:
            self._move_members(waiting, done_moves, call)

    def _move_members(self, members: Sequence[OpenMove], done_moves: list[OpenMove], call: Call) -> None:
        """Move one after the other; when one cannot be moved after all, those before it are moved back.

        Members that cannot be moved back, or not for certain, get no outcome: the next execution looks where they are.
        """
        done_before = len(done_moves)
        for index, move in enumerate(members):
            outcomes_before = len(self.outcomes)
            self._move_entry(move, done_moves, call)
            refused = [outcome for outcome in self.outcomes[outcomes_before:] if outcome.status is not ItemStatus.DONE]
            if refused:
                moved_back = [member for member in done_moves[done_before:] if _move_back(member)]
                del done_moves[done_before:]
                fds = {fd for member in moved_back for fd in (member.source.parent_fd, member.target.parent_fd)}
                confirmed = moved_back if all(is_synced(fd) for fd in fds) else []
                self._leave([*confirmed, *members[index + 1 :]], move.item, refused[0])
                return

    def _check(self, move: OpenMove, moved_parents: set[Identity]) -> ItemOutcome | None:
        """Return None for a source that can be moved, DONE for one that is at its destination already, else why not."""
        position = move.item.position
        if moved_parents and moved_parents & {move.source_parent.identity, move.target_parent.identity}:
            return ItemOutcome(position, ItemStatus.ERROR, PARENT_MOVED)
        try:
            if is_as_planned(move.item, move.source_parent.fd, move.source_name):
                return None
            is_gone = stat_entry(move.source_parent.fd, move.source_name) is None
            if is_gone and was_moved_to(move.item, move.target):
                return ItemOutcome(position, ItemStatus.DONE)
        except OSError as error:
            return ItemOutcome(position, ItemStatus.ERROR, _error_text(error))
        return ItemOutcome(position, ItemStatus.SKIPPED, SOURCE_MISSING if is_gone else CHANGED)

    def _move_entry(self, move: OpenMove, done_moves: list[OpenMove], call: Call) -> None:
        """Rename the entry, or copy it to the other device; a directory that holds the state folder is refused."""
        if move.item.quarantine_path is not None:
            self._copy_entry(move, call)
            return
        try:
            if move.item.node is NodeType.DIRECTORY and move.source_parent.root.walk_only:
                options = TreeOptions.without_hashes(call, self._jail.is_hidden)
                read_tree(move.source_parent.fd, move.source_name, move.item.src_path, options)
            files.move_entry(move.source_parent.fd, move.source_name, move.target_parent.fd, move.target_name)
        except FileExistsError:
            self._add_outcome(move, ItemStatus.ERROR, DESTINATION_EXISTS)
        except FileNotFoundError:
            self._add_outcome(move, ItemStatus.SKIPPED, SOURCE_MISSING)
        except (OSError, HoldfastError) as error:
            self._add_outcome(move, ItemStatus.ERROR, _error_text(error))
        else:
            done_moves.append(move)

    def _cross_device_move(self, move: OpenMove) -> CrossDeviceMove:
        item = move.item
        return CrossDeviceMove(
            self._jail,
            self._quarantine,
            move.source,
            move.target,
            item.temp_name or "",
            item.quarantine_path or "",
            self._links if item.node is NodeType.LINK else None,
        )

    def _copy_entry(self, move: OpenMove, call: Call) -> None:
        """Copy an entry to another device; after an error the disk says what happened.

        When even that cannot be found out, the item gets no outcome and waits for the next execution.
        """
        copy = self._cross_device_move(move)
        try:
            identity: str | None = copy.run(copy.read_source(call), call)
        except ChangeAbandoned as abandoned:
            is_taken = isinstance(abandoned.error, AlreadyExists)
            status = ItemStatus.ERROR if is_taken else ItemStatus.SKIPPED
            self._add_outcome(move, status, DESTINATION_EXISTS if is_taken else CHANGED)
            return
        except (Cancelled, TimedOut):
            copy.recover()
            raise
        except (OSError, HoldfastError) as error:
            try:
                identity = copy.recover()
            except Conflict as conflict:
                self._add_outcome(move, ItemStatus.ERROR, conflict.message)
                return
            except (OSError, HoldfastError):
                return
            if identity is None:
                self._add_outcome(move, ItemStatus.ERROR, _error_text(error))
                return
        self.outcomes.append(ItemOutcome(move.item.position, ItemStatus.DONE, identity=identity))

    def _add_outcome(self, move: OpenMove, status: ItemStatus, message: str | None) -> None:
        self.outcomes.append(ItemOutcome(move.item.position, status, message))

    def _sync(self, done_moves: Sequence[OpenMove]) -> None:
        """Make the moves durable, destinations first; moves whose directory cannot be synced are moved back."""
        parents = dict.fromkeys([move.target_parent for move in done_moves])
        parents |= dict.fromkeys([move.source_parent for move in done_moves])
        failed = {parent for parent in parents if not is_synced(parent.fd)}
        for move in done_moves:
            if failed & {move.source_parent, move.target_parent} and _move_back(move):
                self._add_outcome(move, ItemStatus.ERROR, UNSYNCED)
            else:
                self.outcomes.append(ItemOutcome(move.item.position, ItemStatus.DONE))


def stays_with(path: str, reason: str | None) -> str:
    """Return why an entry stays that belongs to the one at a path."""
    return f"It belongs to {path.rpartition('/')[2]}, which stays. {reason or ''}".rstrip()


def is_synced(dir_fd: int) -> bool:
    """Make a directory's entries durable; False when the disk does not confirm it."""
    try:
        files.sync_directory(dir_fd)
    except OSError:
        return False
    return True


def _move_back(move: OpenMove) -> bool:
    source, target = move.source, move.target
    try:
        files.move_entry(target.parent_fd, target.name, source.parent_fd, source.name)
    except OSError:
        return False
    return True


def _check_target(move: OpenMove) -> ItemOutcome | None:
    """Return the outcome of an item whose destination is taken, None when it is free."""
    try:
        is_free = stat_entry(move.target.parent_fd, move.target.name) is None
    except OSError as error:
        return ItemOutcome(move.item.position, ItemStatus.ERROR, _error_text(error))
    return None if is_free else ItemOutcome(move.item.position, ItemStatus.ERROR, DESTINATION_EXISTS)


def _error_text(error: HoldfastError | OSError) -> str | None:
    return error.strerror if isinstance(error, OSError) else error.message
