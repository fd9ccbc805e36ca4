"""Carries a plan out in batches: intents durable, places checked and moved, directories synced, outcomes durable.

The outcomes of one batch and the intents of the next are one commit. Whatever stops it, the next execution goes on
from what the journal and the disk say.
"""

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.call import Call
from holdfast.changes.disk import files
from holdfast.changes.disk.files import stat_entry
from holdfast.changes.disk.links import Links
from holdfast.changes.disk.locks import Locks
from holdfast.changes.disk.places import is_directory
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.model import Item, ItemOutcome, ItemStatus, Op, Plan, PlanStatus
from holdfast.changes.plans.batch import ELSEWHERE, TAKEN, UNSYNCED, Batch, is_synced
from holdfast.changes.plans.layout import split_batches
from holdfast.changes.plans.parents import Parents
from holdfast.changes.ports import PlanJournal
from holdfast.clock import utc_now
from holdfast.errors import AccessDenied, HoldfastError, NotDirectory, NotFound, PermissionDenied
from holdfast.folders.access.jail import Jail, Place


class Executor:
    """One plan at a time for each caller of `run`; who calls it holds the plan."""

    def __init__(self, book: PlanJournal, locks: Locks, quarantine: Quarantine, noticed: Callable[[], None]) -> None:
        self._book = book
        self._locks = locks
        self._quarantine = quarantine
        self._noticed = noticed

    def run(self, jail: Jail, plan: Plan, call: Call) -> PlanStatus:
        """Carry out what is PENDING; returns the plan's status afterwards.

        Cancelled or TimedOut between two batches leave a plan that the next execution completes.
        """
        progress, links = _Progress(plan, call), Links.from_items(plan.items)
        steps = self._settled(jail, plan)
        settled = {step.position for step in steps}
        waiting = [item for item in plan.items if item.status is ItemStatus.PENDING and item.position not in settled]
        try:
            with Parents(jail) as parents:
                for items in split_batches(waiting):
                    call.check()
                    parents.refresh()
                    self._batch(jail, parents, links, plan.id, items, steps, progress)
        finally:
            status = self._book.advance(plan.id, steps, [], utc_now())
            self._noticed()
        return status

    def settle(self, jail: Jail, plan: Plan) -> PlanStatus:
        """Record what a crash left of the last batch, by what is on the disk; an undo ends with that."""
        if plan.status is not PlanStatus.RUNNING:
            return plan.status
        status = self._book.advance(plan.id, self._settled(jail, plan), [], utc_now())
        if plan.undoes is not None and status is PlanStatus.RUNNING:
            status = self._book.skip_rest(plan.id, "It was interrupted before this step.", utc_now())
        return status

    def _settled(self, jail: Jail, plan: Plan) -> list[ItemOutcome]:
        begun = [item for item in plan.items if item.status is ItemStatus.PENDING and item.intended_at is not None]
        steps: list[ItemOutcome] = []
        links = Links.from_items(plan.items) if begun else Links({})
        staying = {
            item.unit for item in plan.items if item.unit and item.status in (ItemStatus.ERROR, ItemStatus.SKIPPED)
        }
        for items in split_batches(begun):
            if items[0].op is not Op.MOVE:
                steps += _settled_directories(jail, items)
                continue
            with Parents(jail) as parents:
                steps += Batch(jail, parents, self._quarantine, self._locks, links).settle(items, staying)
        return steps

    def _batch(
        self,
        jail: Jail,
        parents: Parents,
        links: Links,
        plan_id: str,
        items: Sequence[Item],
        steps: list[ItemOutcome],
        progress: "_Progress",
    ) -> None:
        """Carry out one batch; `steps` holds the outcomes before it, and then its own."""
        if items[0].op is not Op.MOVE:
            self._advance(plan_id, steps, items)
            self._directories(jail, items, steps, progress)
            return
        batch = Batch(jail, parents, self._quarantine, self._locks, links)
        intents = batch.prepare(plan_id, items)
        self._advance(plan_id, steps, intents)
        try:
            batch.run(progress.call)
        finally:
            steps += batch.steps
        progress.add(len(items))

    def _advance(self, plan_id: str, steps: list[ItemOutcome], intents: Sequence[Item]) -> None:
        self._book.advance(plan_id, steps, intents, utc_now())
        steps.clear()

    def _directories(self, jail: Jail, items: Sequence[Item], steps: list[ItemOutcome], progress: "_Progress") -> None:
        done: list[tuple[Item, Place]] = []
        with Parents(jail) as parents:
            for item in items:
                step = self._make_or_remove(parents, item, done, progress.call)
                if step is not None:
                    steps.append(step)
            steps += _synced_directories(done)
        progress.add(len(items))

    def _make_or_remove(
        self, parents: Parents, item: Item, done: list[tuple[Item, Place]], call: Call
    ) -> ItemOutcome | None:
        try:
            place = parents.place(item.src_path)
            if place.path != item.src_path:
                return ItemOutcome(item.position, ItemStatus.ERROR, ELSEWHERE)
            with self._locks.hold(call, [place.lock_key]):
                (files.make_directory if item.op is Op.MKDIR else files.remove_directory)(place.parent_fd, place.name)
        except FileExistsError:
            return _there_already(item, place)
        except OSError as error:
            harmless = item.op is Op.RMDIR and error.errno in (errno.ENOTEMPTY, errno.ENOENT)
            return ItemOutcome(item.position, ItemStatus.SKIPPED if harmless else ItemStatus.ERROR, error.strerror)
        except (AccessDenied, NotFound, NotDirectory, PermissionDenied) as error:
            harmless = item.op is Op.RMDIR
            return ItemOutcome(item.position, ItemStatus.SKIPPED if harmless else ItemStatus.ERROR, error.message)
        done.append((item, place))
        return None


class _Progress:
    """How far a plan is, in items."""

    def __init__(self, plan: Plan, call: Call) -> None:
        self.call = call
        self._total = len(plan.items)
        self._done = sum(item.status is not ItemStatus.PENDING for item in plan.items)

    def add(self, items: int) -> None:
        """Report that so many more items have been looked at."""
        self._done += items
        self.call.progress(self._done, self._total, f"{self._done} of {self._total} items")


def _there_already(item: Item, place: Place) -> ItemOutcome:
    if is_directory(stat_entry(place.parent_fd, place.name)):
        return ItemOutcome(item.position, ItemStatus.SKIPPED, "It was there already.")
    return ItemOutcome(item.position, ItemStatus.ERROR, TAKEN)


def _synced_directories(done: Sequence[tuple[Item, Place]]) -> list[ItemOutcome]:
    """Make new directories durable; one whose parent the disk does not confirm is removed again."""
    unsynced = {fd for fd in {place.parent_fd for _, place in done} if not is_synced(fd)}
    steps = []
    for item, place in reversed(done):
        status, message = ItemStatus.DONE, None
        if place.parent_fd in unsynced and item.op is Op.MKDIR:
            with suppress(OSError):
                files.remove_directory(place.parent_fd, place.name)
                status, message = ItemStatus.ERROR, UNSYNCED
        steps.append(ItemOutcome(item.position, status, message))
    return steps


def _settled_directories(jail: Jail, items: Sequence[Item]) -> list[ItemOutcome]:
    steps = []
    for item in items:
        try:
            with jail.place(item.src_path, follow=False) as place:
                is_there = is_directory(stat_entry(place.parent_fd, place.name))
                if is_there is (item.op is Op.MKDIR):
                    files.sync_directory(place.parent_fd)
                    steps.append(ItemOutcome(item.position, ItemStatus.DONE))
        except (OSError, HoldfastError):
            continue
    return steps
