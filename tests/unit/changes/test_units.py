"""Units: files that belong together are moved and undone together or not at all."""

import errno
import os
from pathlib import Path

import pytest

from holdfast.changes.disk import files
from holdfast.changes.model import Item, ItemStatus, NodeType, Op, Plan
from holdfast.changes.plans.layout import BATCH_ITEMS, split_batches
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, moves, opened_world

PHOTO = {"p.raw": "new/p.raw", "p.jpg": "new/p.jpg", "p.xmp": "new/p.xmp"}
MOVES = {**PHOTO, "other.txt": "new/other.txt"}


def shot(world: World) -> None:
    plant(world.root, {**{name: name for name in MOVES}, "new": {}})


def photos(root: Path) -> set[str]:
    return {name for name in harvest(root) if "/p." in f"/{name}"}


def told(plan: Plan) -> list[str]:
    return [item.error_msg or "" for item in plan.items if item.op is Op.MOVE]


@pytest.mark.req("OR-04")
@pytest.mark.parametrize("member", list(PHOTO))
def test_a_unit_of_which_one_file_changed_stays_whole(world: World, member: str) -> None:
    shot(world)
    plan = world.approve(world.plan(MOVES, unit=list(PHOTO)))
    (world.root / member).write_text("changed by somebody")
    plan = world.execute(plan)
    assert photos(world.root) == set(PHOTO)
    assert (plan.status, moves(plan)) == ("EXECUTED", ["SKIPPED", "SKIPPED", "SKIPPED", "DONE"])
    assert sum(f"It belongs to {member}, which stays. It changed" in message for message in told(plan)) == 2


@pytest.mark.req("OR-04")
@pytest.mark.parametrize("member", list(PHOTO))
def test_a_unit_of_which_one_name_is_taken_stays_whole_until_it_is_free(world: World, member: str) -> None:
    shot(world)
    plan = world.approve(world.plan(MOVES, unit=list(PHOTO)))
    (world.root / "new" / member).write_text("taken")
    failed = world.execute(plan)
    assert photos(world.root) == {*PHOTO, f"new/{member}"}
    assert (failed.status, moves(failed)) == ("FAILED", ["ERROR", "ERROR", "ERROR", "DONE"])
    (world.root / "new" / member).unlink()
    plan = world.execute(plan)
    assert (plan.status, photos(world.root)) == ("EXECUTED", set(PHOTO.values()))


@pytest.mark.req("OR-04")
def test_what_was_moved_comes_back_when_the_last_name_is_taken_at_the_last_moment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shot(world)
    plan = world.approve(world.plan(MOVES, unit=list(PHOTO)))
    real = files.move_entry

    def late(old_dir: int, old: str, new_dir: int, new: str) -> None:
        if new == "p.xmp":
            (world.root / "new/p.xmp").write_text("taken")
        real(old_dir, old, new_dir, new)

    monkeypatch.setattr(files, "move_entry", late)
    plan = world.execute(plan)
    assert photos(world.root) == {*PHOTO, "new/p.xmp"}
    assert moves(plan) == ["ERROR", "ERROR", "ERROR", "DONE"]


@pytest.mark.req("OR-04")
def test_a_unit_whose_folder_cannot_be_found_stays_whole(world: World) -> None:
    shot(world)
    plant(world.root, {"far": {"p.mov": "p.mov"}})
    planned = world.plan({**MOVES, "far/p.mov": "new/p.mov"}, unit=[*PHOTO, "far/p.mov"])
    plan = world.approve(planned)
    (world.root / "far").rename(world.root / "elsewhere")
    plan = world.execute(plan)
    assert photos(world.root) == {*PHOTO, "elsewhere/p.mov"}
    assert moves(plan) == ["SKIPPED", "SKIPPED", "SKIPPED", "DONE", "SKIPPED"]


@pytest.mark.req("OR-04", "OR-45")
def test_taking_one_file_of_a_unit_back_takes_all_of_it_back(world: World) -> None:
    shot(world)
    plan = world.run_plan(MOVES, unit=list(PHOTO))
    world.changes.plans.undo(world.folders, world.call(), plan, [1])
    assert photos(world.root) == set(PHOTO)
    assert moves(world.found(plan)) == ["UNDONE", "UNDONE", "UNDONE", "DONE"]


@pytest.mark.req("OR-04", "OR-45")
@pytest.mark.parametrize("member", list(PHOTO))
def test_a_unit_of_which_one_file_was_changed_since_is_not_taken_back_in_part(world: World, member: str) -> None:
    shot(world)
    plan = world.run_plan(MOVES, unit=list(PHOTO))
    (world.root / "new" / member).write_text("worked on since")
    world.undo(plan.id)
    assert photos(world.root) == set(PHOTO.values())
    assert moves(world.found(plan)) == ["DONE", "DONE", "DONE", "UNDONE"]


