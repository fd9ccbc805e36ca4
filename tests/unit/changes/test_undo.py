"""Undo: a change of its own that never overwrites a newer one."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.config.settings import JournalSettings
from holdfast.errors import Conflict, EditRejected, NotEmpty, NotFound
from tests.helpers.disks import noise_text
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World, opened_world


def test_undoing_an_edit_brings_the_old_bytes_back(world: World) -> None:
    raw = b"\xef\xbb\xbfone\r\ntwo\nthree"
    (world.root / "a.txt").write_bytes(raw)
    change = world.edit("a.txt", "two", "2")
    world.undo(change)
    assert (world.root / "a.txt").read_bytes() == raw


def test_undoing_a_creation_deletes_the_file_and_undoing_that_brings_it_back(world: World) -> None:
    created = world.write("a.txt", "x")
    undone = world.undo(created)
    assert harvest(world.root) == {}
    world.undo(undone)
    assert harvest(world.root) == {"a.txt": b"x"}


def test_an_undo_can_be_undone_again_and_again(world: World) -> None:
    world.write("a.txt", "one")
    change = world.write("a.txt", "two")
    for expected in (b"one", b"two", b"one", b"two"):
        change = world.undo(change)
        assert (world.root / "a.txt").read_bytes() == expected


def test_statuses_follow_what_is_in_effect(world: World) -> None:
    first = world.write("a.txt", "one")
    second = world.undo(first)
    assert {change.id: change.status for change in world.listed()} == {first: "UNDONE", second: "EXECUTED"}
    third = world.undo(second)
    statuses = {change.id: change.status for change in world.listed()}
    assert statuses == {first: "EXECUTED", second: "UNDONE", third: "EXECUTED"}
    again = world.changes.undo(world.folders, world.call(), second)
    assert (again.change_id, again.plan.id, len(world.listed())) == (None, second, 3)


def test_a_newer_change_is_never_overwritten_and_is_named(world: World) -> None:
    world.write("a.txt", "one")
    second = world.write("a.txt", "two")
    third = world.write("a.txt", "three")
    with pytest.raises(Conflict, match=third) as caught:
        world.undo(second)
    assert caught.value.details["blocked_by"] == third
    assert (world.root / "a.txt").read_text() == "three"


def test_a_change_by_another_program_is_never_overwritten(world: World) -> None:
    change = world.write("a.txt", "one")
    (world.root / "a.txt").write_text("by hand")
    with pytest.raises(Conflict, match="outside of Holdfast"):
        world.undo(change)
    assert (world.root / "a.txt").read_text() == "by hand"


def test_a_deleted_file_is_not_restored_over_a_new_one(world: World) -> None:
    plant(world.root, {"a.txt": "old"})
    change = world.delete("a.txt")
    (world.root / "a.txt").write_text("new")
    with pytest.raises(Conflict):
        world.undo(change)
    assert harvest(world.root) == {"a.txt": b"new"}


def test_a_move_is_not_undone_onto_a_new_file(world: World) -> None:
    plant(world.root, {"a.txt": "old"})
    change = world.move("a.txt", "b.txt")
    (world.root / "a.txt").write_text("new")
    with pytest.raises(Conflict):
        world.undo(change)
    assert harvest(world.root) == {"a.txt": b"new", "b.txt": b"old"}


def test_a_restored_tree_that_gained_a_file_is_not_deleted_by_undo(world: World) -> None:
    plant(world.root, {"d": {"x": "1"}})
    restored = world.undo(world.delete("d", recursive=True))
    (world.root / "d/mine").write_text("2")
    with pytest.raises(Conflict):
        world.undo(restored)
    assert harvest(world.root) == {"d/x": b"1", "d/mine": b"2"}


def test_a_path_that_has_become_a_link_is_not_written_through(world: World) -> None:
    outside = world.root.parent / "outside.txt"
    outside.write_text("two")
    world.write("a.txt", "one")
    change = world.write("a.txt", "two")
    (world.root / "a.txt").unlink()
    (world.root / "a.txt").symlink_to(outside)
    with pytest.raises(Conflict):
        world.undo(change)
    assert outside.read_text() == "two"


def test_changes_of_other_roots_are_not_found(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "project-secret"
    other.mkdir()
    with opened_world([root, other], tmp_path / "state") as world:
        inside = world.write("a.txt", "x")
        across = world.move("a.txt", str(other / "a.txt"))
    with opened_world([root], tmp_path / "state") as world:
        assert [change.id for change in world.listed()] == [inside]
        for unknown in (across, "0" * 32):
            with pytest.raises(NotFound, match="There is no change"):
                world.undo(unknown)
    with opened_world([other], tmp_path / "state") as world:
        assert world.listed() == []
    with opened_world([tmp_path / "elsewhere", root.parent], tmp_path / "state") as world:
        assert len(world.listed()) == 2


def test_changes_survive_a_restart_and_are_undone_newest_first(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state") as world:
        world.write("a.txt", "one")
        world.edit("a.txt", "one", "two")
        world.move("a.txt", "b.txt")
        world.delete("b.txt")
    with opened_world([root], tmp_path / "state") as world:
        changes = world.listed()
        assert [change.kind for change in changes] == ["delete", "move", "edit", "write"]
        for expected, change in zip([b"two", b"two", b"one", None], changes, strict=True):
            world.undo(change.id)
            found = list(harvest(root).values())
            assert found == ([] if expected is None else [expected])


def test_over_the_cap_images_in_between_go_and_their_changes_say_so(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state", JournalSettings(max_bytes=250_000)) as world:
        texts = [noise_text(100_000, number) for number in range(5)]
        for text in texts:
            world.write("a.txt", text)
        world.changes._upkeep.run()
        listed = world.listed()
        assert [change.undoable for change in listed] == [True, True, False, True, True]
        world.undo(listed[0].id)
        world.undo(listed[1].id)
        with pytest.raises(NotFound, match="any more"):
            world.undo(listed[2].id)
        world.changes._upkeep.run()
        world.changes._upkeep.run()
        kept = sum(path.stat().st_size for path in (world.state / "images").rglob("*") if path.is_file())
        assert kept <= 250_000
        assert world.changes.restore_before(world.call(), listed[3].id).change_id
        assert (root / "a.txt").read_text() == texts[0]


def test_images_past_their_days_go(root: Path, tmp_path: Path) -> None:
    with opened_world([root], tmp_path / "state", JournalSettings(keep_days=1e-9)) as world:
        world.write("a.txt", "one")
        change = world.write("a.txt", "two")
        world.changes._upkeep.run()
        with pytest.raises(NotFound, match="any more"):
            world.undo(change)


EDITS = st.lists(st.tuples(st.sampled_from("abcdeé\n"), st.text("abcdeé\n \r", max_size=5)), min_size=1, max_size=6)
BYTES = st.lists(
    st.sampled_from([b"a", b"b", b"c", b"d", b"e", "é".encode(), b"\n", b"\r\n", b"\xef\xbb\xbf"]), max_size=30
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BYTES, EDITS)
def test_random_edits_taken_back_give_the_original_bytes(
    world: World, pieces: list[bytes], edits: list[tuple[str, str]]
) -> None:
    original = b"".join(pieces)
    (world.root / "a.txt").write_bytes(original)
    made = []
    for old, new in edits:
        try:
            made.append(world.edit("a.txt", old, new))
        except EditRejected:
            continue
    for change in reversed(made):
        world.undo(change)
    assert (world.root / "a.txt").read_bytes() == original
    os.unlink(world.root / "a.txt")


def test_every_change_of_a_chain_of_undos_says_whether_it_is_in_effect(world: World) -> None:
    world.write("f", "one")
    chain = [world.write("f", "two")]
    for _ in range(5):
        chain.append(world.undo(chain[-1]))
        status = {change.id: change.status for change in world.listed()}
        newest_first = [status[change] for change in reversed(chain)]
        assert newest_first == [("EXECUTED", "UNDONE")[n % 2] for n in range(len(chain))]
    assert (world.root / "f").read_text() == "one"


def test_undoing_a_directory_that_went_with_the_one_above_it_changes_nothing_and_says_so(world: World) -> None:
    world.mkdir("d")
    inner = world.mkdir("d/e") or ""
    world.delete("d", recursive=True)
    with pytest.raises(NotEmpty):
        world.undo(inner)
    assert [change.status for change in world.listed()] == ["FAILED", "EXECUTED", "EXECUTED", "EXECUTED"]
