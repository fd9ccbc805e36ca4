"""The two files of a review on a real disk: who saves them, what a crash leaves of them, and when they go."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.config.settings import ReviewChannels, ReviewSettings
from holdfast.errors import Conflict, PermissionDenied
from holdfast.review.model import Channel, Choice, UserAction
from holdfast.review.sessions import Sessions
from tests.helpers.doors import until
from tests.unit.review.desk import Desk, fail, opened_desk

TEXT = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
SAVES = ReviewSettings(channels=ReviewChannels(vscode=True))


def test_what_an_editor_shows_is_not_exchanged_before_the_person_has_answered(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_bytes(TEXT)
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        with pytest.raises(Conflict, match="not answered yet"):
            desk.propose_again(review, "a.txt", ("TWO", "evil"))
        assert desk.future(review).read_bytes() == review.text


@pytest.mark.parametrize("channel", list(Channel))
def test_a_channel_that_is_switched_off_decides_nothing(root: Path, tmp_path: Path, channel: Channel) -> None:
    (root / "a.txt").write_bytes(TEXT)
    off = ReviewSettings(channels=ReviewChannels(console=False, terminal=False, elicitation=False, vscode=False))
    with opened_desk(root, tmp_path / "state", off) as closed:
        review = closed.propose("a.txt", ("two", "TWO"))
        with pytest.raises(PermissionDenied, match="switched off"):
            closed.decide(review, Choice.APPROVE, channel=channel)
        assert closed.find(review, "a.txt").action is UserAction.PENDING


def test_a_saved_file_decides_only_where_that_is_switched_on(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    desk.future(review).write_bytes(TEXT + b"\n\n")
    desk.reviews.records.watcher.look()
    desk.reviews.records.watcher.look()
    assert desk.find(review, "a.txt").action is UserAction.PENDING


def test_a_save_is_heard_and_the_next_one_may_approve(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_bytes(TEXT)
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        desk.future(review).write_bytes(TEXT.replace(b"two", b"mine"))
        until("the save was heard", lambda: desk.find(review, "a.txt").action is UserAction.REVIEW)
        second = desk.propose_again(review, "a.txt", ("mine", "ours"))
        assert second.action is UserAction.PENDING
        desk.future(review).write_bytes(second.text + b"\n")
        until("the save approved", lambda: desk.find(review, "a.txt").action is UserAction.APPROVE)
        desk.commit(review, "a.txt")
    assert (root / "a.txt").read_bytes() == TEXT.replace(b"two", b"ours")


def test_a_save_made_while_no_server_was_up_is_heard_at_the_next_start(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_bytes(TEXT)
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        future = desk.future(review)
    future.write_bytes(review.text + b"\n")
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        until("the save approved", lambda: desk.find(review, "a.txt").action is UserAction.APPROVE)


def test_putting_the_original_back_and_approving_it_is_a_rejection(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_bytes(b"a\n")
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        review = desk.propose("a.txt", ("a", "b"))
        desk.future(review).write_bytes(b"a\n\n")
        until("it was rejected", lambda: desk.find(review, "a.txt").action is not UserAction.PENDING)
        assert desk.find(review, "a.txt").action is UserAction.REJECT


@pytest.mark.parametrize("crash", ["before the database", "after the database"])
def test_a_crash_between_database_and_file_is_never_taken_for_a_save(root: Path, tmp_path: Path, crash: str) -> None:
    (root / "a.txt").write_bytes(TEXT)
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        desk.decide(review, Choice.REVISE, reason="otherwise")
        sessions: Sessions = desk.reviews.records.sessions
        broken = "replace" if crash == "before the database" else "publish"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desk.book if broken == "replace" else sessions, broken, fail)
            with pytest.raises(RuntimeError):
                desk.propose_again(review, "a.txt", ("TWO", "second"))
            desk.reviews.records.watcher.close()
    with opened_desk(root, tmp_path / "state", SAVES) as desk:
        for _ in range(3):
            desk.reviews.records.watcher.look()
        found = desk.find(review, "a.txt")
        assert desk.future(review).read_bytes() == found.text
        stands = (UserAction.REVIEW, 1) if crash == "before the database" else (UserAction.PENDING, 2)
        assert (found.action, found.round) == stands


def test_a_start_removes_directories_that_no_review_owns_and_makes_missing_ones(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    done = desk.propose("b.txt", ("", "new\n"))
    desk.decide(done, Choice.REJECT)
    shutil.rmtree(desk.state / "reviews" / review.session)
    (desk.state / "reviews" / "mcp_review_orphan").mkdir()
    with opened_desk(desk.root, desk.state) as again:
        assert again.sessions() == [review.session]
        assert again.future(review).read_bytes() == review.text
        assert again.reviews.has_pending()


def test_texts_are_let_go_when_a_review_ends(desk: Desk) -> None:
    committed, rejected = desk.propose("a.txt", ("two", "SECRET")), desk.propose("a.txt", ("two", "other"))
    desk.decide(committed, Choice.APPROVE)
    desk.commit(committed, "a.txt")
    desk.decide(rejected, Choice.REJECT)
    with closing(sqlite3.connect(desk.state / "state.db")) as connection:
        rows = connection.execute("SELECT base, proposed, answered FROM reviews").fetchall()
    assert rows == [(None, None, None)] * 2


class Broken:
    """A program of the person that cannot be started."""

    def show(self, review_id: str, current: str, future: str) -> None:
        raise FileNotFoundError(current)

    def close(self, review_id: str) -> None:
        raise ProcessLookupError

    def end(self) -> None:
        raise OSError


def test_a_program_that_cannot_show_a_review_does_not_fail_it(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_bytes(TEXT)
    with opened_desk(root, tmp_path / "state", None, [Broken()]) as desk:
        review = desk.propose("a.txt", ("two", "TWO"))
        desk.decide(review, Choice.APPROVE)
        desk.commit(review, "a.txt")
    assert (root / "a.txt").read_bytes() == TEXT.replace(b"two", b"TWO")


def test_a_directory_that_somebody_removed_does_not_keep_a_person_from_deciding(desk: Desk) -> None:
    review = desk.propose("a.txt", ("two", "TWO"))
    shutil.rmtree(desk.state / "reviews" / review.session)
    desk.decide(review, Choice.REVISE, text=TEXT.replace(b"two", b"mine"))
    assert desk.future(review).read_bytes() == TEXT.replace(b"two", b"mine")