@pytest.mark.req("OR-04", "OR-45")
def test_a_unit_of_which_one_old_name_is_taken_is_not_taken_back_in_part(world: World) -> None:
    shot(world)
    plan = world.run_plan(MOVES, unit=list(PHOTO))
    (world.root / "p.jpg").write_text("another one")
    world.undo(plan.id)
    assert photos(world.root) == {*PHOTO.values(), "p.jpg"}
    assert (world.root / "p.jpg").read_text() == "another one"


@pytest.mark.req("OR-04")
def test_a_saved_page_and_its_folder_go_together(world: World) -> None:
    plant(world.root, {"page.html": "page", "page_files": {"a.css": "css"}, "new": {}, "x.txt": "x"})
    wanted = {"page.html": "new/page.html", "page_files": "new/page_files", "x.txt": "new/x.txt"}
    unit = ["page.html", "page_files"]
    plan = world.approve(world.plan(wanted, unit=unit))
    (world.root / "new/page_files").mkdir()
    failed = world.execute(plan)
    assert moves(failed) == ["ERROR", "ERROR", "DONE"]
    assert (world.root / "page.html").exists()
    (world.root / "new/page_files").rmdir()
    assert moves(world.execute(plan)) == ["DONE", "DONE", "DONE"]


def member(position: int, unit: str | None, node: NodeType = NodeType.FILE) -> Item:
    return Item(Op.MOVE, f"/r/{position}", f"/r/d/{position}", node=node, position=position, unit=unit)


def test_a_batch_never_ends_inside_a_unit() -> None:
    parts = [member(n, "u" if n >= BATCH_ITEMS - 2 else None) for n in range(3 * BATCH_ITEMS)]
    first, *rest = split_batches(parts)
    assert len(first) == len(parts)
    assert rest == []


def test_a_unit_is_together_however_late_one_of_it_was_added() -> None:
    parts = [member(0, "u"), *(member(n, None) for n in range(1, 2 * BATCH_ITEMS)), member(2 * BATCH_ITEMS, "u")]
    first = next(split_batches(parts))
    assert [item.position for item in first[:3]] == [0, 2 * BATCH_ITEMS, 1]


def test_a_unit_with_a_directory_has_a_batch_of_its_own() -> None:
    parts = [member(0, None), member(1, "u"), member(2, "u", NodeType.DIRECTORY), member(3, None)]
    assert [[item.position for item in batch] for batch in split_batches(parts)] == [[0], [1, 2], [3]]


@pytest.mark.req("OR-40")
def test_every_name_of_a_file_that_has_several_is_moved_and_taken_back(world: World) -> None:
    plant(world.root, {"a.jpg": "photo"})
    for name in ("b.jpg", "c.jpg"):
        os.link(world.root / "a.jpg", world.root / name)
    plan = world.run_plan({name: f"new/{name}" for name in ("a.jpg", "b.jpg", "c.jpg")})
    assert moves(plan) == [ItemStatus.DONE] * 3
    world.undo(plan.id)
    assert set(harvest(world.root)) == {"a.jpg", "b.jpg", "c.jpg"}


@pytest.mark.req("OR-04")
@pytest.mark.parametrize("restart", [False, True])
def test_what_could_not_come_back_at_once_comes_back_with_the_next_look(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    with opened_world([root], tmp_path / "state") as world:
        shot(world)
        plan = world.approve(world.plan(MOVES, unit=list(PHOTO)))
        real = files.move_entry

        def failing(old_dir: int, old: str, new_dir: int, new: str) -> None:
            if new == "p.xmp":
                (root / "new/p.xmp").write_text("taken")
                failing.seen = True  # type: ignore[attr-defined]
            elif getattr(failing, "seen", False) and new == "p.raw":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(old_dir, old, new_dir, new)

        with monkeypatch.context() as patched:
            patched.setattr(files, "move_entry", failing)
            stopped = world.execute(plan)
        assert (stopped.status, moves(stopped)) == ("RUNNING", ["PENDING", "ERROR", "ERROR", "DONE"])
        assert "new/p.raw" in harvest(root)
        if not restart:
            assert moves(world.execute(plan)) == ["ERROR", "ERROR", "ERROR", "DONE"]
    with opened_world([root], tmp_path / "state") as world:
        assert photos(root) == {*PHOTO, "new/p.xmp"}
        (root / "new/p.xmp").unlink()
        assert world.execute(plan).status == "EXECUTED"
    assert photos(root) == set(PHOTO.values())
