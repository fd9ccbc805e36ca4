"""What every record of reviews promises: changes by comparison, one begin, texts let go, roots kept apart."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.journal import SqliteJournal, open_journal
from holdfast.adapters.sqlite.state.reviews import reviews_beside
from holdfast.changes.model import ChangeKind, Item, Op, Outcome, Plan, PlanStatus
from holdfast.errors import Conflict
from holdfast.review.model import Action, Review
from holdfast.review.ports import ReviewBook

AT, LATER = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    opened = open_journal(str(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def book(journal: SqliteJournal) -> ReviewBook:
    return reviews_beside(journal)


def review(id_: str = "a" * 32, root: str = "/r", proposed: bytes = b"new\n") -> Review:
    return Review(id_, f"mcp_review_{id_}", f"{root}/a.txt", root, AT, LATER, "q", b"old\n", proposed)


def added(book: ReviewBook, one: Review) -> Review:
    book.add(one)
    found = book.find(one.id)
    assert found is not None
    return found


def plan_of(one: Review) -> Plan:
    item = Item(Op.REPLACE, one.path, before_hash="b", after_hash="a")
    return Plan(one.id, ChangeKind.REVIEW, one.root, (item,), one.created_at, temp_name=".t", seq=one.seq)


def approved(book: ReviewBook, one: Review) -> Review:
    assert book.replace(one, replace(one, status=PlanStatus.APPROVED, answered=one.proposed))
    found = book.find(one.id)
    assert found is not None
    return found


def test_a_review_comes_back_as_it_was_given(book: ReviewBook) -> None:
    found = added(book, review())
    assert replace(found, seq=0) == review()
    assert book.find_session(found.session) == found
    assert book.find("b" * 32) is None
    assert book.find_session("mcp_review_") is None


def test_of_two_changes_of_the_same_row_the_second_is_refused(book: ReviewBook) -> None:
    read = added(book, review())
    assert book.replace(read, replace(read, answered=b"first\n"))
    assert not book.replace(read, replace(read, answered=b"second\n"))
    found = book.find(read.id)
    assert found is not None
    assert (found.answered, found.version) == (b"first\n", 2)


def test_a_closed_review_cannot_be_changed_again(book: ReviewBook) -> None:
    read = added(book, review())
    assert book.replace(read, read.closed(Action.REJECT))
    closed = book.find(read.id)
    assert closed is not None
    assert (closed.action, closed.status, closed.base, closed.proposed) == (
        Action.REJECT,
        PlanStatus.CANCELLED,
        None,
        b"",
    )
    assert not book.replace(closed, replace(closed, closed_as=None, status=PlanStatus.CREATED))


def test_an_equal_proposal_is_found_while_it_is_open_or_freshly_rejected(book: ReviewBook) -> None:
    read = added(book, review())
    assert book.find_twin(read.twin, AT) == read
    assert book.find_twin(review(proposed=b"other\n").twin, AT) is None
    book.replace(read, replace(read, decided_at=AT).closed(Action.REJECT))
    assert getattr(book.find_twin(read.twin, AT), "id", None) == read.id
    assert book.find_twin(read.twin, LATER) is None


def test_open_reviews_are_listed_beneath_their_roots_newest_first(book: ReviewBook) -> None:
    for id_, root in [("a" * 32, "/r"), ("b" * 32, "/r/sub"), ("c" * 32, "/r-other"), ("d" * 32, "/r")]:
        added(book, review(id_, root))
    assert [one.id[0] for one in book.listed(["/r"], 10, None)] == ["d", "b", "a"]
    assert [one.id[0] for one in book.listed(["/r/sub"], 10, None)] == ["b"]
    assert [one.id[0] for one in book.listed(None, -1, None)] == ["d", "c", "b", "a"]
    assert [one.id[0] for one in book.listed(["/"], 2, None)] == ["d", "c"]
    newest = book.listed(["/r"], 1, None)[0]
    assert [one.id[0] for one in book.listed(["/r"], 10, newest.seq)] == ["b", "a"]


def test_an_approved_review_is_begun_once_and_is_then_the_newest_change(
    book: ReviewBook, journal: SqliteJournal
) -> None:
    one = added(book, review())
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])
    one = approved(book, one)
    journal.begin(Plan("e" * 32, ChangeKind.MKDIR, "/r", (Item(Op.MKDIR, "/r/x"),), AT), [])
    assert [plan.id for plan in journal.unfinished()] == ["e" * 32]
    journal.resume(plan_of(one), [])
    assert [plan.id for plan in journal.unfinished()] == ["e" * 32, one.id]
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert [(change.id, change.kind) for change in journal.changes(["/r"], 10, None)] == [(one.id, ChangeKind.REVIEW)]
    with pytest.raises(Conflict):
        journal.resume(plan_of(one), [])


def test_a_review_that_is_being_written_cannot_expire(book: ReviewBook, journal: SqliteJournal) -> None:
    one = approved(book, added(book, review()))
    journal.resume(plan_of(one), [])
    assert not book.replace(one, one.closed(Action.EXPIRED))


def test_a_commit_that_failed_may_be_tried_again(book: ReviewBook, journal: SqliteJournal) -> None:
    one = approved(book, added(book, review()))
    journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.failed("another program"), LATER)
    found = book.find(one.id)
    assert found is not None
    assert (found.action, found.is_open) == (Action.APPROVE, True)
    journal.resume(plan_of(found), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert [change.status for change in journal.changes(["/r"], 10, None)] == [PlanStatus.EXECUTED]


def test_the_sweep_lets_texts_of_ended_reviews_go_and_names_the_open_sessions(
    book: ReviewBook, journal: SqliteJournal
) -> None:
    one, two = approved(book, added(book, review())), added(book, review("b" * 32))
    journal.resume(plan_of(one), [])
    journal.finish(one.id, Outcome.done(), LATER)
    assert book.sweep() == {two.session}
    found = book.find(one.id)
    assert found is not None
    assert (found.base, found.proposed, found.answered) == (None, b"", None)


def test_a_review_beneath_a_root_whose_name_is_not_utf_8_is_listed(book: ReviewBook) -> None:
    added(book, review(root="/caf\udce9/sub"))
    for roots in (["/caf\udce9"], ["/caf\udce9/sub"], ["/"], ["/x", "/caf\udce9"]):
        assert [listed.root for listed in book.listed(roots, 10, None)] == ["/caf\udce9/sub"]
    for roots in (["/caf"], ["/caf\udce9/s"], ["/café"], []):
        assert book.listed(roots, 10, None) == []
