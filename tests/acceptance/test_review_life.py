"""A review outlives the server that opened it, and ends when it has waited too long."""

import json
import os
import signal
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from holdfast.clock import utc_now
from tests.conftest import stop_server
from tests.helpers.doors import is_alive, until
from tests.helpers.reviewer import TEXT, reviewing, with_settings

pytestmark = pytest.mark.timeout(120)

PATIENT = {"server": {"port": 0}, "review": {"wait_seconds": 50}}
HASTY = {"server": {"port": 0}, "review": {"wait_seconds": 0.5}}


@pytest.mark.req("RV-03.c")
def test_a_server_killed_in_the_middle_loses_nothing(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", HASTY)
    try:
        with reviewing(root, state) as desk:
            desk.write()
            first = desk.propose(path="a.txt", old_string="line 7", new_string="x")
            second = desk.propose(path="a.txt", old_string="line 8", new_string="y")
            for review in desk.waiting(2):
                if "x" in desk.show(review)["after"]:
                    desk.decide(review, "approve")
            pid = _server_pid(state)
            os.kill(pid, signal.SIGKILL)
            until("the server is gone", lambda: not is_alive(pid))
        with reviewing(root, state) as desk:
            listed = desk.agent.call("list_reviews").data["reviews"]
            assert {one["session_path"]: one["user_action"] for one in listed} == {
                first["session_path"]: "APPROVE",
                second["session_path"]: "PENDING",
            }
            desk.commit(first["session_path"]).ok()
            waiting = desk.start(path="a.txt", session_path=second["session_path"])
            desk.decide(desk.waiting()[0], "reject", reason="no")
            assert waiting.result(30).ok().data["user_action"] == "REJECT"
            assert (root / "a.txt").read_text() == TEXT.replace("line 7\n", "x\n")
    finally:
        stop_server(state)


@pytest.mark.req("RV-03.c", "RV-03.d")
def test_a_server_killed_under_a_waiting_call_keeps_the_review(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", PATIENT)
    try:
        with reviewing(root, state) as desk:
            desk.write()
            arguments = {"path": "a.txt", "old_string": "line 7\n", "new_string": "x\n"}
            proposed = desk.start(**arguments)
            (review,) = desk.waiting()
            os.kill(_server_pid(state), signal.SIGKILL)
            with pytest.raises(MCPError, match="before it answered"):
                proposed.result(30)
            again = desk.start(**arguments)
            (same,) = desk.waiting()
            assert same["review_id"] == review["review_id"]
            desk.decide(same, "approve")
            answer = again.result(30).ok().data
            desk.commit(answer["session_path"]).ok()
            assert (root / "a.txt").read_text() == TEXT.replace("line 7\n", "x\n")
    finally:
        stop_server(state)


def _server_pid(state: Path) -> int:
    return int(json.loads((state / "server.json").read_text())["pid"])


@pytest.mark.req("RV-03.c")
def test_a_server_that_is_told_to_end_lets_waiting_calls_answer(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", PATIENT)
    try:
        with reviewing(root, state) as desk:
            desk.write()
            desk.agent.tools()
            proposed = desk.start(path="a.txt", old_string="line 7", new_string="x")
            desk.waiting()
            stop_server(state)
            assert proposed.result(30).ok().data["user_action"] == "PENDING"
    finally:
        stop_server(state)


@pytest.mark.req("RV-09")
def test_a_session_expires_and_its_directory_goes(root: Path, tmp_path: Path) -> None:
    state = with_settings(
        tmp_path / "state", {"server": {"port": 0}, "review": {"wait_seconds": 20, "expires_hours": 1.0 / 3600}}
    )
    try:
        with reviewing(root, state) as desk:
            desk.write()
            answer = desk.propose(path="a.txt", old_string="line 7", new_string="x")
            assert answer["user_action"] == "EXPIRED"
            assert desk.sessions() == set()
            assert desk.commit(answer["session_path"]).code == "CONFLICT"
            assert desk.propose(path="a.txt", session_path=answer["session_path"])["user_action"] == "EXPIRED"
            assert desk.agent.call("list_reviews").data["reviews"] == []
    finally:
        stop_server(state)


@pytest.mark.req("RV-09")
def test_what_expired_while_no_server_was_up_is_closed_at_the_next_start(root: Path, tmp_path: Path) -> None:
    brief = {"server": {"port": 0}, "review": {"wait_seconds": 0.1, "expires_hours": 3.0 / 3600}}
    state = with_settings(tmp_path / "state", brief)
    try:
        with reviewing(root, state) as desk:
            desk.write()
            answer = desk.propose(path="a.txt", old_string="line 7", new_string="x")
            assert answer["user_action"] == "PENDING"
        stop_server(state)
        until("the time is over", lambda: answer["expires_at"] < utc_now())
        with reviewing(root, state) as desk:
            assert desk.propose(path="a.txt", session_path=answer["session_path"])["user_action"] == "EXPIRED"
            until("the directory is gone", lambda: desk.sessions() == set())
    finally:
        stop_server(state)


@pytest.mark.req("RV-03.a")
def test_a_background_server_stays_for_a_pending_review_and_only_for_that(root: Path, tmp_path: Path) -> None:
    settings = {"server": {"port": 0, "idle_exit_seconds": 1.0}, "review": {"wait_seconds": 0.1}}
    state, other_state = with_settings(tmp_path / "state", settings), with_settings(tmp_path / "other", settings)
    try:
        with reviewing(root, state) as desk:
            desk.write()
            desk.propose(path="a.txt", old_string="line 7", new_string="x")
            pid = _server_pid(state)
        with reviewing(root, other_state) as other:
            other.agent.call("list_reviews").ok()
            other_pid = _server_pid(other_state)
        until("a server without a review, idle for less long, ended", lambda: not is_alive(other_pid))
        assert is_alive(pid)
        desk.decide(desk.waiting()[0], "reject")
        until("the server ended", lambda: not is_alive(pid))
    finally:
        stop_server(state)
        stop_server(other_state)
