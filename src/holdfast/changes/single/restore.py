"""Restores the state of a path before a change, whatever was changed there since. For the person alone.

An undo goes back one change at a time and needs the contents in between, which may be gone. This goes straight to the
content that the change began with, as one new change whose own before-image is the present content.
"""

import os
import stat
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.changes.disk.files import stat_entry
from holdfast.changes.disk.places import lock_place
from holdfast.changes.disk.quarantine import open_jail
from holdfast.changes.model import (
    ChangeKind,
    Item,
    ItemStatus,
    NodeType,
    Op,
    Plan,
    PlanStatus,
    UndoResult,
    reverse_items,
)
from holdfast.changes.single.content import SMALL_BYTES, read_base
from holdfast.changes.single.record import ChangeRequest
from holdfast.changes.single.undo import Undo
from holdfast.errors import Conflict, NotFound, ResourceBusy
from holdfast.folders.access.jail import HiddenByPolicy, Jail, Place
from holdfast.text.display import display_name

_OF_A_FILE = (Op.REPLACE, Op.REMOVE, Op.RESTORE)


@dataclass(frozen=True)
class StateRestore:
    """Brings back what a path was before a change, with the parts that an undo uses."""

    undo: Undo
    state_dir: str

    def run(self, change_id: str, call: Call) -> UndoResult:
        """Restore the state before a change; the result has no change id when it is there already.

        For one file the present content is replaced, and is kept. Moves, directories and whole trees are only undone as
        `undo_change` does it: Conflict when something newer is in the way.
        """
        plan = self._find(change_id)
        items = [item for item in plan.items if item.op is not Op.SAVE]
        roots = [root for root in (plan.root_dir, plan.other_root) if root]
        with open_jail(roots, self.state_dir) as jail:
            if len(items) != 1 or items[0].op not in _OF_A_FILE or items[0].node is not NodeType.FILE:
                return UndoResult(plan, self.undo.run(jail, plan, call))
            _check_directory(jail, items[0].src_path)
            with lock_place(jail, self.undo.locks, call, items[0].src_path, follow=False) as place:
                return UndoResult(plan, self._restore_file(jail, place, items[0], call))

    def _find(self, change_id: str) -> Plan:
        plan = self.undo.journal.find(change_id)
        if plan is None or plan.status in (PlanStatus.CREATED, PlanStatus.APPROVED, PlanStatus.CANCELLED):
            raise NotFound(f"There is no change {change_id!r}.")
        if plan.stepwise:
            raise Conflict(f"Change {change_id} is a plan of moves; `holdfast organise undo` takes it back.")
        if plan.status is PlanStatus.RUNNING:
            raise ResourceBusy(f"Change {change_id} is still running.")
        return plan

    def _restore_file(self, jail: Jail, place: Place, item: Item, call: Call) -> str | None:
        request = ChangeRequest(ChangeKind.UNDO, call.caller.client, jail)
        status = stat_entry(place.parent_fd, place.name)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise Conflict(f"{place.path} is not a regular file any more; move it away to restore the file.")
        if item.before_hash is None:
            return None if status is None else self.undo.removals.remove(jail, place, call, request)
        if status is None:
            removal = item._replace(op=Op.REMOVE, after_hash=None, status=ItemStatus.DONE)
            return self.undo.removals.restore(jail, place, reverse_items([removal]), call, request)
        data = b"".join(self.undo.images.read(item.before_hash))
        with read_base(place, with_data=True, max_bytes=SMALL_BYTES, admit=self.undo.images.room.admit) as base:
            if base.hash == item.before_hash:
                return None
            return self.undo.contents.put(place, base, data, request).change_id


def _check_directory(jail: Jail, path: str) -> None:
    """Raise NotFound, with what a person can do, when the directory of a path is gone."""
    parent = os.path.dirname(path)
    try:
        with jail.open_directory(parent):
            return
    except HiddenByPolicy:
        raise
    except NotFound:
        raise NotFound(
            f"The directory of {display_name(path)} is gone. Undo the change that removed it first, or make the directory."
        ) from None
