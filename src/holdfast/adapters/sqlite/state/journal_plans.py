"""The stepwise plans in state.db: create, approve, start, record outcomes and intents of batches, list."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.adapters.sqlite.state.database import Database, client_row, item_row, plan_row, read_path, stored_path
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import (
    Item,
    ItemOutcome,
    ItemStatus,
    Op,
    Plan,
    PlanOverview,
    PlanStatus,
    QuarantinedFile,
    item_may_become,
    plan_may_become,
    status_of,
)
from holdfast.errors import Conflict

_MAX_INTEGER = 2**63 - 1
_MAX_EXPIRED = 500


class SqlitePlanJournal:
    """Implements `holdfast.changes.ports.PlanJournal`; every UPDATE names the status that it expects."""

    def __init__(self, database: Database, find: Callable[[str], Plan | None]) -> None:
        self._db = database
        self._find = find

    def create(self, plan: Plan) -> None:
        """Write a plan with all of its items in one transaction."""
        with self._db.transaction(durable=True):
            self._db.run("insert_plan", plan_row(plan))
            self._insert_items(plan.id, plan.items)

    def revise(self, plan_id: str, items: Sequence[Item]) -> None:
        """Replace the items of a CREATED plan."""
        with self._db.transaction(durable=True):
            self._expect(plan_id, {PlanStatus.CREATED}, "revised")
            self._db.run("delete_items", {"plan_id": plan_id})
            self._insert_items(plan_id, items)

    def approve(self, plan_id: str, plan_hash: str, by: str, at: str) -> None:
        """Record who approved exactly this content."""
        row = {"id": plan_id, "approved_hash": plan_hash, "approved_by": by, "at": at}
        with self._db.transaction(durable=True):
            if self._db.run("approve_plan", row).rowcount != 1:
                raise self._conflict(plan_id, "approved")

    def cancel(self, plan_id: str) -> None:
        """Cancel a plan none of whose items was begun."""
        with self._db.transaction(durable=True):
            if self._db.run("cancel_plan", {"id": plan_id}).rowcount != 1:
                raise self._conflict(plan_id, "cancelled")

    def start(self, plan_id: str, client: ClientInfo) -> None:
        """Make a plan RUNNING and the newest change, of that client, its failed items PENDING again."""
        with self._db.transaction(durable=False):
            if self._db.run("start_plan", {"id": plan_id, **client_row(client)}).rowcount != 1:
                raise self._conflict(plan_id, "executed")
            self._db.run("retry_items", {"plan_id": plan_id})

    def advance(self, plan_id: str, outcomes: Sequence[ItemOutcome], intents: Sequence[Item], at: str) -> PlanStatus:
        """Write the outcomes of one batch and the intents of the next in one durable transaction."""
        with self._db.transaction(durable=True):
            self._finish(plan_id, outcomes)
            self._close_batch(plan_id, outcomes)
            self._intend(plan_id, intents, at)
            return PlanStatus.RUNNING if intents else self._restate_running(plan_id, at)

    def skip_rest(self, plan_id: str, reason: str, at: str) -> PlanStatus:
        """End a plan whose PENDING items will not be executed."""
        with self._db.transaction(durable=True):
            self._db.run("skip_items", {"plan_id": plan_id, "error_msg": reason})
            self._db.run("leave_batch", {"plan_id": plan_id})
            return self._restate_running(plan_id, at)

    def find_interrupted(self) -> list[Plan]:
        """Return the plans that a crash may have left in the middle of a batch."""
        plans = (self._find(row["id"]) for row in self._db.fetch("interrupted_plans"))
        return [plan for plan in plans if plan is not None]

    def list_plans(self, roots: Sequence[str], limit: int, before_seq: int | None) -> list[PlanOverview]:
        """Return plans beneath the roots, newest first."""
        parameters = {
            "roots": json.dumps(list(roots)),
            "limit": limit,
            "before_seq": _MAX_INTEGER if before_seq is None else before_seq,
        }
        rows = self._db.fetch("list_plans", parameters)
        return [
            PlanOverview(
                seq=row["seq"],
                id=row["id"],
                status=PlanStatus(row["status"]),
                folder=read_path(row["folder"]) or "",
                created_at=row["created_at"],
                executed_at=row["executed_at"],
                moves={status: count for (op, status), count in self._counts(row["id"]).items() if op is Op.MOVE},
                roots=tuple(filter(None, (read_path(row["root_dir"]), read_path(row["other_root"])))),
            )
            for row in rows
        ]

    def find_expired_quarantine(self, kept_since: str) -> list[QuarantinedFile]:
        """Return what plans that ended before that time left in quarantine, oldest first, at most 500."""
        rows = self._db.fetch("expired_quarantine", {"kept_since": kept_since, "limit": _MAX_EXPIRED})
        return [
            QuarantinedFile(
                plan_id=row["plan_id"],
                position=row["position"],
                path=read_path(row["quarantine_path"]) or "",
                roots=tuple(filter(None, (read_path(row["root_dir"]), read_path(row["other_root"])))),
            )
            for row in rows
        ]

    def forget_quarantine(self, files: Sequence[QuarantinedFile]) -> None:
        """Record that these files are not in quarantine any more."""
        with self._db.transaction(durable=False):
            rows = [{"plan_id": file.plan_id, "position": file.position} for file in files]
            self._db.run_many("forget_quarantine", rows)

    def _insert_items(self, plan_id: str, items: Sequence[Item]) -> None:
        self._db.run_many("insert_item", [item_row(plan_id, item.position, item) for item in items])

    def _finish(self, plan_id: str, outcomes: Sequence[ItemOutcome]) -> None:
        """Record outcomes, one statement for each run of positions with the same status and message."""
        alike: dict[tuple[ItemStatus, str | None], list[int]] = {}
        for outcome in outcomes:
            if outcome.identity is None:
                alike.setdefault((outcome.status, outcome.message), []).append(outcome.position)
                continue
            self._finish_items(plan_id, outcome.status, outcome.message, outcome.identity, [outcome.position])
        for (status, message), positions in alike.items():
            self._finish_items(plan_id, status, message, None, positions)
        done_positions = [outcome.position for outcome in outcomes if outcome.status is ItemStatus.DONE]
        if done_positions:
            self._update_reversed(plan_id, done_positions)

    def _finish_items(
        self,
        plan_id: str,
        status: ItemStatus,
        message: str | None,
        dest_identity: str | None,
        positions: Sequence[int],
    ) -> None:
        if not item_may_become(ItemStatus.PENDING, status):
            raise Conflict(f"The items {positions} of plan {plan_id} cannot become {status}.")
        row = {"plan_id": plan_id, "status": status.value, "error_msg": message, "identity": None}
        row["dest_identity"] = dest_identity
        changed = sum(self._db.run("finish_items", {**row, **run}).rowcount for run in _runs(positions))
        _expect_all(changed, positions, plan_id, "end")

    def _close_batch(self, plan_id: str, outcomes: Sequence[ItemOutcome]) -> None:
        """Delete the row of the batch that was begun; items that are not DONE get its intent in their own rows."""
        batch = self._db.run("begun_batch", {"plan_id": plan_id}).fetchone()
        if batch is None:
            return
        done_positions = {outcome.position for outcome in outcomes if outcome.status is ItemStatus.DONE}
        rest = [position for position in json.loads(batch["positions"]) if position not in done_positions]
        if rest:
            row = {"plan_id": plan_id, "intended_at": batch["intended_at"], "positions": json.dumps(rest)}
            self._db.run("keep_intents", row)
        self._db.run("leave_batch", {"plan_id": plan_id})

    def _intend(self, plan_id: str, intents: Sequence[Item], at: str) -> None:
        """Write the intents of a batch as one row, and temporary name and quarantine path of copies to their own rows."""
        if not intents:
            return
        positions = [item.position for item in intents]
        ranges = ({"plan_id": plan_id, **run} for run in _runs(positions))
        waiting = sum(self._db.run("waiting_items", run).fetchone()["items"] for run in ranges)
        _expect_all(waiting, positions, plan_id, "begin")
        batch = {"plan_id": plan_id, "intended_at": at, "positions": json.dumps(positions)}
        if self._db.run("intend_batch", batch).rowcount != 1:
            raise self._conflict(plan_id, "executed")
        for item in intents:
            if item.quarantine_path is not None:
                names = {"temp_name": item.temp_name, "quarantine_path": stored_path(item.quarantine_path)}
                self._db.run("intend_item", {"plan_id": plan_id, "position": item.position, **names})

    def _update_reversed(self, plan_id: str, positions: list[int]) -> None:
        """What these items reversed is UNDONE, what that had reversed is DONE again, and so on down the chain."""
        present, target = ItemStatus.DONE, ItemStatus.UNDONE
        undone_id = self._state(plan_id)["undoes"]
        while undone_id is not None and positions:
            parameters = {"plan_id": plan_id, "positions": json.dumps(positions)}
            positions = [row["reverses"] for row in self._db.run("reversed_positions", parameters).fetchall()]
            change = {"plan_id": undone_id, "present": present.value, "status": target.value}
            for run in _runs(positions):
                self._db.run("set_item_statuses", {**change, **run})
            state = self._state(undone_id)
            if state["status"] == PlanStatus.UNDONE or not self._any_move_done(undone_id):
                self._restate(undone_id, state, state["executed_at"])
            plan_id, undone_id = undone_id, state["undoes"]
            present, target = target, present

    def _restate_running(self, plan_id: str, at: str) -> PlanStatus:
        """Give a RUNNING plan the status that its items say; Conflict for any other plan."""
        row = self._state(plan_id)
        if row["status"] != PlanStatus.RUNNING:
            raise self._conflict(plan_id, "executed")
        return self._restate(plan_id, row, at)

    def _restate(self, plan_id: str, row: Mapping[str, str | None], at: str | None) -> PlanStatus:
        """Give a plan the status that its items say, with the time at which it ended."""
        present, target = PlanStatus(row["status"] or ""), status_of(self._counts(plan_id))
        if present is target:
            return present
        if not plan_may_become(present, target):
            raise Conflict(f"Plan {plan_id} is {present}, so it cannot become {target}.")
        executed_at = at if present is PlanStatus.RUNNING else row["executed_at"]
        change = {"id": plan_id, "present": present.value, "status": target.value, "executed_at": executed_at}
        self._db.run("set_plan_status", change)
        return target

    def _any_move_done(self, plan_id: str) -> bool:
        """Return whether a plan is still in effect; quick, while counting its items takes longer with each of them."""
        return self._db.run("any_move_done", {"plan_id": plan_id}).fetchone() is not None

    def _counts(self, plan_id: str) -> Mapping[tuple[Op, ItemStatus], int]:
        rows = self._db.fetch("count_items", {"plan_id": plan_id})
        return {(Op(row["op"]), ItemStatus(row["status"])): row["items"] for row in rows}

    def _state(self, plan_id: str) -> Mapping[str, str | None]:
        row = self._db.run("plan_state", {"id": plan_id}).fetchone()
        return {"status": None, "executed_at": None, "undoes": None} if row is None else dict(row)

    def _expect(self, plan_id: str, allowed: set[PlanStatus], verb: str) -> None:
        if self._state(plan_id)["status"] not in allowed:
            raise self._conflict(plan_id, verb)

    def _conflict(self, plan_id: str, verb: str) -> Conflict:
        status = self._state(plan_id)["status"]
        return Conflict(f"Plan {plan_id} is {status or 'unknown'}, so it cannot be {verb}.", status=status)


def _runs(positions: Sequence[int]) -> Iterator[dict[str, int]]:
    """Yield the first and last position of each run without a gap; most batches are one run."""
    ordered = sorted(positions)
    start = 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or ordered[end] != ordered[end - 1] + 1:
            yield {"first": ordered[start], "last": ordered[end - 1]}
            start = end


def _expect_all(changed: int, positions: Sequence[int], plan_id: str, verb: str) -> None:
    if changed != len(positions):
        raise Conflict(f"Not all of the items {positions} of plan {plan_id} are waiting, so they cannot {verb}.")
