"""Measure how fast the console loads and how fast its pages answer a key, in a real browser against a real server.

    python benchmarks/console.py [--entries 100000] [--moves 10000] [--calls 50000] [--rounds 10] [--only TEXT] [--json FILE]

Each row is one thing that a person does, from the key to the frame in which its effect was painted; the table gives the 95th
percentile, as the browser runs and with its processor slowed down four times. A further row is one more function in
`benchmarks/measure/console_rows.py`.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure.console_desk import Amounts, Console, open_console
from benchmarks.measure.console_rows import DEEDS, PAGE_MS, first_load, first_load_slowly
from tests.helpers.console import link_of
from tests.helpers.first_load import MAX_BYTES, load_first
from tests.helpers.key_to_paint import p95

SLOW = 4


@dataclass(frozen=True)
class Times:
    """What was measured of one row, in milliseconds: as the browser runs, and slowed down."""

    what: str
    bar_ms: int
    plain: list[float]
    slow: list[float]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        plain, slow = f"{p95(self.plain):.0f} ms", f"{p95(self.slow):.0f} ms"
        is_met, is_met_slowly = p95(self.plain) <= self.bar_ms, p95(self.slow) <= self.bar_ms
        verdict = ("met" if is_met_slowly else "met, slower not") if is_met else "**missed**"
        return (self.what, f"{statistics.median(self.plain):.0f} ms", plain, slow, f"≤ {self.bar_ms:,} ms", verdict)


def main() -> None:
    """Measure every row at both speeds and print the table."""
    options = _options()
    amounts = Amounts(options.entries, options.moves, options.calls)
    print("| what | median | p95 | p95, 4x slower | bar | |\n|---|---|---|---|---|---|", flush=True)
    measured: list[Times] = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        open_console(Path(folder), amounts) as console,
    ):
        for times in _measure(console, options.only, options.rounds):
            print(f"| {' | '.join(times.cells())} |", flush=True)
            measured.append(times)
        nodes = console.page.locator("*").count()
        load = load_first(console.browser, link_of(console.house))
    verdict = "met" if load.wire_bytes <= MAX_BYTES else "**missed**"
    print(
        f"\nA first load fetches {load.wire_bytes / 1000:.0f} KB in {load.files} files, compressed "
        f"(bar {MAX_BYTES / 1000:.0f} KB: {verdict}); unpacked {load.raw_bytes / 1000:.0f} KB. "
        f"The last page has {nodes:,} elements."
    )
    if options.json:
        facts = {"rows": [asdict(times) for times in measured], "load": asdict(load), "elements": nodes}
        Path(options.json).write_text(json.dumps(facts, indent=1))


def _measure(console: Console, only: str, rounds: int) -> Iterator[Times]:
    what = "first load, from the link to the rows of the inbox"
    if only in what:
        yield Times(what, PAGE_MS, first_load(console, rounds), first_load_slowly(console, rounds))
    for deed in DEEDS:
        what = deed.what.format(**asdict(console.amounts))
        if only in what:
            console.slow_down(1)
            plain = deed.measure(console, rounds)
            console.slow_down(SLOW)
            yield Times(what, deed.bar_ms, plain, deed.measure(console, rounds))
    console.slow_down(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000, help="files in the large folder")
    parser.add_argument("--moves", type=int, default=10_000, help="files of the plan")
    parser.add_argument("--calls", type=int, default=50_000, help="calls in the log")
    parser.add_argument("--rounds", type=int, default=10, help="how often each key is pressed")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only the rows with this text in them")
    parser.add_argument("--json", metavar="FILE", help="write what was measured to FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
