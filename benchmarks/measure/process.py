"""What a process has used, as the kernel counts it: CPU time in nanoseconds, resident and proportional memory."""

import os
from contextlib import suppress
from pathlib import Path

_MEGABYTE_KB = 1024


def cpu_ns(pid: int) -> int:
    """Return the CPU time of every living thread of a process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError, ProcessLookupError):
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total


def rss_mb(pid: int) -> float:
    """Return the resident memory in MiB, shared pages counted in full."""
    return _field(Path(f"/proc/{pid}/status"), "VmRSS:")


def pss_mb(pid: int) -> float:
    """Return the proportional memory in MiB: a page that three processes share counts a third."""
    return _field(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _field(path: Path, name: str) -> float:
    for line in path.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / _MEGABYTE_KB
    raise ValueError(f"{path} has no {name}")
