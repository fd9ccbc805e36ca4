"""A plan of moves on real folders: every file exists exactly once, whatever changes, breaks or is killed on the way."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.disk import files
from holdfast.changes.disk.files import hash_bytes
from holdfast.changes.model import Op
from holdfast.errors import Cancelled, NotFound
from tests.helpers.agent import Agent
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, killed, moves, opened_world, seen

FILES = 230


@pytest.fixture
def world(root: Path, tmp_path: Path) -> Iterator[World]:
    with opened_world([root], tmp_path / "state") as opened:
        yield opened


def messy(root: Path, count: int = FILES) -> dict[str, str]:
    """Fill a folder and return the moves that tidy it."""
    plant(root, {f"f{number}.txt": f"content {number}\n" * 3 for number in range(count)})
    return {f"f{number}.txt": f"sorted/{number % 5}/f{number}.txt" for number in range(count)}


@pytest.mark.req("OR-40.a")
def test_a_source_that_is_another_file_than_planned_never_moves(world: World) -> None:
    names = ("inode", "size", "mtime", "ctime", "tail", "same")
    plant(world.root, dict.fromkeys(names, "x" * 9_000))
    plan = world.approve(world.plan({name: f"d/{name}" for name in names}))
    (world.root / "inode").rename(world.root / "kept")
    shutil.copy2(world.root / "kept", world.root / "inode")
    (world.root / "size").write_text("y" * 8_999)
    os.utime(world.root / "mtime")
    (world.root / "ctime").chmod(0o600)
    status = (world.root / "tail").stat()
    with (world.root / "tail").open("r+") as file:
        file.seek(8_999)
        file.write("!")
    os.utime(world.root / "tail", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert moves(world.execute(plan)) == ["SKIPPED"] * 5 + ["DONE"]
    assert sorted(seen(world.root)) == ["ctime", "d/same", "inode", "kept", "mtime", "size", "tail"]


@pytest.mark.req("OR-40.a")
def test_a_folder_swapped_for_a_link_leads_nothing_outside(world: World) -> None:
    outside = plant(world.root.parent / "outside", {"secret": "s"})
    plant(world.root, {"a": "1", "d": {}, "s": {"secret": "s"}})
    plan = world.approve(world.plan({"a": "d/a", "s/secret": "d/secret"}))
    (world.root / "d").rmdir()
    (world.root / "d").symlink_to(outside)
    shutil.rmtree(world.root / "s")
    (world.root / "s").symlink_to(outside)
    assert moves(world.execute(plan)) == ["ERROR", "SKIPPED"]
    assert harvest(outside) == {"secret": b"s"}
    assert seen(world.root) == {"a": b"1"}


@pytest.mark.req("OR-40.b")
def test_a_hundred_moves_share_one_commit_and_one_sync_of_each_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.approve(world.plan(messy(world.root, 1_000)))
    synced: list[int] = []
    real = files.sync_directory

    def counted(fd: int) -> None:
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(files, "sync_directory", counted)
    commits: list[str] = []
    world.changes._journal._db._connection.set_trace_callback(  # type: ignore[attr-defined]
        lambda sql: commits.append(sql) if sql == "COMMIT" else None
    )
    assert world.execute(plan).status == "EXECUTED"
    assert len(synced) <= 10 * 6 + 3
    assert len(commits) <= 10 + 4


@pytest.mark.req("OR-41")
@pytest.mark.parametrize(
    ("act", "count", "when"),
    [
        ("move_entry", 1, "before"),
        ("move_entry", 137, "after"),
        ("sync_directory", 8, "before"),
        ("make_directory", 2, "after"),
        ("advance", 1, "after"),
        ("advance", 3, "before"),
        ("advance", 4, "after"),
    ],
)
def test_a_killed_execution_is_completed_by_the_next_and_no_file_is_lost_or_doubled(
    root: Path, tmp_path: Path, act: str, count: int, when: str
) -> None:
    wanted = messy(root)
    content = Counter(map(hash_bytes, harvest(root).values()))
    with opened_world([root], tmp_path / "state") as world:
        plan = world.approve(world.plan(wanted))
    killed(tmp_path / "state", plan, "execute", act, count, when, root)
    assert Counter(map(hash_bytes, harvest(root).values())) == content
    with opened_world([root], tmp_path / "state") as world:
        for item in world.found(plan).items:
            if item.op is Op.MOVE:
                is_there = (os.path.exists(item.src_path), os.path.exists(item.dest_path or ""))
                assert is_there == ((False, True) if item.status == "DONE" else (True, False))
        assert world.execute(plan).status == "EXECUTED"
        assert sorted(seen(root)) == sorted(wanted.values())
        assert world.leftovers() == []
        world.undo(plan.id)
        assert sorted(seen(root)) == sorted(wanted)
        assert not (root / "sorted").exists()


@pytest.mark.req("OR-42.a")
@pytest.mark.req("OR-42.b")
@pytest.mark.req("OR-42.c")
def test_one_failing_item_stops_no_other_and_is_tried_again(world: World) -> None:
    wanted = messy(world.root)
    plan = world.approve(world.plan(wanted))
    (world.root / "f7.txt").write_text("edited meanwhile")
    plant(world.root, {"sorted": {"3": {"f13.txt": "foreign"}}})
    done = world.execute(plan)
    assert done.status == "FAILED"
    assert Counter(moves(done)) == {"DONE": FILES - 2, "SKIPPED": 1, "ERROR": 1}
    by_name = {os.path.basename(item.src_path): item for item in done.items}
    assert "changed" in (by_name["f7.txt"].error_msg or "")
    assert "destination" in (by_name["f13.txt"].error_msg or "")
    assert (world.root / "f7.txt").read_text() == "edited meanwhile"
    assert (world.root / "f13.txt").read_text().startswith("content 13")
    assert (world.root / "sorted/3/f13.txt").read_text() == "foreign"
    (world.root / "sorted/3/f13.txt").unlink()
    again = world.changes.plans.execute(world.folders, world.call(), plan.id)
    assert (again.plan.status, len(again.done_before)) == ("EXECUTED", FILES - 2 + 4)
    assert (world.root / "sorted/3/f13.txt").read_text().startswith("content 13")


@pytest.mark.req("OR-43")
def test_two_executions_at_once_move_each_item_once(world: World) -> None:
    wanted = messy(world.root)
    plan = world.approve(world.plan(wanted))
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: world.changes.plans.execute(world.folders, world.call(), plan.id), range(2)))
    assert [run.plan.status for run in runs] == ["EXECUTED"] * 2
    assert sorted(len(run.done_before) for run in runs) == [0, FILES + 6]
    assert sorted(seen(world.root)) == sorted(wanted.values())


@pytest.mark.req("OR-44")
def test_a_plan_that_does_not_exist_or_belongs_to_others_is_not_found(root: Path, tmp_path: Path) -> None:
    neighbour = plant(tmp_path / "neighbour", {"x": "x"})
    with opened_world([neighbour], tmp_path / "state") as world:
        theirs = world.approve(world.plan({"x": "y"}))
    with opened_world([root], tmp_path / "state") as world:
        for plan_id in (theirs.id, "0" * 32):
            with pytest.raises(NotFound) as caught:
                world.changes.plans.execute(world.folders, world.call(), plan_id)
            assert caught.value.code == "NOT_FOUND"
    assert harvest(neighbour) == {"x": b"x"}


@pytest.mark.req("OR-45.a")
@pytest.mark.req("OR-45.d")
def test_undo_brings_everything_back_and_leaves_what_is_not_its_own(world: World) -> None:
    wanted = messy(world.root)
    before = harvest(world.root)
    plant(world.root, {"sorted": {"1": {"old.txt": "was there before"}}})
    plan = world.execute(world.approve(world.plan(wanted)))
    plant(world.root, {"sorted": {"2": {"new.txt": "came later"}}})
    world.undo(plan.id)
    after = seen(world.root)
    extra = {"sorted/1/old.txt": b"was there before", "sorted/2/new.txt": b"came later"}
    assert after == {**before, **extra}
    assert sorted(os.listdir(world.root / "sorted")) == ["1", "2"]
    assert world.found(plan).status == "UNDONE"


@pytest.mark.req("OR-45.b")
def test_undo_never_overwrites_and_takes_single_items_back(world: World) -> None:
    plant(world.root, {"a": "1", "b": "2", "c": "3"})
    plan = world.run_plan({"a": "d/a", "b": "d/b", "c": "d/c"})
    (world.root / "a").write_text("newer")
    world.changes.plans.undo(world.folders, world.call(), plan, [1])
    assert seen(world.root) == {"a": b"newer", "d/a": b"1", "b": b"2", "d/c": b"3"}
    world.undo(plan.id)
    assert seen(world.root) == {"a": b"newer", "d/a": b"1", "b": b"2", "c": b"3"}
    (world.root / "a").unlink()
    world.undo(plan.id)
    assert seen(world.root) == {"a": b"1", "b": b"2", "c": b"3"}


@pytest.mark.req("OR-45.c")
@pytest.mark.parametrize(("act", "count", "when"), [("move_entry", 137, "after"), ("advance", 2, "after")])
def test_an_undo_that_was_killed_is_finished_by_another(
    root: Path, tmp_path: Path, act: str, count: int, when: str
) -> None:
    wanted = messy(root)
    before = harvest(root)
    with opened_world([root], tmp_path / "state") as world:
        plan = world.execute(world.approve(world.plan(wanted)))
    killed(tmp_path / "state", plan, "undo", act, count, when, root)
    with opened_world([root], tmp_path / "state") as world:
        assert Counter(seen(root).values()) == Counter(before.values())
        world.undo(plan.id)
        assert seen(root) == before
        assert not (root / "sorted").exists()
        assert world.found(plan).status == "UNDONE"


@pytest.mark.req("OR-46")
def test_status_and_time_are_true_at_every_moment(world: World) -> None:
    wanted = messy(world.root)
    plan = world.plan(wanted)
    told: list[tuple[str, str | None]] = [(plan.status.value, plan.executed_at)]

    def look(*_: object) -> None:
        found = world.found(plan)
        told.append((found.status.value, found.executed_at))
        if len(told) == 5:
            call.cancel()

    world.approve(plan)
    call = Call(Caller(LOCAL_USER), timeout_seconds=60, progress=look)
    look()
    with pytest.raises(Cancelled):
        world.execute(plan, call)
    look()
    assert told[:2] == [("CREATED", None), ("APPROVED", None)]
    assert set(told[2:]) == {("RUNNING", None)}
    done = world.execute(plan)
    assert done.status == "EXECUTED"
    assert done.executed_at is not None
    world.undo(plan.id)
    assert (world.found(plan).status, world.found(plan).executed_at) == ("UNDONE", done.executed_at)


@pytest.mark.req("FS-36.a")
@pytest.mark.req("FS-38.b")
def test_twenty_parallel_edits_through_a_client_are_all_undoable(agent: Agent, root: Path) -> None:
    text = "".join(f"slot {n}: empty\n" for n in range(20))
    (root / "a.txt").write_text(text)
    calls = [
        (
            "edit_files",
            {
                "files": [
                    {"path": "a.txt", "edits": [{"old_string": f"slot {n}: empty", "new_string": f"slot {n}: full"}]}
                ]
            },
        )
        for n in range(20)
    ]
    ids = [reply.ok().data["files"][0]["change_id"] for reply in agent.parallel(calls)]
    assert (root / "a.txt").read_text() == text.replace("empty", "full")
    listed = agent.call("list_changes").ok().data["changes"]
    assert {change["change_id"] for change in listed} == set(ids)
    for change in listed:
        agent.call("undo_change", change_id=change["change_id"]).ok()
    assert (root / "a.txt").read_text() == text


@pytest.mark.req("OR-45.a")
@pytest.mark.req("FS-38.b")
def test_a_client_sees_an_executed_plan_as_one_change_and_takes_it_back(root: Path, ended_state: Path) -> None:
    wanted = messy(root)
    before = harvest(root)
    with opened_world([root], ended_state) as world:
        plan = world.execute(world.approve(world.plan(wanted)))
    with Agent([root], ended_state) as agent:
        (line,) = agent.call("list_changes").ok().data["changes"]
        assert (line["change_id"], line["kind"], line["entries"]) == (plan.id, "organise", FILES + 6)
        assert (line["path"], line["undoable"]) == (str(root), True)
        undone = agent.call("undo_change", change_id=plan.id).ok().text.rsplit("change ", 1)[1].strip()
        assert seen(root) == before
        agent.call("undo_change", change_id=undone).ok()
        assert sorted(seen(root)) == sorted(wanted.values())
