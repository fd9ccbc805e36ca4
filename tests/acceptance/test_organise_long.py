"""A scan that takes its time: it goes on after the answer, can be stopped, and says so when it was interrupted."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast.transport.client.dial import send_control
from holdfast.transport.state_folder import StateFolder
from tests.helpers.agent import Agent
from tests.helpers.doors import until
from tests.helpers.organising import HOUSE, RECIPE, tidying
from tests.helpers.reviewer import with_settings
from tests.helpers.trees import plant


@pytest.mark.req("OR-30.b")
def test_a_long_scan_goes_on_after_its_answer(root: Path, ended_state: Path) -> None:
    plant(root, HOUSE)
    with_settings(ended_state, {"organiser": {"answer_seconds": 0}})
    with tidying(root, ended_state) as one:
        first = one.plan()
        assert first["status"] == "SCANNING"

        def made() -> dict[str, Any] | None:
            found = one.agent.call("get_plan", plan_id=first["plan_id"]).ok().data
            assert found["status"] in ("SCANNING", "CREATED")
            return found if found["status"] == "CREATED" else None

        plan = until("the plan is made", made, 60)
        assert plan["plan_id"] == first["plan_id"]
        assert plan["totals"]["moves"] == 3


@pytest.mark.req("OR-30.b")
def test_a_scan_can_be_cancelled_and_leaves_no_plan(root: Path, ended_state: Path) -> None:
    for number in range(3_000):
        (root / f"f{number}.txt").write_text(RECIPE.format(number) * 5)
    with_settings(ended_state, {"organiser": {"answer_seconds": 0}})
    with tidying(root, ended_state) as one:
        plan = one.plan()
        assert plan["status"] == "SCANNING"
        one.agent.call("revise_plan", plan_id=plan["plan_id"], cancel=True).ok()

        def ended() -> str | None:
            found = one.agent.call("get_plan", plan_id=plan["plan_id"])
            return found.code if found.is_error else None

        assert until("the scan ends", ended, 60) == "CANCELLED"
        assert one.agent.call("list_plans").ok().data["plans"] == []


@pytest.mark.req("OR-30.c")
def test_a_scan_that_a_killed_server_left_says_so_and_what_to_call(root: Path, ended_state: Path) -> None:
    plant(root, HOUSE)
    for number in range(2_000):
        (root / f"f{number}.txt").write_text(RECIPE.format(number) * 5)
    with_settings(ended_state, {"organiser": {"answer_seconds": 0}})
    with tidying(root, ended_state) as one:
        plan = one.plan()
        assert plan["status"] == "SCANNING"
        os.kill(int(str(send_control(StateFolder(str(ended_state)), "status")["pid"])), signal.SIGKILL)
    with tidying(root, ended_state) as one:
        reply = one.agent.call("get_plan", plan_id=plan["plan_id"])
        assert (reply.code, reply.error["status"]) == ("CONFLICT", "INTERRUPTED")
        assert "interrupted" in reply.text and "create_organization_plan" in reply.text
    other = plant(root.parent / "other", {"a.txt": "a"})
    with Agent([other], ended_state) as stranger:
        assert stranger.call("get_plan", plan_id=plan["plan_id"]).code == "NOT_FOUND"
