"""The net effect of changes and the preview of their undo, against what the disk and the real undo say."""

import hashlib
import random
from collections.abc import Callable

import pytest

from holdfast.changes.history.net_effect import NetFile, trace_back
from holdfast.changes.model import Plan
from holdfast.changes.selection import ChangeFilter
from holdfast.errors import HoldfastError, InvalidArgument, NotFound
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import World

NAMES = ("a", "b", "c", "d/a", "d/b", "e/a")
FOLDERS = ("d", "e", "f", "d/g")


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def in_effect(world: World) -> list[Plan]:
    history = world.changes.history
    return history.find_all_to_undo(ChangeFilter(), None, 10_000)


def every_plan(world: World) -> list[Plan]:
    history = world.changes.history
    return history.plans(history.find_changes(ChangeFilter(), 10_000))


def act_at_random(world: World, rng: random.Random) -> None:
    """Make one change; one that is refused changes nothing."""
    name, other, text = rng.choice(NAMES), rng.choice([*NAMES, *FOLDERS]), f"{rng.random()}\n"
    verb = rng.choice(
        ["write", "write", "append", "move", "move folder", "delete", "delete folder", "mkdir", "undo", "plan"]
    )
    try:
        if verb == "write":
            world.write(name, text)
        elif verb == "append":
            world.append(name, text)
        elif verb == "move":
            world.move(name, other)
        elif verb == "move folder":
            world.move(rng.choice(FOLDERS), other)
        elif verb == "delete":
            world.delete(name)
        elif verb == "delete folder":
            world.delete(rng.choice(FOLDERS), recursive=True)
        elif verb == "mkdir":
            world.mkdir(rng.choice(FOLDERS))
        elif verb == "plan":
            world.run_plan({name: other})
        else:
            world.undo(rng.choice(world.listed()).id)
    except (HoldfastError, IndexError):
        pass


def rebuild(world: World, files: list[NetFile]) -> dict[str, str]:
    """Return the files of before, by path and hash, from those of now and the net effect."""
    present = {f"{world.root}/{path}": hash_of(data) for path, data in harvest(world.root).items()}
    named = {file.present_path for file in files}
    before = {path: hash_ for path, hash_ in present.items() if not any(map(path_is_in(path), named))}
    for file in files:
        if file.former_path is not None and file.hash is not None:
            before[file.former_path] = file.hash
        elif file.former_path is not None and file.present_path is not None:
            for path in filter(lambda path: path_is_in(path)(file.present_path), present):
                nearest = max((name for name in named if path_is_in(path)(name)), key=lambda name: len(name or ""))
                if nearest == file.present_path:
                    before[file.former_path + path[len(file.present_path) :]] = present[path]
    return before


def path_is_in(path: str) -> Callable[[str | None], bool]:
    return lambda folder: folder is not None and (path == folder or path.startswith(f"{folder}/"))


@pytest.mark.parametrize("seed", range(40))
def test_the_preview_of_every_undo_is_what_the_undo_does(world: World, seed: int) -> None:
    rng = random.Random(seed)
    plant(world.root, {"a": "1\n", "d": {"a": "2\n"}})
    for _ in range(rng.randrange(3, 14)):
        act_at_random(world, rng)
    if rng.random() < 0.5:
        (world.root / "a").write_text("from outside\n")
    plans = in_effect(world)
    steps = world.changes.history.preview(world.folders.jail, world.call(), plans)
    for step in steps:
        try:
            world.undo(step.plan.id)
            done = True
        except HoldfastError as error:
            done = False
            what = error.message
        assert step.can_be_done is done, (seed, step, None if done else what)


@pytest.mark.parametrize("seed", range(40))
def test_the_net_effect_leads_back_to_what_was_there_before(world: World, seed: int) -> None:
    rng = random.Random(1000 + seed)
    plant(world.root, {"a": "1\n", "b": "2\n", "d": {"a": "3\n", "g": {"x": "4\n"}}, "e": {"a": "5\n"}})
    original = {f"{world.root}/{path}": hash_of(data) for path, data in harvest(world.root).items()}
    for _ in range(rng.randrange(3, 20)):
        act_at_random(world, rng)
    assert rebuild(world, trace_back(every_plan(world))) == original


def test_what_was_made_and_undone_leaves_no_effect(world: World) -> None:
    plant(world.root, {"a": "1\n"})
    world.undo(world.write("a", "2\n"))
    world.move("a", "b")
    world.move("b", "a")
    world.write("new", "x")
    world.delete("new")
    assert world.changes.history.net_effect(world.folders.jail, every_plan(world)) == []


def test_a_change_of_a_moved_file_is_one_effect_with_its_diff(world: World) -> None:
    plant(world.root, {"d": {"a": "one\ntwo\n"}})
    world.move("d", "e")
    world.edit("e/a", "two", "three")
    (folder, file) = world.changes.history.net_effect(world.folders.jail, every_plan(world))
    assert (folder.kind, folder.former_path, folder.path) == ("moved", f"{world.root}/d", f"{world.root}/e")
    assert (file.kind, file.former_path, file.path) == ("moved", f"{world.root}/d/a", f"{world.root}/e/a")
    assert "-two\n+three\n" in file.diff


def test_bytes_that_are_gone_are_said_to_be(world: World) -> None:
    plant(world.root, {"a": "1\n"})
    change = world.write("a", "2\n")
    world.changes._journal.images.expire(0, "9999")
    history = world.changes.history
    (effect,) = history.show(world.folders.jail, history.find(change))
    assert (effect.diff, effect.note) == ("", "its bytes before are no longer kept")
    (step,) = history.preview(world.folders.jail, world.call(), [history.find(change)])
    assert (step.can_be_done, step.problem) == (False, "Its earlier bytes are no longer kept.")


def test_a_newer_change_is_named_unless_it_is_undone_first(world: World) -> None:
    plant(world.root, {"a": "1\n"})
    first, second = world.write("a", "2\n"), world.write("a", "3\n")
    history = world.changes.history
    (alone,) = history.preview(world.folders.jail, world.call(), [history.find(first)])
    assert (alone.can_be_done, alone.blocked_by) == (False, second)
    both = history.preview(world.folders.jail, world.call(), [history.find(second), history.find(first)])
    assert [step.can_be_done for step in both] == [True, True]


def test_an_id_may_be_the_beginning_of_one(world: World) -> None:
    change, history = world.write("a", "1\n"), world.changes.history
    assert history.find(change[:8]).id == change
    with pytest.raises(NotFound):
        history.find("zz")
    with pytest.raises(NotFound):
        history.find("")
    for number in range(40):
        world.write("a", str(number))
    shortest = next(digit for digit in "0123456789abcdef" if sum(c.id.startswith(digit) for c in world.listed()) > 1)
    with pytest.raises(InvalidArgument, match="Give more of the id"):
        history.find(shortest)


def test_changes_in_a_folder_are_those_that_touched_something_there(world: World) -> None:
    plant(world.root, {"d": {"a": "1"}, "e": {"a": "1"}})
    moved = world.run_plan({"d/a": "f/a", "e/a": "g/a"}).id
    world.write("b", "x")
    in_folder = ChangeFilter(directory=f"{world.root}/f")
    assert [change.id for change in world.changes.history.find_changes(in_folder, 10)] == [moved]
