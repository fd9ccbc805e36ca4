"""The statuses of plans and items: every step that the table does not allow is refused by the journal."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.journal import SqliteJournal, open_journal
from holdfast.adapters.sqlite.state.migrations import STEPS
from holdfast.adapters.sqlite.steps import take_steps
from holdfast.changes.model import Item, ItemStatus, Kind, Node, Op, Outcome, Plan, PlanStatus, Step
from holdfast.changes.plans.states import ITEM_NEXT, PLAN_NEXT, item_may_become, plan_may_become, status_of
from holdfast.errors import Conflict

AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-02T00:00:00.000000Z"
DONE, ERROR, PENDING, SKIPPED, UNDONE = (
    ItemStatus.DONE,
    ItemStatus.ERROR,
    ItemStatus.PENDING,
    ItemStatus.SKIPPED,
    ItemStatus.UNDONE,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    opened = open_journal(str(tmp_path))
    yield opened
    opened.close()


def plan(id_: str, status: PlanStatus, *items: ItemStatus, undoes: str | None = None) -> Plan:
    made = tuple(
        Item(Op.MOVE, f"/r/{n}", f"/r/d/{n}", status=item, position=n, reverses=n if undoes else None)
        for n, item in enumerate(items)
    )
    kind = Kind.UNDO if undoes else Kind.ORGANISE
    return Plan(id_, kind, "/r", made, AT, status=status, stepwise=True, folder="/r", undoes=undoes)


def state(journal: SqliteJournal, id_: str = "p") -> tuple[PlanStatus, list[ItemStatus]]:
    found = journal.find(id_)
    assert found is not None
    return found.status, [item.status for item in found.items]


def test_the_table_names_every_status_and_leads_nowhere_unknown() -> None:
    assert set(PLAN_NEXT) == set(PlanStatus)
    assert set(ITEM_NEXT) == set(ItemStatus)
    assert not PLAN_NEXT[PlanStatus.CANCELLED]
    assert not ITEM_NEXT[ItemStatus.SKIPPED]


VERBS: dict[str, tuple[Callable[[SqliteJournal], object], set[PlanStatus]]] = {
    "approve": (lambda j: j.plans.approve("p", "h", "me", AT), {PlanStatus.CREATED}),
    "revise": (lambda j: j.plans.revise("p", [Item(Op.MOVE, "/r/x", "/r/y")]), {PlanStatus.CREATED}),
    "cancel": (lambda j: j.plans.cancel("p"), {PlanStatus.CREATED, PlanStatus.APPROVED}),
    "start": (lambda j: j.plans.start("p"), {PlanStatus.APPROVED, PlanStatus.FAILED}),
    "finish": (lambda j: j.finish("p", Outcome.done(), AT), {PlanStatus.APPROVED}),
}


@pytest.mark.parametrize(("verb", "status"), list(product(VERBS, PlanStatus)))
def test_every_verb_is_refused_from_every_status_but_its_own(
    journal: SqliteJournal, verb: str, status: PlanStatus
) -> None:
    act, allowed = VERBS[verb]
    journal.plans.create(plan("p", status, PENDING))
    if status in allowed:
        act(journal)
        return
    with pytest.raises(Conflict):
        act(journal)
    assert state(journal) == (status, [PENDING])


@pytest.mark.parametrize(("present", "wanted"), list(product(ItemStatus, ItemStatus)))
def test_an_item_ends_only_where_it_waits(journal: SqliteJournal, present: ItemStatus, wanted: ItemStatus) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, present, PENDING))
    if present is PENDING and item_may_become(present, wanted):
        journal.plans.advance("p", [Step(0, wanted)], [], AT)
        assert state(journal)[1][0] is wanted
    elif present is not PENDING:
        with pytest.raises(Conflict):
            journal.plans.advance("p", [Step(0, wanted)], [], AT)
        assert state(journal) == (PlanStatus.APPROVED, [present, PENDING])


@pytest.mark.parametrize("present", [DONE, SKIPPED, ERROR, UNDONE])
def test_only_a_waiting_item_is_intended(journal: SqliteJournal, present: ItemStatus) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, present, PENDING))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [], [Item(Op.MOVE, "/r/0", position=0)], AT)


@pytest.mark.parametrize("status", [PlanStatus.CREATED, PlanStatus.CANCELLED])
def test_items_cannot_drag_a_plan_where_it_may_not_go(journal: SqliteJournal, status: PlanStatus) -> None:
    journal.plans.create(plan("p", status, PENDING))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [Step(0, DONE)], [], AT)
    assert state(journal) == (status, [PENDING])


@pytest.mark.parametrize(
    ("moves", "status"),
    [
        ([PENDING, DONE], PlanStatus.APPROVED),
        ([PENDING, ERROR], PlanStatus.APPROVED),
        ([DONE, SKIPPED], PlanStatus.EXECUTED),
        ([SKIPPED], PlanStatus.EXECUTED),
        ([DONE, ERROR], PlanStatus.FAILED),
        ([DONE, UNDONE], PlanStatus.EXECUTED),
        ([UNDONE, SKIPPED], PlanStatus.UNDONE),
        ([UNDONE, ERROR], PlanStatus.UNDONE),
    ],
)
def test_the_items_say_what_a_plan_is(moves: list[ItemStatus], status: PlanStatus) -> None:
    counts = {(Op.MOVE, item): moves.count(item) for item in moves}
    assert status_of(counts) is status
    assert status_of({**counts, (Op.MKDIR, DONE): 1}) is status


def test_a_plan_that_fails_is_started_again_with_only_the_failed_waiting(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, PENDING, PENDING, PENDING))
    steps = [Step(0, DONE), Step(1, SKIPPED, "no"), Step(2, ERROR, "why")]
    assert journal.plans.advance("p", steps, [], AT) is PlanStatus.FAILED
    journal.plans.start("p")
    assert state(journal) == (PlanStatus.APPROVED, [DONE, SKIPPED, PENDING])
    found = journal.find("p")
    assert found is not None
    assert found.executed_at is None


def test_outcomes_and_intents_are_one_act(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, PENDING, DONE))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [Step(0, DONE)], [Item(Op.MOVE, "/r/1", position=1)], AT)
    assert state(journal) == (PlanStatus.APPROVED, [PENDING, DONE])


def test_a_chain_of_partial_undos_keeps_every_item_true(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.EXECUTED, DONE, DONE))
    journal.plans.create(plan("u", PlanStatus.APPROVED, PENDING, PENDING, undoes="p"))
    journal.plans.advance("u", [Step(0, DONE)], [], AT)
    assert state(journal) == (PlanStatus.EXECUTED, [UNDONE, DONE])
    journal.plans.advance("u", [Step(1, DONE)], [], AT)
    assert state(journal) == (PlanStatus.UNDONE, [UNDONE, UNDONE])
    journal.plans.create(plan("r", PlanStatus.APPROVED, PENDING, undoes="u"))
    journal.plans.advance("r", [Step(0, DONE)], [], AT)
    assert state(journal, "u") == (PlanStatus.EXECUTED, [UNDONE, DONE])
    assert state(journal) == (PlanStatus.EXECUTED, [DONE, UNDONE])


def test_only_plans_in_the_middle_of_a_batch_are_interrupted(journal: SqliteJournal) -> None:
    journal.plans.create(plan("waiting", PlanStatus.APPROVED, PENDING))
    journal.plans.create(plan("begun", PlanStatus.APPROVED, PENDING, PENDING))
    journal.plans.create(plan("undo", PlanStatus.APPROVED, PENDING, undoes="begun"))
    journal.plans.advance("begun", [], [Item(Op.MOVE, "/r/0", position=0, node=Node.FILE)], AT)
    assert [found.id for found in journal.plans.interrupted()] == ["begun", "undo"]
    assert journal.unfinished() == []


def intended(journal: SqliteJournal, id_: str = "p") -> list[str | None]:
    found = journal.find(id_)
    assert found is not None
    return [item.intended_at for item in found.items]


def moves(*positions: int) -> list[Item]:
    return [Item(Op.MOVE, f"/r/{n}", f"/r/d/{n}", position=n) for n in positions]


def test_what_a_batch_did_not_do_stays_known_as_begun(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, *[PENDING] * 6))
    journal.plans.advance("p", [], moves(0, 1, 2), AT)
    assert intended(journal) == [AT, AT, AT, None, None, None]
    journal.plans.advance("p", [Step(0, DONE), Step(1, ERROR, "why")], moves(3, 4), LATER)
    assert intended(journal) == [None, AT, AT, LATER, LATER, None]
    assert [found.id for found in journal.plans.interrupted()] == ["p"]
    journal.plans.advance("p", [Step(2, DONE), Step(3, DONE), Step(4, DONE), Step(5, SKIPPED, "gone")], [], LATER)
    journal.plans.start("p")
    assert state(journal)[1] == [DONE, PENDING, DONE, DONE, DONE, SKIPPED]
    assert intended(journal)[1] == AT
    assert [found.id for found in journal.plans.interrupted()] == ["p"]


def test_a_batch_that_was_done_whole_leaves_nothing_begun(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, PENDING, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0, 1), AT)
    assert journal.plans.advance("p", [Step(0, DONE), Step(1, DONE)], [], AT) is PlanStatus.APPROVED
    assert journal.plans.interrupted() == []
    assert intended(journal) == [None, None, None]


@pytest.mark.parametrize("steps", [[], [Step(0, DONE)], [Step(0, SKIPPED, "gone")]])
def test_a_plan_that_was_begun_is_not_cancelled(journal: SqliteJournal, steps: list[Step]) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0), AT)
    with pytest.raises(Conflict):
        journal.plans.cancel("p")
    journal.plans.advance("p", steps, [], AT)
    with pytest.raises(Conflict):
        journal.plans.cancel("p")
    assert state(journal)[0] is PlanStatus.APPROVED


def test_a_plan_that_ended_early_has_no_batch_under_way(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.APPROVED, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0), AT)
    assert journal.plans.skip_rest("p", "why", AT) is PlanStatus.EXECUTED
    assert intended(journal) == [None, None]


def test_intents_of_a_database_of_before_are_still_known(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    old = sqlite3.connect(path)
    take_steps(old, STEPS[:6])
    old.execute(
        "INSERT INTO plans (id, kind, root_dir, status, created_at, stepwise) VALUES ('p', 'organise', '/r', 'APPROVED', ?, 1)",
        [AT],
    )
    old.executemany(
        "INSERT INTO plan_items (plan_id, position, op, src_path, dest_path, node, size_bytes, mode, uid, gid, mtime_ns,"
        " status, intended_at) VALUES ('p', ?, 'move', '/r/a', '/r/b', 'file', 0, 0, 0, 0, 0, 'PENDING', ?)",
        [(0, AT), (1, None)],
    )
    old.commit()
    old.close()
    journal = open_journal(str(tmp_path))
    try:
        assert [found.id for found in journal.plans.interrupted()] == ["p"]
        assert intended(journal) == [AT, None]
    finally:
        journal.close()


def test_every_step_that_is_taken_is_in_the_table() -> None:
    assert plan_may_become(PlanStatus.FAILED, PlanStatus.APPROVED)
    assert not plan_may_become(PlanStatus.CANCELLED, PlanStatus.APPROVED)
