"""Plans of moves: made, revised, approved by hash, carried out once, taken back whole or in part."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

from holdfast.call import Call
from holdfast.changes.disk.locks import Locks
from holdfast.changes.model import (
    ChangeKind,
    Item,
    ItemStatus,
    Op,
    Plan,
    PlanOverview,
    PlanStatus,
    UndoResult,
    is_beneath,
)
from holdfast.changes.plans.execute import Executor
from holdfast.changes.plans.layout import plan_hash
from holdfast.changes.plans.resolve_moves import MoveRequest, assign_destinations, build_layout, describe_moves
from holdfast.changes.plans.undo import build_undo_plan, explain_failures, is_back
from holdfast.changes.ports import Journal
from holdfast.clock import utc_now
from holdfast.errors import Conflict, InvalidArgument, NotFound, PermissionDenied
from holdfast.folders.service import Folders

_RUNNABLE = frozenset({PlanStatus.APPROVED, PlanStatus.RUNNING, PlanStatus.FAILED})


@dataclass(frozen=True)
class Execution:
    """What came of carrying a plan out; `already` are the items that an earlier execution had done.

    `plan` is the plan with all of its items, read when it is looked at.
    """

    status: PlanStatus
    already: frozenset[int]
    read: Callable[[], Plan]

    @cached_property
    def plan(self) -> Plan:
        """Return the plan as it is afterwards."""
        return self.read()


class Plans:
    """The plans of every caller; each sees those whose allowed directories are its own. NotFound for any other."""

    def __init__(self, journal: Journal, executor: Executor, *, require_approval: bool) -> None:
        self._journal = journal
        self._book = journal.plans
        self._executor = executor
        self._require_approval = require_approval
        self._locks = Locks()

    def create(
        self,
        folders: Folders,
        call: Call,
        folder: str,
        requests: Sequence[MoveRequest],
        *,
        plan_id: str | None = None,
        may_be_empty: bool = False,
    ) -> Plan:
        """Record what is wished for a folder as a CREATED plan; nothing moves.

        InvalidArgument when there is nothing to move or moves contradict each other. One that may be empty waits for
        `revise` to add moves.
        """
        layout = build_layout(folders.jail, requests, call)
        if not layout.items and not may_be_empty:
            raise InvalidArgument("There is nothing to move: every file is where it should be.")
        roots = layout.roots or (folders.jail.parse(folder).root.path,)
        plan = Plan(
            id=plan_id or secrets.token_hex(16),
            kind=ChangeKind.ORGANISE,
            root_dir=roots[0],
            items=layout.items,
            created_at=utc_now(),
            other_root=roots[1] if len(roots) > 1 else None,
            status=PlanStatus.CREATED,
            stepwise=True,
            folder=folders.jail.absolute(folder),
        )
        self._book.create(plan)
        return self.find(folders, plan.id)

    def revise(
        self,
        folders: Folders,
        call: Call,
        plan_id: str,
        dests: Mapping[int, str | None],
        *,
        reasons: Mapping[int, tuple[str, float]] | None = None,
        added: Sequence[MoveRequest] = (),
    ) -> Plan:
        """Give moves of a CREATED plan another destination, or drop those that get None; its hash changes with it.

        `reasons` are new words and confidences of moves that stay, `added` are further moves. InvalidArgument for a
        position that is none of its moves; Conflict once the plan was approved.
        """
        with self._held(call, plan_id):
            plan = self.find(folders, plan_id)
            moves = {item.position: item for item in plan.items if item.op is Op.MOVE}
            unknown = sorted(set(dests) - set(moves))
            if unknown:
                raise InvalidArgument(f"Plan {plan_id} has no move {unknown[0]}.")
            kept = [
                _redirected(item, dests, reasons or {})
                for item in moves.values()
                if dests.get(item.position, "") is not None
            ]
            layout = assign_destinations(
                folders.jail, [*kept, *describe_moves(folders.jail, added, call, _after(plan))], call
            )
            if not set(layout.roots) <= {plan.root_dir, plan.other_root}:
                raise InvalidArgument("A plan cannot be revised to touch another allowed directory; make a new one.")
            self._book.revise(plan_id, layout.items)
        return self.find(folders, plan_id)

    def hash_of(self, plan: Plan) -> str:
        """Return the hash that an approval of this plan names."""
        return plan_hash(plan.folder or "", plan.items)

    def approve(self, folders: Folders, plan_id: str, shown_hash: str, by: str) -> Plan:
        """Approve a plan as it was shown. Conflict when it is another one by now, or not waiting for approval."""
        plan = self.find(folders, plan_id)
        if self.hash_of(plan) != shown_hash:
            raise Conflict(f"Plan {plan_id} is not the one that was shown; look at it again.", status=plan.status)
        self._book.approve(plan_id, shown_hash, by, utc_now())
        return self.find(folders, plan_id)

    def cancel(self, folders: Folders, plan_id: str) -> Plan:
        """Close a plan that has not been started. Conflict for any other."""
        self.find(folders, plan_id)
        self._book.cancel(plan_id)
        return self.find(folders, plan_id)

    def find(self, folders: Folders, plan_id: str) -> Plan:
        """Return a plan of the caller with its items."""
        plan = self._journal.find(plan_id)
        if plan is None or plan.kind is not ChangeKind.ORGANISE or not _is_seen(plan, folders):
            raise NotFound(f"There is no plan {plan_id!r}.")
        return plan

    def roots_of(self, plan_id: str) -> tuple[str, ...]:
        """Return the allowed directories that any plan of this machine touches: a person sees all. NotFound for none."""
        plan = self._journal.find(plan_id)
        if plan is None or plan.kind is not ChangeKind.ORGANISE:
            raise NotFound(f"There is no plan {plan_id!r}.")
        return tuple(root for root in (plan.root_dir, plan.other_root) if root)

    def list(self, folders: Folders, limit: int, before_seq: int | None = None) -> "list[PlanOverview]":
        """Return the caller's plans, newest first, those with a smaller `seq` than given."""
        return self._book.lines(folders.jail.allowed_paths, limit, before_seq)

    def every(self, limit: int) -> Sequence[PlanOverview]:
        """Return the newest plans of this machine, whoever made them: a person sees all."""
        return self._book.lines(["/"], limit, None)

    def execute(self, folders: Folders, call: Call, plan_id: str) -> Execution:
        """Carry a plan out, or go on with it; what was done before is left as it is.

        PermissionDenied while a person has not approved it, Conflict when it changed since or is over. Cancelled and
        TimedOut leave a plan that the next execution completes.
        """
        with self._held(call, plan_id):
            plan = self.find(folders, plan_id)
            already = frozenset(item.position for item in plan.items if item.status is ItemStatus.DONE)
            status = plan.status
            if status is not PlanStatus.EXECUTED:
                self._admit(plan)
                self._book.start(plan_id)
                status = self._executor.run(folders.jail, _started(plan), call)
            return Execution(status, already, partial(self.find, folders, plan_id))

    def undo(self, folders: Folders, call: Call, plan: Plan, positions: Collection[int] | None = None) -> UndoResult:
        """Take a stepwise plan back, or only some of its moves.

        What cannot go back without overwriting stays, and the answer says why. Conflict when nothing could; what is all
        back already is answered so.
        """
        with self._held(call, plan.id):
            plan = self._settled(folders, plan)
            back = build_undo_plan(self._journal, folders.jail, plan, positions, call)
            if back is None:
                return UndoResult(plan, None)
            if positions is None and plan.status is PlanStatus.RUNNING:
                self._book.skip_rest(plan.id, "The plan was undone before this step.", utc_now())
            self._book.create(back)
            try:
                self._executor.run(folders.jail, back, call)
            finally:
                self._executor.settle(folders.jail, self._journal.find(back.id) or back)
        made = self._journal.find(back.id) or back
        if any(item.status is ItemStatus.DONE for item in made.items):
            return _undone(plan, made)
        if is_back(plan, positions):
            return UndoResult(plan, None)
        raise Conflict(f"Nothing of {plan.kind} {plan.id} was taken back. {explain_failures(made.items)}")

    def _settled(self, folders: Folders, plan: Plan) -> Plan:
        """Return a plan as it is now, with what an execution that was stopped had done and could not record."""
        found = self._journal.find(plan.id) or plan
        if found.status is PlanStatus.RUNNING:
            self._executor.settle(folders.jail, found)
            found = self._journal.find(plan.id) or found
        return found

    def _admit(self, plan: Plan) -> None:
        if plan.status is PlanStatus.CREATED:
            if self._require_approval:
                raise PermissionDenied(f"A person has to approve plan {plan.id} before it is carried out.")
            self._book.approve(plan.id, self.hash_of(plan), "settings", utc_now())
        elif plan.status not in _RUNNABLE:
            raise Conflict(f"Plan {plan.id} is {plan.status}, so it cannot be carried out.", status=plan.status)
        elif plan.approved_hash != self.hash_of(plan):
            raise Conflict(f"Plan {plan.id} is not the one that was approved; nothing was moved.")

    @contextmanager
    def _held(self, call: Call, plan_id: str) -> Iterator[None]:
        with self._locks.hold(call, [plan_id]):
            yield


