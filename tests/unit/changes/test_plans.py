"""Plans of moves: created, approved by hash, executed once, with a true status at every moment, undone."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.model import ItemStatus, Op, Plan
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.errors import Cancelled, Conflict, HoldfastError, InvalidArgument, NotFound, PermissionDenied
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, moves, opened_world


def names(plan: Plan, root: Path) -> dict[str, str]:
    """Return the moves of a plan by their names beneath a root."""
    return {
        os.path.relpath(item.src_path, root): os.path.relpath(item.dest_path or "", root)
        for item in plan.items
        if item.op is Op.MOVE
    }


def messages(plan: Plan) -> list[str | None]:
    return [item.error_msg for item in plan.items if item.op is Op.MOVE]


def test_a_plan_moves_nothing_until_it_is_executed(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    plan = world.plan({"a.txt": "docs/a.txt", "b.txt": "docs/deep/b.txt"})
    assert harvest(world.root) == {"a.txt": b"a", "b.txt": b"b"}
    assert (plan.status, plan.executed_at) == ("CREATED", None)
    assert moves(plan) == ["PENDING", "PENDING"]
    made = [os.path.relpath(item.src_path, world.root) for item in plan.items if item.op is Op.MKDIR]
    assert made == ["docs", "docs/deep"]
    assert world.listed() == []


def test_an_approved_plan_is_carried_out_and_is_one_line_of_the_changes(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    plan = world.run_plan({"a.txt": "docs/a.txt", "b.txt": "docs/deep/b.txt"})
    assert harvest(world.root) == {"docs/a.txt": b"a", "docs/deep/b.txt": b"b"}
    assert (plan.status, moves(plan)) == ("EXECUTED", ["DONE", "DONE"])
    assert plan.executed_at is not None
    (line,) = world.listed()
    assert (line.id, line.kind, line.items, line.undoable) == (plan.id, "organise", 4, True)
    assert line.path == str(world.root)


def test_a_plan_nobody_approved_is_not_carried_out(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    plan = world.plan({"a.txt": "b.txt"})
    with pytest.raises(PermissionDenied, match="approve"):
        world.execute(plan)
    assert harvest(world.root) == {"a.txt": b"a"}


def test_without_the_need_of_approval_a_plan_is_carried_out_at_once(root: Path, tmp_path: Path) -> None:
    plant(root, {"a.txt": "a"})
    with opened_world([root], tmp_path / "state", require_approval=False) as world:
        assert world.execute(world.plan({"a.txt": "b.txt"})).status == "EXECUTED"
    assert harvest(root) == {"b.txt": b"a"}


def test_an_approval_holds_for_the_plan_that_was_shown(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    plan = world.plan({"a.txt": "b.txt"})
    shown = world.changes.plans.hash_of(plan)
    revised = world.changes.plans.revise(world.folders, world.call(), plan.id, {0: "c.txt"})
    assert world.changes.plans.hash_of(revised) != shown
    with pytest.raises(Conflict, match="not the one that was shown"):
        world.changes.plans.approve(world.folders, plan.id, shown, "tester")
    world.execute(world.approve(revised))
    assert harvest(world.root) == {"c.txt": b"a"}


def test_a_plan_that_changed_after_its_approval_is_refused(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    plan = world.approve(world.plan({"a.txt": "c.txt"}))
    with pytest.raises(Conflict, match="APPROVED"):
        world.changes.plans.revise(world.folders, world.call(), plan.id, {0: "d.txt"})
    world.changes._journal._db._connection.execute(  # type: ignore[attr-defined]
        "UPDATE plan_items SET dest_path = ? WHERE plan_id = ?", (str(world.root / "evil.txt"), plan.id)
    )
    with pytest.raises(Conflict, match="not the one that was approved"):
        world.execute(plan)
    assert harvest(world.root) == {"a.txt": b"a", "b.txt": b"b"}


def test_an_item_can_be_dropped_and_its_directory_goes_with_it(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    plan = world.plan({"a.txt": "x/a.txt", "b.txt": "y/b.txt"})
    revised = world.changes.plans.revise(world.folders, world.call(), plan.id, {0: None})
    assert names(revised, world.root) == {"b.txt": "y/b.txt"}
    assert [item.position for item in revised.items if item.op is Op.MOVE] == [1]
    world.execute(world.approve(revised))
    assert harvest(world.root) == {"a.txt": b"a", "y/b.txt": b"b"}
    assert not (world.root / "x").exists()
    with pytest.raises(InvalidArgument, match="no move 7"):
        world.changes.plans.revise(world.folders, world.call(), plan.id, {7: None})


def test_two_items_never_share_a_destination_and_an_existing_one_gets_a_number(world: World) -> None:
    plant(world.root, {"a.txt": "1", "s": {"a.txt": "2", "A.TXT": "3"}, "d": {"a.txt": "old"}, "z.tar.gz": "4"})
    (world.root / "d/z.tar.gz").write_text("5")
    plan = world.plan({"a.txt": "d/a.txt", "s/a.txt": "d/a.txt", "s/A.TXT": "d/A.TXT", "z.tar.gz": "d/z.tar.gz"})
    assert names(plan, world.root) == {
        "a.txt": "d/a (2).txt",
        "s/a.txt": "d/a (3).txt",
        "s/A.TXT": "d/A (4).TXT",
        "z.tar.gz": "d/z (2).tar.gz",
    }


def test_names_that_differ_only_in_their_unicode_form_do_not_collide_on_any_disk(world: World) -> None:
    plant(world.root, {"1": "1", "2": "2"})
    plan = world.plan({"1": "d/caf\u00e9", "2": "d/cafe\u0301"})
    assert names(plan, world.root) == {"1": "d/caf\u00e9", "2": "d/cafe\u0301 (2)"}


def test_files_that_are_where_they_should_be_make_no_item(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    assert names(world.plan({"a.txt": "a.txt", "b.txt": "d/b.txt"}), world.root) == {"b.txt": "d/b.txt"}
    with pytest.raises(InvalidArgument, match="nothing to move"):
        world.plan({"a.txt": "a.txt"})


@pytest.mark.parametrize(
    "wanted",
    [
        {"d": "d/e/d"},
        {"d": "moved", "d/x": "y"},
        {"d": "moved", "a": "d/a"},
        {"a": "b", "./a": "c"},
    ],
    ids=["into itself", "out of a moving tree", "into a moving tree", "twice"],
)
def test_moves_that_contradict_each_other_are_refused(world: World, wanted: dict[str, str]) -> None:
    plant(world.root, {"a": "a", "d": {"x": "x", "e": {}}})
    with pytest.raises(InvalidArgument):
        world.plan(wanted)


def test_nothing_outside_the_roots_is_planned(world: World) -> None:
    outside = plant(world.root.parent / "outside", {"secret": "s"})
    plant(world.root, {"a": "a"})
    (world.root / "way").symlink_to(outside)
    for wanted in ({str(outside / "secret"): "a2"}, {"a": str(outside / "a")}, {"a": "way/a"}, {"way/secret": "b"}):
        with pytest.raises(HoldfastError, match="outside allowed"):
            world.plan(wanted)


def test_the_state_folder_is_neither_moved_nor_moved_into(root: Path) -> None:
    plant(root, {"deep": {"x": "x"}, "a": "a"})
    with opened_world([root], root / "deep/state") as world:
        for wanted in ({"deep/state": "s"}, {"deep/state/state.db": "s"}, {"a": "deep/state/a"}):
            with pytest.raises(HoldfastError):
                world.plan(wanted)
        done = world.run_plan({"deep": "other"})
        assert (moves(done), messages(done)) == (
            ["ERROR"],
            [f"{root}/deep/state belongs to Holdfast itself and stays where it is."],
        )
    assert (root / "deep/state/state.db").exists()


def test_a_source_that_changed_is_skipped_and_a_taken_destination_is_an_error(world: World) -> None:
    plant(world.root, {"same": "1", "edited": "2", "gone": "3", "blocked": "4", "touched": "5"})
    plan = world.approve(world.plan({name: f"d/{name}" for name in ("same", "edited", "gone", "blocked", "touched")}))
    (world.root / "edited").write_text("2!")
    (world.root / "gone").unlink()
    (world.root / "touched").chmod(0o600)
    plant(world.root, {"d": {"blocked": "foreign"}})
    done = world.execute(plan)
    assert done.status == "FAILED"
    assert moves(done) == ["DONE", "SKIPPED", "SKIPPED", "ERROR", "SKIPPED"]
    assert all(messages(done)[1:])
    assert harvest(world.root) == {
        "d/same": b"1",
        "edited": b"2!",
        "blocked": b"4",
        "d/blocked": b"foreign",
        "touched": b"5",
    }
    (world.root / "d/blocked").unlink()
    again = world.changes.plans.execute(world.folders, world.call(), plan.id)
    assert again.plan.status == "EXECUTED"
    assert moves(again.plan) == ["DONE", "SKIPPED", "SKIPPED", "DONE", "SKIPPED"]
    assert 0 in again.done_before
    assert 3 not in again.done_before


def test_executing_twice_reports_what_was_done_already(world: World) -> None:
    plant(world.root, {"a": "a"})
    plan = world.run_plan({"a": "b"})
    again = world.changes.plans.execute(world.folders, world.call(), plan.id)
    assert again.done_before == {0}
    assert again.plan == plan


def test_many_executions_at_once_move_each_item_once(world: World) -> None:
    count = 250
    plant(world.root, {f"f{n}": str(n) for n in range(count)})
    plan = world.approve(world.plan({f"f{n}": f"d{n % 7}/f{n}" for n in range(count)}))
    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(lambda _: world.changes.plans.execute(world.folders, world.call(), plan.id), range(6)))
    assert {run.plan.status for run in runs} == {"EXECUTED"}
    assert sum(not run.done_before for run in runs) == 1
    assert harvest(world.root) == {f"d{n % 7}/f{n}": str(n).encode() for n in range(count)}


def test_a_cancelled_execution_stops_between_batches_and_the_next_one_completes(world: World) -> None:
    count = 450
    plant(world.root, {f"f{n}": str(n) for n in range(count)})
    plan = world.approve(world.plan({f"f{n}": f"d/f{n}" for n in range(count)}))
    seen: list[float] = []
    call = Call(Caller(LOCAL_USER), timeout_seconds=60, progress=lambda done, _total, _message: stop(done))

    def stop(done: float) -> None:
        seen.append(done)
        if done > 200:
            call.cancel()

    with pytest.raises(Cancelled):
        world.execute(plan, call)
    half = world.found(plan)
    assert (half.status, half.executed_at) == ("RUNNING", None)
    assert moves(half).count("DONE") == 201 - 1
    assert len(harvest(world.root / "d")) == 200
    assert [change.id for change in world.listed()] == [plan.id]
    assert world.execute(plan).status == "EXECUTED"
    assert len(harvest(world.root / "d")) == count
    assert seen == sorted(seen)


def test_directories_and_links_move_as_they_are(world: World) -> None:
    plant(world.root, {"repo": {"f": "1", "sub": {"g": "2"}}})
    (world.root / "link").symlink_to("/nowhere")
    plan = world.run_plan({"repo": "code/repo", "link": "code/link"})
    assert moves(plan) == ["DONE", "DONE"]
    assert harvest(world.root) == {"code/repo/f": b"1", "code/repo/sub/g": b"2"}
    assert os.readlink(world.root / "code/link") == "/nowhere"
    world.undo(plan.id)
    assert harvest(world.root) == {"repo/f": b"1", "repo/sub/g": b"2"}


def test_a_directory_that_turned_into_a_link_is_not_walked_through(world: World) -> None:
    plant(world.root, {"a": "1", "d": {}, "other": {}, "s": {"b": "2"}})
    plan = world.approve(world.plan({"a": "d/a", "s/b": "d/b"}))
    (world.root / "d").rmdir()
    (world.root / "d").symlink_to("other")
    (world.root / "s").rename(world.root / "s2")
    (world.root / "s").symlink_to("s2")
    done = world.execute(plan)
    assert moves(done) == ["ERROR", "SKIPPED"]
    assert harvest(world.root) == {"a": b"1", "s2/b": b"2"}


def test_a_plan_can_be_cancelled_until_it_is_started(world: World) -> None:
    plant(world.root, {"a": "a", "b": "b"})
    for approved in (False, True):
        plan = world.plan({"a": "c"})
        if approved:
            plan = world.approve(plan)
        assert world.changes.plans.cancel(world.folders, plan.id).status == "CANCELLED"
        with pytest.raises(Conflict, match="CANCELLED"):
            world.execute(plan)
    done = world.run_plan({"b": "c"})
    with pytest.raises(Conflict, match="EXECUTED"):
        world.changes.plans.cancel(world.folders, done.id)


def test_plans_of_other_roots_are_not_found(root: Path, tmp_path: Path) -> None:
    other = plant(tmp_path / "other", {"x": "x"})
    plant(root, {"a": "a"})
    with opened_world([root], tmp_path / "state") as world:
        plan = world.approve(world.plan({"a": "b"}))
        assert [line.id for line in world.changes.plans.list(world.folders, 10)] == [plan.id]
    with opened_world([other], tmp_path / "state") as world:
        assert world.changes.plans.list(world.folders, 10) == []
        for id_ in (plan.id, "0" * 32):
            verbs = (
                lambda id_=id_: world.changes.plans.find(world.folders, id_),
                lambda id_=id_: world.changes.plans.execute(world.folders, world.call(), id_),
                lambda id_=id_: world.changes.plans.cancel(world.folders, id_),
                lambda id_=id_: world.changes.plans.approve(world.folders, id_, "", "x"),
                lambda id_=id_: world.changes.plans.revise(world.folders, world.call(), id_, {}),
            )
            for verb in verbs:
                with pytest.raises(NotFound):
                    verb()
    with opened_world([root], tmp_path / "state") as world:
        (line,) = world.changes.plans.list(world.folders, 10)
        assert line.moves == {ItemStatus.PENDING: 1}


def test_times_modes_and_attributes_go_along(world: World) -> None:
    plant(world.root, {"a": "1"})
    path = world.root / "a"
    path.chmod(0o741)
    os.setxattr(path, "user.note", b"n")
    os.utime(path, ns=(5, 7_000_000_001))
    world.run_plan({"a": "d/a"})
    moved = world.root / "d/a"
    assert (moved.stat().st_mode & 0o777, moved.stat().st_mtime_ns) == (0o741, 7_000_000_001)
    assert os.getxattr(moved, "user.note") == b"n"


def test_a_reason_and_a_confidence_are_kept_with_each_item(world: World) -> None:
    plant(world.root, {"a": "1"})
    request = MoveRequest("a", "d/a", "it is an invoice", 0.75)
    plan = world.changes.plans.create(world.folders, world.call(), ".", [request])
    assert (plan.first.reasoning, plan.first.confidence) == ("it is an invoice", 0.75)
