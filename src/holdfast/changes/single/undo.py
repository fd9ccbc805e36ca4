"""Undoes a single change: the undo is a change of its own, made only while the disk is as the first one left it."""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.changes.disk.files import hash_file, open_file, stat_entry
from holdfast.changes.disk.identity import is_same_entry
from holdfast.changes.disk.images import Images
from holdfast.changes.disk.places import Locks, lock_place
from holdfast.changes.model import ChangeKind, Item, NodeType, Op, Plan, reverse_items
from holdfast.changes.names import add_label, collision_key, free_name
from holdfast.changes.ports import Journal
from holdfast.changes.single.content import SMALL_BYTES, ContentChanges, read_base
from holdfast.changes.single.directories import Directories
from holdfast.changes.single.move import Moves
from holdfast.changes.single.record import ChangeRequest
from holdfast.changes.single.remove import Removals
from holdfast.errors import Conflict, HoldfastError
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Jail, Place


@dataclass(frozen=True)
class Undo:
    """Executes the reverse of a change."""

    journal: Journal
    images: Images
    contents: ContentChanges
    removals: Removals
    moves: Moves
    directories: Directories
    locks: Locks

    def run(
        self,
        jail: Jail,
        plan: Plan,
        call: Call,
        *,
        proposed: Plan | None = None,
        check: Callable[[], None] | None = None,
    ) -> str:
        """Undo a change; returns the id of the new change. Conflict when a newer change is in the way.

        With `proposed` a person approved this undo, and it is made under that id.
        """
        items = reverse_items(plan.items)
        if not items:
            raise Conflict(f"Change {plan.id} left nothing that could be undone.")
        request = ChangeRequest(ChangeKind.UNDO, call.caller.client, jail, plan.id, proposed, check)
        if items[0].op in (Op.MKDIR, Op.RMDIR):
            with self.locks.hold_trees(call, *(item.src_path for item in items)):
                return self.directories.run(jail, plan.root_dir, items, request)
        if items[0].op is Op.REPLACE:
            return self._undo_content(jail, plan, items[0], request, call)
        with self.locks.hold_trees(call, items[0].src_path, *filter(None, [items[0].dest_path])):
            if items[0].op is Op.MOVE:
                return self._undo_move(jail, plan, items[0], request, call)
            return self._undo_tree(jail, plan, items, request, call)

    def restore_saved(self, jail: Jail, saved: Item, call: Call) -> str:
        """Write another program's bytes that a failed change saved into a new file beside the one they came from."""
        data = b"".join(self.images.read(saved.before_hash or ""))
        folder, name = os.path.split(saved.src_path)
        with jail.open_directory(folder) as fd:
            free = free_name(add_label(name, "kept"), {collision_key(other_name) for other_name in os.listdir(fd)})
        with lock_place(jail, self.locks, call, f"{folder}/{free}", follow=False) as place:
            request = ChangeRequest(ChangeKind.UNDO, call.caller.client, jail)
            return self.contents.put(place, None, data, request).change_id

    def _undo_content(self, jail: Jail, plan: Plan, item: Item, request: ChangeRequest, call: Call) -> str:
        data = b"".join(self.images.read(item.after_hash or ""))
        with lock_place(jail, self.locks, call, item.src_path, follow=False) as place:
            status = stat_entry(place.parent_fd, place.name)
            if status is None or not stat.S_ISREG(status.st_mode):
                raise self._in_the_way(plan, item.src_path)
            with read_base(place, with_data=True, max_bytes=SMALL_BYTES, admit=self.images.room.admit) as base:
                if base.hash != item.before_hash:
                    raise self._in_the_way(plan, item.src_path)
                return self.contents.put(place, base, data, request).change_id

    def _undo_tree(self, jail: Jail, plan: Plan, items: Sequence[Item], request: ChangeRequest, call: Call) -> str:
        with jail.place(items[0].src_path, follow=False) as place:
            if items[0].op is Op.RESTORE:
                if place.status is not None:
                    raise self._in_the_way(plan, place.path)
                return self.removals.restore(jail, place, items, call, request)
            if place.status is None:
                raise self._in_the_way(plan, place.path)
            try:
                return self.removals.remove(jail, place, call, request, expected=items)
            except Conflict:
                raise self._in_the_way(plan, place.path) from None

    def _undo_move(self, jail: Jail, plan: Plan, item: Item, request: ChangeRequest, call: Call) -> str:
        with (
            jail.place(item.src_path, follow=False) as source,
            jail.place(item.dest_path or "", follow=False) as target,
        ):
            if not self._is_what_was_moved(plan, item, source):
                raise self._in_the_way(plan, source.path)
            if target.status is not None:
                raise self._in_the_way(plan, target.path)
            return self.moves.move(jail, source, target, call, request)

    def _is_what_was_moved(self, plan: Plan, item: Item, source: Place) -> bool:
        """Return whether the entry is the one that was moved, or one that our own undos restored in its place."""
        if source.status is None:
            return False
        if is_same_entry(identity_text(source.status), item.identity):
            return True
        if item.node is NodeType.FILE and item.before_hash is not None:
            if source.status.st_size != item.size_bytes:
                return False
            with open_file(source.parent_fd, source.name, source.path) as fd:
                return hash_file(fd) == item.before_hash
        later = self.journal.find_latest_on(source.path, plan.seq)
        later_change = self.journal.find(later) if later else None
        return later_change is not None and later_change.kind is ChangeKind.UNDO

    def _in_the_way(self, plan: Plan, path: str) -> HoldfastError:
        """Return the Conflict for a path that is not as the change left it: which later change did that, or nobody's."""
        later = self.journal.find_latest_on(path, plan.seq)
        if later is not None and later != plan.id:
            return Conflict(
                f"{path} was changed after change {plan.id}, by change {later}; undo that one first.", blocked_by=later
            )
        return Conflict(f"{path} is not as change {plan.id} left it; it was changed outside of Holdfast and is kept.")
