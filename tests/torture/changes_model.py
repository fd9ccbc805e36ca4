"""The real changes on disks in memory whose power can go at any act: what Hypothesis tries orders of loss on."""

import hashlib
import os
import random
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from holdfast.adapters.sqlite.state import database as sqlite_database
from holdfast.adapters.sqlite.state.database import Database, register_functions
from holdfast.adapters.sqlite.state.journal import SqliteJournal
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.changes.disk import files
from holdfast.changes.disk import files as files_module
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.changes.service import Changes
from holdfast.changes.upkeep import JournalUpkeep
from holdfast.config.settings import FolderSettings, JournalSettings
from holdfast.errors import HoldfastError
from holdfast.folders.access import jail as jail_module
from holdfast.folders.access import roots as roots_module
from holdfast.folders.access import syscalls
from holdfast.folders.access import syscalls as syscalls_module
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import Root, identity_of
from holdfast.folders.service import Folders
from tests.torture.changes_memory import Disks, PowerCut
from tests.unit.changes.world import World

STATE = "/state"
QUARANTINE = "/.holdfast-quarantine"
FOLDERS = ("one", "two")


class VolatileDatabase(Database):
    """The journal's database in memory: what a durable transaction did stays, the later ones stay in their order."""

    def __init__(self, disks: Disks, image: bytes | None) -> None:
        self._disks = disks
        self._lock = threading.RLock()
        self._statements = sqlite_database.state_statements()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        register_functions(self._connection)
        self._durable = True
        if image is None:
            migrate(self._connection)
        else:
            self._connection.deserialize(image)
        self._synced = self._connection.serialize()
        self._later: list[bytes] = []

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run statements as one; the power may go right before they are committed."""
        with super().transaction(durable=durable):
            yield
            self._disks.tick()
        if durable:
            self._synced, self._later = self._connection.serialize(), []
        else:
            self._later.append(self._connection.serialize())

    def checkpoint(self) -> None:
        """There is no log."""

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def left(self, chance: random.Random) -> bytes:
        """Return what the file may hold after a power cut."""
        return chance.choice([self._synced, *self._later])


class Inline:
    """Does work where it is asked for, so that the power goes in one place only."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except BaseException as error:
            done.set_exception(error)
        return done


