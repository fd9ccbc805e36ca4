"""Kills and errors at chosen system calls of a running child, by strace: each point is a call's name and its number.

strace counts each name of call on its own from the moment that it holds the child, so a point is (name, n-th call of
that name), and what comes before the marker is counted but is no point.
"""

import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.torture.changes_driver import MARKER, Child

_CALL = re.compile(r"^(?:\d+ +)?([a-z0-9_]+)\(")
_NO_POINT = frozenset(
    "futex mmap munmap mprotect mremap brk madvise getrandom clock_gettime clock_nanosleep gettid getpid geteuid getuid "
    "getegid getgid rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait sched_yield exit restart_syscall "
    "set_robust_list rseq clone clone3 umask uname sysinfo".split()
)

_PATHS = ("EIO", "EACCES", "EMFILE", "EINTR", "ENOSPC")
ERRORS: dict[str, tuple[str, ...]] = {
    "openat": _PATHS,
    "openat2": _PATHS,
    "open": _PATHS,
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": ("EIO", "ENOSPC", "EINTR"),
    "pwrite64": ("EIO", "ENOSPC", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "fdatasync": ("EIO", "ENOSPC", "EINTR"),
    "renameat2": ("EIO", "ENOSPC", "EACCES", "EINTR"),
    "renameat": ("EIO", "ENOSPC", "EACCES"),
    "rename": ("EIO", "ENOSPC", "EACCES"),
    "linkat": ("EIO", "ENOSPC", "EACCES"),
    "symlinkat": ("EIO", "ENOSPC", "EACCES"),
    "mkdirat": ("EIO", "ENOSPC", "EACCES"),
    "unlinkat": ("EIO", "EACCES"),
    "unlink": ("EIO", "EACCES"),
    "newfstatat": ("EIO", "EACCES"),
    "fstat": ("EIO",),
    "getdents64": ("EIO",),
    "readlinkat": ("EIO", "EACCES"),
    "faccessat": ("EIO", "EACCES"),
    "faccessat2": ("EIO", "EACCES"),
    "fcntl": ("EIO", "EINTR"),
    "dup": ("EMFILE",),
    "ftruncate": ("EIO", "ENOSPC", "EINTR"),
    "fallocate": ("EIO", "ENOSPC", "EINTR"),
    "fchmod": ("EIO", "EACCES"),
    "fchmodat": ("EIO", "EACCES"),
    "fchown": ("EIO", "EACCES"),
    "fchownat": ("EIO", "EACCES"),
    "utimensat": ("EIO", "EACCES"),
    "flistxattr": ("EIO",),
    "fgetxattr": ("EIO",),
    "fsetxattr": ("EIO", "ENOSPC", "EACCES"),
    "close": ("EIO",),
}
"""The errors that each call can give; a call that is not here gives none that matters."""

CHANGING = frozenset(
    "openat write pwrite64 fsync fdatasync renameat2 renameat rename linkat symlinkat mkdirat unlinkat unlink rmdir "
    "ftruncate fallocate fchmod fchmodat fchown fchownat utimensat fsetxattr copy_file_range exit_group".split()
)
"""The calls that may change what a disk holds or will hold: between two others a power cut finds the same disk."""


@dataclass(frozen=True)
class Point:
    """One system call of a scenario; `error` is what it is made to answer, None for a kill before it."""

    call: str
    number: int
    error: str | None = None

    def __str__(self) -> str:
        return f"{self.call}:{self.number}" + (f":{self.error}" if self.error else "")

    @classmethod
    def parse(cls, text: str) -> "Point":
        """Return the point that `str` writes."""
        call, number, *error = text.split(":")
        return cls(call, int(number), error[0] if error else None)

    @property
    def injection(self) -> list[str]:
        """Return strace's own words for it."""
        what = f"error={self.error}" if self.error else "signal=KILL"
        return ["-e", f"trace={self.call}", "-e", f"inject={self.call}:{what}:when={self.number}"]


def trace(child: Child, out: Path) -> list[Point]:
    """Run a child to its end and return a kill point for every call after the marker, in their order."""
    _run(child, ["-s", "256", "-o", str(out)])
    counts: dict[str, int] = {}
    points = []
    is_after = False
    for line in out.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        call = match[1]
        counts[call] = counts.get(call, 0) + 1
        if is_after and call not in _NO_POINT:
            points.append(Point(call, counts[call]))
        is_after = is_after or MARKER in line
    assert is_after, "the marker is not in the trace"
    assert child.status == 0, f"the undisturbed run ended with {child.status}"
    return points


def errors(points: list[Point]) -> list[Point]:
    """Return a point for every error that every call can give."""
    return [Point(p.call, p.number, error) for p in points for error in ERRORS.get(p.call, ())]


def strike(child: Child, point: Point, out: Path, before: Callable[[], None] = lambda: None) -> str | None:
    """Run a child up to a point; returns what is wrong with the strike itself, None when it hit.

    `before` is called while the child waits to begin.
    """
    _run(child, ["-o", str(out), *point.injection], before)
    if point.error is None:
        return None if child.status == -signal.SIGKILL else f"the kill did not hit: it ended with {child.status}"
    if "(INJECTED)" not in out.read_text(errors="replace"):
        return "the error was not injected"
    return None if child.status == 0 else f"the process ended with {child.status}"


def _run(child: Child, options: list[str], before: Callable[[], None] = lambda: None) -> None:
    if not child.await_ready():
        child.wait()
        return
    before()
    tracer = subprocess.Popen(["strace", "-f", "-p", str(child.pid), *options], stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    line = tracer.stderr.readline()
    assert b"attached" in line, line
    child.go()
    child.wait()
    tracer.stderr.read()
    tracer.stderr.close()
    tracer.wait()
