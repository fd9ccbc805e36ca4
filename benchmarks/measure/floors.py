"""The least that a call costs: the same work done by bare Python, with the same promises about the disk."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

Work = Callable[[], object]


def timed(work: Work) -> float:
    """Return the seconds that the work takes."""
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


def read(path: Path) -> Work:
    """Read a whole file."""
    return path.read_bytes


def stat(path: Path) -> Work:
    """Ask for a file's status."""
    return path.stat


def names(path: Path) -> Work:
    """List a folder, sorted."""
    return lambda: sorted(os.listdir(path))


def replace(path: Path) -> Work:
    """Replace a file so that it is on the disk, whole, when the call returns."""
    numbers: Iterator[int] = count()

    def work() -> None:
        temporary = path.with_suffix(".part")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, f"{next(numbers)}\n{'x' * 1000}".encode())
        os.fsync(fd)
        os.close(fd)
        temporary.rename(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)

    return work
