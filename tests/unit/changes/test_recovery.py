"""Recovery of changes that stopped half way: finished where they had begun to take effect."""

import errno
import os

import pytest

from holdfast.changes.disk import identity
from holdfast.changes.model import ChangeKind, Item, NodeType, Op, Plan
from holdfast.changes.plans.resolve_moves import MoveRequest
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World


def begun(world: World, *items: Item, kind: ChangeKind = ChangeKind.MKDIR) -> str:
    plan = Plan("p" * 32, kind, str(world.root), items, "2026-01-01T00:00:00.000000Z")
    world.changes._journal.begin(plan, [])
    return plan.id


def directory(world: World, op: Op, name: str) -> Item:
    return Item(op, str(world.root / name), node=NodeType.DIRECTORY)


def status(world: World) -> str:
    return world.listed()[0].status.value


def test_directories_of_which_the_first_was_made_are_all_made(world: World) -> None:
    plant(world.root, {"p": {}})
    change = begun(world, *(directory(world, Op.MKDIR, name) for name in ("p", "p/q", "p/q/r")))
    world.changes.recover()
    assert (world.root / "p/q/r").is_dir()
    assert status(world) == "EXECUTED"
    world.undo(change)
    assert not (world.root / "p").exists()


def test_directories_of_which_none_was_made_are_left_unmade(world: World) -> None:
    begun(world, *(directory(world, Op.MKDIR, name) for name in ("p", "p/q")))
    world.changes.recover()
    assert not (world.root / "p").exists()
    assert status(world) == "FAILED"


def test_directories_of_which_the_deepest_was_removed_are_all_removed(world: World) -> None:
    plant(world.root, {"p": {}})
    begun(world, directory(world, Op.RMDIR, "p/q"), directory(world, Op.RMDIR, "p"), kind=ChangeKind.UNDO)
    world.changes.recover()
    assert not (world.root / "p").exists()
    assert status(world) == "EXECUTED"


def test_a_directory_that_somebody_uses_by_now_is_not_removed(world: World) -> None:
    plant(world.root, {"p": {"theirs.txt": "theirs"}})
    begun(world, directory(world, Op.RMDIR, "p/q"), directory(world, Op.RMDIR, "p"), kind=ChangeKind.UNDO)
    world.changes.recover()
    assert (world.root / "p/theirs.txt").read_text() == "theirs"
    assert status(world) == "EXECUTED"


def test_a_move_is_known_again_when_its_disk_got_another_number(world: World) -> None:
    plant(world.root, {"d": {"x.txt": "x"}})
    moved = world.root / "e"
    identity = f"{os.stat(world.root).st_dev + 7}:{(world.root / 'd').stat().st_ino}"
    item = Item(Op.MOVE, str(world.root / "d"), str(moved), node=NodeType.DIRECTORY, identity=identity)
    change = begun(world, item, kind=ChangeKind.MOVE)
    (world.root / "d").rename(moved)
    world.changes.recover()
    assert status(world) == "EXECUTED"
    world.undo(change)
    assert (world.root / "d/x.txt").read_text() == "x"


def test_a_file_that_the_disk_would_not_show_is_an_error_that_the_next_execution_tries_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b"})
    plans = world.changes.plans
    requests = [MoveRequest("a.txt", "sorted/a.txt"), MoveRequest("b.txt", "sorted/b.txt")]
    plan = plans.create(world.folders, world.call(), ".", requests)
    plans.approve(world.folders, plan.id, plans.hash_of(plan), "tester")
    real, faults = identity._read_file, iter([OSError(errno.EIO, os.strerror(errno.EIO))])

    def failing(dir_fd: int, name: str, path: str) -> tuple[os.stat_result, str]:
        for fault in faults:
            raise fault
        return real(dir_fd, name, path)

    monkeypatch.setattr(identity, "_read_file", failing)
    first = plans.execute(world.folders, world.call(), plan.id).plan
    assert sorted(item.status.value for item in first.items if item.op is Op.MOVE) == ["DONE", "ERROR"]
    assert plans.execute(world.folders, world.call(), plan.id).plan.status == "EXECUTED"
    assert harvest(world.root) == {"sorted/a.txt": b"a", "sorted/b.txt": b"b"}
