"""The life of a review on a real disk and a real database, without a server."""

import errno
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller, Door
from holdfast.config.settings import ReviewSettings
from holdfast.errors import Conflict, EditRejected, HoldfastError, NotFound, QuotaExceeded, StorageFull
from holdfast.review.model import Channel, Choice, Decision, UserAction
from tests.helpers.doors import until
from tests.unit.review.desk import Desk, at_once, fail, opened_desk

TEXT = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def test_a_proposal_makes_two_private_files_and_leaves_the_original(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    folder = desk.state / "reviews" / review.session
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "current_a.txt": TEXT,
        "future_a.txt": TEXT.replace(b"two", b"TWO"),
    }
    assert (folder.stat().st_mode & 0o777, (desk.root / "a.txt").read_bytes()) == (0o700, TEXT)


def test_a_proposal_that_fails_leaves_nothing_behind(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EditRejected, match="found 0 times"):
        desk.propose("a.txt", ("nine", "NINE"))
    monkeypatch.setattr(desk.book, "add", fail)
    with pytest.raises(RuntimeError):
        desk.propose("a.txt", ("two", "TWO"))
    assert (desk.sessions(), desk.reviews.person.list_open()) == ([], [])


def test_the_same_proposal_twice_is_one_review_even_at_the_same_moment(desk: Desk) -> None:
    found = at_once(*[partial(desk.propose, "a.txt", ("two", "TWO")) for _ in range(8)])
    assert len({review.id for review in found}) == 1
    assert len(desk.sessions()) == 1


def test_other_text_or_another_base_is_another_review(desk: Desk) -> None:
    first = desk.propose("a.txt", ("two", "TWO"))
    other = desk.propose("a.txt", ("two", "2"))
    (desk.root / "a.txt").write_bytes(TEXT + b"eight\n")
    assert len({first.id, other.id, desk.propose("a.txt", ("two", "TWO")).id}) == 3


def test_a_rejection_stands_for_the_same_proposal_a_moment_later(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.REJECT, reason="no")
    again = desk.propose("a.txt", ("two", "TWO"))
    assert (again.id, again.action, again.reason) == (review.id, UserAction.REJECT, "no")


def test_of_two_decisions_at_the_same_moment_one_wins(desk: Desk) -> None:
    for number in range(5):
        review = desk.propose("a.txt", ("two", f"TWO{number}"))
        shown = review.shown_hash
        found = at_once(
            partial(desk.reviews.person.decide, review.id, Decision(Choice.APPROVE, Channel.TERMINAL, shown)),
            partial(
                desk.reviews.person.decide, review.id, Decision(Choice.REJECT, Channel.CONSOLE, shown, reason="no")
            ),
        )
        assert sorted(isinstance(one, Conflict) for one in found) == [False, True]
        winner = next(one for one in found if not isinstance(one, Conflict))
        assert desk.find(review, "a.txt").action is winner.action


