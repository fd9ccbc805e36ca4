"""Executes a plan in batches: intents durable, places checked and moved, directories synced, outcomes durable.

The outcomes of one batch and the intents of the next are one commit. Whatever stops an execution, the next one goes on
from what the journal and the disk say.
"""

import errno
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.call import Call
from holdfast.changes.disk import files
from holdfast.changes.disk.files import stat_entry
from holdfast.changes.disk.links import Links
from holdfast.changes.disk.places import Locks, is_directory
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.model import Item, ItemOutcome, ItemStatus, Op, Plan, PlanStatus
from holdfast.changes.plans.batch import DESTINATION_EXISTS, ELSEWHERE, UNSYNCED, Batch, is_synced
from holdfast.changes.plans.layout import split_batches
from holdfast.changes.plans.parents import Parents
from holdfast.changes.ports import PlanJournal
from holdfast.clock import utc_now
from holdfast.errors import AccessDenied, HoldfastError, NotDirectory, NotFound, PermissionDenied
from holdfast.folders.access.jail import Jail, Place
from holdfast.observe.metrics import Metrics
from holdfast.observe.spans import add_part


class Executor:
    """Executes one plan per call of `run`; the caller has locked the plan."""

    def __init__(
        self,
        plans: PlanJournal,
        locks: Locks,
        quarantine: Quarantine,
        on_change: Callable[[], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self._plans = plans
        self._locks = locks
        self._quarantine = quarantine
        self._on_change = on_change

    def run(self, jail: Jail, plan: Plan, call: Call) -> PlanStatus:
        """Execute what is PENDING; returns the plan's status afterwards.

        Cancelled or TimedOut between two batches leave a plan that the next execution completes.
        """
        progress, links = _Progress(plan, call), Links.from_items(plan.items)
        outcomes = self._recover_begun(jail, plan)
        recovered = {outcome.position for outcome in outcomes}
        waiting = [item for item in plan.items if item.status is ItemStatus.PENDING and item.position not in recovered]
        try:
            with Parents(jail) as parents:
                for items in split_batches(waiting):
                    call.check()
                    parents.refresh()
                    if items[0].op is Op.MOVE:
                        self._run_moves(jail, parents, links, plan.id, items, outcomes, progress)
                    else:
                        self._run_directories(jail, plan.id, items, outcomes, progress)
        finally:
            status = self._advance(plan.id, outcomes, [])
            self._on_change()
        return status

    def recover(self, jail: Jail, plan: Plan) -> PlanStatus:
        """Record what a crash left of the last batch, by what is on the disk; an undo ends with that."""
        if plan.status is not PlanStatus.RUNNING:
            return plan.status
        status = self._advance(plan.id, self._recover_begun(jail, plan), [])
        if plan.undoes is not None and status is PlanStatus.RUNNING:
            status = self._plans.skip_rest(plan.id, "It was interrupted before this step.", utc_now())
        return status

    def _advance(self, plan_id: str, outcomes: Sequence[ItemOutcome], intents: Sequence[Item]) -> PlanStatus:
        """Make outcomes and the next intents durable; returns the plan's status."""
        began = time.perf_counter()
        status = self._plans.advance(plan_id, outcomes, intents, utc_now())
        commit_ms = (time.perf_counter() - began) * 1000
        self._metrics.journal_committed(commit_ms)
        add_part("commit of the journal", commit_ms)
        for outcome, count in Counter(outcome.status.value for outcome in outcomes).items():
            self._metrics.moves_ended(outcome.lower(), count)
        return status

    def _recover_begun(self, jail: Jail, plan: Plan) -> list[ItemOutcome]:
        """Return the outcomes of items that were begun and took effect."""
        begun_items = [
            item for item in plan.items if item.status is ItemStatus.PENDING and item.intended_at is not None
        ]
        outcomes: list[ItemOutcome] = []
        links = Links.from_items(plan.items) if begun_items else Links({})
        staying_units = {
            item.unit for item in plan.items if item.unit and item.status in (ItemStatus.ERROR, ItemStatus.SKIPPED)
        }
        for items in split_batches(begun_items):
            if items[0].op is not Op.MOVE:
                outcomes += _recover_directories(jail, items)
                continue
            with Parents(jail) as parents:
                outcomes += Batch(jail, parents, self._quarantine, self._locks, links).recover(items, staying_units)
        return outcomes

    def _run_moves(
        self,
        jail: Jail,
        parents: Parents,
        links: Links,
        plan_id: str,
        items: Sequence[Item],
        outcomes: list[ItemOutcome],
        progress: "_Progress",
    ) -> None:
        """Execute one batch of moves; `outcomes` has those of the batch before, and then those of this one."""
        batch = Batch(jail, parents, self._quarantine, self._locks, links)
        intents = batch.prepare(plan_id, items)
        self._advance(plan_id, outcomes, intents)
        outcomes.clear()
        try:
            batch.run(progress.call)
        finally:
            outcomes += batch.outcomes
        progress.add(len(items))

    def _run_directories(
        self, jail: Jail, plan_id: str, items: Sequence[Item], outcomes: list[ItemOutcome], progress: "_Progress"
    ) -> None:
        """Make or remove the directories of one batch, like `_run_moves`."""
        self._advance(plan_id, outcomes, items)
        outcomes.clear()
        done_items: list[tuple[Item, Place]] = []
        with Parents(jail) as parents:
            for item in items:
                outcome = self._make_or_remove(parents, item, done_items, progress.call)
                if outcome is not None:
                    outcomes.append(outcome)
            outcomes += _sync_directories(done_items)
        progress.add(len(items))

    def _make_or_remove(
        self, parents: Parents, item: Item, done_items: list[tuple[Item, Place]], call: Call
    ) -> ItemOutcome | None:
        """Make or remove one directory and add it to `done_items`; otherwise return why not."""
        try:
            parent, _ = parents.find(item.src_path)
            place = parents.place(item.src_path)
            if place.path != item.src_path or not parent.is_planned(item.source_directory):
                return ItemOutcome(item.position, ItemStatus.ERROR, ELSEWHERE)
            with self._locks.hold_places(call, [place]):
                (files.make_directory if item.op is Op.MKDIR else files.remove_directory)(place.parent_fd, place.name)
        except FileExistsError:
            if is_directory(stat_entry(place.parent_fd, place.name)):
                return ItemOutcome(item.position, ItemStatus.SKIPPED, "It was there already.")
            return ItemOutcome(item.position, ItemStatus.ERROR, DESTINATION_EXISTS)
        except OSError as error:
            is_harmless = item.op is Op.RMDIR and error.errno in (errno.ENOTEMPTY, errno.ENOENT)
            return ItemOutcome(item.position, ItemStatus.SKIPPED if is_harmless else ItemStatus.ERROR, error.strerror)
        except (AccessDenied, NotFound, NotDirectory, PermissionDenied) as error:
            is_harmless = item.op is Op.RMDIR
            return ItemOutcome(item.position, ItemStatus.SKIPPED if is_harmless else ItemStatus.ERROR, error.message)
        done_items.append((item, place))
        return None


class _Progress:
    """Reports how many items of a plan have an outcome."""

    def __init__(self, plan: Plan, call: Call) -> None:
        self.call = call
        self._total = len(plan.items)
        self._done = sum(item.status is not ItemStatus.PENDING for item in plan.items)

    def add(self, count: int) -> None:
        """Report that this many more items were executed."""
        self._done += count
        self.call.progress(self._done, self._total, f"{self._done:,} of {self._total:,} done")


def _sync_directories(done_items: Sequence[tuple[Item, Place]]) -> list[ItemOutcome]:
    """Make new directories durable; one whose parent cannot be synced is removed again."""
    unsynced = {fd for fd in {place.parent_fd for _, place in done_items} if not is_synced(fd)}
    outcomes = []
    for item, place in reversed(done_items):
        status, message = ItemStatus.DONE, None
        if place.parent_fd in unsynced and item.op is Op.MKDIR:
            with suppress(OSError):
                files.remove_directory(place.parent_fd, place.name)
                status, message = ItemStatus.ERROR, UNSYNCED
        outcomes.append(ItemOutcome(item.position, status, message))
    return outcomes


def _recover_directories(jail: Jail, items: Sequence[Item]) -> list[ItemOutcome]:
    outcomes = []
    for item in items:
        try:
            with jail.place(item.src_path, follow=False) as place:
                exists = is_directory(stat_entry(place.parent_fd, place.name))
                if exists is (item.op is Op.MKDIR):
                    files.sync_directory(place.parent_fd)
                    outcomes.append(ItemOutcome(item.position, ItemStatus.DONE))
        except (OSError, HoldfastError):
            continue
    return outcomes
