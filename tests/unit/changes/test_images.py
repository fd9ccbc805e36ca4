"""The undo history: what is kept of it, in how little room, and that the oldest state always comes back."""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.changes.upkeep import JournalUpkeep
from holdfast.config.settings import JournalSettings
from holdfast.errors import Conflict, NotFound, QuotaExceeded, StorageDamaged
from holdfast.text.diff import common_ends
from tests.helpers.disks import disk_use, noise
from tests.helpers.trees import harvest
from tests.unit.changes.world import World, opened_world


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the upkeep to the tests."""
    monkeypatch.setattr(JournalUpkeep, "wake", lambda _self: None)


def upkeep(world: World) -> None:
    """Do what the background thread does, until nothing is left to pack."""
    for _ in range(3):
        world.changes._upkeep.run()


def restore(world: World, change_id: str) -> str | None:
    return world.changes.restore_before(world.call(), change_id).change_id


def images_of(world: World) -> int:
    return disk_use(world.state / "images")


def test_appends_of_a_byte_to_a_large_file_keep_a_few_bytes_each(world: World) -> None:
    data = noise(3_000_000).hex().encode()
    (world.root / "large.txt").write_bytes(data)
    edits = [world.append("large.txt", "x") for _ in range(5)]
    assert images_of(world) > 5 * len(data)
    upkeep(world)
    assert images_of(world) < 0.6 * len(data)
    for length, change in zip(range(4, -1, -1), reversed(edits), strict=True):
        world.undo(change)
        assert (world.root / "large.txt").read_bytes() == data + b"x" * length


def test_a_change_in_the_middle_is_kept_as_its_difference_and_comes_back(world: World) -> None:
    data = bytearray(noise(2_000_000))
    (world.root / "a.bin").write_bytes(data)
    first = world.write("a.bin", "one")
    world.undo(first)
    versions = []
    for number in range(4):
        versions.append(bytes(data))
        data[1_000_000 + number : 1_000_100] = noise(100 + number, number)
        (world.root / "b.bin").write_bytes(data)
        world.delete("a.bin")
        os.rename(world.root / "b.bin", world.root / "a.bin")
    upkeep(world)
    assert images_of(world) < 2_300_000
    deletions = [change for change in world.listed() if change.kind == "delete"]
    (world.root / "a.bin").unlink()
    for change, content in zip(deletions, reversed(versions), strict=True):
        world.undo(change.id)
        assert (world.root / "a.bin").read_bytes() == content
        (world.root / "a.bin").unlink()


def test_what_cannot_be_made_smaller_stays_as_it_is(world: World) -> None:
    (world.root / "noise.bin").write_bytes(noise(300_000))
    change = world.write("noise.bin", "x")
    (file,) = [path for path in (world.state / "images").rglob("*") if path.is_file()]
    upkeep(world)
    assert file.stat().st_size == 300_000
    world.undo(change)
    assert (world.root / "noise.bin").read_bytes() == noise(300_000)


def test_a_sparse_image_packs_to_almost_nothing_and_unpacks_in_pieces(world: World) -> None:
    with (world.root / "zeros.bin").open("wb") as file:
        file.truncate(200_000_000)
    change = world.delete("zeros.bin")
    upkeep(world)
    assert images_of(world) < 2_000_000
    world.undo(change)
    assert (world.root / "zeros.bin").stat().st_size == 200_000_000


def test_a_damaged_base_is_noticed_and_nothing_is_written(world: World) -> None:
    data = noise(400_000)
    (world.root / "a.bin").write_bytes(data)
    first = world.write("a.bin", "x")
    (world.root / "a.bin").write_bytes(data + b"y")
    second = world.write("a.bin", "z")
    upkeep(world)
    (file,) = [path for path in (world.state / "images").rglob("*") if path.is_file()]
    broken = bytearray(data)
    broken[5] ^= 1
    file.write_bytes(broken)
    for change in (second, first):
        with pytest.raises(StorageDamaged):
            restore(world, change)
    assert (world.root / "a.bin").read_text() == "z"


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=50), st.binary(max_size=50))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_common_ends_never_overlap_and_are_common(
    tmp_path: Path, head: bytes, tail: bytes, one: bytes, other: bytes
) -> None:
    ours, theirs = head + one + tail, head + other + tail
    (tmp_path / "one").write_bytes(ours)
    (tmp_path / "other").write_bytes(theirs)
    with (tmp_path / "one").open("rb") as first, (tmp_path / "other").open("rb") as second:
        prefix, suffix = common_ends(
            partial(os.pread, first.fileno()), len(ours), partial(os.pread, second.fileno()), len(theirs)
        )
    assert prefix + suffix <= min(len(ours), len(theirs))
    assert prefix >= len(head)
    assert ours[:prefix] == theirs[:prefix]
    assert ours[len(ours) - suffix :] == theirs[len(theirs) - suffix :]


def test_the_state_before_the_first_of_many_changes_comes_back(root: Path, tmp_path: Path) -> None:
    (root / "thesis.txt").write_text("years of work")
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=300_000)) as world:
        first = world.write("thesis.txt", "")
        for number in range(60):
            world.write("thesis.txt", noise(30_000, number).hex())
        upkeep(world)
        with pytest.raises(Conflict):
            world.undo(first)
        restored = restore(world, first)
        assert (root / "thesis.txt").read_text() == "years of work"
        assert restore(world, first) is None
        world.undo(restored or "")
        assert (root / "thesis.txt").read_text() == noise(30_000, 59).hex()


@pytest.mark.parametrize("present", ["changed", "deleted", "moved away"])
def test_the_state_before_a_change_comes_back_whatever_is_there_now(world: World, present: str) -> None:
    (world.root / "a.txt").write_text("one")
    (world.root / "a.txt").chmod(0o640)
    first = world.write("a.txt", "two")
    follow: dict[str, Callable[[], object]] = {
        "changed": lambda: world.write("a.txt", "three"),
        "deleted": lambda: world.delete("a.txt"),
        "moved away": lambda: world.move("a.txt", "b.txt"),
    }
    follow[present]()
    before = harvest(world.root)
    restored = restore(world, first)
    assert (world.root / "a.txt").read_text() == "one"
    assert (world.root / "a.txt").stat().st_mode & 0o777 == 0o640
    world.undo(restored or "")
    assert harvest(world.root) == before


def test_the_state_before_a_creation_is_that_there_was_no_file(world: World) -> None:
    first = world.write("new.txt", "by the agent")
    world.write("new.txt", "again")
    restored = restore(world, first)
    assert harvest(world.root) == {}
    world.undo(restored or "")
    assert harvest(world.root) == {"new.txt": b"again"}


def test_a_directory_in_the_place_of_the_file_is_left_alone(world: World) -> None:
    first = world.write("a", "x")
    world.delete("a")
    world.mkdir("a")
    with pytest.raises(Conflict, match="not a regular file"):
        restore(world, first)
    with pytest.raises(NotFound):
        restore(world, "no such change")


def test_only_the_oldest_images_of_a_root_stop_its_changes_and_no_other_root(tmp_path: Path) -> None:
    loud, quiet = tmp_path / "loud", tmp_path / "quiet"
    loud.mkdir()
    quiet.mkdir()
    (quiet / "a.txt").write_bytes(noise(50_000))
    with opened_world([loud, quiet], tmp_path / "state", JournalSettings(max_bytes=400_000)) as world:
        for number in range(9):
            (loud / f"{number}.bin").write_bytes(noise(100_000, number))
        for number in range(4):
            world.write(f"{loud}/{number}.bin", "x")
        upkeep(world)
        verbs: list[Callable[[], str]] = [
            lambda: world.write(f"{loud}/5.bin", "x"),
            lambda: world.delete(f"{loud}/6.bin"),
        ]
        for verb in verbs:
            with pytest.raises(QuotaExceeded, match="holdfast changes prune"):
                verb()
        assert [warning.split(" is ")[0] for warning in world.changes.storage_warnings()] == [
            f"The undo history of {loud}"
        ]
        world.write(f"{loud}/made.txt", "a new file needs no room")
        change = world.write(f"{quiet}/a.txt", "the other root has its share")
        world.undo(change)
        assert (quiet / "a.txt").read_bytes() == noise(50_000)
        assert (loud / "5.bin").read_bytes() == noise(100_000, 5)
        assert len([path for path in (world.state / "images").rglob("*") if path.is_file()]) == 4


def test_a_full_history_still_lets_the_person_bring_the_oldest_state_back(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=200_000)) as world:
        for name in "ab":
            (root / name).write_bytes(noise(95_000, ord(name)))
        first = world.write("a", noise(30_000).hex())
        world.write("b", "x")
        with pytest.raises(QuotaExceeded):
            world.write("a", "y")
        assert restore(world, first)
        assert (root / "a").read_bytes() == noise(95_000, ord("a"))


def test_changes_without_undo_go_on_where_they_are_allowed(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=100_000, allow_unjournalled=True)) as world:
        for name in "ab":
            (root / name).write_bytes(noise(80_000, ord(name)))
        world.write("a", "x")
        world.write("b", "y")
        assert [change.undoable for change in world.listed()] == [False, True]
        assert len([path for path in (world.state / "images").rglob("*") if path.is_file()]) == 1


def test_the_default_cap_is_a_part_of_the_disk(world: World) -> None:
    free = os.statvfs(world.state).f_bavail * os.statvfs(world.state).f_frsize
    cap = world.changes._images.room.cap_bytes
    assert 64_000_000 <= cap <= 2_000_000_000
    assert abs(cap - max(64_000_000, min(2_000_000_000, free // 10))) < 50_000_000


def test_many_random_changes_come_back_newest_first_after_packing(world: World) -> None:
    chance = random.Random(7)
    data, versions, changes = bytearray(noise(60_000)), [], []
    (world.root / "a.bin").write_bytes(data)
    for number in range(25):
        versions.append(bytes(data))
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = noise(chance.randrange(5), number)
        (world.root / "new").write_bytes(data)
        changes.append(world.delete("a.bin"))
        os.rename(world.root / "new", world.root / "a.bin")
        if number % 6 == 0:
            upkeep(world)
    upkeep(world)
    (world.root / "a.bin").unlink()
    for change, content in zip(reversed(changes), reversed(versions), strict=True):
        world.undo(change)
        assert (world.root / "a.bin").read_bytes() == content
        (world.root / "a.bin").unlink()
