"""Runs a program as a confined child: it can read only the given files and directories, and it ends with the call.

Landlock confines a thread and whatever that thread starts, so each child is started from a thread that has confined
itself. The child has no other file and no network. It computes only when the server does not, at most twice as long as
its call may take, and where the kernel can do so it is killed with the server, however that ends.
"""

import fcntl
import math
import os
import resource
import secrets
import select
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.call import Call
from holdfast.errors import PayloadTooLarge
from holdfast.folders.access.syscalls import (
    LANDLOCK_EXECUTE,
    LANDLOCK_READ_DIR,
    LANDLOCK_READ_FILE,
    landlock_abi,
    landlock_restrict_thread,
)
from holdfast.observe.metrics import Metrics, Reading
from holdfast.observe.spans import record_part

_READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR
_RUN = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR | LANDLOCK_EXECUTE
_POLL_SECONDS = 0.05
_CHUNK_BYTES = 1 << 16
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_BUSY_SHARE = 0.2
_NICE = 10
_MAX_PROCESSOR_SECONDS = 24 * 3600
_CAN_SIGNAL_END = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Child:
    """A program to run. `directory_fd` becomes its working directory, `pass_fds` keep their numbers in it.

    `memory_bytes` limits its memory where the system can (a child of ours sets its own limit). With `idle_seconds` it is
    killed after it neither computed nor wrote for that time.
    """

    argv: Sequence[str]
    readable_fds: Sequence[int] = ()
    runnable_paths: Sequence[str] = ()
    directory_fd: int | None = None
    pass_fds: Sequence[int] = ()
    stdin: bytes = b""
    max_output_bytes: int = 64_000_000
    memory_bytes: int | None = None
    idle_seconds: float | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChildExit:
    """Exit status and output of a child; `stopped` when `enough` ended it early."""

    status: int
    stdout: bytes
    stderr: bytes
    stopped: bool = False


class ChildTally:
    """Counts the children of this process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.started = self.running = self.killed = 0

    def add_started(self) -> None:
        """Count a child that was started."""
        with self._lock:
            self.started += 1
            self.running += 1

    def add_ended(self, *, was_killed: bool) -> None:
        """Count the end of a child."""
        with self._lock:
            self.running -= 1
            self.killed += was_killed

    def watch(self, metrics: Metrics) -> None:
        """Give the counts to the metrics."""
        metrics.watch(Reading.CHILDREN_STARTED, lambda: self.started)
        metrics.watch(Reading.CHILDREN_RUNNING, lambda: self.running)
        metrics.watch(Reading.CHILDREN_KILLED, lambda: self.killed)


CHILDREN = ChildTally()


class ChildStalled(Exception):
    """A child was idle for longer than its `idle_seconds`."""


def can_confine() -> bool:
    """Return whether this kernel has Landlock; without it no program may open files by path."""
    return landlock_abi() > 0


_CHILD_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
"""Without a home Python would look its user up, which asks a name service where the machine has one."""


def python_child(*arguments: str, stdin: bytes = b"", pass_fds: Sequence[int] = ()) -> Child:
    """Return a child that runs Python with these arguments; it can read the interpreter's files and `pass_fds` only."""
    return Child(
        [sys.executable, "-I", *arguments],
        runnable_paths=_python_paths(),
        pass_fds=pass_fds,
        stdin=stdin,
        environment=_CHILD_ENVIRONMENT,
    )


def run_child(
    call: Call,
    child: Child,
    *,
    enough: Callable[[bytes], bool] | None = None,
    while_running: Callable[[], None] | None = None,
) -> ChildExit:
    """Run a child to its end and return what it wrote.

    The child is killed when the call is cancelled or its deadline passes (Cancelled, TimedOut), when it writes more than
    `max_output_bytes` (PayloadTooLarge), when it is idle for too long (ChildStalled), or when `enough`, which is called
    with each piece of output, returns True. `while_running` is called repeatedly until then, to report progress.
    """
    call.check()
    with record_part("child process"):
        return _run_started(call, child, enough, while_running or (lambda: None))


def _run_started(
    call: Call, child: Child, enough: Callable[[bytes], bool] | None, while_running: Callable[[], None]
) -> ChildExit:
    process, lifeline = _start(child)
    CHILDREN.add_started()
    try:
        _limit(process.pid, child, call.remaining())
        return _Pump(call, child, process, enough, while_running).run()
    finally:
        was_killed = process.poll() is None
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        CHILDREN.add_ended(was_killed=was_killed)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        os.close(lifeline)


def _start(child: Child) -> "tuple[subprocess.Popen[bytes], int]":
    """Start a child from a thread made for it: confining a thread cannot be undone. Returns it and its lifeline."""
    read_end, write_end = os.pipe()

    def start_confined() -> "subprocess.Popen[bytes]":
        if can_confine():
            _confine_thread(child)
        return _popen(child, read_end)

    try:
        with ThreadPoolExecutor(1, thread_name_prefix="holdfast-confine") as thread:
            process = thread.submit(start_confined).result()
        _kill_when_closed(read_end, process.pid)
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    return process, write_end


def _kill_when_closed(read_end: int, pid: int) -> None:
    """Let the kernel kill a child when the other end of its pipe is closed, which is when this process ends at the latest.

    The child holds the pipe and need not know of it. A signal at the death of its parent would come too early: the thread
    that starts a child ends at once.
    """
    if _CAN_SIGNAL_END:
        fcntl.fcntl(read_end, fcntl.F_SETOWN, pid)
        fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)


