"""The scenarios of the torture: each is a tree, changes made before, and the changes that are interrupted."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.changes.disk import files, tree
from holdfast.changes.model import ItemStatus, Plan, PlanStatus
from holdfast.changes.plans import layout
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.changes.single import content
from holdfast.errors import Conflict
from tests.helpers.trees import Tree, plant
from tests.unit.changes.world import World

SMALL = "small and only here\n"
LARGE = "".join(f"line {number} of a file whose image is a file of its own\n" for number in range(1_600))
FOREIGN: Tree = {
    "foreign.txt": "of somebody else",
    "theirs.txt": "saved by another program at the last moment",
    "others": {"deep.txt": "also of somebody else"},
}


@dataclass
class Stage:
    """Where a scenario plays: two folders on two devices, and the service over a journal."""

    world: World
    first: Path
    second: Path
    ids: list[str] = field(default_factory=list)
    """The changes in effect so far, oldest first."""

    def there(self, name: str) -> str:
        """Return a path in the second folder."""
        return str(self.second / name)


Step = Callable[[Stage], str | None]


@dataclass(frozen=True)
class Scenario:
    """`before` are changes made in peace, `steps` those under fire; each makes at most one change.

    `is_atomic` says that after a crash the disk is as before or after a step, and nothing in between; `taken` is the
    file of another program that gets another name meanwhile, which no undo of ours takes back.
    """

    name: str
    tree: Tree
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    is_atomic: bool = True
    reused_names: tuple[str, str] | None = None

    def plant(self, first: Path, second: Path) -> None:
        """Make the files that are there before anything happens."""
        plant(first, {**FOREIGN, **self.tree})
        plant(second, FOREIGN)
        for folder in (first, second):
            (folder / "link").symlink_to("foreign.txt")


def _write(name: str, content: str) -> Step:
    return lambda stage: stage.world.write(name, content)


def _edit(name: str, old: str, new: str) -> Step:
    return lambda stage: stage.world.edit(name, old, new)


def _move(source: str, destination: str) -> Step:
    return lambda stage: stage.world.move(source, destination)


def _move_across(source: str, destination: str) -> Step:
    return lambda stage: stage.world.move(source, stage.there(destination))


def _delete(name: str) -> Step:
    return lambda stage: stage.world.delete(name, recursive=True)


def _mkdir(name: str) -> Step:
    return lambda stage: stage.world.mkdir(name)


def _undo(stage: Stage) -> str:
    return stage.world.undo(stage.ids[-1])


@contextmanager
def _at_the_last_moment(module: ModuleType, name: str, act: Callable[[], None]) -> Iterator[None]:
    """Let another program do something right before a function of a module is called."""
    real = getattr(module, name)

    def late(*places: object) -> None:
        act()
        real(*places)

    setattr(module, name, late)
    try:
        yield
    finally:
        setattr(module, name, real)


def _rename_once(fresh: Path, name: Path) -> None:
    """Do what the other program does, durably: what it loses by itself is not ours to judge."""
    if fresh.exists():
        fresh.rename(name)
        fd = os.open(name.parent, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)


def _move_into_a_race(*, across: bool) -> Step:
    """Another program's file takes the destination between our look and our rename."""

    def step(stage: Stage) -> str:
        folder = stage.second if across else stage.first
        late = "publish" if across else "move_entry"
        with _at_the_last_moment(files, late, lambda: _rename_once(folder / "theirs.txt", folder / "b.txt")):
            return stage.world.move("a.txt", str(folder / "b.txt"))

    return step


def _write_into_a_race(stage: Stage) -> str:
    """An editor saves by rename between our read and our swap."""
    with _at_the_last_moment(
        content, "rename_exchange", lambda: _rename_once(stage.first / "theirs.txt", stage.first / "a.txt")
    ):
        return stage.world.write("a.txt", "written by us\n")


def _move_by_a_bad_copy(stage: Stage) -> str:
    """The disk hands back other bytes than it was given."""
    real = vars(tree)["write_new"]

    def write_new(dir_fd: int, name: str, data: Iterable[bytes], **options: Any) -> Any:
        return real(dir_fd, name, (piece[:-1] + b"?" for piece in data), **options)

    vars(tree)["write_new"] = write_new
    try:
        return stage.world.move("a.txt", stage.there("b.txt"))
    finally:
        vars(tree)["write_new"] = real


