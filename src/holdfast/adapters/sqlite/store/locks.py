"""The lock of one project of one tenant, across threads and processes, with a bounded wait.

SQLite has one writer per file; holding its write lock during a whole mutation would stop the tenant's other projects.
So a mutation holds this lock instead, and its write transaction is as short as its statements.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.store_statements import project_busy

_MIN_POLL_SECONDS = 0.0005
_MAX_POLL_SECONDS = 0.02


class ProjectLocks:
    """Threads wait for each other without polling; the lock of another process is polled every few milliseconds.

    A lock file is held by `flock`, which ends with the process that held it.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = folder
        self._threads = ThreadLocks()

    @contextmanager
    def hold(self, tenant: str, project: str, deadline: float) -> Iterator[None]:
        """Hold the lock of a project; ResourceBusy when it is not free before the deadline."""
        name = hashlib.sha256(f"{tenant}\0{project}".encode()).hexdigest()
        with self._threads.hold(name, deadline) as is_held:
            if not is_held:
                raise project_busy(project)
            with self._hold_across_processes(name, project, deadline):
                yield

    @contextmanager
    def _hold_across_processes(self, name: str, project: str, deadline: float) -> Iterator[None]:
        fd = os.open(os.path.join(self._folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            pause = _MIN_POLL_SECONDS
            while not _try_lock(fd):
                if time.monotonic() + pause > deadline:
                    raise project_busy(project)
                time.sleep(pause)
                pause = min(pause * 2, _MAX_POLL_SECONDS)
            yield
        finally:
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
