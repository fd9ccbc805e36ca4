"""Plans of moves: create, revise, approve by hash, execute, undo whole or in part."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

from holdfast.bulletin import Bulletin, NewsKind
from holdfast.call import Call
from holdfast.changes.disk.places import Locks
from holdfast.changes.disk.policy_gate import ReviewNeeded, check_plan, check_tree, hides_any, is_visible
from holdfast.changes.model import (
    ChangeKind,
    Item,
    ItemStatus,
    Op,
    Plan,
    PlanOverview,
    PlanStatus,
    UndoResult,
)
from holdfast.changes.plans.execute import Executor
from holdfast.changes.plans.freshness import OutdatedMoves, find_outdated
from holdfast.changes.plans.layout import plan_hash
from holdfast.changes.plans.resolve_moves import MoveRequest, assign_destinations, build_layout, describe_moves
from holdfast.changes.plans.undo import build_undo_plan, explain_failures, is_undone
from holdfast.changes.ports import Journal
from holdfast.clock import utc_now
from holdfast.errors import AccessDenied, Conflict, HoldfastError, InvalidArgument, NotFound, PermissionDenied
from holdfast.folders.access.jail import HiddenByPolicy, Jail
from holdfast.folders.service import Folders
from holdfast.text.budget import visible_rows

_BY_SETTINGS = "settings"
_RUNNABLE = frozenset({PlanStatus.APPROVED, PlanStatus.RUNNING, PlanStatus.FAILED})


@dataclass(frozen=True)
class Execution:
    """The result of executing a plan; `done_before` are the positions that an earlier execution had done.

    `plan` is the plan with all of its items, read when it is first used.
    """

    status: PlanStatus
    done_before: frozenset[int]
    read: Callable[[], Plan]

    @cached_property
    def plan(self) -> Plan:
        """Return the plan after the execution."""
        return self.read()


class Plans:
    """The plans of every caller; a caller sees those beneath its allowed directories. NotFound for any other."""

    def __init__(
        self, journal: Journal, executor: Executor, *, require_approval: bool, bulletin: Bulletin | None = None
    ) -> None:
        self._journal = journal
        self._plan_journal = journal.plans
        self._executor = executor
        self._require_approval = require_approval
        self._locks = Locks()
        self._bulletin = bulletin or Bulletin()
        self._busy: dict[str, Call] = {}

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
        """Record the requested moves of a folder as a CREATED plan; nothing moves.

        InvalidArgument when there is nothing to move or moves contradict each other. With `may_be_empty` an empty plan
        is recorded, and `revise` adds moves.
        """
        layout = build_layout(folders.jail, _without_closed(folders.jail, call, requests), call)
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
            client=call.caller.client,
        )
        self._plan_journal.create(plan)
        self._tell(plan.id, PlanStatus.CREATED)
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
        """Give moves of a CREATED plan another destination, or drop those that get None; the plan's hash changes.

        `reasons` are new reasons and confidences of moves that stay, `added` are further moves. InvalidArgument for a
        position that is no move of the plan; Conflict once the plan was approved.
        """
        with self._locks.hold(call, [plan_id]):
            plan = self.find(folders, plan_id)
            moves = {item.position: item for item in plan.items if item.op is Op.MOVE}
            unknown = sorted(set(dests) - set(moves))
            if unknown:
                raise InvalidArgument(f"Plan {plan_id} has no move {unknown[0]}.")
            remaining = [
                _redirect(item, dests, reasons or {})
                for item in moves.values()
                if dests.get(item.position, "") is not None
            ]
            layout = assign_destinations(
                folders.jail, [*remaining, *describe_moves(folders.jail, added, call, _next_position(plan))], call
            )
            if not set(layout.roots) <= {plan.root_dir, plan.other_root}:
                raise InvalidArgument("A plan cannot be revised to touch another allowed directory; make a new one.")
            self._plan_journal.revise(plan_id, layout.items)
        self._tell(plan_id, PlanStatus.CREATED)
        return self.find(folders, plan_id)

    def hash_of(self, plan: Plan) -> str:
        """Return the hash that an approval of this plan names."""
        return plan_hash(plan.folder or "", plan.items)

    def approve(self, folders: Folders, plan_id: str, shown_hash: str, by: str) -> Plan:
        """Approve a plan as it was shown. Conflict when it has changed since, or is not waiting for approval."""
        plan = self.find(folders, plan_id)
        if self.hash_of(plan) != shown_hash:
            raise Conflict(f"Plan {plan_id} is not the one that was shown; look at it again.", status=plan.status)
        self._plan_journal.approve(plan_id, shown_hash, by, utc_now())
        self._tell(plan_id, PlanStatus.APPROVED)
        return self.find(folders, plan_id)

    def cancel(self, folders: Folders, plan_id: str) -> Plan:
        """Cancel a plan none of whose items was begun. Conflict for any other."""
        self.find(folders, plan_id)
        self._plan_journal.cancel(plan_id)
        self._tell(plan_id, PlanStatus.CANCELLED)
        return self.find(folders, plan_id)

    def busy(self) -> list[str]:
        """Return the plans that are being executed or undone at this moment."""
        return list(self._busy)

    def stop(self, plan_id: str) -> bool:
        """Have the execution or undo of a plan stop after its batch; False when there is none."""
        call = self._busy.get(plan_id)
        if call is not None:
            call.cancel()
        return call is not None

    @contextmanager
    def _at_work(self, plan_id: str, phase: str, call: Call) -> Iterator[Call]:
        """Give the call of an execution or undo: it can be stopped, and its progress and end are told."""

        def report(done: float, total: float | None, message: str) -> None:
            call.progress(done, total, message)
            self._bulletin.tell_progress(plan_id, phase, done, total, message)

        self._busy[plan_id] = call
        try:
            yield replace(call, progress=report)
        finally:
            del self._busy[plan_id]
            plan = self._journal.find(plan_id)
            status = plan.status if plan is not None else PlanStatus.FAILED
            self._tell(plan_id, status)
            self._bulletin.tell(NewsKind.CHANGE_MADE, id=plan_id, status=status.value, kind=ChangeKind.ORGANISE.value)

    def _tell(self, plan_id: str, status: PlanStatus) -> None:
        self._bulletin.tell(NewsKind.PLAN_CHANGED, id=plan_id, status=status.value, kind=ChangeKind.ORGANISE.value)

    def find(self, folders: Folders, plan_id: str) -> Plan:
        """Return a plan of the caller with its items."""
        plan = self._journal.find(plan_id)
        if plan is None or plan.kind is not ChangeKind.ORGANISE or not _is_visible(plan, folders):
            raise no_such_plan(plan_id)
        return plan

    def exists(self, plan_id: str) -> bool:
        """Return whether a plan was made, whoever may see it."""
        return self._journal.find(plan_id) is not None

    def roots_of(self, plan_id: str) -> tuple[str, ...]:
        """Return the allowed directories that a plan of any caller touches, for the person."""
        plan = self._journal.find(plan_id)
        if plan is None or plan.kind is not ChangeKind.ORGANISE:
            raise no_such_plan(plan_id)
        return tuple(root for root in (plan.root_dir, plan.other_root) if root)

    def list(self, folders: Folders, limit: int, before_seq: int | None = None) -> "list[PlanOverview]":
        """Return the caller's plans, newest first, those with a smaller `seq` than given."""
        jail = folders.jail
        return visible_rows(
            lambda before: self._plan_journal.list_plans(jail.allowed_paths, limit, before),
            lambda plan: not jail.hides(plan.folder),
            limit,
            before_seq,
        )

    def list_all(self, limit: int, before_seq: int | None = None) -> Sequence[PlanOverview]:
        """Return the newest plans of this machine, whoever made them, for the person."""
        return self._plan_journal.list_plans(["/"], limit, before_seq)

    def find_outdated(self, folders: Folders, call: Call, plan: Plan) -> OutdatedMoves:
        """Return the waiting moves of a plan whose sources changed since it was made."""
        return find_outdated(folders.jail, call, plan.items)

    def needs_approval(self, folders: Folders, call: Call, plan: Plan) -> bool:
        """Return whether a person has to approve a new plan first: by the settings, or because of a rule of the policy."""
        try:
            check_plan(folders.jail, call, plan.items)
        except ReviewNeeded:
            return True
        return self._require_approval

    def execute(self, folders: Folders, call: Call, plan_id: str) -> Execution:
        """Execute a plan, or go on with it; items that were done before stay as they are.

        PermissionDenied while no person has approved it, Conflict when it changed since or has ended. Cancelled and
        TimedOut leave a plan that the next execution completes.
        """
        with self._locks.hold(call, [plan_id]):
            plan = self.find(folders, plan_id)
            done_before = frozenset(item.position for item in plan.items if item.status is ItemStatus.DONE)
            status = plan.status
            if status is not PlanStatus.EXECUTED:
                jail = folders.jail.approved() if _has_persons_approval(plan) else folders.jail
                check_plan(jail, call, [item for item in plan.items if item.status is not ItemStatus.DONE])
                self._check_approval(plan)
                self._plan_journal.start(plan_id, call.caller.client)
                self._tell(plan_id, PlanStatus.RUNNING)
                with self._at_work(plan_id, "execute", call) as watched:
                    status = self._executor.run(jail, _as_started(plan), watched)
            return Execution(status, done_before, partial(self.find, folders, plan_id))

    def undo(self, folders: Folders, call: Call, plan: Plan, positions: Collection[int] | None = None) -> UndoResult:
        """Undo a stepwise plan, or only some of its moves.

        What cannot go back without overwriting stays, and the result says why. Conflict when nothing could go back; a
        plan that is undone already gives a result without a change.
        """
        with self._locks.hold(call, [plan.id]):
            plan = self._recover(folders, plan)
            undo_plan = self._build_undo(folders, call, plan, positions)
            if undo_plan is None:
                return UndoResult(plan, None)
            if positions is None and plan.status is PlanStatus.RUNNING:
                self._plan_journal.skip_rest(plan.id, "The plan was undone before this step.", utc_now())
            self._plan_journal.create(undo_plan)
            with self._at_work(plan.id, "undo", call) as watched:
                try:
                    self._executor.run(folders.jail, undo_plan, watched)
                finally:
                    self._executor.recover(folders.jail, self._journal.find(undo_plan.id) or undo_plan)
        undo_plan = self._journal.find(undo_plan.id) or undo_plan
        if any(item.status is ItemStatus.DONE for item in undo_plan.items):
            moves = [item for item in undo_plan.items if item.op is Op.MOVE]
            stayed = tuple(item for item in moves if item.status is not ItemStatus.DONE)
            return UndoResult(plan, undo_plan.id, len(moves) - len(stayed), stayed)
        if is_undone(plan, positions):
            return UndoResult(plan, None)
        raise Conflict(f"Nothing of {plan.kind} {plan.id} was undone. {explain_failures(undo_plan.items)}")

    def _build_undo(self, folders: Folders, call: Call, plan: Plan, positions: Collection[int] | None) -> Plan | None:
        """Return the plan of an undo that the policy allows, None when there is nothing to undo."""
        try:
            undo_plan = build_undo_plan(self._journal, folders.jail, plan, positions, call)
            if undo_plan is not None:
                check_plan(folders.jail, call, undo_plan.items)
        except ReviewNeeded as needed:
            command = f"holdfast organise undo {plan.id[:8]}"
            raise ReviewNeeded(needed.message, hint=f"The user can undo the plan: `{command}`.") from None
        return undo_plan

    def _recover(self, folders: Folders, plan: Plan) -> Plan:
        """Return the present state of a plan, after recording what an interrupted execution had done."""
        plan = self._journal.find(plan.id) or plan
        if plan.status is PlanStatus.RUNNING:
            self._executor.recover(folders.jail, plan)
            plan = self._journal.find(plan.id) or plan
        return plan

    def _check_approval(self, plan: Plan) -> None:
        if plan.status is PlanStatus.CREATED:
            if self._require_approval:
                raise PermissionDenied(f"A person has to approve plan {plan.id} before it is executed.")
            self._plan_journal.approve(plan.id, self.hash_of(plan), _BY_SETTINGS, utc_now())
        elif plan.status not in _RUNNABLE:
            raise Conflict(f"Plan {plan.id} is {plan.status}, so it cannot be executed.", status=plan.status)
        elif plan.approved_hash != self.hash_of(plan):
            raise Conflict(f"Plan {plan.id} is not the one that was approved; nothing was moved.")