class Unfinished(Conflict):
    """A plan that was carried out in part; its outcome names the items that were not."""

    def __init__(self, plan: Plan | None) -> None:
        items = () if plan is None else plan.items
        left = [item for item in items if item.status not in (ItemStatus.DONE, ItemStatus.UNDONE)]
        self.outcome = " ".join(f"{item.status} {item.src_path.rpartition('/')[2]}" for item in left)
        super().__init__("; ".join(item.error_msg or "" for item in left))


def _planned(*moves: tuple[str, str], unit: str | None = None) -> Step:
    """Make a plan of moves, of one unit if it is named, and approve it; nothing moves, so it is no change yet."""

    def step(stage: Stage) -> None:
        world, plans = stage.world, stage.world.changes.plans
        requests = [
            MoveRequest(str(stage.first / source), target.replace("TWO", str(stage.second)), unit=unit)
            for source, target in moves
        ]
        plan = plans.create(world.folders, world.call(), str(stage.first), requests)
        plans.approve(world.folders, plan.id, plans.hash_of(plan), "torture")

    return step


def _plan_id(stage: Stage) -> str:
    return stage.world.changes.plans.list(stage.world.folders, 1)[0].id


def _execute(stage: Stage) -> str:
    world = stage.world
    plan = world.changes.plans.execute(world.folders, world.call(), _plan_id(stage)).plan
    if plan.status is not PlanStatus.EXECUTED or any(item.status is ItemStatus.SKIPPED for item in plan.items):
        raise Unfinished(plan)
    return plan.id


def _execute_by_twos(stage: Stage) -> str:
    """Carry a plan out in batches of two moves."""
    real = layout.BATCH_ITEMS
    layout.BATCH_ITEMS = 2
    try:
        return _execute(stage)
    finally:
        layout.BATCH_ITEMS = real


def _execute_into_a_race(stage: Stage) -> str:
    """Another program's file takes one of the destinations before its turn."""
    with _at_the_last_moment(
        files, "move_entry", lambda: _rename_once(stage.first / "theirs.txt", stage.first / "n2.txt")
    ):
        return _execute(stage)


def _execute_into_a_late_race(stage: Stage) -> str:
    """Another program's file takes the last destination when all have been looked at; it does so in any case."""
    act = partial(_rename_once, stage.first / "theirs.txt", stage.first / "n3.txt")
    try:
        with _at_the_last_moment(files, "move_entry", act):
            return _execute(stage)
    finally:
        act()


def _undo_plan(stage: Stage) -> str:
    change = stage.world.undo(_plan_id(stage))
    plan = stage.world.changes._journal.find(change)
    if plan is None or any(item.status is not ItemStatus.DONE for item in plan.items):
        raise Unfinished(plan)
    return change


_TREE: Tree = {"a.txt": SMALL}
_FOLDER: Tree = {"d": {"x.txt": "x of d", "sub": {"y.txt": "y of sub", "empty": {}}, "large.txt": LARGE}}

