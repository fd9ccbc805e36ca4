"""Writing, editing and appending: atomic, faithful to the old file's dress, and never through a link to the outside."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import FolderSettings, JournalSettings
from holdfast.errors import (
    AccessDenied,
    Conflict,
    EditRejected,
    HoldfastError,
    IsDirectory,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    TimedOut,
)
from holdfast.text.edit import Edit
from tests.helpers.rights import like_anybody
from tests.unit.changes.world import World, opened_world


def test_a_new_file_gets_the_mode_that_the_umask_leaves(world: World) -> None:
    before = os.umask(0o027)
    try:
        world.write("a.txt", "hello")
    finally:
        os.umask(before)
    assert (world.root / "a.txt").read_text() == "hello"
    assert stat.S_IMODE((world.root / "a.txt").stat().st_mode) == 0o640
    assert world.leftovers() == []


def test_a_replaced_file_keeps_mode_owner_and_extended_attributes(world: World) -> None:
    path = world.root / "a.sh"
    path.write_text("old")
    path.chmod(0o751)
    os.setxattr(path, "user.note", b"kept")
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    world.write("a.sh", "new")
    after = path.stat()
    assert path.read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(path, "user.note") == b"kept"


def test_a_missing_directory_says_how_to_make_it(world: World) -> None:
    with pytest.raises(NotFound, match="create_directory"):
        world.write("no/such/a.txt", "x")


def test_a_directory_cannot_be_written(world: World) -> None:
    (world.root / "d").mkdir()
    with pytest.raises(IsDirectory):
        world.write("d", "x")


def test_a_fifo_is_refused_at_once(world: World) -> None:
    os.mkfifo(world.root / "pipe")
    with pytest.raises(PermissionDenied):
        world.write("pipe", "x")


def test_a_link_inside_is_followed_and_stays_a_link(world: World) -> None:
    (world.root / "real.txt").write_text("old")
    (world.root / "link.txt").symlink_to("real.txt")
    world.write("link.txt", "new")
    assert (world.root / "link.txt").is_symlink()
    assert (world.root / "real.txt").read_text() == "new"


@pytest.mark.parametrize("target", ["../outside.txt", "../missing.txt"])
def test_a_link_that_leads_out_is_never_written_through(world: World, target: str) -> None:
    outside = world.root.parent / "outside.txt"
    outside.write_text("safe")
    (world.root / "link.txt").symlink_to(target)
    with pytest.raises(AccessDenied):
        world.write("link.txt", "evil")
    assert outside.read_text() == "safe"
    assert not (world.root.parent / "missing.txt").exists()


def test_a_hard_link_to_an_outside_file_never_changes_the_outside_file(world: World) -> None:
    outside = world.root.parent / "outside.txt"
    outside.write_text("safe text")
    os.link(outside, world.root / "inside.txt")
    world.edit("inside.txt", "safe", "new")
    world.append("inside.txt", "!")
    assert outside.read_text() == "safe text"
    assert (world.root / "inside.txt").read_text() == "new text!"


def test_a_read_only_file_is_not_replaced(root: Path, tmp_path: Path) -> None:
    path = root / "a.txt"
    path.write_text("old")
    path.chmod(0o444)

    def write() -> None:
        with opened_world([root], tmp_path / "state") as world, pytest.raises(PermissionDenied):
            world.write("a.txt", "new")

    like_anybody(write)
    assert path.read_text() == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write to a read-only file")
def test_a_read_only_file_that_root_replaces_stays_read_only(world: World) -> None:
    path = world.root / "a.txt"
    path.write_text("old")
    path.chmod(0o444)
    world.write("a.txt", "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_an_edit_on_a_file_that_changed_is_refused_by_its_hash(world: World) -> None:
    world.write("a.txt", "one")
    done = world.changes.edit(world.folders, world.call(), "a.txt", [Edit("one", "two")])
    (world.root / "a.txt").write_text("two, by someone else")
    with pytest.raises(Conflict) as caught:
        world.edit("a.txt", "two", "three", expected_hash=done.hash)
    assert caught.value.details["error_type"] == "conflict"
    assert (world.root / "a.txt").read_text() == "two, by someone else"


def test_hashes_chain_edits_without_reading_again(world: World) -> None:
    hash_ = world.changes.write(world.folders, world.call(), "a.txt", "0").hash
    for number in range(5):
        done = world.changes.edit(
            world.folders, world.call(), "a.txt", [Edit(str(number), str(number + 1))], expected_hash=hash_
        )
        hash_ = done.hash
    assert (world.root / "a.txt").read_text() == "5"


def test_a_dry_run_writes_nothing_and_records_nothing(world: World) -> None:
    (world.root / "a.txt").write_text("one")
    done = world.changes.edit(world.folders, world.call(), "a.txt", [Edit("one", "two")], dry_run=True)
    assert (done.before, done.after, done.change_id) == ("one", "two", None)
    assert (world.root / "a.txt").read_text() == "one"
    assert world.listed() == []


def test_twenty_parallel_edits_of_one_file_are_all_applied_and_all_undoable(world: World) -> None:
    text = "".join(f"slot {n}: empty\n" for n in range(20))
    world.write("a.txt", text)
    with ThreadPoolExecutor(20) as pool:
        ids = list(pool.map(lambda n: world.edit("a.txt", f"slot {n}: empty", f"slot {n}: full"), range(20)))
    assert (world.root / "a.txt").read_text() == text.replace("empty", "full")
    edits = [change for change in world.listed() if change.kind == "edit"]
    assert {change.id for change in edits} == set(ids)
    for change in edits:
        world.undo(change.id)
    assert (world.root / "a.txt").read_text() == text
    assert world.leftovers() == []


def test_a_file_over_the_limit_is_not_edited(root: Path, tmp_path: Path) -> None:
    (root / "big.txt").write_bytes(b"x" * 2_000)
    small = FolderSettings(max_edit_bytes=1_000)
    with (
        opened_world([root], tmp_path / "state", folder_settings=small) as world,
        pytest.raises(EditRejected, match="2000 bytes"),
    ):
        world.edit("big.txt", "x", "y")


def test_an_append_keeps_encoding_and_line_ends_and_creates_a_missing_file(world: World) -> None:
    (world.root / "w.txt").write_bytes("\ufeffä\r\n".encode("utf-16-le"))
    world.append("w.txt", "b\n")
    assert (world.root / "w.txt").read_bytes() == "\ufeffä\r\nb\r\n".encode("utf-16-le")
    world.append("new.txt", "first\n")
    world.append("new.txt", "second\n")
    assert (world.root / "new.txt").read_text() == "first\nsecond\n"


def test_a_change_whose_before_image_exceeds_the_cap_is_refused_unless_allowed(root: Path, tmp_path: Path) -> None:
    (root / "big.bin").write_bytes(b"x" * 5_000)
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=1_000)) as world:
        with pytest.raises(PayloadTooLarge, match="allow_unjournalled"):
            world.write("big.bin", "small")
        with pytest.raises(PayloadTooLarge):
            world.delete("big.bin")
        assert (root / "big.bin").stat().st_size == 5_000
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=1_000, allow_unjournalled=True)) as world:
        change = world.write("big.bin", "small")
        assert (root / "big.bin").read_text() == "small"
        assert not world.listed()[0].undoable
        with pytest.raises(NotFound, match="cannot be undone any more"):
            world.undo(change)


def test_large_before_images_are_kept_as_private_files(world: World) -> None:
    data = os.urandom(300_000)
    (world.root / "big.bin").write_bytes(data)
    change = world.write("big.bin", "small")
    files = [path for path in (world.state / "images").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [300_000]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    world.undo(change)
    assert (world.root / "big.bin").read_bytes() == data


def test_the_database_is_private(world: World) -> None:
    world.write("a.txt", "x")
    for path in world.state.glob("state.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_cancelled_call_changes_nothing(world: World) -> None:
    call = world.call()
    call.cancel()
    with pytest.raises(HoldfastError):
        world.changes.write(world.folders, call, "a.txt", "x")
    assert not (world.root / "a.txt").exists()


def test_many_edits_of_a_large_file_stop_when_the_call_does(world: World) -> None:
    (world.root / "big.txt").write_text("line\n" * 2_000_000 + "end\n")
    call = Call(Caller(LOCAL_USER), timeout_seconds=1)
    edits = [Edit("end", "fin") if number % 2 == 0 else Edit("fin", "end") for number in range(20_000)]
    began = time.monotonic()
    with pytest.raises(TimedOut):
        world.changes.edit(world.folders, call, "big.txt", edits)
    assert time.monotonic() - began < 5