class Replaced:
    """The product's modules with the disks in the place of `os`, until `restore`."""

    def __init__(self, disks: Disks) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        self._disks = disks
        for module in _modules():
            for name, value in list(vars(module).items()):
                if value is os:
                    self._put(module, name, disks)
                elif getattr(value, "__module__", None) == os.stat.__module__:
                    self._put(module, name, getattr(disks, name))
                elif name == "open_roots":
                    self._put(module, name, self.open_roots)
        self._put(syscalls, "_renameat2", disks.renameat2)
        self._put(jail_module, "has_openat2", lambda: False)
        self._put(files, "_can_lease", lambda _fd: True)
        self._put(files_module, "_pool", Inline())
        self._put(files_module.closer, "close", disks.close)
        self._put(JournalUpkeep, "wake", lambda _self: None)

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Put everything back."""
        for owner, name, value in reversed(self._originals):
            setattr(owner, name, value)

    def open_roots(self, paths: Sequence[str], _cwd: str, _state_dir: str) -> list[Root]:
        """Open folders of the model as allowed directories."""
        disks = self._disks
        fds = [(name, disks.open(name, disks.O_RDONLY)) for name in paths]
        return [Root(name, name, fd, identity_of(disks.fstat(fd)), walk_only=False) for name, fd in fds]


def _modules() -> list[ModuleType]:
    modules = [module for name, module in sys.modules.items() if name.startswith("holdfast.changes.")]
    return [*modules, syscalls_module, jail_module, roots_module]


class CrashMachine(RuleBasedStateMachine):
    """Changes one after the other, each of which the power may interrupt; after it, as before or as after."""

    on_fsync: Callable[[Any], bool] = staticmethod(lambda _node: True)

    @initialize()
    def begin(self) -> None:
        """Switch on with two empty folders on two devices and a state folder on a third."""
        self.disks = Disks()
        self.disks.on_fsync = type(self).on_fsync
        for number, name in enumerate((*FOLDERS, STATE[1:]), start=1):
            self.disks.add_device(name, number)
        self.replaced = Replaced(self.disks)
        self.contents: set[bytes] = set()
        self.history: list[tuple[str, dict[str, bytes | None]]] = []
        self.number = 0
        self.open(None)

    def teardown(self) -> None:
        """Leave the modules as they were."""
        if hasattr(self, "replaced"):
            self.replaced.restore()

    def open(self, image: bytes | None) -> None:
        """Start the service and let it recover."""
        self.database = VolatileDatabase(self.disks, image)
        changes = Changes(SqliteJournal(self.database), STATE, JournalSettings())
        changes.recover()
        roots = self.replaced.open_roots([f"/{name}" for name in FOLDERS], "/", STATE)
        jail = Jail(roots, [identity_of(self.disks.stat(STATE))])
        self.world = World(changes, Folders(jail, FolderSettings()), Path("/one"), Path(STATE))

    def tree(self) -> dict[str, bytes | None]:
        """Return the user's files, our quarantine left out."""
        both = {name: data for folder in FOLDERS for name, data in self.disks.tree(folder).items()}
        return {name: data for name, data in both.items() if QUARANTINE not in name}

    def change(self, act: Callable[[], str | None], after: dict[str, bytes | None], cut: int, seed: int) -> None:
        """Make one change; the power goes at the given act of it, if it has so many."""
        before, done = self.tree(), None
        self.disks.acts_until_cut = cut
        try:
            done = act()
        except PowerCut:
            self.restart(before, after, seed)
            return
        except HoldfastError:
            self.disks.acts_until_cut = -1
            assert self.tree() == before, "it was refused and left something"
            return
        self.disks.acts_until_cut = -1
        assert self.tree() == after, "the disk is not as the change should leave it"
        assert done
        self.history.append((done, before))
        self.remember(after)
        if cut % 3 == 0:
            self.restart(after, after, seed)

    def restart(self, before: dict[str, bytes | None], after: dict[str, bytes | None], seed: int) -> None:
        """Lose the power, start again, and compare: as before or as after, and the journal says which."""
        chance = random.Random(seed)
        self.reopen(chance)
        assert self.world.changes._journal.find_unfinished() == [], "recovery left something undecided"
        now = self.tree()
        assert now in (before, after), (
            f"after the cut: {_short(now)}; before: {_short(before)}; wanted: {_short(after)}"
        )
        in_effect, known = self.in_effect(), len(self.history)
        if now == after != before:
            assert len(in_effect) == known + 1, "it took effect, and the journal does not say so"
            self.history.append((in_effect[-1], before))
            self.remember(after)
        else:
            assert len(in_effect) == known, "it did not take effect, and the journal says that it did"
        self.nothing_lost()

    def organise(self, moves: dict[str, str], cut: int, seed: int) -> None:
        """Carry out a plan of moves; after a cut every file is at its source or its target, and again brings it home."""
        before, plans, folders = self.tree(), self.world.changes.plans, self.world.folders
        after = before
        for source, target in moves.items():
            after = _moved(after, source[1:], target[1:])
        requests = [MoveRequest(source, target) for source, target in moves.items()]
        plan = plans.create(folders, self.world.call(), "/one", requests)
        plans.approve(folders, plan.id, plans.hash_of(plan), "model")
        self.disks.acts_until_cut = cut
        try:
            plans.execute(folders, self.world.call(), plan.id)
        except PowerCut:
            self.reopen(random.Random(seed))
            now = self.tree()
            for source, target in moves.items():
                there = [name for name in (source[1:], target[1:]) if name in now]
                assert len(there) == 1, f"{source} is there as {there}"
            assert sorted(map(str, now.values())) == sorted(map(str, before.values())), "bytes were lost or doubled"
            self.world.changes.plans.execute(self.world.folders, self.world.call(), plan.id)
        self.disks.acts_until_cut = -1
        assert self.tree() == after, "the plan is not executed"
        self.history.append((plan.id, before))
        self.reopen(random.Random(seed))
        assert self.tree() == after, "what was executed is not durable"
        self.nothing_lost()

    def take_back(self, change_id: str, before: dict[str, bytes | None], cut: int, seed: int) -> None:
        """Undo a plan; after a cut a part of it may be back, and undoing again brings the rest."""
        trees = [self.tree()]
        self.disks.acts_until_cut = cut
        try:
            self.world.undo(change_id)
        except PowerCut:
            self.reopen(random.Random(seed))
            now = self.tree()
            assert sorted(map(str, now.values())) == sorted(map(str, before.values())), "bytes were lost or doubled"
            if now != before:
                trees += [now] if now != trees[0] else []
                self.world.undo(change_id)
        self.disks.acts_until_cut = -1
        assert self.tree() == before, "the plan is not undone"
        new = self.in_effect()[len(self.history) :]
        self.history += zip(new, trees, strict=True)
        self.reopen(random.Random(seed))
        assert self.tree() == before, "what was undone is not durable"
        self.nothing_lost()

    def in_effect(self) -> list[str]:
        """Return the changes that did something, oldest first."""
        change_ids = [change.id for change in reversed(self.world.listed()) if change.status in ("EXECUTED", "UNDONE")]
        plans = ((change_id, self.world.changes._journal.find(change_id)) for change_id in change_ids)
        return [
            change_id
            for change_id, plan in plans
            if plan and any(item.status in ("DONE", "UNDONE") for item in plan.items)
        ]

    def reopen(self, chance: random.Random) -> None:
        """Lose the power and start again, perhaps losing it once more while recovering."""
        again = chance.choice((-1, -1, *range(12)))
        while True:
            image = self.database.left(chance)
            self.disks.cut(chance)
            self.disks.acts_until_cut, again = again, -1
            try:
                self.open(image)
                break
            except PowerCut:
                continue
        self.disks.acts_until_cut = -1

    def remember(self, tree: dict[str, bytes | None]) -> None:
        """Add the contents that must never be lost from here on."""
        self.contents |= {data for data in tree.values() if data is not None}

    def nothing_lost(self) -> None:
        """Every content that ever stood in a file is on a disk or kept."""
        whole = [*self.disks.tree("one").values(), *self.disks.tree("two").values(), *self.disks.tree("state").values()]
        for content in self.contents - {data for data in whole if data is not None}:
            image = b"".join(self.world.changes._images.read(hashlib.sha256(content).hexdigest()))
            assert image == content, "the kept bytes are others"

    def fresh(self, size: int) -> str:
        """Return a text that was never used before."""
        self.number += 1
        return f"content {self.number} " + "x" * size

    cuts = st.integers(min_value=0, max_value=60)
    seeds = st.integers(min_value=0, max_value=2**32)
    names = st.sampled_from(["/one/a", "/one/b", "/one/d/x", "/two/a", "/two/d/y"])
    folders = st.sampled_from(["/one/d", "/one/e", "/two/d", "/two/e"])
    sizes = st.sampled_from([3, 70_000])

    @rule(name=names, size=sizes, cut=cuts, seed=seeds)
    def write(self, name: str, size: int, cut: int, seed: int) -> None:
        before, text = self.tree(), self.fresh(size)
        if name.rpartition("/")[0].strip("/") not in (*FOLDERS, *before):
            return
        self.change(lambda: self.world.write(name, text), {**before, name[1:]: text.encode()}, cut, seed)

    @rule(folder=folders, cut=cuts, seed=seeds)
    def mkdir(self, folder: str, cut: int, seed: int) -> None:
        before = self.tree()
        if folder[1:] not in before:
            self.change(lambda: self.world.mkdir(folder), {**before, folder[1:]: None}, cut, seed)

    @rule(source=names | folders, destination=names | folders, cut=cuts, seed=seeds)
    def move(self, source: str, destination: str, cut: int, seed: int) -> None:
        before = self.tree()
        parent = destination.rpartition("/")[0].strip("/")
        if source[1:] not in before or destination[1:] in before or parent not in (*FOLDERS, *before):
            return
        if (destination + "/").startswith(source + "/"):
            return
        after = _moved(before, source[1:], destination[1:])
        self.change(lambda: self.world.move(source, destination), after, cut, seed)

    @rule(name=names | folders, cut=cuts, seed=seeds)
    def delete(self, name: str, cut: int, seed: int) -> None:
        before = self.tree()
        if name[1:] in before:
            after = {path: data for path, data in before.items() if not _is_in(path, name[1:])}
            self.change(lambda: self.world.delete(name, recursive=True), after, cut, seed)

    @rule(moves=st.dictionaries(names | folders, folders.map(lambda f: f + "2"), min_size=1), cut=cuts, seed=seeds)
    def plan(self, moves: dict[str, str], cut: int, seed: int) -> None:
        before = self.tree()
        free_moves: dict[str, str] = {}
        for source, target in moves.items():
            free = target[1:] not in before and target not in free_moves.values()
            apart = not any(_is_in(source, other) or _is_in(other, source) for other in free_moves)
            if source[1:] in before and free and apart:
                free_moves[source] = target
        if free_moves:
            self.organise(free_moves, cut, seed)

    @precondition(lambda self: bool(getattr(self, "history", None)))
    @rule(cut=cuts, seed=seeds)
    def undo(self, cut: int, seed: int) -> None:
        change_id, before = self.history[-1]
        plan = self.world.changes._journal.find(change_id)
        if plan is not None and plan.stepwise:
            self.take_back(change_id, before, cut, seed)
        else:
            self.change(lambda: self.world.undo(change_id), before, cut, seed)


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")


def _moved(tree: dict[str, bytes | None], source: str, target: str) -> dict[str, bytes | None]:
    return {target + path[len(source) :] if _is_in(path, source) else path: data for path, data in tree.items()}


def _short(tree: dict[str, bytes | None]) -> dict[str, object]:
    return {name: data if data is None else data[:12] for name, data in tree.items()}


def explore(examples: int, seed_number: int) -> list[str]:
    """Let Hypothesis try so many stories; returns what it found, as the shortest story that shows it."""
    how = settings(
        max_examples=examples,
        stateful_step_count=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(seed_number)(CrashMachine), settings=how)
    except Exception as error:
        return [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
    return []