_FILES: Tree = {
    "a.txt": "a to sort",
    "b.txt": "b to sort",
    "c.txt": "c to sort",
    "d": {"e.txt": "e to sort", "f.txt": LARGE},
}
_SORT = _planned(
    ("a.txt", "new/deep/a.txt"),
    ("b.txt", "new/b.txt"),
    ("c.txt", "others/c.txt"),
    ("d/e.txt", "new/deep/e.txt"),
    ("d/f.txt", "f.txt"),
)
_SORT_ACROSS = _planned(("a.txt", "TWO/new/a.txt"), ("b.txt", "here/b.txt"), ("d/f.txt", "TWO/f.txt"))
_SORT_LINKS = _planned(("link", "new/link"), ("a.txt", "others/a.txt"))
_SORT_INTO_A_RACE = _planned(("a.txt", "n1.txt"), ("b.txt", "n2.txt"), ("c.txt", "n3.txt"))
_UNIT = _planned(("a.txt", "n1.txt"), ("b.txt", "n2.txt"), ("c.txt", "n3.txt"), unit="u")

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("create", {}, (_write("new.txt", SMALL), _write("big.txt", LARGE))),
        Scenario("replace", {"a.txt": SMALL, "b.txt": LARGE}, (_write("a.txt", LARGE), _write("b.txt", SMALL))),
        Scenario("edit", _TREE, (_edit("a.txt", "only", "still"), lambda s: s.world.append("a.txt", "more\n"))),
        Scenario("move", _TREE, (_move("a.txt", "b.txt"), _move("b.txt", "others/c.txt"))),
        Scenario("move-across", {"a.txt": LARGE}, (_move_across("a.txt", "others/b.txt"),)),
        Scenario("folder", _FOLDER, (_move("d", "e"), _move("e", "others/f"))),
        Scenario("folder-across", _FOLDER, (_move_across("d", "e"),)),
        Scenario("delete", {"a.txt": SMALL, "b.txt": LARGE}, (_delete("a.txt"), _delete("b.txt"))),
        Scenario("delete-tree", _FOLDER, (_delete("d"),)),
        Scenario("mkdir", {}, (_mkdir("p"), _mkdir("p/q"))),
        Scenario("mkdir-deep", {}, (_mkdir("p/q/r"),), is_atomic=False),
        Scenario("undo-create", {}, (_undo,), before=(_write("new.txt", LARGE),)),
        Scenario("undo-edit", _TREE, (_undo, _undo), before=(_edit("a.txt", "only", "still"),)),
        Scenario("undo-move", _TREE, (_undo,), before=(_move("a.txt", "others/b.txt"),)),
        Scenario("undo-move-across", {"a.txt": LARGE}, (_undo,), before=(_move_across("a.txt", "b.txt"),)),
        Scenario("undo-folder-across", _FOLDER, (_undo,), before=(_move_across("d", "e"),)),
        Scenario("undo-delete", {"a.txt": LARGE}, (_undo,), before=(_delete("a.txt"),)),
        Scenario("undo-delete-tree", _FOLDER, (_undo,), before=(_delete("d"),)),
        Scenario("undo-mkdir", {}, (_undo,), before=(_mkdir("p/q"),), is_atomic=False),
        Scenario("conflict", _TREE, (_move("a.txt", "foreign.txt"), _move_into_a_race(across=False)), is_atomic=False),
        Scenario("conflict-across", _TREE, (_move_into_a_race(across=True),), is_atomic=False),
        Scenario("bad-copy", _TREE, (_move_by_a_bad_copy,)),
        Scenario("plan", _FILES, (_execute,), before=(_SORT,), is_atomic=False),
        Scenario("plan-batches", _FILES, (_execute_by_twos,), before=(_SORT,), is_atomic=False),
        Scenario("plan-across", _FILES, (_execute,), before=(_SORT_ACROSS,), is_atomic=False),
        Scenario(
            "plan-conflict",
            _FILES,
            (_execute_into_a_race,),
            before=(_SORT_INTO_A_RACE,),
            is_atomic=False,
            reused_names=("one/theirs.txt", "one/n2.txt"),
        ),
        Scenario("plan-unit", _FILES, (_execute,), before=(_UNIT,)),
        Scenario("undo-plan-unit", _FILES, (_undo_plan,), before=(_UNIT, _execute)),
        Scenario(
            "plan-unit-conflict",
            _FILES,
            (_execute_into_a_late_race,),
            before=(_UNIT,),
            is_atomic=False,
            reused_names=("one/theirs.txt", "one/n3.txt"),
        ),
        Scenario("undo-plan", _FILES, (_undo_plan,), before=(_SORT, _execute), is_atomic=False),
        Scenario("undo-plan-across", _FILES, (_undo_plan,), before=(_SORT_ACROSS, _execute), is_atomic=False),
        Scenario("plan-links", _TREE, (_execute,), before=(_SORT_LINKS,), is_atomic=False),
        Scenario("undo-plan-links", _TREE, (_undo_plan,), before=(_SORT_LINKS, _execute), is_atomic=False),
        Scenario("conflict-edit", _TREE, (_write_into_a_race,), is_atomic=False),
    )
}
