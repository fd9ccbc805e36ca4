"""What is said of a plan is so: after it was carried out in part, taken back, closed or corrected, and when its folder is gone."""

import os
import shutil
from pathlib import Path

import pytest

from tests.helpers.organising import HOUSE, approved, organise, organised, tidying
from tests.helpers.trees import harvest, plant

SONGS = {"a.mp3": "one", "b.mp3": "two", "c.zip": "three"}


@pytest.mark.req("OR-05.b", "OR-40.a", "OR-45.a")
def test_a_file_from_the_year_2446_is_planned_moved_and_taken_back_with_its_time(root: Path, state_dir: Path) -> None:
    plant(root, SONGS)
    far = (15_032_385_535, 15_032_385_535)
    os.utime(root / "a.mp3", far)
    kept = (root / "a.mp3").stat().st_mtime_ns
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        tidier.approve(plan)
        assert tidier.execute(plan).ok().data["status"] == "EXECUTED"
        assert (root / "Music/a.mp3").stat().st_mtime_ns == kept
        assert tidier.undo(plan).ok().data["status"] == "UNDONE"
    assert (root / "a.mp3").stat().st_mtime_ns == kept


@pytest.mark.req("OR-32.c")
def test_a_plan_that_was_closed_does_not_wait_to_move_a_file(root: Path, state_dir: Path) -> None:
    plant(root, SONGS)
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert "A plan waits" in tidier.agent.call("explain_file", path="a.mp3").ok().data["why"]
        tidier.agent.call("revise_plan", plan_id=plan["plan_id"], cancel=True).ok()
        told = tidier.agent.call("explain_file", path="a.mp3").ok().data
    assert told["why"] == "Holdfast has not moved it."
    assert told.get("waiting_plan") is None


@pytest.mark.req("OR-32.c")
def test_a_plan_for_the_place_that_a_file_has_left_does_not_wait_to_move_it(root: Path, state_dir: Path) -> None:
    plant(root, SONGS)
    with tidying(root, state_dir) as tidier:
        tidier.plan()
        second = tidier.plan()
        tidier.approve(second)
        tidier.execute(second).ok()
        told = tidier.agent.call("explain_file", path="a.mp3").ok().data
    assert told["path"] == f"{root}/Music/a.mp3"
    assert told.get("waiting_plan") is None


@pytest.mark.req("OR-50.a")
def test_the_share_of_files_that_stay_follows_the_decisions(root: Path, state_dir: Path) -> None:
    plant(root, {"photo.jpg": "p", "photo.xmp": "<x/>", **SONGS})
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert plan["measures"]["do_nothing_ratio"] == 0
        assert tidier.revise(plan, c__zip=None)["measures"]["do_nothing_ratio"] == 0.25
        assert tidier.correct(plan, a__mp3=None)["measures"]["do_nothing_ratio"] >= 0.5


@pytest.mark.req("OR-32.a", "OR-46")
def test_an_agent_is_told_what_became_of_the_moves(root: Path, state_dir: Path) -> None:
    plant(root, SONGS)
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert "\n3 to move, " in tidier.agent.call("get_plan", plan_id=plan["plan_id"]).text
        tidier.approve(plan)
        (root / "b.mp3").write_text("changed")
        tidier.execute(plan).ok()
        assert "\n2 moved, 1 skipped, 0 uncertain" in tidier.agent.call("get_plan", plan_id=plan["plan_id"]).text
        tidier.undo(plan, "a.mp3").ok()
        shown = tidier.agent.call("get_plan", plan_id=plan["plan_id"]).text
        assert "\n1 moved, 1 skipped, 1 undone, 0 uncertain" in shown


@pytest.mark.req("OR-30.a")
def test_a_plan_without_moves_says_that_there_is_nothing_to_do(root: Path, state_dir: Path) -> None:
    (root / "empty").mkdir()
    plant(root / "house", {"Recipes": HOUSE["Recipes"]})
    with tidying(root, state_dir) as tidier:
        assert tidier.plan("empty")["next"] == "There is nothing to move."
        told = tidier.plan("house")["next"]
    assert told == "There is nothing to move. include_subfolders sorts the files in folders too."


@pytest.mark.req("OR-22.c", "OR-23.a")
def test_a_folder_that_is_there_is_not_called_new_when_a_person_chooses_it(root: Path, state_dir: Path) -> None:
    plant(root, {"repo": {".git": {"HEAD": "ref"}, "a.py": "1"}, **SONGS})
    with tidying(root, state_dir) as tidier:
        found = tidier.correct(tidier.plan(), a__mp3="repo")
    assert {one["folder"]: one["is_new"] for one in found["folders"]}["repo"] is False


@pytest.mark.req("OR-51.c")
def test_a_plan_whose_folder_is_gone_can_be_shown_and_closed(root: Path, ended_state: Path) -> None:
    plant(root / "gone", SONGS)
    plan = organised(ended_state, "scan", str(root / "gone"))["plan_id"]
    approved(ended_state, plan)
    shutil.rmtree(root / "gone")
    assert organised(ended_state, "show", plan)["totals"]["moves"] == 3
    assert organise(ended_state, "execute", plan).returncode == 1
    assert harvest(root) == {}
    again = root / "gone"
    plant(again, SONGS)
    plan = organised(ended_state, "scan", str(again))["plan_id"]
    shutil.rmtree(again)
    assert organised(ended_state, "cancel", plan)["status"] == "CANCELLED"


@pytest.mark.req("OR-06.b")
def test_a_plan_says_which_links_it_would_leave_without_their_file(root: Path, state_dir: Path) -> None:
    plant(root, SONGS)
    (root / "favourite").symlink_to("a.mp3")
    (root / "elsewhere").symlink_to("nothing")
    with tidying(root, state_dir) as tidier:
        plan = tidier.plan()
        assert plan["remark"] == "1 link that stays would be broken, because its target moves."
        assert tidier.correct(plan, a__mp3=None, b__mp3="Songs").get("remark") is None
