"""What an agent tries to have something else approved than is shown, to reach other reviews, or to write past one."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import Agent
from tests.helpers.reviewer import TEXT, Host, Reviewer, reviewing, with_settings

pytestmark = pytest.mark.timeout(120)

EDIT = {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose calls hardly wait."""
    settings = {"server": {"port": 0}, "review": {"wait_seconds": 0.2}}
    folder = with_settings(tmp_path_factory.mktemp("state"), settings)
    yield folder
    stop_server(folder)


@pytest.fixture
def desk(root: Path, state: Path) -> Iterator[Reviewer]:
    with reviewing(root, state) as reviewer:
        yield reviewer


def proposed(desk: Reviewer, **edit: Any) -> tuple[str, dict[str, Any]]:
    """Propose for a fresh file; return the session and the review as the person has it."""
    desk.write()
    session = str(desk.propose(**{**EDIT, **edit})["session_path"])
    (review,) = desk.waiting()
    return session, review


@pytest.mark.req("RV-02.b")
def test_a_letter_that_leaves_no_trace_is_shown_by_its_number(desk: Reviewer) -> None:
    _, review = proposed(desk, new_string="if admin\u3164\ufe0f\u034f\u2800\u202e:\n")
    for more in ((), ("--side-by-side",)):
        out = desk.command("show", review["review_id"], *more, COLUMNS="120").stdout
        assert r"if admin\x3164\xfe0f\x34f\x2800\x202e:" in out
    desk.decide(review, "reject")


@pytest.mark.req("RV-02.d")
def test_a_client_is_shown_such_letters_by_their_number(root: Path, state: Path) -> None:
    host = Host(decision="reject")
    (root / "a.txt").write_text(TEXT)
    with Agent([root], state, elicit=host) as agent:
        agent.call("propose_and_review", **{**EDIT, "new_string": "ok\u3164\u2066\n"}).ok()
    assert r"+ok\x3164\x2066" in host.questions[0].message


@pytest.mark.req("RV-02.b")
def test_side_by_side_leaves_nothing_of_a_long_line_out(desk: Reviewer) -> None:
    _, review = proposed(desk, new_string="line 7".ljust(104) + "; rm -rf everything\n")
    assert "; rm -rf everything" in desk.command("show", review["review_id"], "--side-by-side").stdout
    desk.decide(review, "reject")


@pytest.mark.req("RV-02.b")
@pytest.mark.parametrize(
    ("edit", "sign"),
    [
        ({"new_string": "line 7\r\r\n"}, r"line 7\x0d"),
        ({"new_string": "line 7\x0cline 8\n"}, r"line 7\x0cline 8"),
        ({"old_string": "line 30\n", "new_string": "line 30"}, "No newline at end of file"),
    ],
)
def test_side_by_side_shows_a_change_of_line_ends_alone(desk: Reviewer, edit: dict[str, str], sign: str) -> None:
    _, review = proposed(desk, **edit)
    assert sign in desk.command("show", review["review_id"], "--side-by-side").stdout
    desk.decide(review, "reject")


@pytest.mark.req("RV-07.b", "RV-06.b")
def test_what_took_the_files_place_after_the_approval_is_left_alone(desk: Reviewer) -> None:
    session, review = proposed(desk)
    desk.decide(review, "approve")
    path, other = desk.root / "a.txt", desk.write("other.txt")
    made: list[Callable[[], object]] = [
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: path.symlink_to("other.txt"),
    ]
    for make in made:
        path.rmdir() if path.is_dir() else path.unlink()
        make()
        assert desk.commit(session).code in ("CONFLICT", "NOT_FOUND")
    assert path.is_symlink() and other.read_text() == TEXT
    path.unlink()
    path.write_text(TEXT)
    replies = desk.agent.parallel([("commit_review", {"session_path": session, "original_path": "a.txt"})] * 4)
    assert sorted(reply.code if reply.is_error else "" for reply in replies) == ["", *["CONFLICT"] * 3]
    assert path.read_text() == TEXT.replace("line 7\n", "seven\n")


@pytest.mark.req("RV-10.a")
def test_a_review_is_no_plan_and_no_change_of_anybody(desk: Reviewer, state: Path, tmp_path: Path) -> None:
    session, review = proposed(desk)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Agent([elsewhere], state) as stranger:
        for tool in ("execute_plan", "get_plan", "undo_plan"):
            for agent in (desk.agent, stranger):
                assert agent.call(tool, plan_id=review["review_id"]).code == "NOT_FOUND"
        assert desk.agent.call("undo_change", change_id=review["review_id"]).code == "CONFLICT"
        assert stranger.call("undo_change", change_id=review["review_id"]).code == "NOT_FOUND"
        for given in (session, session[:-4] + "0000"):
            asked = stranger.call("propose_and_review", path=str(desk.root / "a.txt"), session_path=given)
            assert (asked.code, asked.error["message"].count(str(desk.root))) == ("NOT_FOUND", 0)
    assert desk.propose(path="a.txt", session_path=session)["user_action"] == "PENDING"
    desk.decide(review, "reject")
