"""Reviews of moves, deletions, new directories and undos: what is shown, what is bound, crashes, failures, expiry."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.changes import proposals
from holdfast.changes.disk.policy_gate import ReviewNeeded
from holdfast.changes.disk.tree_listing import MAX_LISTED
from holdfast.changes.path_change import PathChange
from holdfast.config.settings import ReviewSettings
from holdfast.errors import Conflict, InvalidArgument, NotEmpty, QuotaExceeded
from holdfast.review.model import Choice, Review, ReviewKind, UserAction
from tests.unit.review.desk import Desk, opened_desk

pytestmark = pytest.mark.req("RV-13.h")


def plant(root: Path) -> None:
    (root / "tree" / "deep").mkdir(parents=True)
    (root / "tree" / "one.txt").write_text("one\n")
    (root / "tree" / "deep" / "two.txt").write_text("two\n")
    (root / "tree" / "link").symlink_to("one.txt")


@pytest.fixture
def planted(root: Path, tmp_path: Path) -> Iterator[Desk]:
    plant(root)
    with opened_desk(root, tmp_path / "state") as desk:
        yield desk


def move(desk: Desk) -> PathChange:
    return desk.changes.proposals.describe_move(desk.folders, desk.call(), "tree", "moved")


def delete(desk: Desk) -> PathChange:
    return desk.changes.proposals.describe_delete(desk.folders, desk.call(), "tree", recursive=True)


def make(desk: Desk) -> PathChange:
    return desk.changes.proposals.describe_directory(desk.folders, desk.call(), "new/below")


def undo(desk: Desk) -> PathChange:
    """Describe the undo of a deletion that was just made."""
    change_id = desk.changes.delete(desk.folders, desk.call(), "tree", recursive=True)
    return desk.changes.proposals.describe_undo(desk.folders, desk.call(), change_id)


CHANGES: dict[ReviewKind, Callable[[Desk], PathChange]] = {
    ReviewKind.MOVE: move,
    ReviewKind.DELETE: delete,
    ReviewKind.CREATE_DIRECTORY: make,
    ReviewKind.UNDO: undo,
}


def is_done(root: Path, kind: ReviewKind) -> bool:
    match kind:
        case ReviewKind.MOVE:
            return (root / "moved" / "deep" / "two.txt").exists() and not (root / "tree").exists()
        case ReviewKind.DELETE:
            return not (root / "tree").exists()
        case ReviewKind.CREATE_DIRECTORY:
            return (root / "new" / "below").is_dir()
        case _:
            return (root / "tree" / "deep" / "two.txt").exists()


def proposed(desk: Desk, kind: ReviewKind) -> Review:
    return desk.reviews.agent.propose_path_change(CHANGES[kind](desk))


def test_a_statement_says_what_goes_and_how_much(planted: Desk) -> None:
    assert move(planted).statement == (f"move {planted.root}/tree → {planted.root}/moved: directory (3 files, 8 B)\n")
    assert delete(planted).statement == (
        f"delete {planted.root}/tree: directory (3 files, 8 B)\n"
        "  deep/\n  deep/two.txt (4 B)\n  link -> one.txt\n  one.txt (4 B)\n"
    )
    assert make(planted).statement == (
        f"create directory {planted.root}/new/below\nand those above it:\n  {planted.root}/new\n"
    )
    describe = planted.changes.proposals.describe_delete
    one = describe(planted.folders, planted.call(), "tree/one.txt", recursive=False)
    assert one.statement == f"delete {planted.root}/tree/one.txt: file (4 B)\n"
    link = describe(planted.folders, planted.call(), "tree/link", recursive=False)
    assert link.statement == f"delete {planted.root}/tree/link: link\n"
    with pytest.raises(NotEmpty):
        describe(planted.folders, planted.call(), "tree", recursive=False)


def test_a_long_list_ends_with_how_many_more_and_all_of_them_count(planted: Desk) -> None:
    for number in range(MAX_LISTED + 10):
        (planted.root / "tree" / f"f{number:04}").write_text("x")
    before = delete(planted)
    lines = before.statement.splitlines()
    assert len(lines) == MAX_LISTED + 2
    assert lines[-1] == "  and 14 more entries"
    (planted.root / "tree" / f"f{MAX_LISTED + 9:04}").write_text("y")
    after = delete(planted)
    assert after.statement == before.statement
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize("kind", CHANGES)
def test_it_comes_back_from_the_record_as_it_was_given(planted: Desk, kind: ReviewKind) -> None:
    review = proposed(planted, kind)
    found = planted.book.find(review.id)
    assert found == review
    assert (review.kind, planted.reviews.person.list_open()[0].kind) == (kind, kind)
    assert review.path_change is not None
    assert review.path_change.statement == review.text.decode()
    assert list((planted.state / "reviews" / review.session).iterdir()) == []


@pytest.mark.parametrize("kind", CHANGES)
def test_a_person_sends_it_back_rejects_it_and_gives_no_text(planted: Desk, kind: ReviewKind) -> None:
    review = proposed(planted, kind)
    with pytest.raises(InvalidArgument, match="as a whole"):
        planted.decide(review, Choice.APPROVE, text=b"mine")
    with pytest.raises(InvalidArgument, match="as a whole"):
        planted.decide(review, Choice.APPROVE, hunks=("x",))
    with pytest.raises(InvalidArgument, match="text or a reason"):
        planted.decide(review, Choice.REVISE)
    sent_back = planted.decide(review, Choice.REVISE, reason="not this one")
    assert (sent_back.action, sent_back.reason) == (UserAction.REVIEW, "not this one")
    with pytest.raises(InvalidArgument, match="no edit"):
        planted.propose_again(review, review.path, ("a", "b"))
    with pytest.raises(Conflict, match="not approved"):
        planted.commit(review, review.path)
    planted.decide(review, Choice.REJECT, reason="no")
    assert planted.sessions() == []
    again = planted.reviews.agent.propose_path_change(sent_back.path_change or pytest.fail("it has none"))
    assert (again.id, again.action) == (review.id, UserAction.REJECT)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("moment", ["before", "after", "renamed"])
def test_a_commit_that_dies_half_way_is_made_or_can_be_made(
    root: Path, tmp_path: Path, kind: ReviewKind, moment: str
) -> None:
    if moment == "renamed" and kind is not ReviewKind.DELETE:
        return
    plant(root)
    state = tmp_path / "state"
    with opened_desk(root, state) as desk:
        review = proposed(desk, kind)
        desk.decide(review, Choice.APPROVE)
    arguments = [sys.executable, "-m", "tests.unit.review.path_victim", str(root), str(state), review.id, moment]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == 9
    with opened_desk(root, state) as desk:
        if moment == "before":
            assert not is_done(root, kind)
            assert desk.find(review, review.path).action is UserAction.APPROVE
            desk.commit(review, review.path)
        assert is_done(root, kind)
        assert not [path.name for path in root.rglob("*") if path.name.startswith(".holdfast")]
        with pytest.raises(Conflict, match="already committed"):
            desk.commit(review, review.path)
        assert desk.sessions() == []
        change = desk.changes.list(desk.folders, 10, None)[0]
        assert change.id == review.id
        desk.changes.undo(desk.folders, desk.call(), change.id)
        assert not is_done(root, kind)


@pytest.mark.parametrize("kind", [ReviewKind.MOVE, ReviewKind.DELETE])
def test_a_commit_that_failed_at_the_last_moment_can_be_made_later(
    planted: Desk, kind: ReviewKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = proposed(planted, kind)
    planted.decide(review, Choice.APPROVE)
    looks = 0

    def differ_at_second_look(*arguments: object) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise Conflict("it was exchanged between the two looks")

    with monkeypatch.context() as patched:
        patched.setattr(proposals, "check_listing", differ_at_second_look)
        with pytest.raises(Conflict, match="between the two looks"):
            planted.commit(review, review.path)
    assert looks == 2
    assert not is_done(planted.root, kind)
    found = planted.find(review, review.path)
    assert (found.action, found.path_change) == (UserAction.APPROVE, review.path_change)
    planted.commit(review, review.path)
    assert is_done(planted.root, kind)


def test_statements_count_against_the_room_and_reviews_expire(root: Path, tmp_path: Path) -> None:
    plant(root)
    with opened_desk(root, tmp_path / "state", ReviewSettings(max_open_bytes=40)) as desk:
        with pytest.raises(QuotaExceeded, match="max_open_bytes"):
            proposed(desk, ReviewKind.DELETE)
        assert desk.sessions() == []
    with opened_desk(root, tmp_path / "brief", ReviewSettings(expires_hours=0.2 / 3600)) as desk:
        review = proposed(desk, ReviewKind.DELETE)
        desk.decide(review, Choice.APPROVE)
        with desk.reviews.records.notifications.subscribe(lambda _id: None):
            for _ in range(100):
                if desk.find(review, "tree").action is UserAction.EXPIRED:
                    break
                subprocess.run(["sleep", "0.1"], check=True)
        with pytest.raises(Conflict, match="EXPIRED"):
            desk.commit(review, "tree")
        assert (root / "tree").is_dir()
        assert desk.sessions() == []


def test_an_undo_of_an_edit_shows_the_difference_and_is_bound_to_it(planted: Desk) -> None:
    written = planted.changes.write(planted.folders, planted.call(), "tree/one.txt", "changed\n")
    describe = planted.changes.proposals.describe_undo
    change = describe(planted.folders, planted.call(), str(written.change_id))
    assert "-changed\n+one\n" in change.statement
    review = planted.reviews.agent.propose_path_change(change)
    planted.decide(review, Choice.APPROVE)
    (planted.root / "tree" / "one.txt").write_text("changed again\n")
    with pytest.raises(Conflict, match="changed outside"):
        planted.commit(review, "tree/one.txt")
    (planted.root / "tree" / "one.txt").write_text("changed\n")
    planted.commit(review, "tree/one.txt")
    assert (planted.root / "tree" / "one.txt").read_text() == "one\n"
    with pytest.raises(ReviewNeeded, match="approval"):
        describe(planted.folders, planted.call(), str(written.change_id))
