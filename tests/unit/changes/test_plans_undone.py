"""Undo of plans of moves: whole, item by item, and never over what came since."""

import os

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.errors import Cancelled, Conflict
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, moves


def test_a_whole_plan_is_taken_back_and_brought_again(world: World) -> None:
    plant(world.root, {"a": "1", "s": {"b": "2"}})
    before = harvest(world.root)
    plan = world.run_plan({"a": "x/a", "s/b": "x/y/b"})
    after = harvest(world.root)
    change = plan.id
    for expected, status in ((before, "UNDONE"), (after, "EXECUTED"), (before, "UNDONE"), (after, "EXECUTED")):
        change = world.undo(change)
        assert harvest(world.root) == expected
        assert world.found(plan).status == status
        assert (world.root / "x").exists() is (expected == after)
    assert [line.status.value for line in world.listed()].count("EXECUTED") == 3


def test_an_undone_plan_leaves_directories_that_hold_something_else(world: World) -> None:
    plant(world.root, {"a": "1"})
    plan = world.run_plan({"a": "x/y/a"})
    (world.root / "x/mine").write_text("m")
    world.undo(plan.id)
    assert harvest(world.root) == {"a": b"1", "x/mine": b"m"}
    assert not (world.root / "x/y").exists()
    assert world.found(plan).status == "UNDONE"


def test_an_undo_never_overwrites_and_says_what_stayed(world: World) -> None:
    plant(world.root, {"a": "1", "b": "2", "c": "3"})
    plan = world.run_plan({"a": "x/a", "b": "x/b", "c": "x/c"})
    (world.root / "a").write_text("new")
    (world.root / "x/c").unlink()
    (world.root / "x/c").write_text("another")
    told = world.changes.undo(world.folders, world.call(), plan.id)
    undone = world.changes._journal.find(told.change_id or "")
    assert undone is not None
    assert (told.back, {item.src_path: bool(item.error_msg) for item in told.stayed}) == (
        1,
        {f"{world.root}/x/a": True, f"{world.root}/x/c": True},
    )
    with pytest.raises(Conflict, match=r"x/[ac]: .* And 1 more\."):
        world.undo(plan.id)
    assert harvest(world.root) == {"a": b"new", "x/a": b"1", "b": b"2", "x/c": b"another"}
    assert undone.status == "FAILED"
    assert sorted(moves(world.found(plan))) == ["DONE", "DONE", "UNDONE"]
    assert world.found(plan).status == "EXECUTED"


def test_single_items_are_taken_back_one_by_one(world: World) -> None:
    plant(world.root, {"a": "1", "b": "2"})
    plan = world.run_plan({"a": "x/a", "b": "y/b"})
    world.changes.plans.undo(world.folders, world.call(), plan, [1])
    assert harvest(world.root) == {"x/a": b"1", "b": b"2"}
    assert not (world.root / "y").exists()
    assert (world.found(plan).status, moves(world.found(plan))) == ("EXECUTED", ["DONE", "UNDONE"])
    world.changes.plans.undo(world.folders, world.call(), plan, [0])
    assert world.found(plan).status == "UNDONE"


def test_what_is_all_back_already_is_answered_so_and_makes_no_change(world: World) -> None:
    plant(world.root, {"a": "1", "b": "2"})
    plan = world.run_plan({"a": "x/a", "b": "y/b"})
    undone = world.changes.undo(world.folders, world.call(), plan.id)
    assert (undone.back, undone.stayed) == (2, ())
    for positions in (None, [0]):
        again = world.changes.plans.undo(world.folders, world.call(), plan, positions)
        assert (again.change_id, again.back, len(world.listed())) == (None, 0, 2)


def test_a_directory_that_stays_does_not_make_a_second_undo_a_conflict(world: World) -> None:
    plant(world.root, {"a": "1"})
    plan = world.run_plan({"a": "x/a"})
    (world.root / "x/mine").write_text("m")
    world.undo(plan.id)
    again = world.changes.plans.undo(world.folders, world.call(), plan)
    assert (again.change_id, harvest(world.root)) == (None, {"a": b"1", "x/mine": b"m"})


def test_an_undo_that_was_stopped_is_completed_by_the_next_and_then_all_is_back(world: World) -> None:
    plant(world.root, {f"f{n}": str(n) for n in range(150)})
    before = harvest(world.root)
    plan = world.run_plan({f"f{n}": f"d/f{n}" for n in range(150)})
    call = Call(
        Caller(LOCAL_USER), timeout_seconds=60, progress=lambda done, _t, _m: call.cancel() if done > 5 else None
    )
    with pytest.raises(Cancelled):
        world.changes.plans.undo(world.folders, call, plan)
    assert harvest(world.root) != before
    rest = world.changes.plans.undo(world.folders, world.call(), plan)
    assert 0 < rest.back < 150
    assert harvest(world.root) == before
    assert world.changes.plans.undo(world.folders, world.call(), plan).change_id is None


def test_directories_that_were_removed_since_are_made_again_by_an_undo(world: World) -> None:
    plant(world.root, {"s": {"t": {"a": "1"}}})
    plan = world.run_plan({"s/t/a": "x/a"})
    (world.root / "s/t").rmdir()
    (world.root / "s").rmdir()
    world.undo(plan.id)
    assert harvest(world.root) == {"s/t/a": b"1"}


def test_a_plan_that_was_cut_short_can_be_taken_back(world: World) -> None:
    plant(world.root, {f"f{n}": str(n) for n in range(150)})
    before = harvest(world.root)
    plan = world.approve(world.plan({f"f{n}": f"d/f{n}" for n in range(150)}))
    call = Call(
        Caller(LOCAL_USER), timeout_seconds=60, progress=lambda done, _t, _m: call.cancel() if done > 5 else None
    )
    with pytest.raises(Cancelled):
        world.execute(plan, call)
    assert harvest(world.root) != before
    world.undo(plan.id)
    assert harvest(world.root) == before
    assert world.found(plan).status == "UNDONE"
    with pytest.raises(Conflict):
        world.execute(plan)


def test_what_another_program_saved_after_an_undo_of_ours_stays_where_it_is(world: World) -> None:
    plant(world.root, {"a.txt": "a", "c.txt": "c"})
    plan = world.run_plan({"a.txt": "docs/a.txt", "c.txt": "docs/c.txt"})
    for name in ("docs/a.txt", "docs/c.txt"):
        written = world.changes.write(world.folders, world.call(), name, "edited")
        world.undo(written.change_id or "")
    plant(world.root, {"new": "somebody else's"})
    os.replace(world.root / "new", world.root / "docs/a.txt")
    world.undo(plan.id)
    assert harvest(world.root) == {"docs/a.txt": b"somebody else's", "c.txt": b"c"}
