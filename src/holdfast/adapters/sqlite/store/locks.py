"""The lock of one project of one tenant, across threads and processes, with a bounded wait.

SQLite has one writer per file; holding its write lock while a mutation thinks would stop the tenant's other projects.
So a mutation waits here, and the write transaction is as short as its statements.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.adapters.locks import ThreadLocks
from holdfast.errors import ResourceBusy

_LOOK_FIRST_SECONDS = 0.0005
_LOOK_LAST_SECONDS = 0.02


class ProjectLocks:
    """Threads wait for each other without polling; another process is looked for every few milliseconds.

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
                raise busy(project)
            with self._across_processes(name, project, deadline):
                yield

    @contextmanager
    def _across_processes(self, name: str, project: str, deadline: float) -> Iterator[None]:
        fd = os.open(os.path.join(self._folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            pause = _LOOK_FIRST_SECONDS
            while not _locked(fd):
                if time.monotonic() + pause > deadline:
                    raise busy(project)
                time.sleep(pause)
                pause = min(pause * 2, _LOOK_LAST_SECONDS)
            yield
        finally:
            os.close(fd)


def busy(project: str) -> ResourceBusy:
    """Return the error for a project that others are changing."""
    return ResourceBusy(f"another change of project {project} is under way; try again")


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