def _started(plan: Plan) -> Plan:
    """Return a plan as `start` leaves it: what failed waits again."""
    items = tuple(
        item._replace(status=ItemStatus.PENDING) if item.status is ItemStatus.ERROR else item for item in plan.items
    )
    return replace(plan, status=PlanStatus.RUNNING, items=items)


def _redirected(item: Item, dests: Mapping[int, str | None], reasons: Mapping[int, tuple[str, float]]) -> Item:
    reasoning, confidence = reasons.get(item.position, (item.reasoning, item.confidence))
    dest = dests.get(item.position) or item.dest_path
    return item._replace(dest_path=dest, reasoning=reasoning, confidence=confidence)


def _after(plan: Plan) -> int:
    return max((item.position for item in plan.items), default=-1) + 1


def _is_seen(plan: Plan, folders: Folders) -> bool:
    allowed = folders.jail.allowed_paths
    return all(is_beneath(root, allowed) for root in (plan.root_dir, plan.other_root) if root)


def _undone(plan: Plan, by: Plan) -> UndoResult:
    moves = [item for item in by.items if item.op is Op.MOVE]
    stayed = tuple(item for item in moves if item.status is not ItemStatus.DONE)
    return UndoResult(plan, by.id, len(moves) - len(stayed), stayed)
