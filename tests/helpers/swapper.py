"""A process that swaps a directory and a link to the outside, as fast as the kernel lets it.

Run as a program: `python swapper.py DIRECTORY LINK`; it ends when its standard input closes. Each swap is one act
(renameat2 with RENAME_EXCHANGE), so at every moment `DIRECTORY` is either the real directory or the link.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.folders.access.syscalls import rename_exchange

AT_FDCWD = -100


@contextmanager
def swapping(directory: Path, link: Path, at_least: int = 1000) -> Iterator[None]:
    """Keep swapping the two while the block runs, `at_least` so often, and leave the directory where it was."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__)), str(directory), str(link)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.stdin.close()
        swaps = int(process.stdout.read())
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert swaps >= at_least


def main(directory: str, link: str) -> int:
    """Swap until standard input closes, an even number of times, and print how often."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    swaps = 0
    while not select.select([0], [], [], 0)[0]:
        for _ in range(64):
            rename_exchange(AT_FDCWD, directory, AT_FDCWD, link)
            swaps += 1
            os.sched_yield()
    sys.stdout.write(f"{swaps}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
