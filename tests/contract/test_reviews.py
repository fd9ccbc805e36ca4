"""What every record of reviews promises: changes by comparison, one begin, texts let go, roots kept apart."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.connection import apply_migrations
from holdfast.adapters.sqlite.state.journal import SqliteJournal, open_journal
from holdfast.adapters.sqlite.state.migrations import STEPS
from holdfast.adapters.sqlite.state.reviews import reviews_beside
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import ChangeKind, Item, Op, Outcome, Plan, PlanStatus
from holdfast.errors import Conflict
from holdfast.review.model import TRANSITIONS, Review, ReviewState, UserAction
from holdfast.review.ports import ReviewTable

AT, LATER = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    opened = open_journal(str(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def book(journal: SqliteJournal) -> ReviewTable:
    return reviews_beside(journal)


def review(id_: str = "a" * 32, root: str = "/r", proposed: bytes = b"new\n") -> Review:
    return Review(id_, f"mcp_review_{id_}", f"{root}/a.txt", root, AT, LATER, "q", b"old\n", proposed)


def added(book: ReviewTable, one: Review) -> Review:
    book.add(one)
    found = book.find(one.id)
    assert found is not None
    return found


def plan_of(one: Review) -> Plan:
    item = Item(Op.REPLACE, one.path, before_hash="b", after_hash="a")
    return Plan(one.id, ChangeKind.REVIEW, one.root, (item,), one.created_at, temp_name=".t", seq=one.seq)


def approved(book: ReviewTable, one: Review) -> Review:
    assert book.replace(one, one.become(ReviewState.APPROVED, answered=one.proposed))
    found = book.find(one.id)
    assert found is not None
    return found


def test_a_review_comes_back_as_it_was_given(book: ReviewTable) -> None:
    found = added(book, review())
    assert replace(found, seq=0) == review()
    assert book.find_by_session(found.session) == found
    assert book.find("b" * 32) is None
    assert book.find_by_session("mcp_review_") is None


def test_of_two_changes_of_the_same_row_the_second_is_refused(book: ReviewTable) -> None:
    read = added(book, review())
    assert book.replace(read, replace(read, answered=b"first\n"))
    assert not book.replace(read, replace(read, answered=b"second\n"))
    found = book.find(read.id)
    assert found is not None
    assert (found.answered, found.version) == (b"first\n", 2)


def test_a_closed_review_cannot_be_changed_again(book: ReviewTable) -> None:
    read = added(book, review())
    assert book.replace(read, read.become(ReviewState.REJECTED))
    closed = book.find(read.id)
    assert closed is not None
    assert (closed.state, closed.base, closed.proposed) == (ReviewState.REJECTED, None, b"")
    assert not book.replace(closed, replace(closed, state=ReviewState.PENDING))


def test_an_equal_proposal_is_found_while_it_is_open_or_freshly_rejected(book: ReviewTable) -> None:
    read = added(book, review())
    assert book.find_equal_proposal(read.proposal_hash, AT) == read
    assert book.find_equal_proposal(review(proposed=b"other\n").proposal_hash, AT) is None
    book.replace(read, read.become(ReviewState.REJECTED, decided_at=AT))
    assert getattr(book.find_equal_proposal(read.proposal_hash, AT), "id", None) == read.id
    assert book.find_equal_proposal(read.proposal_hash, LATER) is None


def test_open_reviews_are_listed_beneath_their_roots_newest_first(book: ReviewTable) -> None:
    for id_, root in [("a" * 32, "/r"), ("b" * 32, "/r/sub"), ("c" * 32, "/r-other"), ("d" * 32, "/r")]:
        added(book, review(id_, root))
    assert [one.id[0] for one in book.list_open(["/r"], 10, None)] == ["d", "b", "a"]
    assert [one.id[0] for one in book.list_open(["/r/sub"], 10, None)] == ["b"]
    assert [one.id[0] for one in book.list_open(None, -1, None)] == ["d", "c", "b", "a"]
    assert [one.id[0] for one in book.list_open(["/"], 2, None)] == ["d", "c"]
    newest = book.list_open(["/r"], 1, None)[0]
    assert [one.id[0] for one in book.list_open(["/r"], 10, newest.seq)] == ["b", "a"]


def test_an_approved_review_is_begun_once_and_is_then_the_newest_change(
    book: ReviewTable, journal: SqliteJournal
) -> None:
    one = added(book, review())
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])
    one = approved(book, one)
    journal.begin(Plan("e" * 32, ChangeKind.MKDIR, "/r", (Item(Op.MKDIR, "/r/x"),), AT), [])
    assert [plan.id for plan in journal.find_unfinished()] == ["e" * 32]
    committer = ClientInfo("committer", "1")
    journal.resume(replace(plan_of(one), client=committer), [])
    assert [(plan.id, plan.client) for plan in journal.find_unfinished()][1:] == [(one.id, committer)]
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert [(change.id, change.kind) for change in journal.list_changes(["/r"], 10, None)] == [
        (one.id, ChangeKind.REVIEW)
    ]
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])


def test_a_review_that_is_being_written_cannot_expire(book: ReviewTable, journal: SqliteJournal) -> None:
    one = approved(book, added(book, review()))
    journal.resume(plan_of(one), [])
    assert not book.replace(one, one.become(ReviewState.EXPIRED))


def test_a_commit_that_failed_may_be_tried_again(book: ReviewTable, journal: SqliteJournal) -> None:
    one = approved(book, added(book, review()))
    journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.failed("another program"), LATER)
    found = book.find(one.id)
    assert found is not None
    assert (found.action, found.is_open) == (UserAction.APPROVE, True)
    journal.resume(plan_of(found), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert [change.status for change in journal.list_changes(["/r"], 10, None)] == [PlanStatus.EXECUTED]


def test_a_commit_and_its_review_are_recorded_as_one(book: ReviewTable, journal: SqliteJournal) -> None:
    one, two = approved(book, added(book, review())), added(book, review("b" * 32))
    journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert [summary.id for summary in book.list_open(None, -1, None)] == [two.id]
    found = book.find(one.id)
    assert found is not None
    assert (found.state, found.base, found.proposed, found.answered) == (ReviewState.COMMITTED, None, b"", None)
    assert not book.replace(one, one.become(ReviewState.EXPIRED))


def test_a_failed_commit_that_expires_stays_a_failed_change(book: ReviewTable, journal: SqliteJournal) -> None:
    one = approved(book, added(book, review()))
    journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.failed("another program"), LATER)
    found = book.find(one.id)
    assert found is not None
    assert book.replace(found, found.become(ReviewState.EXPIRED))
    assert [change.status for change in journal.list_changes(["/r"], 10, None)] == [PlanStatus.FAILED]
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])


def test_each_state_becomes_those_of_the_table_and_no_other(book: ReviewTable) -> None:
    stored = added(book, review())
    for before, after in product(ReviewState, ReviewState):
        allowed = after in TRANSITIONS[before]
        at = replace(stored, state=before)
        if allowed:
            assert at.become(after).state is after
        else:
            with pytest.raises(ValueError, match="cannot become"):
                at.become(after)
            assert not book.replace(at, replace(at, state=after))
        assert at.is_open == bool(TRANSITIONS[before])


OLD_ROWS = {
    # (status of the plan, closed_as, whether the person gave a text): the state it had by these.
    ("CREATED", None, False): ReviewState.PENDING,
    ("CREATED", None, True): ReviewState.CHANGES_REQUESTED,
    ("APPROVED", None, True): ReviewState.APPROVED,
    ("RUNNING", None, True): ReviewState.APPROVED,
    ("FAILED", None, True): ReviewState.APPROVED,
    ("EXECUTED", None, True): ReviewState.COMMITTED,
    ("UNDONE", None, False): ReviewState.COMMITTED,
    ("CANCELLED", None, False): ReviewState.EXPIRED,
    ("CANCELLED", "REJECT", False): ReviewState.REJECTED,
    ("CANCELLED", "EXPIRED", False): ReviewState.EXPIRED,
    ("FAILED", "EXPIRED", False): ReviewState.EXPIRED,
}


def test_reviews_of_an_older_database_get_the_state_that_they_had(tmp_path: Path) -> None:
    steps_before = next(number for number, step in enumerate(STEPS) if "ADD COLUMN state" in step)
    connection = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    apply_migrations(connection, STEPS[:steps_before])
    for number, (status, closed_as, has_answer) in enumerate(OLD_ROWS):
        id_ = f"{number:032d}"
        connection.execute(
            "INSERT INTO plans (id, kind, root_dir, status, created_at) VALUES (?, 'review', '/r', ?, ?)",
            (id_, status, AT),
        )
        connection.execute(
            "INSERT INTO plan_items (plan_id, position, op, src_path, node, size_bytes, mode, uid, gid, mtime_ns, status)"
            " VALUES (?, 0, 'replace', '/r/a', 'file', 0, 0, -1, -1, 0, 'PENDING')",
            (id_,),
        )
        connection.execute(
            "INSERT INTO reviews (plan_id, session, version, round, request, twin, base, proposed, answered, closed_as,"
            " expires_at) VALUES (?, ?, 3, 1, 'q', 't', 'old', 'new', ?, ?, ?)",
            (id_, f"s{number}", b"mine" if has_answer else None, closed_as, LATER),
        )
    connection.close()

    opened = open_journal(str(tmp_path))
    try:
        book = reviews_beside(opened)
        reviews = [book.find(f"{number:032d}") for number in range(len(OLD_ROWS))]
    finally:
        opened.close()

    assert [one.state for one in reviews if one] == list(OLD_ROWS.values())
    assert all(bool(one.text) == one.is_open for one in reviews if one), (
        "texts of ended reviews are gone, others are not"
    )


def test_a_review_beneath_a_root_whose_name_is_not_utf_8_is_listed(book: ReviewTable) -> None:
    added(book, review(root="/caf\udce9/sub"))
    for roots in (["/caf\udce9"], ["/caf\udce9/sub"], ["/"], ["/x", "/caf\udce9"]):
        assert [summary.root for summary in book.list_open(roots, 10, None)] == ["/caf\udce9/sub"]
    for roots in (["/caf"], ["/caf\udce9/s"], ["/café"], []):
        assert book.list_open(roots, 10, None) == []
