"""Moving, deleting and making directories: nothing is replaced, everything comes back."""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.changes.single.move import Moves
from holdfast.errors import (
    AccessDenied,
    AlreadyExists,
    Conflict,
    InvalidArgument,
    InvalidPath,
    NotDirectory,
    NotEmpty,
    NotFound,
)
from tests.helpers.trees import Tree, harvest, plant
from tests.unit.changes.world import World, opened_world


def test_a_file_moves_and_its_bytes_and_times_go_along(world: World) -> None:
    plant(world.root, {"a.txt": "x", "sub": {}})
    before = (world.root / "a.txt").stat()
    world.move("a.txt", "sub/b.txt")
    after = (world.root / "sub/b.txt").stat()
    assert harvest(world.root) == {"sub/b.txt": b"x"}
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_move_onto_an_existing_target_leaves_both_intact(world: World) -> None:
    plant(world.root, {"a.txt": "a", "b.txt": "b", "d": {"x": "1"}, "e": {}})
    with pytest.raises(AlreadyExists):
        world.move("a.txt", "b.txt")
    with pytest.raises(AlreadyExists):
        world.move("d", "e")
    assert harvest(world.root) == {"a.txt": b"a", "b.txt": b"b", "d/x": b"1"}


def test_a_target_that_appears_at_the_last_moment_is_not_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(world.root, {"a.txt": "a"})
    move = Moves._move

    def late(self: Moves, *args: object) -> object:
        (world.root / "b.txt").write_text("late")
        return move(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Moves, "_move", late)
    with pytest.raises(AlreadyExists):
        world.move("a.txt", "b.txt")
    assert harvest(world.root) == {"a.txt": b"a", "b.txt": b"late"}


def test_a_directory_moves_whole_and_not_into_itself(world: World) -> None:
    plant(world.root, {"d": {"x": "1", "e": {"y": "2"}}})
    with pytest.raises(InvalidArgument):
        world.move("d", "d/e/d")
    change = world.move("d", "moved")
    assert harvest(world.root) == {"moved/x": b"1", "moved/e/y": b"2"}
    world.undo(change)
    assert harvest(world.root) == {"d/x": b"1", "d/e/y": b"2"}


