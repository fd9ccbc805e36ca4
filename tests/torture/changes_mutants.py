"""Faults that the changes could have, each put into the process under torture; the harness must catch every one.

Nothing here is imported by the product.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.sqlite.state.database import Database
from holdfast.adapters.sqlite.state.journal_plans import SqlitePlanJournal
from holdfast.changes.disk import files, tree
from holdfast.changes.disk.cross_device import CrossDeviceMove, read_entry
from holdfast.changes.disk.files import hash_bytes
from holdfast.changes.model import Image, Item, ItemOutcome, ItemStatus, Op, Outcome, Plan, PlanStatus
from holdfast.changes.recover import Recovery
from holdfast.changes.single import content
from holdfast.changes.single.content import BaseFile, ContentChanges, ContentResult
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.folders.access.jail import Place

KILL, POWER = "kill", "power"


@dataclass(frozen=True)
class Mutant:
    """One fault, and the part and the scenario that must catch it."""

    apply: Callable[[], None]
    part: str
    scenario: str


def _put(owner: Any, name: str, value: Any) -> None:
    """Put another function in the place of one; the owner must have one of that name."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, value)


def _sync_only(is_synced: Callable[[int], bool]) -> None:
    real = os.fsync

    def fsync(fd: int) -> None:
        if is_synced(os.fstat(fd).st_mode):
            real(fd)

    _put(os, "fsync", fsync)


def _no_file_sync() -> None:
    _sync_only(stat.S_ISDIR)


def _no_directory_sync() -> None:
    _sync_only(stat.S_ISREG)


def _gone_before_it_is_published() -> None:
    """The source goes as soon as the copy is made, before the copy has its name."""
    real = CrossDeviceMove._copy

    def copy(self: CrossDeviceMove, tree_items: Any, call: Any) -> None:
        real(self, tree_items, call)
        os.unlink(self.source.name, dir_fd=self.source.parent_fd)

    _put(CrossDeviceMove, "_copy", copy)


def _published_over_what_is_there() -> None:
    def over(old_dir: int, old: str, new_dir: int, new: str) -> None:
        os.replace(old, new, src_dir_fd=old_dir, dst_dir_fd=new_dir)

    _put(files, "move_entry", over)
    _put(files, "publish", over)


def _outcome_first() -> None:
    def run(
        self: Recorder,
        plan: Plan,
        images: Sequence[Image],
        work: Callable[[], Outcome],
        _recover: Callable[[Plan], Outcome],
    ) -> None:
        self._journal.begin(plan, images)
        self.finish(plan, Outcome.done(plan.first.identity))
        work()

    _put(Recorder, "run", run)


def _outcome_first_of_a_plan() -> None:
    """The items of a batch are DONE before they are moved, and with the last of them the plan is EXECUTED."""
    real = SqlitePlanJournal.advance
    early: set[tuple[str, int]] = set()
    endings: dict[str, Any] = {}

    def advance(
        self: SqlitePlanJournal, plan_id: str, outcomes: Sequence[ItemOutcome], intents: Sequence[Item], at: str
    ) -> Any:
        late = [outcome for outcome in outcomes if (plan_id, outcome.position) not in early]
        if plan_id in endings and not late and not intents:
            return endings[plan_id]
        status = real(self, plan_id, late, intents, at)
        moves = [item.position for item in intents if item.op is Op.MOVE]
        if moves:
            early.update((plan_id, position) for position in moves)
            status = real(self, plan_id, [ItemOutcome(position, ItemStatus.DONE) for position in moves], [], at)
        if status is not PlanStatus.RUNNING:
            endings[plan_id] = status
        return status

    _put(SqlitePlanJournal, "advance", advance)


def _intent_last() -> None:
    def run(
        self: Recorder,
        plan: Plan,
        images: Sequence[Image],
        work: Callable[[], Outcome],
        _recover: Callable[[Plan], Outcome],
    ) -> None:
        outcome = work()
        self._journal.begin(plan, images)
        self.finish(plan, outcome)

    _put(Recorder, "run", run)


def _intent_not_durable() -> None:
    real = Database.transaction

    @contextmanager
    def transaction(self: Database, *, durable: bool) -> Iterator[None]:
        self._connection.execute("PRAGMA synchronous = OFF")
        self._durable = durable
        with real(self, durable=durable):
            yield

    _put(Database, "transaction", transaction)


def _copy_not_compared() -> None:
    def copy(self: CrossDeviceMove, tree_items: Any, call: Any) -> None:
        tree.build_tree(
            self.target.parent_fd, self.temp_name, tree_items, lambda item: read_entry(self.source, item), call
        )

    _put(CrossDeviceMove, "_copy", copy)


def _no_image() -> None:
    _put(ContentChanges, "_make_image", lambda _self, _base, _path: [])


def _in_place() -> None:
    """A file is opened, emptied and written, as an editor does."""

    def put(
        self: ContentChanges, place: Place, base: BaseFile | None, data: bytes, request: ChangeRequest
    ) -> ContentResult:
        plan = new_plan(request, place.root.path, [content._item(place, base, hash_bytes(data))], None)

        def work() -> Outcome:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            fd = os.open(place.name, flags, 0o644, dir_fd=place.parent_fd)
            os.write(fd, data)
            os.fsync(fd)
            os.close(fd)
            return Outcome.done()

        images = [] if base is None else self._make_image(base, place.path)
        self._recorder.run(plan, images, work, lambda unfinished: self.recover(unfinished, place))
        return ContentResult(plan.id, hash_bytes(data))

    _put(ContentChanges, "put", put)


def _temp_file_left() -> None:
    def leave_temp_file(_self: ContentChanges, _place: Place, _temp: str, _helper: str, _item: Item) -> Item | None:
        return None

    _put(ContentChanges, "_remove_temp_file", leave_temp_file)


def _recovered_blindly() -> None:
    _put(Recovery, "_recover", lambda _self, _jail, _plan: Outcome.done())


MUTANTS = {
    "no-file-sync": Mutant(_no_file_sync, POWER, "replace"),
    "no-directory-sync": Mutant(_no_directory_sync, POWER, "edit"),
    "no-file-sync-across": Mutant(_no_file_sync, POWER, "move-across"),
    "no-directory-sync-across": Mutant(_no_directory_sync, POWER, "move-across"),
    "gone-before-published": Mutant(_gone_before_it_is_published, KILL, "move-across"),
    "published-over": Mutant(_published_over_what_is_there, KILL, "conflict"),
    "outcome-first": Mutant(_outcome_first, KILL, "move"),
    "outcome-first-plan": Mutant(_outcome_first_of_a_plan, KILL, "plan"),
    "no-directory-sync-plan": Mutant(_no_directory_sync, POWER, "plan"),
    "no-file-sync-plan": Mutant(_no_file_sync, POWER, "plan-across"),
    "published-over-plan": Mutant(_published_over_what_is_there, KILL, "plan-conflict"),
    "intent-last": Mutant(_intent_last, KILL, "edit"),
    "intent-not-durable": Mutant(_intent_not_durable, POWER, "delete"),
    "copy-not-compared": Mutant(_copy_not_compared, KILL, "bad-copy"),
    "no-image": Mutant(_no_image, KILL, "replace"),
    "in-place": Mutant(_in_place, KILL, "replace"),
    "temp-file-left": Mutant(_temp_file_left, KILL, "replace"),
    "recovered-blindly": Mutant(_recovered_blindly, KILL, "edit"),
}


def apply(name: str) -> None:
    """Put a fault into this process; "none" leaves it as it is."""
    if name != "none":
        MUTANTS[name].apply()
