"""Runs one flood in a process of its own until it is ended.

python -m benchmarks.measure.flooder NAME < target.json
"""

import json
import os
import sys

import benchmarks.measure.page_floods  # noqa: F401 - adds its floods to the table
from benchmarks.measure.floods import FLOODS, START_LINE, Target


def main() -> None:
    """Run the flood that the command line names."""
    os.nice(5)  # a client is elsewhere, and does not take the server's processors
    target = Target(**json.load(sys.stdin))
    print(START_LINE, flush=True)
    FLOODS[sys.argv[1]](target)


if __name__ == "__main__":
    main()
