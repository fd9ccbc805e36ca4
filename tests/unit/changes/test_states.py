"""The statuses of plans and items: every step that the table does not allow is refused by the journal."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.connection import apply_migrations
from holdfast.adapters.sqlite.state.journal import SqliteJournal, open_journal
from holdfast.adapters.sqlite.state.migrations import STEPS
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import (
    ITEM_NEXT,
    PLAN_NEXT,
    ChangeKind,
    Item,
    ItemOutcome,
    ItemStatus,
    NodeType,
    Op,
    Outcome,
    Plan,
    PlanStatus,
    status_of,
)
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
    kind = ChangeKind.UNDO if undoes else ChangeKind.ORGANISE
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


@dataclass(frozen=True)
class Verb:
    """A verb of the journal: from which statuses it may be used, and what it leaves of a plan with one item."""

    act: Callable[[SqliteJournal, str], object]
    allowed: set[PlanStatus]
    status: PlanStatus
    item: ItemStatus = PENDING


VERBS = {
    "approve": Verb(lambda j, id_: j.plans.approve(id_, "h", "me", AT), {PlanStatus.CREATED}, PlanStatus.APPROVED),
    "revise": Verb(lambda j, id_: j.plans.revise(id_, moves(0)), {PlanStatus.CREATED}, PlanStatus.CREATED),
    "cancel": Verb(
        lambda j, id_: j.plans.cancel(id_),
        {PlanStatus.CREATED, PlanStatus.APPROVED, PlanStatus.RUNNING},
        PlanStatus.CANCELLED,
    ),
    "start": Verb(
        lambda j, id_: j.plans.start(id_, ClientInfo()),
        {PlanStatus.APPROVED, PlanStatus.RUNNING, PlanStatus.FAILED},
        PlanStatus.RUNNING,
    ),
    "intend": Verb(lambda j, id_: j.plans.advance(id_, [], moves(0), AT), {PlanStatus.RUNNING}, PlanStatus.RUNNING),
    "advance": Verb(
        lambda j, id_: j.plans.advance(id_, [ItemOutcome(0, DONE)], [], AT),
        {PlanStatus.RUNNING},
        PlanStatus.EXECUTED,
        DONE,
    ),
    "skip the rest": Verb(
        lambda j, id_: j.plans.skip_rest(id_, "why", AT), {PlanStatus.RUNNING}, PlanStatus.EXECUTED, SKIPPED
    ),
    "finish": Verb(lambda j, id_: j.finish(id_, Outcome.done(), AT), {PlanStatus.RUNNING}, PlanStatus.EXECUTED, DONE),
    "fail": Verb(
        lambda j, id_: j.finish(id_, Outcome.failed("why"), AT), {PlanStatus.RUNNING}, PlanStatus.FAILED, ERROR
    ),
}


@pytest.mark.parametrize(("name", "status"), list(product(VERBS, PlanStatus)))
def test_every_verb_is_refused_from_every_status_but_its_own(
    journal: SqliteJournal, name: str, status: PlanStatus
) -> None:
    verb = VERBS[name]
    journal.plans.create(plan("p", status, PENDING))
    if status in verb.allowed:
        verb.act(journal, "p")
        assert state(journal) == (verb.status, [verb.item])
        return
    with pytest.raises(Conflict):
        verb.act(journal, "p")
    assert state(journal) == (status, [PENDING])


@pytest.mark.parametrize(("present", "wanted"), list(product(ItemStatus, ItemStatus)))
def test_an_item_ends_only_where_it_waits(journal: SqliteJournal, present: ItemStatus, wanted: ItemStatus) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, present, PENDING))
    if present is PENDING and wanted in {DONE, SKIPPED, ERROR}:
        journal.plans.advance("p", [ItemOutcome(0, wanted)], [], AT)
        assert state(journal) == (PlanStatus.RUNNING, [wanted, PENDING])
        return
    with pytest.raises(Conflict):
        journal.plans.advance("p", [ItemOutcome(0, wanted)], [], AT)
    assert state(journal) == (PlanStatus.RUNNING, [present, PENDING])


@pytest.mark.parametrize("wanted", [PENDING, UNDONE])
def test_a_single_change_ends_only_where_its_items_may(journal: SqliteJournal, wanted: ItemStatus) -> None:
    journal.begin(plan("p", PlanStatus.RUNNING, PENDING), [])
    with pytest.raises(Conflict):
        journal.finish("p", Outcome(PlanStatus.EXECUTED, wanted), AT)
    assert state(journal) == (PlanStatus.RUNNING, [PENDING])


@pytest.mark.parametrize("wanted", [PlanStatus.CREATED, PlanStatus.APPROVED, PlanStatus.RUNNING])
def test_a_single_change_does_not_end_where_a_plan_does_not(journal: SqliteJournal, wanted: PlanStatus) -> None:
    journal.begin(plan("p", PlanStatus.RUNNING, PENDING), [])
    with pytest.raises(Conflict):
        journal.finish("p", Outcome(wanted, DONE), AT)
    assert state(journal) == (PlanStatus.RUNNING, [PENDING])


@pytest.mark.parametrize("present", [DONE, SKIPPED, ERROR, UNDONE])
def test_only_a_waiting_item_is_intended(journal: SqliteJournal, present: ItemStatus) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, present, PENDING))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [], [Item(Op.MOVE, "/r/0", position=0)], AT)


@pytest.mark.parametrize("status", [PlanStatus.CREATED, PlanStatus.CANCELLED])
def test_items_cannot_drag_a_plan_where_it_may_not_go(journal: SqliteJournal, status: PlanStatus) -> None:
    journal.plans.create(plan("p", status, PENDING))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [ItemOutcome(0, DONE)], [], AT)
    assert state(journal) == (status, [PENDING])


@pytest.mark.parametrize(
    ("moves", "status"),
    [
        ([PENDING, DONE], PlanStatus.RUNNING),
        ([PENDING, ERROR], PlanStatus.RUNNING),
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
    journal.plans.create(plan("p", PlanStatus.RUNNING, PENDING, PENDING, PENDING))
    steps = [ItemOutcome(0, DONE), ItemOutcome(1, SKIPPED, "no"), ItemOutcome(2, ERROR, "why")]
    assert journal.plans.advance("p", steps, [], AT) is PlanStatus.FAILED
    journal.plans.start("p", ClientInfo())
    assert state(journal) == (PlanStatus.RUNNING, [DONE, SKIPPED, PENDING])
    found = journal.find("p")
    assert found is not None
    assert found.executed_at is None


def test_outcomes_and_intents_are_one_act(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, PENDING, DONE))
    with pytest.raises(Conflict):
        journal.plans.advance("p", [ItemOutcome(0, DONE)], [Item(Op.MOVE, "/r/1", position=1)], AT)
    assert state(journal) == (PlanStatus.RUNNING, [PENDING, DONE])


def test_a_chain_of_partial_undos_keeps_every_item_true(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.EXECUTED, DONE, DONE))
    journal.plans.create(plan("u", PlanStatus.RUNNING, PENDING, PENDING, undoes="p"))
    journal.plans.advance("u", [ItemOutcome(0, DONE)], [], AT)
    assert state(journal) == (PlanStatus.EXECUTED, [UNDONE, DONE])
    journal.plans.advance("u", [ItemOutcome(1, DONE)], [], AT)
    assert state(journal) == (PlanStatus.UNDONE, [UNDONE, UNDONE])
    journal.plans.create(plan("r", PlanStatus.RUNNING, PENDING, undoes="u"))
    journal.plans.advance("r", [ItemOutcome(0, DONE)], [], AT)
    assert state(journal, "u") == (PlanStatus.EXECUTED, [UNDONE, DONE])
    assert state(journal) == (PlanStatus.EXECUTED, [DONE, UNDONE])


def test_only_plans_in_the_middle_of_a_batch_are_interrupted(journal: SqliteJournal) -> None:
    journal.plans.create(plan("waiting", PlanStatus.APPROVED, PENDING))
    journal.plans.create(plan("begun", PlanStatus.RUNNING, PENDING, PENDING))
    journal.plans.create(plan("undo", PlanStatus.RUNNING, PENDING, undoes="begun"))
    journal.plans.advance("begun", [], [Item(Op.MOVE, "/r/0", position=0, node=NodeType.FILE)], AT)
    assert [found.id for found in journal.plans.find_interrupted()] == ["begun", "undo"]
    assert journal.find_unfinished() == []


def intended(journal: SqliteJournal, id_: str = "p") -> list[str | None]:
    found = journal.find(id_)
    assert found is not None
    return [item.intended_at for item in found.items]


def moves(*positions: int) -> list[Item]:
    return [Item(Op.MOVE, f"/r/{n}", f"/r/d/{n}", position=n) for n in positions]


def test_what_a_batch_did_not_do_stays_known_as_begun(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, *[PENDING] * 6))
    journal.plans.advance("p", [], moves(0, 1, 2), AT)
    assert intended(journal) == [AT, AT, AT, None, None, None]
    journal.plans.advance("p", [ItemOutcome(0, DONE), ItemOutcome(1, ERROR, "why")], moves(3, 4), LATER)
    assert intended(journal) == [None, AT, AT, LATER, LATER, None]
    assert [found.id for found in journal.plans.find_interrupted()] == ["p"]
    journal.plans.advance(
        "p",
        [ItemOutcome(2, DONE), ItemOutcome(3, DONE), ItemOutcome(4, DONE), ItemOutcome(5, SKIPPED, "gone")],
        [],
        LATER,
    )
    journal.plans.start("p", ClientInfo())
    assert state(journal)[1] == [DONE, PENDING, DONE, DONE, DONE, SKIPPED]
    assert intended(journal)[1] == AT
    assert [found.id for found in journal.plans.find_interrupted()] == ["p"]


def test_a_batch_that_was_done_whole_leaves_nothing_begun(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, PENDING, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0, 1), AT)
    assert journal.plans.advance("p", [ItemOutcome(0, DONE), ItemOutcome(1, DONE)], [], AT) is PlanStatus.RUNNING
    assert journal.plans.find_interrupted() == []
    assert intended(journal) == [None, None, None]


@pytest.mark.parametrize("steps", [[], [ItemOutcome(0, DONE)], [ItemOutcome(0, SKIPPED, "gone")]])
def test_a_plan_that_was_begun_is_not_cancelled(journal: SqliteJournal, steps: list[ItemOutcome]) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0), AT)
    with pytest.raises(Conflict):
        journal.plans.cancel("p")
    journal.plans.advance("p", steps, [], AT)
    with pytest.raises(Conflict):
        journal.plans.cancel("p")
    assert state(journal)[0] is PlanStatus.RUNNING


def test_a_plan_that_ended_early_has_no_batch_under_way(journal: SqliteJournal) -> None:
    journal.plans.create(plan("p", PlanStatus.RUNNING, PENDING, PENDING))
    journal.plans.advance("p", [], moves(0), AT)
    assert journal.plans.skip_rest("p", "why", AT) is PlanStatus.EXECUTED
    assert intended(journal) == [None, None]


def test_intents_of_a_database_of_before_are_still_known(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    old = sqlite3.connect(path)
    apply_migrations(old, STEPS[:6])
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
        assert [found.id for found in journal.plans.find_interrupted()] == ["p"]
        assert intended(journal) == [AT, None]
    finally:
        journal.close()


BEFORE_RUNNING = 8
"""How many steps of the database there were before a plan could be RUNNING."""


def test_a_database_of_before_knows_which_plans_were_under_way(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "state.db")
    apply_migrations(old, STEPS[:BEFORE_RUNNING])
    plans: list[tuple[str, str, int, str | None, str, str, str | None]] = [
        # id, kind, stepwise, temp_name, status, status of its item, intended_at
        ("write", "write", 0, ".t", "APPROVED", "PENDING", None),
        ("mkdir", "mkdir", 0, None, "APPROVED", "PENDING", None),
        ("applying", "review", 0, ".t", "APPROVED", "PENDING", None),
        ("approved review", "review", 0, None, "APPROVED", "PENDING", None),
        ("failed review", "review", 0, ".t", "FAILED", "ERROR", None),
        ("approved", "organise", 1, None, "APPROVED", "PENDING", None),
        ("begun", "organise", 1, None, "APPROVED", "PENDING", AT),
        ("stopped", "organise", 1, None, "APPROVED", "DONE", None),
        ("batch", "organise", 1, None, "APPROVED", "PENDING", None),
        ("undo", "undo", 1, None, "APPROVED", "PENDING", None),
        ("created", "organise", 1, None, "CREATED", "PENDING", None),
        ("executed", "write", 0, ".t", "EXECUTED", "DONE", None),
    ]
    for seq, (id_, kind, stepwise, temp_name, status, item, intended_at) in enumerate(plans, start=3):
        old.execute(
            "INSERT INTO plans (seq, id, kind, root_dir, status, created_at, stepwise, temp_name, approved_by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'me')",
            [seq, id_, kind, b"/r\xff", status, AT, stepwise, temp_name],
        )
        old.execute(
            "INSERT INTO plan_items (plan_id, position, op, src_path, dest_path, node, size_bytes, mode, uid, gid,"
            " mtime_ns, status, intended_at) VALUES (?, 0, 'move', '/r/a', '/r/b', 'file', 0, 0, 0, 0, 0, ?, ?)",
            [id_, item, intended_at],
        )
    old.execute("INSERT INTO plan_intents VALUES ('batch', ?, '[0]')", [AT])
    old.commit()
    old.close()
    for _ in range(2):
        journal = open_journal(str(tmp_path))
        running = {id_ for id_, *_ in plans if state(journal, id_)[0] is PlanStatus.RUNNING}
        assert running == {"write", "mkdir", "applying", "begun", "stopped", "batch", "undo"}
        others = {id_: state(journal, id_)[0] for id_, *_ in plans if id_ not in running}
        assert others == {
            "approved review": "APPROVED",
            "failed review": "FAILED",
            "approved": "APPROVED",
            "created": "CREATED",
            "executed": "EXECUTED",
        }
        assert [found.id for found in journal.find_unfinished()] == ["write", "mkdir", "applying"]
        assert [found.id for found in journal.plans.find_interrupted()] == ["begun", "batch", "undo"]
        begun = journal.find("begun")
        assert begun is not None
        assert (begun.seq, begun.root_dir, begun.approved_by, len(begun.items)) == (9, "/r\udcff", "me", 1)
        journal.close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("UPDATE plans SET status = 'ELSEWHERE'")


RECORD = """
CREATE TABLE transitions (entity TEXT, present TEXT, wanted TEXT);
CREATE TRIGGER record_plans AFTER UPDATE OF status ON plans WHEN old.status <> new.status
BEGIN INSERT INTO transitions VALUES ('plan', old.status, new.status); END;
CREATE TRIGGER record_items AFTER UPDATE OF status ON plan_items WHEN old.status <> new.status
BEGIN INSERT INTO transitions VALUES ('item', old.status, new.status); END;
"""


def test_every_transition_that_the_journal_makes_is_in_the_tables_and_every_one_in_the_tables_is_made(
    journal: SqliteJournal, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as recorder:
        recorder.executescript(RECORD)
        for number, (verb, status, item) in enumerate(product(VERBS.values(), PlanStatus, [PENDING, ERROR])):
            journal.plans.create(plan(str(number), status, item))
            with suppress(Conflict):
                verb.act(journal, str(number))
        for status, other in ((PlanStatus.EXECUTED, DONE), (PlanStatus.FAILED, ERROR)):
            journal.plans.create(plan(f"{status}", status, DONE, other))
            journal.plans.create(plan(f"undo {status}", PlanStatus.RUNNING, PENDING, PENDING, undoes=f"{status}"))
            journal.plans.advance(f"undo {status}", [ItemOutcome(0, DONE), ItemOutcome(1, DONE)], [], AT)
            journal.plans.create(plan(f"redo {status}", PlanStatus.RUNNING, PENDING, undoes=f"undo {status}"))
            journal.plans.advance(f"redo {status}", [ItemOutcome(0, DONE)], [], AT)
        journal.plans.create(plan("stopped and undone", PlanStatus.RUNNING, UNDONE, PENDING))
        journal.plans.advance("stopped and undone", [ItemOutcome(1, SKIPPED)], [], AT)
        made = set(recorder.execute("SELECT entity, present, wanted FROM transitions"))
    plans = {("plan", present.value, wanted.value) for present, nexts in PLAN_NEXT.items() for wanted in nexts}
    items = {("item", present.value, wanted.value) for present, nexts in ITEM_NEXT.items() for wanted in nexts}
    assert made == plans | items
