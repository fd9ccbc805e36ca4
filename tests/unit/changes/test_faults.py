"""A full disk and other refusals of the system: the file is untouched, nothing is left behind, the error is plain."""

import errno
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.auth.context import ClientInfo
from holdfast.changes.disk import files
from holdfast.changes.model import ChangeKind, Image, Item, Op, Plan
from holdfast.changes.single import content
from holdfast.errors import HoldfastError, NotFound, PayloadTooLarge, PermissionDenied, StorageFull
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, opened_world


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of 256 KB where mounting is allowed, else a process that may not write larger files."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode == 0:
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_file_untouched_and_no_helper(small_disk: Path, tmp_path: Path) -> None:
    with opened_world([small_disk], tmp_path / "state") as world:
        world.write("a.txt", "a" * 100_000)
        verbs: list[Callable[[], str]] = [
            lambda: world.write("a.txt", "b" * 300_000),
            lambda: world.write("new.txt", "b" * 300_000),
            lambda: world.append("a.txt", "b" * 300_000),
        ]
        for verb in verbs:
            with pytest.raises((StorageFull, PayloadTooLarge)):
                verb()
        assert harvest(small_disk) == {"a.txt": b"a" * 100_000}
        assert world.leftovers() == []
        assert [change.status for change in world.listed()] == ["FAILED"] * 3 + ["EXECUTED"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("step", ["write_content", "rename_exchange", "sync_directory"])
def test_any_error_of_the_system_leaves_one_whole_version_and_a_true_journal(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, step: str
) -> None:
    world.write("a.txt", "old")
    module = files if step == "write_content" else content
    real = getattr(module, step)
    faults = iter([OSError(number, os.strerror(number))])

    def failing(*args: object, **named: object) -> object:
        fault = next(faults, None)
        if fault is not None:
            raise fault
        return real(*args, **named)

    monkeypatch.setattr(module, step, failing)
    with pytest.raises((HoldfastError, OSError)):
        world.write("a.txt", "new")
    text = (world.root / "a.txt").read_text()
    assert text == ("new" if step == "sync_directory" else "old")
    assert world.listed()[0].status == ("EXECUTED" if text == "new" else "FAILED")
    assert world.leftovers() == []


def test_a_file_system_without_unnamed_files_is_written_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_O_TMPFILE", None)
    world.write("a.txt", "one")
    change = world.write("a.txt", "two")
    assert harvest(world.root) == {"a.txt": b"two"}
    world.undo(change)
    assert harvest(world.root) == {"a.txt": b"one"}


def unfinished(world: World, item: Item, *, temp: str = ".holdfast-t.tmp", images: tuple[Image, ...] = ()) -> Plan:
    plan = Plan("p" * 32, ChangeKind.WRITE, str(world.root), (item,), "2026-01-01T00:00:00.000000Z", temp_name=temp)
    world.changes._journal.begin(plan, images)
    return plan


def replacing(world: World, old: bytes | None, new: bytes) -> tuple[Item, tuple[Image, ...]]:
    before = None if old is None else files.hash_bytes(old)
    item = Item(Op.REPLACE, str(world.root / "a.txt"), before_hash=before, after_hash=files.hash_bytes(new))
    return item, () if old is None else (Image(files.hash_bytes(old), len(old), data=old),)


@pytest.mark.parametrize(
    ("present", "helper", "content", "status", "kept"),
    [
        (b"old", None, b"old", "FAILED", 0),
        (b"old", b"new", b"old", "FAILED", 0),
        (b"new", b"old", b"new", "EXECUTED", 0),
        (b"new", None, b"new", "EXECUTED", 0),
        (b"new", b"theirs", b"theirs", "FAILED", 0),
        (b"theirs", b"old", b"theirs", "FAILED", 0),
        (b"theirs", b"others", b"theirs", "FAILED", 1),
        (b"old", b"ne", b"old", "FAILED", 1),
        (None, b"old", None, "FAILED", 0),
    ],
)
def test_recovery_decides_by_what_is_on_the_disk(
    world: World, present: bytes | None, helper: bytes | None, content: bytes | None, status: str, kept: int
) -> None:
    item, images = replacing(world, b"old", b"new")
    unfinished(world, item, images=images)
    if present is not None:
        (world.root / "a.txt").write_bytes(present)
    if helper is not None:
        (world.root / ".holdfast-t.tmp").write_bytes(helper)
    (world.root / ".holdfast-not-ours.tmp").write_bytes(b"mine")
    assert world.changes.recover() == 1
    expected = {".holdfast-not-ours.tmp": b"mine"} | ({} if content is None else {"a.txt": content})
    assert harvest(world.root) == expected
    (change,) = world.listed()
    assert change.status == status
    plan = world.changes._journal.find(change.id)
    assert plan is not None
    saved = [item.before_hash for item in plan.items if item.op is Op.SAVE]
    assert saved == [files.hash_bytes(helper or b"")] * kept


def test_saved_bytes_of_another_program_are_named_and_written_out_on_demand(world: World) -> None:
    item, images = replacing(world, b"old", b"new")
    unfinished(world, item, images=images)
    (world.root / "a.txt").write_bytes(b"theirs")
    (world.root / ".holdfast-t.tmp").write_bytes(b"others")
    plant(world.root, {"a (kept).txt": "taken"})
    world.changes.recover()
    (change,) = world.listed()
    assert (change.status, change.saved, change.undoable) == ("FAILED", 1, True)
    brought = world.undo(change.id)
    assert harvest(world.root) == {"a.txt": b"theirs", "a (kept).txt": b"taken", "a (kept) (2).txt": b"others"}
    world.undo(brought)
    assert harvest(world.root) == {"a.txt": b"theirs", "a (kept).txt": b"taken"}


@pytest.mark.parametrize("part", ["the file", "its directory"])
def test_recovery_follows_no_link_that_took_the_place_of_a_path(world: World, part: str) -> None:
    outside = plant(world.root.parent / "outside", {"a.txt": "new", ".holdfast-t.tmp": "helper"})
    plant(world.root, {"d": {"a.txt": "old"}})
    item, images = replacing(world, b"old", b"new")
    unfinished(world, item._replace(src_path=str(world.root / "d/a.txt")), images=images)
    if part == "the file":
        (world.root / "d/a.txt").unlink()
        (world.root / "d/a.txt").symlink_to(outside / "a.txt")
    else:
        (world.root / "d/a.txt").unlink()
        (world.root / "d").rmdir()
        (world.root / "d").symlink_to(outside)
    world.changes.recover()
    assert harvest(outside) == {"a.txt": b"new", ".holdfast-t.tmp": b"helper"}
    assert [change.status for change in world.listed()] == ["FAILED"]
    assert world.changes._journal.find_unfinished() == []


@pytest.mark.parametrize("part", ["source", "target"])
def test_recovery_of_a_plan_follows_no_link_that_took_the_place_of_a_directory(
    root: Path, tmp_path: Path, part: str
) -> None:
    outside = plant(tmp_path / "outside", {"a.txt": "1"})
    plant(root, {"s": {"a.txt": "1"}, "t": {}})
    with opened_world([root], tmp_path / "state") as world:
        plan = world.approve(world.plan({"s/a.txt": "t/a.txt"}))
        world.changes._journal.plans.start(plan.id, ClientInfo())
        world.changes._journal.plans.advance(plan.id, [], [plan.first], plan.created_at)
    folder = root / ("s" if part == "source" else "t")
    folder.rename(root / "moved")
    folder.symlink_to(outside)
    with opened_world([root], tmp_path / "state") as world:
        assert [item.status for item in world.found(plan).items] == ["PENDING"]
        world.execute(plan)
    assert harvest(outside) == {"a.txt": b"1"}
    assert sorted(harvest(root).values()) == [b"1"]


def test_recovery_of_a_creation_removes_our_part_of_a_file(world: World) -> None:
    item, _ = replacing(world, None, b"new")
    unfinished(world, item)
    (world.root / ".holdfast-t.tmp").write_bytes(b"ne")
    world.changes.recover()
    assert harvest(world.root) == {}
    assert world.listed()[0].status == "FAILED"


def test_a_change_in_a_folder_that_is_not_there_waits_for_it(world: World) -> None:
    item, images = replacing(world, b"old", b"new")
    unfinished(world, item, images=images)
    (world.root / "a.txt").write_bytes(b"new")
    away = world.root.with_name("away")
    world.root.rename(away)
    assert world.changes.recover() == 0
    away.rename(world.root)
    assert world.changes.recover() == 1
    assert world.listed()[0].status == "EXECUTED"


def test_image_files_that_the_journal_does_not_know_are_swept(world: World) -> None:
    stray = world.state / "images" / "ab"
    stray.mkdir()
    (stray / "stray").write_bytes(b"x")
    (world.state / "images" / "part").write_bytes(b"x")
    world.changes.recover()
    assert [path for path in (world.state / "images").rglob("*") if path.is_file()] == []


def test_a_tree_with_a_fifo_is_refused_whole(world: World) -> None:
    (world.root / "d").mkdir()
    (world.root / "d/x").write_text("1")
    os.mkfifo(world.root / "d/pipe")
    with pytest.raises(PermissionDenied):
        world.delete("d", recursive=True)
    assert (world.root / "d/x").read_text() == "1"


def test_a_missing_file_is_said_plainly(world: World) -> None:
    with pytest.raises(NotFound):
        world.delete("no.txt")
