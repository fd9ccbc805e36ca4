"""What an undo of a plan says, to agents and in a terminal, and which plan a command without a name is for."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.organising import Tidier, organise, organised, tidying
from tests.helpers.terminal import answered
from tests.helpers.trees import Tree, harvest, plant

SONGS: Tree = {f"s{n:02}.mp3": str(n) for n in range(30)}


@pytest.fixture
def tidier(root: Path, ended_state: Path) -> Iterator[Tidier]:
    with tidying(root, ended_state) as one:
        yield one


def carried_out(tidier: Tidier, tree: Tree) -> dict[str, Any]:
    plant(tidier.root, tree)
    plan = tidier.plan()
    tidier.approve(plan)
    tidier.execute(plan).ok()
    return plan


def in_part(tidier: Tidier) -> dict[str, Any]:
    """Carry out a plan of three files of which two cannot go back."""
    plan = carried_out(tidier, {"a.mp3": "a", "b.mp3": "b", "c.mp3": "c"})
    plant(tidier.root, {"b.mp3": "newer", "Music": {"c.mp3": "edited after the move"}})
    return plan


def is_told(found: dict[str, Any]) -> bool:
    paths = {one["path"]: bool(one["why"]) for one in found["problems"]}
    return (found["came_back"], found["stayed"], paths) == (1, 2, {"Music/b.mp3": True, "Music/c.mp3": True})


@pytest.mark.req("OR-45.e")
@pytest.mark.parametrize(("tool", "argument"), [("undo_plan", "plan_id"), ("undo_change", "change_id")])
def test_an_undo_in_part_names_what_stayed_and_why(tidier: Tidier, tool: str, argument: str) -> None:
    plan = in_part(tidier)
    said = tidier.agent.call(tool, **{argument: plan["plan_id"]}).ok()
    assert is_told(said.data)
    for words in ("1 ", "2 stayed", "Music/b.mp3: Something else is", "Music/c.mp3: It is not what was moved"):
        assert words in said.text
    again = tidier.agent.call(tool, **{argument: plan["plan_id"]})
    assert (again.code, "And 1 more." in again.text) == ("CONFLICT", True)
    assert harvest(tidier.root)["a.mp3"] == b"a"


@pytest.mark.req("OR-45.e", "OR-51.b")
def test_the_command_says_it_too_and_ends_with_1(tidier: Tidier) -> None:
    name = in_part(tidier)["plan_id"][:8]
    done = organise(tidier.state, "undo", name, "--json")
    assert (done.returncode, is_told(json.loads(done.stdout))) == (1, True)
    (tidier.root / "b.mp3").unlink()
    second = organise(tidier.state, "undo", name)
    assert second.returncode == 1
    assert "Files moved back: 2 of 3.\n1 file stayed:\n  Music/c.mp3: It is not what was moved there" in second.stdout


@pytest.mark.req("OR-45.e")
def test_of_many_that_stay_the_first_are_named(tidier: Tidier) -> None:
    plan = carried_out(tidier, SONGS)
    plant(tidier.root, dict.fromkeys(list(SONGS)[1:], "newer"))
    said = tidier.undo(plan).ok()
    assert (said.data["stayed"], len(said.data["problems"])) == (29, 20)
    assert "and 9 more" in said.text


@pytest.mark.req("OR-45.e", "OR-45.c")
@pytest.mark.parametrize(("tool", "argument"), [("undo_plan", "plan_id"), ("undo_change", "change_id")])
def test_an_undo_of_what_is_back_already_says_so(tidier: Tidier, tool: str, argument: str) -> None:
    plan = carried_out(tidier, {"a.mp3": "a"})
    tidier.agent.call(tool, **{argument: plan["plan_id"]}).ok()
    again = tidier.agent.call(tool, **{argument: plan["plan_id"]}).ok()
    assert ("already undone" in again.text, "change_id" in again.data) == (True, False)
    done = organise(tidier.state, "undo", plan["plan_id"])
    assert (done.returncode, "The plan was already undone." in done.stdout) == (0, True)


@pytest.mark.req("OR-45.e", "FS-38.b")
def test_an_undo_of_a_write_that_is_back_already_says_so(tidier: Tidier) -> None:
    made = tidier.agent.call("write_file", path="a.txt", content="x").ok().text.split()[-1]
    tidier.agent.call("undo_change", change_id=made).ok()
    assert "nothing is left to undo" in tidier.agent.call("undo_change", change_id=made).ok().text


@pytest.mark.req("OR-51.c")
def test_a_command_without_a_plan_takes_the_newest_that_it_makes_sense_for(root: Path, ended_state: Path) -> None:
    assert organise(ended_state, "undo").returncode == 1
    plant(root, {"first": {"a.mp3": "a"}, "second": {"b.mp3": "b"}, "empty": {}})
    first = organised(ended_state, "scan", str(root / "first"))["plan_id"]
    organised(ended_state, "scan", str(root / "empty"))
    code = organised(ended_state, "show", first)["code"]
    done = organise(ended_state, "approve", "", code, "--yes", "--json")
    assert json.loads(done.stdout)["plan_id"] == first
    assert f"plan {first[:8]} of " in done.stderr
    organised(ended_state, "scan", str(root / "second"))
    assert organised(ended_state, "execute")["plan_id"] == first
    organised(ended_state, "scan", str(root / "first"))
    assert organised(ended_state, "undo")["plan_id"] == first
    nothing = organise(ended_state, "undo")
    assert (nothing.returncode, nothing.stderr) == (1, "holdfast: There is no plan to undo.\n")
    assert organise(ended_state, "execute").returncode == 13, "what nobody approved is named, and not carried out"


@pytest.mark.req("OR-51.c")
def test_what_a_command_says_leads_on(root: Path, ended_state: Path) -> None:
    plant(root, {"a.mp3": "a", "b.mp3": "b"})
    plan = organised(ended_state, "scan", str(root))["plan_id"]
    shown = organised(ended_state, "show", plan)
    said = organise(ended_state, "approve", plan, shown["code"], "--yes").stdout
    assert ("organise execute" in said, "organise approve" in said) == (True, False)
    plant(root, {"Music": {"a.mp3": "in the way"}})
    failed = organise(ended_state, "execute", plan)
    assert failed.returncode == 1
    assert f"To try the others again: holdfast organise execute {plan[:8]}" in failed.stdout
    (root / "Music/a.mp3").unlink()
    assert organised(ended_state, "execute")["status"] == "EXECUTED"


@pytest.mark.req("OR-51.c")
def test_before_a_plan_is_approved_it_is_said_which_it_is_and_who_made_it(tidier: Tidier) -> None:
    plant(tidier.root, {"a.mp3": "a", "mine": {"b.mp3": "b"}})
    plan = tidier.plan()
    asked = f"Approve plan {plan['plan_id'][:8]}, made by an agent at "
    status, seen = answered(tidier.state, b"n\n", "organise", "approve")
    assert (status, asked in seen.decode(), "Next:" in seen.decode()) == (1, True, False)
    assert "1 files" not in seen.decode()
    own = organised(tidier.state, "scan", str(tidier.root / "mine"))
    status, seen = answered(tidier.state, b"y\n", "organise", "approve")
    assert (status, f"{own['plan_id'][:8]}, made by `holdfast organise scan`" in seen.decode()) == (0, True)
    assert tidier.agent.call("get_plan", plan_id=own["plan_id"]).ok().data["made_by"] == "command"
