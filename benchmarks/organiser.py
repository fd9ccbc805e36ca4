"""Measure the organiser: how fast a folder is scanned, planned and tidied, and what it costs in memory.

    python benchmarks/organiser.py [--files N] [--rounds N] [--planned N]

A walk by `os.scandir` that asks for the status of every file is the floor. Rounds alternate between the two, so that a
busy machine slows both. Plans are made and carried out by the commands; organize-tool, installed for the run, moves the
same files by rules. It prints a table in Markdown.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import organiser_plan, organiser_scan
from benchmarks.measure.table import markdown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=100_000, help="files of the tree (100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="warm scans, the best of which counts (5)")
    parser.add_argument("--planned", type=int, default=10_000, help="files of each plan (10,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        rows = organiser_scan.measure(Path(folder), options.files, options.rounds) if options.files else []
        rows += organiser_plan.measure(Path(folder), options.planned)
    print(markdown(rows))


if __name__ == "__main__":
    main()
