"""Previews undos: what they would do to each file, and what prevents them, without changing anything.

Several changes are previewed in the order in which they would be undone, each on what those before it would leave.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.call import Call
from holdfast.changes.disk.files import hash_file, open_file
from holdfast.changes.disk.identity import is_same_entry
from holdfast.changes.disk.images import Images
from holdfast.changes.history.namespace import Namespace, steps_backwards
from holdfast.changes.model import Item, ItemStatus, NodeType, Op, Plan, PlanStatus, is_beneath, reverse_items
from holdfast.changes.plans.undo import build_undo_plan
from holdfast.changes.ports import Journal
from holdfast.errors import HoldfastError
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Jail

_NOT_KEPT = "Its earlier bytes are no longer kept."


@dataclass(frozen=True, slots=True)
class UndoneFile:
    """What an undo would do to one entry: `op` is the step of the undo; `problem` is why it would stay as it is."""

    op: Op
    path: str
    node: NodeType
    dest_path: str | None = None
    problem: str = ""
    blocked_by: str | None = None


@dataclass(frozen=True, slots=True)
class UndoStep:
    """The preview of one change: its files, or why nothing of it can be undone."""

    plan: Plan
    files: tuple[UndoneFile, ...] = ()
    problem: str = ""
    blocked_by: str | None = None

    @property
    def can_be_done(self) -> bool:
        """Return whether anything of the change would be undone."""
        moves = [file for file in self.files if file.op is Op.MOVE] or self.files
        return not self.problem and any(not file.problem for file in moves)


@dataclass
class UndoPreview:
    """Previews changes, newest first; `step` once for each."""

    journal: Journal
    images: Images
    jail: Jail
    call: Call
    _names: Namespace = field(default_factory=Namespace)
    _undone: set[str] = field(default_factory=set)

    def step(self, plan: Plan) -> UndoStep:
        """Return what undoing this change would do after those that were previewed before it."""
        self.call.check()
        step = self._preview(plan)
        if step.can_be_done:
            self._undone.add(plan.id)
            for item in steps_backwards(plan) if not plan.stepwise else ():
                if item.status is ItemStatus.DONE:
                    self._names.revert(item)
        return step

    def _preview(self, plan: Plan) -> UndoStep:
        saved = [item for item in plan.items if item.op is Op.SAVE]
        if plan.status is PlanStatus.UNDONE:
            return UndoStep(plan, problem="It is undone already.")
        for root in filter(None, (plan.root_dir, plan.other_root)):
            if not is_beneath(root, self.jail.allowed_paths):
                return UndoStep(plan, problem=f"Its folder {root} is not there any more.")
        if plan.stepwise:
            return self._preview_stepwise(plan)
        if plan.status is PlanStatus.FAILED and saved:
            return UndoStep(plan, tuple(UndoneFile(Op.SAVE, item.src_path, item.node) for item in saved))
        if plan.status is not PlanStatus.EXECUTED:
            return UndoStep(plan, problem=f"It is {plan.status}: there is nothing to undo.")
        items = reverse_items(plan.items)
        if not items:
            return UndoStep(plan, problem="It left nothing that could be undone.")
        files = tuple(self._preview_item(plan, item) for item in items)
        blocked = next((file for file in files if file.problem), None)
        if blocked is not None and items[0].op not in (Op.MKDIR, Op.RMDIR):
            return UndoStep(plan, files, blocked.problem, blocked.blocked_by)
        return UndoStep(plan, files)

    def _preview_stepwise(self, plan: Plan) -> UndoStep:
        """Preview a plan of moves: its undo plan says what is not as the plan left it, and the names what is in the way."""
        try:
            undo_plan = build_undo_plan(self.journal, self.jail, plan, None, self.call)
            differing = (
                {item.src_path: item.error_msg for item in undo_plan.items if item.error_msg} if undo_plan else {}
            )
        except HoldfastError as error:
            differing = dict.fromkeys((item.dest_path or "" for item in plan.items), error.message)
        done_items = [item for item in steps_backwards(plan) if item.status is ItemStatus.DONE]
        if not done_items:
            return UndoStep(plan, problem="It left nothing that could be undone.")
        files: list[UndoneFile] = []
        for item in done_items:
            file = self._preview_planned(plan, item, differing)
            files.append(file)
            if not file.problem and (item.op is Op.MOVE or _is_removed_by_undo(item, files)):
                self._names.revert(item)
        return UndoStep(plan, tuple(files))

    def _preview_planned(self, plan: Plan, item: Item, differing: Mapping[str, str | None]) -> UndoneFile:
        """Return what the undo does with one step of a plan."""
        if item.op is not Op.MOVE:
            return UndoneFile(Op.RMDIR if item.op is Op.MKDIR else Op.MKDIR, item.src_path, item.node)
        source, dest = item.dest_path or "", item.src_path
        file = UndoneFile(Op.MOVE, source, item.node, dest)
        is_known = self._names.has(source)
        problem = "" if is_known else differing.get(source) or ""
        if is_known and not self._exists(source):
            problem = "It no longer exists."
        if not problem and self._exists(dest):
            problem = "Something else is at its earlier place."
        if not problem:
            return file
        later = self.journal.find_latest_on(source, plan.seq)
        return replace(file, problem=problem, blocked_by=later if later not in self._undone else None)

    def _preview_item(self, plan: Plan, item: Item) -> UndoneFile:
        """Return what the undo does with one entry, with the problem if the entry is not as the change left it."""
        file = UndoneFile(item.op, item.src_path, item.node, item.dest_path)
        if item.op in (Op.MKDIR, Op.RMDIR):
            return file
        if item.after_hash is not None and item.op is not Op.MOVE and not self.images.has(item.after_hash):
            return replace(file, problem=_NOT_KEPT)
        wrong_path = self._find_difference(item)
        if wrong_path is None:
            return file
        later = self.journal.find_latest_on(wrong_path, plan.seq)
        if later is None or later == plan.id or later in self._undone:
            return replace(file, problem="Another program has changed it since.")
        return replace(file, problem=f"Change {later[:8]} came later; undo that one first.", blocked_by=later)

    def _find_difference(self, item: Item) -> str | None:
        """Return the path of the item that is not as the change left it, None when the undo can go on."""
        if item.op is Op.RESTORE:
            return item.src_path if self._exists(item.src_path) else None
        if item.op is Op.MOVE:
            if not self._is_what_was_moved(item):
                return item.src_path
            return item.dest_path if self._exists(item.dest_path or "/") else None
        is_same = (
            self._hash_of(item.src_path) == item.before_hash
            if item.node is NodeType.FILE
            else self._exists(item.src_path)
        )
        return None if is_same else item.src_path

    def _is_what_was_moved(self, item: Item) -> bool:
        entry = self._names.resolve(item.src_path)
        if entry is None:
            return False
        if entry.hash is not None:
            return item.before_hash is None or entry.hash == item.before_hash
        if entry.present_path is None:
            return True
        try:
            with self.jail.place(entry.present_path, follow=False) as place:
                if place.status is None:
                    return False
                is_same = is_same_entry(identity_text(place.status), item.identity)
        except (HoldfastError, OSError):
            return False
        return is_same or (item.before_hash is not None and self._hash_of(item.src_path) == item.before_hash)

    def _exists(self, path: str) -> bool:
        entry = self._names.resolve(path)
        if entry is None or entry.present_path is None:
            return entry is not None
        try:
            with self.jail.place(entry.present_path, follow=False) as place:
                return place.status is not None
        except (HoldfastError, OSError):
            return False

    def _hash_of(self, path: str) -> str | None:
        """Return the hash of a file as the steps before leave it, None when there is none that can be read."""
        entry = self._names.resolve(path)
        if entry is None or entry.hash is not None or entry.present_path is None:
            return None if entry is None else entry.hash
        try:
            with self.jail.place(entry.present_path, follow=False) as place:
                if place.status is None or not stat.S_ISREG(place.status.st_mode):
                    return None
                with open_file(place.parent_fd, place.name, place.path) as fd:
                    return hash_file(fd)
        except (HoldfastError, OSError):
            return None


def _is_removed_by_undo(directory: Item, files: list[UndoneFile]) -> bool:
    """Return whether the undo of a plan removes a directory that it made: something went back, and nothing stays in it."""
    moves = [file for file in files if file.op is Op.MOVE]
    return not all(file.problem for file in moves) and not any(
        file.problem and is_beneath(file.path, [directory.src_path]) for file in moves
    )
