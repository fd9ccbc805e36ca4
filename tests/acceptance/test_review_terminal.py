"""`holdfast review` as a person types it, with a server and without one."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import Agent
from tests.helpers.reviewer import TEXT, Reviewer, reviewing, with_settings
from tests.helpers.terminal import answered

pytestmark = pytest.mark.timeout(120)

WANTED = TEXT.replace("line 7\n", "seven\n")
EDIT = {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}
TWO_EDITS = [
    {"old_string": "line 3\n", "new_string": "three\n"},
    {"old_string": "line 27\n", "new_string": "twenty-seven\n"},
]
NOT_THERE, WRONG, NOT_ALLOWED = 1, 2, 13


@pytest.fixture
def desk(root: Path, tmp_path: Path) -> Iterator[Reviewer]:
    """Give an agent, and a person who alone uses this state folder."""
    state = with_settings(tmp_path / "state", {"server": {"port": 0}, "review": {"wait_seconds": 0.2}})
    try:
        with reviewing(root, state) as reviewer:
            yield reviewer
    finally:
        stop_server(state)


def proposed(desk: Reviewer, **arguments: Any) -> str:
    """Propose something and return its session."""
    desk.write()
    return str(desk.propose(**(arguments or EDIT))["session_path"])


def editor(folder: Path, change: str) -> str:
    """Make a program that changes the file it is given, and return the command for $EDITOR."""
    script = folder / "editor.py"
    script.write_text(f"import sys, pathlib\np = pathlib.Path(sys.argv[1])\n{change}\n")
    return f"{sys.executable} {script}"


@pytest.mark.req("RV-02.b")
def test_what_waits_is_listed_and_shown(desk: Reviewer) -> None:
    assert desk.command("list").stdout == "No reviews are open.\n"
    proposed(desk, path="a.txt", edits=TWO_EDITS)
    listed = desk.command()
    assert listed.returncode == 0
    assert "waits for you" in listed.stdout
    assert str(desk.root / "a.txt") in listed.stdout
    (review,) = json.loads(desk.command("list", "--json").stdout)["reviews"]
    shown = desk.command("show", review["review_id"][:6]).stdout
    codes = [hunk["code"] for hunk in json.loads(desk.command("show", "--json").stdout)["hunks"]]
    assert len(set(codes)) == 2
    assert all(f"@@ hunk {code}\n" in shown for code in codes)
    assert f"review approve {review['review_id'][:8]} {desk.code()} --yes\n" in shown
    assert "-line 3\n+three\n" in shown
    assert "\x1b[" not in shown
    split = desk.command("show", "--side-by-side").stdout
    row = next(line for line in split.splitlines() if "line 3 " in line)
    assert row.split() == ["3", "line", "3", "│", "3", "three"]
    assert json.loads(desk.command("show", "--json").stdout)["after"].count("three") == 1


@pytest.mark.req("RV-02.b")
def test_an_approval_needs_a_person_or_their_word(desk: Reviewer) -> None:
    session = proposed(desk)
    refused = desk.command("approve", stdin="y\n")
    assert (refused.returncode, "--yes" in refused.stderr) == (WRONG, True)
    assert desk.commit(session).code == "CONFLICT"
    done = desk.approve("-m", "good")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Approved: {desk.root / 'a.txt'}\n")
    assert "if it has left: holdfast review apply " in done.stdout
    answer = desk.propose(path="a.txt", session_path=session)
    assert (answer["user_action"], answer["reason"], answer["decided_by"]) == ("APPROVE", "good", "terminal")
    desk.commit(session).ok()
    assert (desk.root / "a.txt").read_text() == WANTED


@pytest.mark.req("RV-02.b")
@pytest.mark.parametrize(("said", "status", "action"), [(b"y\n", 0, "APPROVE"), (b"n\n", NOT_THERE, "PENDING")])
def test_at_a_terminal_the_change_is_shown_in_colour_and_asked_about(
    desk: Reviewer, said: bytes, status: int, action: str
) -> None:
    session = proposed(desk)
    done, seen = answered(desk.state, said, "review", "approve")
    assert done == status
    assert b"\x1b[32m+seven" in seen
    assert desk.propose(path="a.txt", session_path=session)["user_action"] == action


@pytest.mark.req("RV-02.b", "RV-06.a")
def test_single_hunks_are_approved_and_the_agent_is_told(desk: Reviewer) -> None:
    session = proposed(desk, path="a.txt", edits=TWO_EDITS)
    first, second = (hunk["code"] for hunk in json.loads(desk.command("show", "--json").stdout)["hunks"])
    for wrong in ("1", "x", f"{first},,{second}", ""):
        assert desk.approve("--hunks", wrong).returncode == WRONG
    assert desk.approve("--hunks", second.upper()).returncode == 0
    answer = desk.propose(path="a.txt", session_path=session)
    assert "-three\n+line 3\n" in answer["user_feedback_diff"]
    desk.commit(session).ok()
    assert (desk.root / "a.txt").read_text() == TEXT.replace("line 27\n", "twenty-seven\n")


@pytest.mark.req("RV-02.b", "RV-08")
def test_a_rejection_and_a_comment_reach_the_agent(desk: Reviewer) -> None:
    session = proposed(desk)
    assert desk.command("revise", "-m", "say 'seventh'").returncode == 0
    answer = desk.propose(path="a.txt", session_path=session)
    assert (answer["user_action"], answer["reason"], answer["user_feedback_diff"]) == ("REVIEW", "say 'seventh'", "")
    desk.propose(path="a.txt", session_path=session, old_string="seven\n", new_string="seventh\n")
    assert desk.command("reject", "-m", "never mind").returncode == 0
    answer = desk.propose(path="a.txt", session_path=session)
    assert (answer["user_action"], answer["reason"]) == ("REJECT", "never mind")


@pytest.mark.req("RV-02.b", "RV-06.a")
def test_what_is_saved_in_the_editor_is_approved_byte_for_byte(desk: Reviewer, tmp_path: Path) -> None:
    (desk.root / "a.txt").write_bytes(b"eins\r\nzwei")
    session = desk.propose(path="a.txt", old_string="zwei", new_string="drei")["session_path"]
    change = editor(tmp_path, "p.write_bytes(p.read_bytes().replace(b'eins', b'1'))")
    done = desk.command("edit", EDITOR=change, VISUAL="")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-eins" in desk.propose(path="a.txt", session_path=session)["user_feedback_diff"]
    desk.commit(session).ok()
    assert (desk.root / "a.txt").read_bytes() == b"1\r\ndrei"
    assert [name for name in os.listdir(desk.state) if name.startswith(".editing")] == []


@pytest.mark.req("RV-02.b")
def test_leaving_the_editor_without_saving_decides_nothing(desk: Reviewer, tmp_path: Path) -> None:
    session = proposed(desk)
    assert desk.command("edit", EDITOR=editor(tmp_path, "pass"), VISUAL="").returncode == NOT_THERE
    assert desk.propose(path="a.txt", session_path=session)["user_action"] == "PENDING"


@pytest.mark.req("RV-02.b")
def test_the_persons_text_can_be_sent_back_instead(desk: Reviewer, tmp_path: Path) -> None:
    session = proposed(desk)
    change = editor(tmp_path, "p.write_text(p.read_text().replace('seven', 'Seven'))")
    assert desk.command("edit", "--revise", EDITOR=change, VISUAL="").returncode == 0
    answer = desk.propose(path="a.txt", session_path=session)
    assert (answer["user_action"], "-seven\n+Seven\n" in answer["user_feedback_diff"]) == ("REVIEW", True)


@pytest.mark.req("RV-02.b")
def test_wrong_names_are_said_in_one_line(desk: Reviewer) -> None:
    assert desk.command("show").returncode == NOT_THERE
    proposed(desk)
    desk.propose(path="a.txt", old_string="line 8\n", new_string="eight\n")
    several = desk.command("approve", "--yes")
    assert (several.returncode, "Several reviews" in several.stderr) == (WRONG, True)
    unknown = desk.command("reject", "zzzz")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (NOT_THERE, 1)
    newest = desk.waiting(2)[0]["review_id"]
    assert desk.command("reject", newest).returncode == 0
    assert desk.command("reject", newest).returncode == NOT_THERE


@pytest.mark.req("RV-02.a", "RV-02.b")
def test_a_second_decision_is_refused(desk: Reviewer) -> None:
    session = proposed(desk)
    (review,) = desk.waiting()
    assert desk.approve().returncode == 0
    again = desk.command("reject", review["review_id"])
    assert (again.returncode, "decided already" in again.stderr) == (NOT_THERE, True)
    desk.commit(session).ok()


@pytest.mark.req("RV-02.b")
def test_a_proposal_cannot_write_over_what_the_person_reads(desk: Reviewer) -> None:
    desk.write()
    hidden = "safe\x1b[2K\x1b[1A\x08\x9b31m\u202eevil\u2069\n"
    desk.propose(path="a.txt", old_string="line 7\n", new_string=hidden)
    for way in ([], ["--side-by-side"]):
        shown = desk.command("show", *way).stdout
        assert not set("\x1b\x08\x9b\u202e\u2069") & set(shown)
        assert "safe\\x1b[2K" in shown


@pytest.mark.req("SV-02.i", "RV-03.c")
def test_without_a_server_the_commands_do_the_work_themselves(desk: Reviewer, root: Path) -> None:
    session = proposed(desk)
    stop_server(desk.state)
    assert "waits for you" in desk.command("list").stdout
    assert desk.approve().returncode == 0
    assert not (desk.state / "server.json").exists()
    with Agent([root], desk.state) as agent:
        agent.call("commit_review", session_path=session, original_path="a.txt").ok()
    assert (root / "a.txt").read_text() == WANTED


@pytest.mark.req("SV-02.i")
def test_the_commands_reach_a_server_inside_a_clients_process(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", {"review": {"wait_seconds": 30}})
    with Agent([root], state, options=["--in-process"]) as agent:
        desk = Reviewer(agent, root, state)
        desk.write()
        answer = desk.start(**EDIT)
        desk.waiting()
        assert desk.approve().returncode == 0
        session = answer.result(30).ok().data["session_path"]
        desk.commit(session).ok()
        assert (root / "a.txt").read_text() == WANTED


@pytest.mark.req("RV-10.b")
def test_the_terminal_can_be_switched_off(root: Path, tmp_path: Path) -> None:
    off = {"server": {"port": 0}, "review": {"wait_seconds": 0.2, "channels": {"terminal": False}}}
    state = with_settings(tmp_path / "state", off)
    try:
        with reviewing(root, state) as desk:
            session = proposed(desk)
            refused = desk.approve()
            assert (refused.returncode, "review.channels.terminal" in refused.stderr) == (NOT_ALLOWED, True)
            assert desk.propose(path="a.txt", session_path=session)["user_action"] == "PENDING"
    finally:
        stop_server(state)