def _without_closed(jail: Jail, call: Call, requests: Sequence[MoveRequest]) -> list[MoveRequest]:
    """Return the moves that the policy would let the client make, once a person approved them."""
    if jail.policy is None:
        return list(requests)
    approved = jail.approved()
    closed = {request for request in requests if not _is_open_to(approved, call, request)}
    units = {request.unit for request in closed if request.unit is not None}
    return [request for request in requests if request not in closed and request.unit not in units]


def _has_persons_approval(plan: Plan) -> bool:
    return plan.approved_by not in (None, _BY_SETTINGS)


def _is_open_to(jail: Jail, call: Call, request: MoveRequest) -> bool:
    try:
        with jail.place(request.src, follow=False) as place:
            check_tree(jail, call, place, jail.absolute(request.dest))
    except (AccessDenied, HiddenByPolicy, PermissionDenied):
        return False
    except HoldfastError:
        return True
    return True


def _as_started(plan: Plan) -> Plan:
    """Return a plan as `start` leaves it: failed items are PENDING again."""
    items = tuple(
        item._replace(status=ItemStatus.PENDING) if item.status is ItemStatus.ERROR else item for item in plan.items
    )
    return replace(plan, status=PlanStatus.RUNNING, items=items)


def _redirect(item: Item, dests: Mapping[int, str | None], reasons: Mapping[int, tuple[str, float]]) -> Item:
    reasoning, confidence = reasons.get(item.position, (item.reasoning, item.confidence))
    dest = dests.get(item.position) or item.dest_path
    return item._replace(dest_path=dest, reasoning=reasoning, confidence=confidence)


def _next_position(plan: Plan) -> int:
    return max((item.position for item in plan.items), default=-1) + 1


def no_such_plan(plan_id: str) -> NotFound:
    """Return the error about a plan that there is not, or that the caller may not see."""
    return NotFound(f"There is no plan {plan_id!r}. list_plans shows those that there are.")


def _is_visible(plan: Plan, folders: Folders) -> bool:
    paths = (path for item in plan.items for path in (item.src_path, item.dest_path))
    return is_visible(plan, folders.jail) and not hides_any(folders.jail, paths)
