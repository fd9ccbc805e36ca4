"""A folder of very many files scanned for the first time and again, beside a bare walk as the lower bound.

Each kind of scan runs in a process of its own, which reports its time and its greatest memory. The time is that of the
processor, in which both spend themselves once the tree is in the system's memory; other programs do not count.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure.servers import TOP
from benchmarks.measure.table import Row
from holdfast.adapters.sqlite.state.file_cache import open_file_cache
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import open_roots
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import Survey

FILES_EACH = 200
TEXT = b"Dear Sir, please find enclosed the minutes of our last meeting. " * 10


def grow(root: Path, files: int) -> None:
    """Make a tree of two levels with so many files of 640 bytes."""
    for number in range(files // FILES_EACH):
        folder = root / f"year {number // 25}" / f"month {number % 25}"
        folder.mkdir(parents=True)
        for at in range(FILES_EACH):
            (folder / f"letter {number:04} {at:03}.txt").write_bytes(TEXT)


def bare(root: str) -> int:
    """Walk a tree and ask for the status of every file."""
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def survey(root: str, state: str) -> int:
    """Survey a tree as a plan does, and return how many files were opened."""
    jail = Jail(open_roots([root], root, state))
    cache = open_file_cache(state)
    tree_survey = Survey(jail, Call(Caller(LOCAL_USER), timeout_seconds=3600), ".", ScanOptions(), cache)
    for _ in tree_survey:
        pass
    cache.close()
    return tree_survey.opened_count


def measure(folder: Path, files: int, rounds: int) -> list[Row]:
    """Return the rows: the first scan, the scan of an unchanged tree, the memory of both."""
    root, state = folder / "tree", folder / "state"
    state.mkdir(mode=0o700)
    grow(root, files)
    floor = [_run("bare", root, state)]
    cold = _run("survey", root, state)
    warm = []
    for _ in range(rounds):
        floor.append(_run("bare", root, state))
        warm.append(_run("survey", root, state))
    best_floor, best_warm = min(each["seconds"] for each in floor), min(each["seconds"] for each in warm)
    memory = max(each["kilobytes"] for each in (cold, *warm)) / 1024
    opened_count = max(each["result"] for each in warm)
    return [
        Row(
            f"first scan of {files:,} files (hash and first look)",
            f"{files / cold['seconds']:,.0f} files/CPU-s",
            f"{files / best_floor:,.0f} files/CPU-s, bare walk",
            cold["seconds"] / best_floor,
        ),
        Row(
            f"second scan of {files:,} unchanged files ({opened_count:.0f} opened)",
            f"{files / best_warm:,.0f} files/CPU-s",
            f"{files / best_floor:,.0f} files/CPU-s, bare walk",
            best_warm / best_floor,
            bar=2.0,
            bar_text="≤ 2 times the time",
        ),
        Row("memory of the process", f"{memory:.0f} MB", "", bar=300, bar_text="< 300 MB", amount=memory),
    ]


def _run(what: str, root: Path, state: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.measure.organiser_scan", what, str(root), str(state)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    what, root, state = sys.argv[1:]
    started_at = time.process_time()
    result = bare(root) if what == "bare" else survey(root, state)
    seconds = time.process_time() - started_at
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "result": result, "kilobytes": kilobytes}))


if __name__ == "__main__":
    main()