def test_a_move_into_a_missing_directory_says_how_to_make_it(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    with pytest.raises(NotFound, match="create_directory"):
        world.move("a.txt", "no/b.txt")
    with pytest.raises(NotFound):
        world.move("missing.txt", "b.txt")


def test_a_link_moves_as_a_link(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    (world.root / "link").symlink_to("a.txt")
    world.move("link", "other")
    assert os.readlink(world.root / "other") == "a.txt"


def test_a_root_cannot_be_moved_or_deleted(world: World) -> None:
    verbs: list[Callable[[], str]] = [lambda: world.delete(".", recursive=True), lambda: world.move(".", "x")]
    for verb in verbs:
        with pytest.raises(InvalidPath):
            verb()


def test_a_deleted_file_comes_back_with_mode_and_time(world: World) -> None:
    path = world.root / "a.sh"
    path.write_bytes(b"\x00\xff raw")
    path.chmod(0o640)
    os.utime(path, ns=(1_000_000_007, 1_234_567_890_123_456_789))
    change = world.delete("a.sh")
    assert not path.exists()
    world.undo(change)
    assert path.read_bytes() == b"\x00\xff raw"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_mtime_ns == 1_234_567_890_123_456_789


def test_extended_attributes_come_back_with_what_was_deleted(world: World) -> None:
    plant(world.root, {"d": {"x": "1"}, "a": "2"})
    for name in ("d", "d/x", "a"):
        os.setxattr(world.root / name, "user.note", f"of {name}".encode())
    os.setxattr(world.root / "a", "user.raw", b"\x00\xff")
    for change in (world.delete("d", recursive=True), world.delete("a")):
        world.undo(change)
    assert [os.getxattr(world.root / name, "user.note") for name in ("d", "d/x", "a")] == [b"of d", b"of d/x", b"of a"]
    assert os.getxattr(world.root / "a", "user.raw") == b"\x00\xff"


def test_a_directory_with_content_needs_recursive(world: World) -> None:
    plant(world.root, {"d": {"x": "1"}, "empty": {}})
    with pytest.raises(NotEmpty):
        world.delete("d")
    world.delete("empty")
    assert harvest(world.root) == {"d/x": b"1"}
    assert not (world.root / "empty").exists()


def test_a_deleted_tree_comes_back_whole(world: World) -> None:
    tree: Tree = {"x": "1", "twin": "1", "big": b"z" * 200_000, "sub": {"y": "2", "empty": {}}}
    plant(world.root, {"d": tree})
    (world.root / "d/link").symlink_to("sub/y")
    (world.root / "d/dangling").symlink_to("/nowhere")
    os.mkdir(os.fsencode(world.root / "d") + b"/bad\xff")
    (world.root / "d/sub").chmod(0o750)
    os.utime(world.root / "d/sub", ns=(5, 5))
    before = harvest(world.root)
    change = world.delete("d", recursive=True)
    assert not (world.root / "d").exists()
    undone = world.undo(change)
    assert harvest(world.root) == before
    assert os.readlink(world.root / "d/link") == "sub/y"
    assert os.readlink(world.root / "d/dangling") == "/nowhere"
    assert os.path.isdir(os.fsencode(world.root / "d") + b"/bad\xff")
    assert (world.root / "d/sub/empty").is_dir()
    assert stat.S_IMODE((world.root / "d/sub").stat().st_mode) == 0o750
    assert (world.root / "d/sub").stat().st_mtime_ns == 5
    world.undo(undone)
    assert not (world.root / "d").exists()
    assert world.leftovers() == []


def test_a_link_is_deleted_itself_and_not_its_target(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    (world.root / "link").symlink_to("a.txt")
    change = world.delete("link")
    assert harvest(world.root) == {"a.txt": b"a"}
    world.undo(change)
    assert os.readlink(world.root / "link") == "a.txt"


def test_directories_are_made_one_by_one_and_taken_back_while_empty(world: World) -> None:
    change = world.mkdir("a/b/c")
    assert (world.root / "a/b/c").is_dir()
    assert world.mkdir("a/b/c") is None
    (world.root / "a/mine.txt").write_text("x")
    world.undo(change or "")
    assert harvest(world.root) == {"a/mine.txt": b"x"}
    assert not (world.root / "a/b").exists()


def test_a_directory_that_is_no_longer_empty_is_left_alone(world: World) -> None:
    change = world.mkdir("a")
    (world.root / "a/mine.txt").write_text("x")
    with pytest.raises(NotEmpty):
        world.undo(change or "")
    assert harvest(world.root) == {"a/mine.txt": b"x"}


def test_a_file_where_a_directory_should_be_is_said(world: World) -> None:
    plant(world.root, {"a": "file"})
    with pytest.raises(NotDirectory):
        world.mkdir("a/b")


def test_a_tree_that_holds_the_state_folder_is_not_moved_or_deleted(root: Path) -> None:
    plant(root, {"deep": {"down": {}}})
    with opened_world([root], root / "deep/down/state") as world:
        world.write("deep/x.txt", "x")
        verbs: list[Callable[[], str]] = [
            lambda: world.delete("deep", recursive=True),
            lambda: world.move("deep", "other"),
        ]
        for verb in verbs:
            with pytest.raises(Exception, match="Holdfast itself"):
                verb()
    assert (root / "deep/down/state/state.db").exists()


@pytest.fixture
def two_disks(root: Path, tmp_path: Path) -> Iterator[tuple[World, Path]]:
    other = tmp_path / "other"
    other.mkdir()
    shm = Path("/dev/shm")
    folder = shm / f"holdfast-test-{os.getpid()}"
    folder.mkdir()
    try:
        assert folder.stat().st_dev != root.stat().st_dev
        with opened_world([root, folder], tmp_path / "state") as world:
            yield world, folder
    finally:
        subprocess.run(["rm", "-r", str(folder)], check=True)


def test_a_file_crosses_devices_with_mode_and_time_and_comes_back(two_disks: tuple[World, Path]) -> None:
    world, other = two_disks
    path = world.root / "a.sh"
    path.write_bytes(os.urandom(3_000_000))
    path.chmod(0o751)
    data, before = path.read_bytes(), path.stat()
    change = world.move("a.sh", str(other / "b.sh"))
    after = (other / "b.sh").stat()
    assert not path.exists()
    assert (other / "b.sh").read_bytes() == data
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    world.undo(change)
    assert path.read_bytes() == data
    assert [path.name for path in other.iterdir()] == [".holdfast-quarantine"]
    assert world.leftovers() == []


def test_a_tree_crosses_devices_and_never_onto_something(two_disks: tuple[World, Path]) -> None:
    world, other = two_disks
    plant(world.root, {"d": {"x": "1", "sub": {"y": "2"}}})
    (world.root / "d/link").symlink_to("x")
    (other / "taken").write_text("mine")
    with pytest.raises(AlreadyExists):
        world.move("d", str(other / "taken"))
    world.move("d", str(other / "d"))
    assert harvest(other) == {"d/x": b"1", "d/sub/y": b"2", "taken": b"mine"}
    assert os.readlink(other / "d/link") == "x"
    assert harvest(world.root) == {}


def test_a_moved_file_that_was_replaced_meanwhile_is_not_moved_back(world: World) -> None:
    plant(world.root, {"a.txt": "a"})
    change = world.move("a.txt", "b.txt")
    (world.root / "b.txt").rename(world.root / "c.txt")
    (world.root / "b.txt").write_text("another")
    with pytest.raises(Conflict):
        world.undo(change)
    assert harvest(world.root) == {"b.txt": b"another", "c.txt": b"a"}


def test_only_one_of_many_moves_of_one_file_is_recorded(world: World) -> None:
    plant(world.root, {"a.txt": "a"})

    def attempt(_: int) -> str | None:
        try:
            return world.move("a.txt", "b.txt")
        except (NotFound, AlreadyExists):
            return None

    with ThreadPoolExecutor(8) as pool:
        made = [change for change in pool.map(attempt, range(8)) if change]
    assert len(made) == 1
    assert [change.id for change in world.listed() if change.status == "EXECUTED"] == made


def test_a_change_in_a_directory_that_moves_meanwhile_is_journalled_where_it_happened(world: World) -> None:
    plant(world.root, {"d": {"f": "0"}})

    def move_to_and_fro() -> None:
        for _ in range(20):
            world.move("d", "e")
            world.move("e", "d")

    with ThreadPoolExecutor(1) as mover:
        moving = mover.submit(move_to_and_fro)
        written = 0
        while not moving.done():
            for folder in ("d", "e"):
                with suppress(NotFound):
                    world.write(f"{folder}/f", str(written))
                    written += 1
        moving.result()
    here = "d"
    for change in reversed(world.listed()):
        if change.kind == "move":
            here = Path(change.dest_path or "").name
        else:
            assert change.path == str(world.root / here / "f")


def test_a_directory_made_where_the_way_turned_into_a_link_outside_leaves_no_unfinished_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = world.root.parent / "outside"
    outside.mkdir()
    real = os.mkdir

    def swapped(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real(name, mode, dir_fd=dir_fd)
        if name == "a":
            (world.root / "a").rmdir()
            (world.root / "a").symlink_to(outside)

    monkeypatch.setattr("holdfast.changes.single.directories.os.mkdir", swapped)
    with pytest.raises(AccessDenied):
        world.mkdir("a/b/c")
    assert list(outside.iterdir()) == []
    assert world.changes._journal.find_unfinished() == []
