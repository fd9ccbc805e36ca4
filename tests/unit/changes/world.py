"""A small world for tests of changes: a root, a state folder, and the service over a real journal."""

import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.model import Change, Op, Plan
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.changes.service import Changes
from holdfast.config.settings import FolderSettings, JournalSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.service import Folders
from holdfast.text.edit import Edit
from tests.helpers.trees import harvest


class World:
    """The verbs in short form; `root` is the first allowed directory."""

    def __init__(self, changes: Changes, folders: Folders, root: Path, state: Path) -> None:
        self.changes = changes
        self.folders = folders
        self.root = root
        self.state = state

    @staticmethod
    def call() -> Call:
        return Call(Caller(LOCAL_USER), timeout_seconds=60)

    def write(self, name: str, content: str) -> str:
        return self.changes.write(self.folders, self.call(), name, content).change_id or ""

    def edit(self, name: str, old: str, new: str, expected_hash: str | None = None) -> str:
        done = self.changes.edit(self.folders, self.call(), name, [Edit(old, new)], expected_hash=expected_hash)
        return done.change_id or ""

    def append(self, name: str, content: str) -> str:
        return self.changes.append(self.folders, self.call(), name, content).change_id or ""

    def mkdir(self, name: str) -> str | None:
        return self.changes.create_directory(self.folders, self.call(), name)[0]

    def move(self, source: str, destination: str) -> str:
        return self.changes.move(self.folders, self.call(), source, destination)

    def delete(self, name: str, *, recursive: bool = False) -> str:
        return self.changes.delete(self.folders, self.call(), name, recursive=recursive)

    def undo(self, change_id: str) -> str:
        return self.changes.undo(self.folders, self.call(), change_id).change_id or ""

    def plan(self, moves: Mapping[str, str], *, unit: Collection[str] = ()) -> Plan:
        """Make a plan of moves, names beneath the first root unless they are absolute; `unit` are those that belong together."""
        requests = [
            MoveRequest(source, target, unit="unit" if source in unit else None) for source, target in moves.items()
        ]
        return self.changes.plans.create(self.folders, self.call(), ".", requests)

    def approve(self, plan: Plan) -> Plan:
        return self.changes.plans.approve(self.folders, plan.id, self.changes.plans.hash_of(plan), "tester")

    def execute(self, plan: Plan, call: Call | None = None) -> Plan:
        return self.changes.plans.execute(self.folders, call or self.call(), plan.id).plan

    def run_plan(self, moves: Mapping[str, str], *, unit: Collection[str] = ()) -> Plan:
        """Plan, approve and execute."""
        return self.execute(self.approve(self.plan(moves, unit=unit)))

    def found(self, plan: Plan) -> Plan:
        return self.changes.plans.find(self.folders, plan.id)

    def listed(self) -> list[Change]:
        return self.changes.list(self.folders, 1000, None)

    def leftovers(self) -> list[str]:
        return [str(path) for path in self.root.rglob(".holdfast-*") if QUARANTINE not in str(path)]


@contextmanager
def opened_world(
    roots: list[Path],
    state: Path,
    settings: JournalSettings | None = None,
    folder_settings: FolderSettings | None = None,
    *,
    require_approval: bool = True,
) -> Iterator[World]:
    """Open the service as wiring does; recovery has run."""
    state.mkdir(mode=0o700, exist_ok=True)
    journal = open_journal(str(state))
    changes = Changes(journal, str(state), settings or JournalSettings(), require_approval=require_approval)
    opened = open_roots([str(root) for root in roots], "/", str(state))
    try:
        changes.recover()
        jail = Jail(opened, [identity_of(state.stat())])
        yield World(changes, Folders(jail, folder_settings or FolderSettings()), roots[0], state)
    finally:
        changes.close()
        close_roots(opened)


def seen(folder: Path) -> dict[str, bytes]:
    """Return the files that a person sees."""
    return {name: data for name, data in harvest(folder).items() if QUARANTINE not in name}


def moves(plan: Plan) -> list[str]:
    """Return the statuses of a plan's moves."""
    return [item.status.value for item in plan.items if item.op is Op.MOVE]


def killed(state: Path, plan: Plan, verb: str, act: str, count: int, when: str, *roots: Path) -> None:
    """Run a process that is killed in the middle, and see that it was."""
    command = [sys.executable, "-m", "tests.unit.changes.plan_victim", str(state), verb, plan.id, act, str(count), when]
    done = subprocess.run([*command, *map(str, roots)], check=False, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
