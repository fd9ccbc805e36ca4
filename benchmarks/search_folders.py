"""Measure search in local folders: how soon an answer comes, first and later, and how soon an edit is found.

    python benchmarks/search_folders.py [--files N] [--quick] [--json FILE]

Files of 1 to 4 kB in directories of fifty, indexed by words alone: the model's speed is measured in search_freshness.py. The
service behind `search_folders` is asked in process. CPU is that of the whole process, its lanes included.
"""

import argparse
import json
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.helpers.searcher import Searcher

WORDS = ["harbour", "winter", "ledger", "copper", "station", "garden", "signal", "river", "museum", "engine", "orchard"]
FILES_EACH = 50
WARM = 100
EDITS = 20


@dataclass(frozen=True)
class Row:
    """One thing that was measured: seconds on the clock and of CPU, in the middle and at the 95th percentile."""

    what: str
    clock_ms: float
    clock_p95_ms: float
    cpu_ms: float

    def line(self) -> str:
        """Return a line of the table."""
        return f"| {self.what} | {self.clock_ms:.0f} ms (p95 {self.clock_p95_ms:.0f} ms) | {self.cpu_ms:.0f} ms |"


def grow(root: Path, files: int) -> None:
    """Make the files."""
    random_source = random.Random(files)
    for number in range(files):
        folder = root / f"d{number // FILES_EACH:04d}"
        folder.mkdir(exist_ok=True)
        words = random_source.choices(WORDS, k=random_source.randint(150, 600))
        (folder / f"{number:06d}.md").write_text(f"file{number} " + " ".join(words))


def measured(what: str, times: int, work: Callable[[int], object]) -> Row:
    """Do something some times and say how long each took."""
    clock, cpu = [], []
    for turn in range(times):
        began, began_cpu = time.perf_counter(), time.process_time()
        work(turn)
        clock.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - began_cpu) * 1000)
    if times == 1:
        return Row(what, clock[0], clock[0], cpu[0])
    return Row(what, quantiles(clock, n=20)[9], quantiles(clock, n=20)[18], quantiles(cpu, n=20)[9])


def run(folder: Path, files: int) -> list[Row]:
    """Measure one root of so many files."""
    root = folder / "root"
    root.mkdir()
    grow(root, files)

    def finish(_turn: int) -> None:
        while searcher.search.has_work():
            time.sleep(0.02)

    def edit(turn: int) -> None:
        (root / f"d{turn % 3:04d}" / f"new{turn}.md").write_text(f"zeppelin{turn} arrives")
        while not searcher.find(f"zeppelin{turn}", root).hits:
            time.sleep(0.005)

    with Searcher(folder) as searcher:
        rows = [
            measured(f"first answer, {files} files", 1, lambda _: searcher.find("harbour", root)),
            measured("index of words made after that", 1, finish),
            measured("answer, index made", WARM, lambda turn: searcher.find(f"file{turn * 7 % files}", root)),
            measured("answer for a common word", WARM, lambda _: searcher.find("harbour river", root)),
            measured("a new file is found", EDITS, edit),
        ]
    with Searcher(folder) as searcher:
        return [*rows, measured("first answer after a restart", 1, lambda _: searcher.find("harbour", root))]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(Path(folder), 300 if options.quick else options.files)
    print(f"{platform.system()} {platform.release()}, Python {platform.python_version()}\n")
    print("| what | clock | CPU |\n|---|---|---|")
    print("\n".join(row.line() for row in rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
