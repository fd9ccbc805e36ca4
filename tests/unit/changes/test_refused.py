"""Trees that the system will not give up: all of them stays or all of it goes, and the journal says which."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.changes.disk import files, tree
from holdfast.config.settings import JournalSettings
from holdfast.errors import Conflict, InvalidArgument, PayloadTooLarge, PermissionDenied
from tests.helpers.trees import Tree, harvest, plant
from tests.unit.changes.world import World, opened_world

_TREE: Tree = {"d": {"a.txt": "A", "b.txt": "B", "c": {"x.txt": "X"}, "z": {"y.txt": "Y"}}}


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Give a way to make the system refuse one step on one name, as it does for a read-only folder or a mount."""

    def refuse(step: str, name: str) -> None:
        real = getattr(os, step)

        def refusing(given: str, *, dir_fd: int | None = None) -> None:
            if given == name:
                raise OSError(errno.EACCES if step == "unlink" else errno.EBUSY, "refused")
            real(given, dir_fd=dir_fd)

        monkeypatch.setattr(os, step, refusing)

    return refuse


@pytest.mark.parametrize(("step", "name"), [("unlink", "x.txt"), ("unlink", "b.txt"), ("rmdir", "c"), ("rmdir", "z")])
def test_a_tree_that_cannot_be_removed_whole_is_left_whole(
    world: World, stubborn: Callable[[str, str], None], step: str, name: str
) -> None:
    plant(world.root, _TREE)
    (world.root / "d/a.txt").chmod(0o640)
    before = harvest(world.root)
    stubborn(step, name)
    with pytest.raises(PermissionDenied):
        world.delete("d", recursive=True)
    assert harvest(world.root) == before
    assert (world.root / "d/a.txt").stat().st_mode & 0o777 == 0o640
    assert world.leftovers() == []
    assert [change.status for change in world.listed()] == ["FAILED"]
    assert world.changes._journal.find_unfinished() == []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, int], list[str]]:
    """Give a way to make the removal of a directory fail so many times; returns the list of its failures."""

    def fail(name: str, number: int, times: int) -> list[str]:
        real, failed = os.rmdir, list[str]()

        def refusing(given: str, *, dir_fd: int | None = None) -> None:
            if given == name and len(failed) < times:
                failed.append(given)
                raise OSError(number, os.strerror(number))
            real(given, dir_fd=dir_fd)

        monkeypatch.setattr(os, "rmdir", refusing)
        return failed

    return fail


def test_an_undo_of_directories_that_the_system_stops_says_where(
    world: World, failing: Callable[[str, int, int], list[str]]
) -> None:
    change = world.mkdir("p/q")
    failed = failing("p", errno.EACCES, 2)
    with pytest.raises(PermissionDenied) as refused:
        world.undo(change or "")
    assert refused.value.message.endswith(f"{world.root}/p.")
    assert failed == ["p", "p"]
    assert [path.name for path in world.root.rglob("*")] == ["p"]
    assert world.changes._journal.find_unfinished() == []


def test_an_undo_of_directories_goes_on_after_an_error_that_passes(
    world: World, failing: Callable[[str, int, int], list[str]]
) -> None:
    change = world.mkdir("p/q")
    failed = failing("p", errno.EIO, 1)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        world.undo(change or "")
    assert failed == ["p"]
    assert not (world.root / "p").exists()
    assert [one.status for one in world.listed()] == ["EXECUTED", "UNDONE"]


def test_a_directory_that_is_a_mount_by_now_is_left_and_said(
    world: World, failing: Callable[[str, int, int], list[str]]
) -> None:
    change = world.mkdir("p/q")
    failing("p", errno.EBUSY, 1)
    world.undo(change or "")
    assert [path.name for path in world.root.rglob("*")] == ["p"]
    assert [one.status for one in world.listed()] == ["EXECUTED", "UNDONE"]


def test_a_removal_that_a_crash_interrupted_and_that_cannot_be_finished_is_put_back_whole(
    root: Path, tmp_path: Path, stubborn: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, _TREE)
    before = harvest(root)

    class Crash(BaseException):
        pass

    def crash(*_arguments: object) -> object:
        raise Crash

    state = tmp_path / "state"
    with opened_world([root], state) as world, monkeypatch.context() as patched, pytest.raises(Crash):
        patched.setattr("holdfast.changes.single.remove.Removals.recover", crash)
        patched.setattr(os, "rmdir", crash)
        world.delete("d", recursive=True)
    assert harvest(root) != before
    stubborn("rmdir", "z")
    with opened_world([root], state) as world:
        assert harvest(root) == before
        assert [change.status for change in world.listed()] == ["FAILED"]


def test_what_took_the_name_of_a_tree_on_its_way_out_is_not_replaced_and_the_tree_is_kept(
    world: World, stubborn: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(world.root, _TREE)
    stubborn("rmdir", "z")
    real = tree.repair_tree

    def late(*arguments: object) -> None:
        (world.root / "d").write_text("somebody else's")
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("holdfast.changes.single.remove.repair_tree", late)
    with pytest.raises(Conflict, match="is kept as") as refused:
        world.delete("d", recursive=True)
    assert (world.root / "d").read_text() == "somebody else's"
    (kept,) = world.leftovers()
    assert kept in refused.value.message
    assert harvest(Path(kept)) == {"a.txt": b"A", "b.txt": b"B", "c/x.txt": b"X", "z/y.txt": b"Y"}
    assert world.changes._journal.find_unfinished() == []


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """Give a directory on another device: a mount where that is allowed, else shared memory."""
    folder = tmp_path / "other"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=False, capture_output=True)
    yield folder
    if mounted.returncode == 0:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_source_that_cannot_be_set_aside_after_its_copy_stays_and_the_copy_goes(
    root: Path, other_device: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, _TREE)
    before = harvest(root)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(files, "quarantine_source", refused)
    with opened_world([root, other_device], tmp_path / "state") as world:
        if root.stat().st_dev == other_device.stat().st_dev:
            return
        with pytest.raises(PermissionDenied):
            world.move("d", str(other_device / "d"))
        assert harvest(root) == before
        assert harvest(other_device) == {}
        assert [change.status for change in world.listed()] == ["FAILED"]


def test_a_tree_nested_too_deeply_is_refused_by_name_and_not_by_a_fault(world: World) -> None:
    fd = os.open(world.root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)
    try:
        with pytest.raises(InvalidArgument, match="nested deeper than"):
            world.delete("d", recursive=True)
    finally:
        subprocess.run(["rm", "-rf", str(world.root / "d")], check=True)


def test_undoing_the_edit_of_a_file_that_has_grown_enormous_reads_none_of_it(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=100_000)) as world:
        world.write("f", "one")
        change = world.write("f", "two")
        os.truncate(root / "f", 1 << 42)
        with pytest.raises(PayloadTooLarge):
            world.undo(change)
        assert (root / "f").stat().st_size == 1 << 42