def _limit(pid: int, child: Child, seconds: float) -> None:
    """Limit what a child that was just started may use; one of ours limits itself where the system cannot."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
    if not hasattr(resource, "prlimit"):
        return
    processor_seconds = math.ceil(min(2 * seconds, _MAX_PROCESSOR_SECONDS)) + 1
    with suppress(OSError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (processor_seconds, processor_seconds))
        if child.memory_bytes is not None:
            resource.prlimit(pid, resource.RLIMIT_AS, (child.memory_bytes, child.memory_bytes))


def _confine_thread(child: Child) -> None:
    fds: list[int] = []
    rules = [(fd, _READ if stat.S_ISDIR(os.fstat(fd).st_mode) else LANDLOCK_READ_FILE) for fd in child.readable_fds]
    try:
        for path in child.runnable_paths:
            with suppress(FileNotFoundError):
                fds.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
        rules += [(fd, _RUN if os.path.isdir(f"/proc/self/fd/{fd}") else _RUN & ~LANDLOCK_READ_DIR) for fd in fds]
        landlock_restrict_thread(rules)
    finally:
        for fd in fds:
            os.close(fd)


def _popen(child: Child, read_end: int) -> "subprocess.Popen[bytes]":
    directory = f"/proc/self/fd/{child.directory_fd}" if sys.platform == "linux" else f"/dev/fd/{child.directory_fd}"
    return subprocess.Popen(
        child.argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory if child.directory_fd is not None else "/",
        env=child.environment,
        pass_fds=[*child.pass_fds, read_end],
        bufsize=0,
    )


class _IdleWatch:
    """Detects a child that reads nothing, writes nothing and hardly computes, where /proc says so.

    Waiting threads of the child may poll for work, so a little processor time does not count as activity.
    """

    def __init__(self, pid: int, seconds: float | None) -> None:
        self._pid = pid
        self._seconds = seconds
        self._reads, self._ticks, self._since = b"", 0, time.monotonic()

    def check(self, *, has_written: bool) -> None:
        """Raise ChildStalled when the child was idle for too long."""
        if self._seconds is None or (time.monotonic() - self._since < self._seconds and not has_written):
            return
        reads, ticks = self._reads_and_ticks()
        busy = (ticks - self._ticks) / _TICKS_PER_SECOND > _BUSY_SHARE * self._seconds
        if not (has_written or busy or reads != self._reads):
            raise ChildStalled
        self._reads, self._ticks, self._since = reads, ticks, time.monotonic()

    def _reads_and_ticks(self) -> tuple[bytes, int]:
        try:
            reads = _read_proc_file(f"/proc/{self._pid}/io").partition(b"syscr:")[2].split()[0]
            fields = _read_proc_file(f"/proc/{self._pid}/stat").rpartition(b")")[2].split()
        except (OSError, IndexError):
            return secrets.token_bytes(8), 0
        return reads, int(fields[11]) + int(fields[12])


def _read_proc_file(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


class _Pump:
    """Writes to a child's standard input and reads its output until it ends, and checks the call meanwhile."""

    def __init__(
        self,
        call: Call,
        child: Child,
        process: "subprocess.Popen[bytes]",
        enough: Callable[[bytes], bool] | None,
        while_running: Callable[[], None],
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.call, self.child, self.process, self.enough = call, child, process, enough
        self.while_running = while_running
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.to_write = memoryview(child.stdin)
        self.out, self.err = bytearray(), bytearray()
        self.idle_watch = _IdleWatch(process.pid, child.idle_seconds)

    def run(self) -> ChildExit:
        reading = {self.stdout.fileno(): self.out, self.stderr.fileno(): self.err}
        writing = [self.stdin.fileno()]
        os.set_blocking(self.stdin.fileno(), False)
        if not self.to_write:
            self.stdin.close()
            writing = []
        while reading:
            self.call.check()
            self.while_running()
            readable, writable = _poll(reading, writing, min(_POLL_SECONDS, self.call.remaining()))
            self.idle_watch.check(has_written=bool(readable))
            if writable and not self._feed():
                writing = []
            for fd in readable:
                piece = os.read(fd, _CHUNK_BYTES)
                if not piece:
                    del reading[fd]
                elif self._take(reading[fd], piece):
                    return ChildExit(0, bytes(self.out), bytes(self.err), stopped=True)
        return ChildExit(self._wait(), bytes(self.out), bytes(self.err))

    def _feed(self) -> bool:
        try:
            written = os.write(self.stdin.fileno(), self.to_write[:_CHUNK_BYTES])
        except BrokenPipeError:
            written = len(self.to_write)
        self.to_write = self.to_write[written:]
        if not self.to_write:
            self.stdin.close()
        return bool(self.to_write)

    def _take(self, into: bytearray, piece: bytes) -> bool:
        into += piece
        if len(self.out) + len(self.err) > self.child.max_output_bytes:
            raise PayloadTooLarge(
                f"The program wrote more than {self.child.max_output_bytes} bytes; narrow the request."
            )
        return into is self.out and self.enough is not None and self.enough(piece)

    def _wait(self) -> int:
        while True:
            try:
                return self.process.wait(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                self.call.check()


def _poll(reading: Iterable[int], writing: Iterable[int], seconds: float) -> tuple[list[int], list[int]]:
    """Wait for descriptors to become ready, at most the given time; `select` cannot take descriptors above 1023."""
    poller = select.poll()
    for fd in reading:
        poller.register(fd, select.POLLIN)
    for fd in writing:
        poller.register(fd, select.POLLOUT)
    ready = {fd for fd, _ in poller.poll(seconds * 1000)}
    return [fd for fd in reading if fd in ready], [fd for fd in writing if fd in ready]


def _python_paths() -> list[str]:
    """Return the paths that Python must read to start: the interpreter, its libraries, the installed packages."""
    places = {sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"], str(Path(__file__).parents[3])}
    return sorted(places | {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo"})
