"""Measure plans of moves and the cost of the journal, beside the same work done bare, in one run on one folder.

    python benchmarks/changes.py [--quick] [--rounds N] [--folder DIR]

It prints Markdown. Every round does the same moves, or the same edits, in every way in turn, so that a busy machine
slows all of them. A ratio is ours divided by theirs in time: 2 means half their rate.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import floors
from benchmarks.measure.table import Row, Sample, markdown, timed_row
from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.changes.service import Changes
from holdfast.config.settings import FolderSettings, JournalSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.access.syscalls import rename_noreplace
from holdfast.folders.service import Folders
from holdfast.text.edit import Edit

TARGETS = 10
BATCH = 100

Moves = list[tuple[str, str]]


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=options.folder) as folder:
        run = Run(Path(folder), 500 if options.quick else 10_000, 20 if options.quick else 300)
        rows = run.all(options.rounds)
    print(f"{_machine()}; {run.files:,} files of 1 KB into {TARGETS} folders\n\n{markdown(rows)}")


class Run:
    """One run in one folder; the state folder lies beside the root, on the same device."""

    def __init__(self, folder: Path, files: int, edits: int) -> None:
        self.folder, self.files, self.edits = folder, files, edits
        self.root = folder / "root"
        self.root.mkdir()
        (folder / "state").mkdir(mode=0o700)

    def all(self, rounds: int) -> list[Row]:
        """Measure everything and return the rows."""
        with self._changes() as (changes, folders):
            return [*self._moves(changes, folders, rounds), *self._edits(changes, folders, rounds)]

    @contextmanager
    def _changes(self) -> Iterator[tuple[Changes, Folders]]:
        state = str(self.folder / "state")
        changes = Changes(open_journal(state), state, JournalSettings(), require_approval=False)
        roots = open_roots([str(self.root)], "/", state)
        try:
            yield changes, Folders(Jail(roots, [identity_of(os.stat(state))]), FolderSettings())
        finally:
            changes.close()
            close_roots(roots)

    def _moves(self, changes: Changes, folders: Folders, rounds: int) -> list[Row]:
        times: dict[str, list[float]] = {}

        def timed(name: str, work: Callable[..., object], *arguments: object) -> None:
            times.setdefault(name, []).append(floors.timed(partial(work, *arguments)) / self.files)

        for number in range(rounds):
            top = self.root / f"ours{number}"
            moves = self._messy(top)
            requests = [MoveRequest(str(top / source), str(top / target)) for source, target in moves]
            plan_id = token_hex(16)
            timed("plan", partial(changes.plans.create, plan_id=plan_id), folders, _call(), str(top), requests)
            timed("ours", changes.plans.execute, folders, _call(), plan_id)
            _check(top, moves, is_back=False)
            timed("undo", changes.undo, folders, _call(), plan_id)
            _check(top, moves, is_back=True)
            for mover in (bare, plain, by_shutil):
                top = self.root / f"{mover.__name__}{number}"
                moves = self._messy(top)
                timed(mover.__name__, mover, top, moves)
                _check(top, moves, is_back=False)
        ours_times = Sample(times["ours"])
        return [
            _rate_row(
                "move, renameat2 without replacing + one sync a folder a hundred", ours_times, times["bare"], 2.0
            ),
            _rate_row("move, os.rename without any sync", ours_times, times["plain"]),
            _rate_row("move, shutil.move without any sync", ours_times, times["by_shutil"]),
            _rate_row("undo of the whole plan, beside the bare moves", Sample(times["undo"]), times["bare"]),
            _rate_row("making the plan, beside the bare moves", Sample(times["plan"]), times["bare"]),
        ]

    def _messy(self, top: Path) -> Moves:
        top.mkdir()
        for number in range(TARGETS):
            (top / f"d{number}").mkdir()
        content = b"x" * 1024
        for number in range(self.files):
            (top / f"f{number}").write_bytes(content)
        os.sync()
        return [(f"f{number}", f"d{number % TARGETS}/f{number}") for number in range(self.files)]

    def _edits(self, changes: Changes, folders: Folders, rounds: int) -> list[Row]:
        path = self.root / "edited.txt"
        path.write_text("counter = 0\n" + "x" * 1000)
        numbers = iter(range(10**9))

        def edit() -> None:
            number = next(numbers)
            change = Edit(f"counter = {number}\n", f"counter = {number + 1}\n")
            changes.edit(folders, _call(), str(path), [change])

        durable, careless = floors.replace(self.root / "durable.txt"), _careless(self.root / "careless.txt")
        times: dict[str, list[float]] = {"edit": [], "durable": [], "careless": []}
        for _ in range(rounds):
            for name, work in (("edit", edit), ("durable", durable), ("careless", careless)):
                times[name] += [floors.timed(work) for _ in range(self.edits)]
        ours = Sample(times["edit"])
        return [
            timed_row("edit 1 KB, journalled and undoable", ours, Sample(times["durable"]), None, "temp, sync, rename"),
            timed_row("edit 1 KB, journalled and undoable", ours, Sample(times["careless"]), None, "write, no sync"),
        ]


def bare(top: Path, moves: Moves) -> None:
    """Rename without replacing, by descriptors, and sync each folder once in a hundred moves."""
    source = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    targets = {f"d{number}": os.open(top / f"d{number}", os.O_RDONLY | os.O_DIRECTORY) for number in range(TARGETS)}
    for start in range(0, len(moves), BATCH):
        for old, new in moves[start : start + BATCH]:
            folder, name = new.split("/")
            rename_noreplace(source, old, targets[folder], name)
        for fd in (*targets.values(), source):
            os.fsync(fd)
    for fd in (*targets.values(), source):
        os.close(fd)


def plain(top: Path, moves: Moves) -> None:
    """Rename by path, replacing what is there, without any sync."""
    for old, new in moves:
        os.rename(top / old, top / new)


def by_shutil(top: Path, moves: Moves) -> None:
    """Move as most programs do."""
    for old, new in moves:
        shutil.move(top / old, top / new)


def _careless(path: Path) -> floors.Work:
    content = b"x" * 1012

    def work() -> None:
        path.write_bytes(content)

    return work


def _check(top: Path, moves: Moves, *, is_back: bool) -> None:
    wrong = [move for move in moves if not (top / move[0 if is_back else 1]).exists()]
    if wrong:
        raise RuntimeError(f"{len(wrong)} files are not where they should be, the first: {wrong[0]}")


def _rate_row(what: str, ours: Sample, theirs: list[float], bar: float | None = None) -> Row:
    other = Sample(theirs)
    our_rate, their_rate = (f"{1 / sample.median:,.0f}/s" for sample in (ours, other))
    bar_text = "" if bar is None else f"≤ {bar:g}x (half the rate)"
    return Row(what, our_rate, their_rate, ratio=ours.median / other.median, bar=bar, bar_text=bar_text)


def _call() -> Call:
    return Call(Caller(LOCAL_USER), timeout_seconds=600)


def _machine() -> str:
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return f"{moment}; {os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 files and few edits: a smoke test, not a figure")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison (5)")
    parser.add_argument("--folder", metavar="DIR", help="where to make the files (the system's temporary folder)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
