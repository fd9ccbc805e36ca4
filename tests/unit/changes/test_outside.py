"""Other programs save the same file: none of their saves is lost, in place or by rename."""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.changes.model import Op
from holdfast.changes.single import content, remove
from holdfast.errors import Conflict
from holdfast.folders.access.syscalls import rename_exchange, rename_noreplace
from tests.helpers.trees import harvest
from tests.unit.changes.world import World

ROUNDS = 300


def save_by_rename(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".editor")
    fresh.write_text(text)
    fresh.rename(path)


def save_in_place(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)


def kept_bytes(world: World) -> set[bytes]:
    """Return every content that the journal could still give back."""
    found: set[bytes] = set()
    for change in world.listed():
        plan = world.changes._journal.find(change.id)
        assert plan is not None
        for item in plan.items:
            if item.op in (Op.REPLACE, Op.SAVE) and item.before_hash:
                found.add(b"".join(world.changes._images.read(item.before_hash)))
    return found


@pytest.mark.parametrize("save", [save_by_rename, save_in_place])
def test_no_outside_save_is_lost_in_a_race(world: World, save: Callable[[Path, str], None]) -> None:
    path = world.root / "a.txt"
    path.write_text("start")
    met = {"applied": 0, "refused": 0}
    chance = random.Random(7)
    with ThreadPoolExecutor(1) as editor:
        for number in range(ROUNDS):
            text = f"save {number};"
            saving = editor.submit(_save_later, save, path, text, chance.choice((0.002, 0.04)) * chance.random())
            try:
                world.append("a.txt", "+")
                met["applied"] += 1
            except Conflict:
                met["refused"] += 1
            saving.result()
            present = path.read_text()
            assert present.startswith(text) or text.encode() in kept_bytes(world), (number, present, met)
    assert met["applied"]
    assert world.leftovers() == []


def _save_later(save: Callable[[Path, str], None], path: Path, text: str, seconds: float) -> None:
    time.sleep(seconds)
    save(path, text)


@pytest.mark.parametrize("save", [save_by_rename, save_in_place])
def test_a_save_between_our_read_and_our_swap_is_put_back(
    world: World, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path, str], None]
) -> None:
    path = world.root / "a.txt"
    path.write_text("base")
    swap = rename_exchange
    outside = iter(["theirs"])

    def late(*places: object) -> None:
        for text in outside:
            save(path, text)
        swap(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(content, "rename_exchange", late)
    with pytest.raises(Conflict, match="Another program changed"):
        world.write("a.txt", "ours")
    assert harvest(world.root) == {"a.txt": b"theirs"}
    (change,) = world.listed()
    assert change.status == "FAILED"


def test_a_save_during_the_swap_back_is_put_back_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.root / "a.txt"
    path.write_text("base")
    swap = rename_exchange
    outside = iter(["first", "second", "third"])

    def late(*places: object) -> None:
        text = next(outside, None)
        if text is not None:
            save_by_rename(path, text)
        swap(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(content, "rename_exchange", late)
    with pytest.raises(Conflict):
        world.write("a.txt", "ours")
    assert harvest(world.root) == {"a.txt": b"third"}
    assert kept_bytes(world) & {b"first", b"second"}


def test_a_file_that_is_open_for_writing_elsewhere_is_not_replaced(world: World) -> None:
    path = world.root / "log.txt"
    path.write_text("line\n")
    with path.open("a") as writer:
        with pytest.raises(Conflict):
            world.write("log.txt", "ours")
        writer.write("more\n")
    assert path.read_text() == "line\nmore\n"
    world.write("log.txt", "ours")
    assert path.read_text() == "ours"


def test_a_file_deleted_under_our_hands_stays_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.root / "a.txt"
    path.write_text("base")
    swap = rename_exchange

    def late(*places: object) -> None:
        path.unlink()
        swap(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(content, "rename_exchange", late)
    with pytest.raises(Conflict):
        world.write("a.txt", "ours")
    assert harvest(world.root) == {}


def test_a_file_system_that_cannot_swap_is_written_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.root / "a.txt"
    path.write_text("base")

    def refuse(*_: object) -> None:
        raise OSError(22, os.strerror(22))

    monkeypatch.setattr(content, "rename_exchange", refuse)
    change = world.write("a.txt", "ours")
    assert path.read_text() == "ours"
    world.undo(change)
    assert path.read_text() == "base"
    with path.open("a"), pytest.raises(Conflict):
        world.write("a.txt", "ours")
    assert world.leftovers() == []


def test_a_file_that_appears_while_one_is_created_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.root / "a.txt"
    rename = rename_noreplace

    def late(*places: object) -> None:
        path.write_text("theirs")
        rename(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(content, "rename_noreplace", late)
    with pytest.raises(Conflict):
        world.write("a.txt", "ours")
    assert harvest(world.root) == {"a.txt": b"theirs"}


def test_a_tree_that_grows_while_it_is_deleted_is_put_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.root / "d").mkdir()
    (world.root / "d/x").write_text("1")
    rename = rename_noreplace
    late_files = iter(["late"])

    def late(*places: object) -> None:
        for name in late_files:
            (world.root / "d" / name).write_text("2")
        rename(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(remove, "rename_noreplace", late)
    with pytest.raises(Conflict, match="left in place"):
        world.delete("d", recursive=True)
    assert harvest(world.root) == {"d/x": b"1", "d/late": b"2"}