def test_an_approved_text_is_written_once_and_can_be_undone(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    found = at_once(*[partial(desk.commit, review, "a.txt") for _ in range(4)])
    assert sorted(isinstance(one, Conflict) for one in found) == [False, True, True, True]
    assert (desk.root / "a.txt").read_bytes() == TEXT.replace(b"two", b"TWO")
    assert (desk.sessions(), desk.reviews.person.list_open()) == ([], [])
    (change,) = desk.changes.list(desk.folders, 10, None)
    assert (change.id, change.kind, change.undoable) == (review.id, "review", True)
    desk.changes.undo(desk.folders, desk.call(), change.id)
    assert (desk.root / "a.txt").read_bytes() == TEXT


def test_a_commit_counts_as_newer_than_changes_made_after_its_proposal(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    between = desk.changes.append(desk.folders, desk.call(), "a.txt", "eight\n")
    assert "+eight" in desk.commit(review, "a.txt")
    newest, older = desk.changes.list(desk.folders, 10, None)
    assert (newest.id, older.id) == (review.id, between.change_id)
    with pytest.raises(Conflict, match="undo that one first"):
        desk.changes.undo(desk.folders, desk.call(), older.id)


@pytest.mark.parametrize("decision", [None, Choice.REVISE, Choice.REJECT])
def test_only_an_approved_review_is_written(desk: Desk, decision: Choice | None) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    if decision is not None:
        desk.decide(review, decision, reason="why")
    with pytest.raises(Conflict, match="not approved"):
        desk.commit(review, "a.txt")
    assert (desk.root / "a.txt").read_bytes() == TEXT


def test_a_conflicting_original_is_left_and_can_be_merged_later(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    (desk.root / "a.txt").write_bytes(TEXT.replace(b"two", b"zwei"))
    with pytest.raises(Conflict) as raised:
        desk.commit(review, "a.txt")
    assert raised.value.details["user_action"] == "CONFLICT"
    assert (desk.root / "a.txt").read_bytes() == TEXT.replace(b"two", b"zwei")
    (desk.root / "a.txt").write_bytes(TEXT.replace(b"seven", b"sieben"))
    desk.commit(review, "a.txt")
    assert (desk.root / "a.txt").read_bytes() == TEXT.replace(b"seven", b"sieben").replace(b"two", b"TWO")


@pytest.mark.parametrize("happened", ["removed", "a link", "a directory", "binary"])
def test_an_original_that_became_something_else_is_a_conflict(desk: Desk, happened: str) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    file = desk.root / "a.txt"
    file.unlink()
    if happened == "a link":
        (desk.root / "b.txt").write_bytes(TEXT)
        file.symlink_to("b.txt")
    elif happened == "a directory":
        file.mkdir()
    elif happened == "binary":
        file.write_bytes(b"\0\1\2")
    before = sorted((path.name, path.is_file() and path.read_bytes()) for path in desk.root.iterdir())
    with pytest.raises(HoldfastError):
        desk.commit(review, "a.txt")
    assert sorted((path.name, path.is_file() and path.read_bytes()) for path in desk.root.iterdir()) == before


def test_a_new_file_is_created_and_one_that_came_meanwhile_is_kept(desk: Desk) -> None:
    first, second = desk.propose("new.txt", ("", "text\n")), desk.propose("other.txt", ("", "text\n"))
    for review in (first, second):
        desk.decide(review, Choice.APPROVE)
    desk.commit(first, "new.txt")
    (desk.root / "other.txt").write_text("somebody else\n")
    with pytest.raises(Conflict):
        desk.commit(second, "other.txt")
    assert (desk.root / "new.txt").read_text() == "text\n"
    assert (desk.root / "other.txt").read_text() == "somebody else\n"


def test_encoding_mark_and_line_ends_survive_a_merge(desk: Desk) -> None:
    base = "\ufeffeins\r\nzwei\r\ndrei\r\nvier\r\n".encode()
    (desk.root / "b.txt").write_bytes(base)
    review = desk.propose("b.txt", ("eins", "ä"))
    desk.decide(review, Choice.APPROVE)
    (desk.root / "b.txt").write_bytes(base.replace(b"vier", "ö".encode()))
    desk.commit(review, "b.txt")
    assert (desk.root / "b.txt").read_bytes() == "\ufeffä\r\nzwei\r\ndrei\r\nö\r\n".encode()


def test_going_on_matches_the_persons_text_and_the_same_edits_count_once(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.REVISE, text=TEXT.replace(b"two", b"mine"))
    with pytest.raises(EditRejected, match="found 0 times"):
        desk.propose_again(review, "a.txt", ("TWO", "both"))
    second = desk.propose_again(review, "a.txt", ("mine", "ours"))
    again = desk.propose_again(review, "a.txt", ("mine", "ours"))
    assert (second.round, again.round, again.version) == (2, 2, second.version)
    assert second.text == TEXT.replace(b"two", b"ours")
    assert desk.future(review).read_bytes() == second.text


def test_an_approval_of_the_round_before_does_not_count_for_the_next(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.propose_again(review, "a.txt", ("TWO", "evil"))
    with pytest.raises(Conflict, match="changed since it was shown"):
        desk.reviews.person.decide(review.id, Decision(Choice.APPROVE, Channel.TERMINAL, review.shown_hash))


def test_sessions_that_are_not_this_files_are_all_the_same_to_an_agent(desk: Desk, tmp_path: Path) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    (desk.root / "b.txt").write_bytes(TEXT)
    session = desk.session(review)
    for given, path in [
        (session, "b.txt"),
        (session, "missing.txt"),
        (session, "/etc/passwd"),
        (session, "no/such/dir.txt"),
        (session + "x", "a.txt"),
        (session + "/", "a.txt"),
        (f"{desk.state}/reviews/../reviews/{review.session}", "a.txt"),
        (review.session, "a.txt"),
        ("", "a.txt"),
        (str(tmp_path / "mcp_review_mine"), "a.txt"),
    ]:
        with pytest.raises(NotFound) as raised:
            desk.reviews.agent.commit(desk.folders, desk.call(), given, path)
        assert raised.value.message == "There is no such review of this file. list_reviews shows the open ones."
    assert (desk.root / "a.txt").read_bytes() == TEXT


def test_a_review_of_another_root_does_not_exist(desk: Desk, tmp_path: Path) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    (desk.root / "sub").mkdir()
    neighbour = Desk(desk.root / "sub", desk.state, desk.book, desk.changes, desk.reviews)
    with pytest.raises(NotFound):
        neighbour.find(review, str(desk.root / "a.txt"))
    assert neighbour.reviews.agent.list_open(neighbour.folders, 10, None) == []
    assert [one.id for one in desk.reviews.agent.list_open(desk.folders, 10, None)] == [review.id]


def test_the_same_proposal_through_another_root_is_a_review_of_its_own(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    (desk.root / "sub" / "a.txt").write_bytes(TEXT)
    neighbour = Desk(desk.root / "sub", desk.state, desk.book, desk.changes, desk.reviews)
    outer, inner = desk.propose("sub/a.txt", ("two", "TWO")), neighbour.propose("a.txt", ("two", "TWO"))
    assert outer.id != inner.id
    assert neighbour.find(inner, "a.txt").action is UserAction.PENDING


def test_what_has_waited_too_long_is_closed_with_its_directory(desk: Desk) -> None:
    settings = ReviewSettings(expires_hours=0.3 / 3600)
    with opened_desk(desk.root, desk.state, settings) as brief:
        review = brief.propose("a.txt", ("two", "TWO"))
        until("the directory is gone", lambda: not brief.sessions())
        assert brief.find(review, "a.txt").action is UserAction.EXPIRED
        with pytest.raises(NotFound):
            brief.reviews.person.show(review.id)
        with pytest.raises(Conflict):
            brief.reviews.person.decide(review.id, Decision(Choice.APPROVE, Channel.TERMINAL, review.shown_hash))


def test_an_approved_review_expires_too(desk: Desk) -> None:
    with opened_desk(desk.root, desk.state, ReviewSettings(expires_hours=0.5 / 3600)) as brief:
        review = brief.propose("a.txt", ("two", "TWO"))
        brief.decide(review, Choice.APPROVE)
        until("it is over", lambda: brief.find(review, "a.txt").action is UserAction.EXPIRED)
        with pytest.raises(Conflict, match="EXPIRED"):
            brief.commit(review, "a.txt")


@pytest.mark.parametrize("name", ["x" * 250 + ".md", "ä" * 120 + ".txt", "-rf", "a b\n'$(x)\".txt", "." + "y" * 254])
def test_any_name_that_a_file_can_have_can_be_reviewed(desk: Desk, name: str) -> None:
    (desk.root / name).write_bytes(TEXT)
    review = desk.propose(name, ("two", "TWO"))
    assert desk.future(review).read_bytes() == TEXT.replace(b"two", b"TWO")
    desk.decide(review, Choice.APPROVE)
    desk.commit(review, name)
    assert (desk.root / name).read_bytes() == TEXT.replace(b"two", b"TWO")


def test_a_file_whose_name_is_no_unicode_can_be_reviewed(desk: Desk) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (desk.root / name).write_bytes(TEXT)
    review = desk.propose(name, ("two", "TWO"))
    desk.decide(review, Choice.APPROVE)
    desk.commit(review, name)
    assert (desk.root / name).read_bytes() == TEXT.replace(b"two", b"TWO")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_that_is_killed_is_decided_by_the_disk_and_can_be_made_again(
    root: Path, tmp_path: Path, moment: str
) -> None:
    (root / "a.txt").write_bytes(TEXT)
    state = tmp_path / "state"
    with opened_desk(root, state) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        desk.decide(review, Choice.APPROVE)
    arguments = [sys.executable, "-m", "tests.unit.review.victim", str(root), str(state), review.id, moment]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == 9
    with opened_desk(root, state) as desk:
        if moment == "before":
            assert (root / "a.txt").read_bytes() == TEXT
            assert desk.find(review, "a.txt").action is UserAction.APPROVE
            desk.commit(review, "a.txt")
        assert (root / "a.txt").read_bytes() == TEXT.replace(b"two", b"TWO")
        assert [path.name for path in root.iterdir()] == ["a.txt"]
        assert desk.sessions() == []
        with pytest.raises(Conflict, match="already committed"):
            desk.commit(review, "a.txt")
        (change,) = desk.changes.list(desk.folders, 10, None)
        desk.changes.undo(desk.folders, desk.call(), change.id)
        assert (root / "a.txt").read_bytes() == TEXT


def test_a_full_disk_is_said_and_leaves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("holdfast.review.sessions.write_new", full)
    with pytest.raises(StorageFull, match="disk is full"):
        desk.propose("a.txt", ("two", "TWO"))
    assert desk.sessions() == []


def test_going_on_writes_in_the_encoding_that_the_person_is_shown(desk: Desk) -> None:
    text = "Größe ändern, für später; schöne Grüße aus Köln\n"
    (desk.root / "old.txt").write_bytes(text.encode("cp1252"))
    review = desk.propose("old.txt", (text, "plain\n"))
    review = desk.propose_again(review, "old.txt", ("plain", "schön"))
    assert review.text == "schön\n".encode(review.encoding.codec)
    assert desk.reviews.person.show(review.id).after == "schön\n"


def test_a_folder_has_no_more_open_reviews_than_a_person_can_look_at(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.review.agent._MAX_OPEN", 2)
    first = desk.propose("a.txt", ("two", "2"))
    desk.propose("a.txt", ("three", "3"))
    with pytest.raises(QuotaExceeded, match="2 reviews are open"):
        desk.propose("a.txt", ("four", "4"))
    assert desk.propose("a.txt", ("two", "2")).id == first.id
    assert len(desk.sessions()) == 2
    desk.decide(first, Choice.REJECT)
    assert desk.propose("a.txt", ("four", "4")).is_open


def test_a_question_without_an_answer_is_remembered_only_while_the_review_is_open(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    records = desk.reviews.records
    caller = Caller(LOCAL_USER, door=Door.SOCKET)
    assert records.may_ask(review, caller)
    records.note_unanswered(review)
    assert not records.may_ask(review, caller)
    second = desk.propose_again(review, "a.txt", ("TWO", "2"))
    assert records.may_ask(second, caller), "another text may be asked about"
    desk.decide(second, Choice.REJECT, reason="no")
    records.note_unanswered(second)
    assert records.may_ask(second, caller), "nothing is kept of a review that has ended"


def test_open_reviews_of_a_folder_have_a_limit_in_bytes_and_a_rejection_frees_its_room(desk: Desk) -> None:
    records = desk.reviews.records
    records.settings = records.settings.model_copy(update={"max_open_bytes": 250_000})
    for name in "abc":
        (desk.root / name).write_text(name * 60_000 + " end\n")
    first = desk.propose("a", ("end", "END"))
    desk.propose("b", ("end", "END"))
    with pytest.raises(QuotaExceeded, match="holdfast review"):
        desk.propose("c", ("end", "END"))
    with pytest.raises(QuotaExceeded):
        desk.propose_again(first, "a", ("END", "!" * 20_000))
    assert len(desk.sessions()) == 2
    desk.decide(first, Choice.REJECT)
    assert desk.propose("c", ("end", "END")).is_open
    assert len(desk.sessions()) == 2
