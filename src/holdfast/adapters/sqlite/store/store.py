"""The store on SQLite: one file per tenant, a lock per project, one short write transaction per mutation.

SQLite has one writer per file; holding its write lock during a whole mutation would stop the tenant's other projects.
So a mutation holds the lock of its project instead, and its write transaction is as short as its statements.
"""

import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.sqlite.connection import to_holdfast_error, translate_sqlite_errors
from holdfast.adapters.sqlite.store.files import (
    FileSnapshot,
    TenantFiles,
    fetch_rows,
    file_name,
    parse_time,
    run,
    run_for,
    stored_values,
)
from holdfast.adapters.store_statements import StatementMutation, StatementSnapshot, project_busy
from holdfast.adapters.tenant_share import RETURN_SIZES, count_growth, removed_bytes
from holdfast.store.model import FileSummary, PathLookup, PathType, ProjectState, Stamp, Stat, StoredFile, Window
from holdfast.store.paths import PathRange
from holdfast.store.tenant_share import NO_LIMIT, Growth, TenantShare

_MIN_POLL_SECONDS = 0.0005
_MAX_POLL_SECONDS = 0.02
_DATABASE = "the database of this tenant's stored files"


class ProjectLocks:
    """The lock of one project of one tenant, across threads and processes, with a bounded wait.

    Threads wait for each other without polling; the lock of another process is polled every few milliseconds.

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


class SqliteStore:
    """Every tenant's files beneath one private folder."""

    def __init__(self, folder: str, on_lock_wait: Callable[[float], None] = lambda _ms: None) -> None:
        self._on_lock_wait = on_lock_wait
        self.files = TenantFiles(folder)
        self._locks = ProjectLocks(os.path.join(folder, "locks"))

    @contextmanager
    def mutation(
        self, tenant: str, project: str, lock_timeout_ms: int, share: TenantShare = NO_LIMIT
    ) -> Iterator["SqliteMutation"]:
        """Hold a project's lock and change it within the tenant's share; ResourceBusy when the lock is not free in time."""
        began = time.monotonic()
        with translate_sqlite_errors(_DATABASE), self._hold_lock(tenant, project, began, lock_timeout_ms / 1000):
            with self.files.snapshot(tenant) as connection:
                mutation = SqliteMutation(connection, tenant, project)
                yield mutation
            if mutation.statements:
                self._commit(tenant, project, mutation, share, time.monotonic() + lock_timeout_ms / 1000)
                self.files.notify_change()

    @contextmanager
    def _hold_lock(self, tenant: str, project: str, began: float, seconds: float) -> Iterator[None]:
        """Hold the lock of a project, and say how long it was waited for, also in vain."""
        is_waiting = True
        try:
            with self._locks.hold(tenant, project, began + seconds):
                is_waiting = False
                self._on_lock_wait((time.monotonic() - began) * 1000)
                yield
        finally:
            if is_waiting:
                self._on_lock_wait((time.monotonic() - began) * 1000)

    def snapshot(self, tenant: str) -> "SqliteSnapshot":
        """Read one consistent state of a tenant's files."""
        return SqliteSnapshot(self.files.snapshot(tenant), tenant)

    def close(self) -> None:
        """Close every connection."""
        self.files.close()

    def _commit(
        self, tenant: str, project: str, mutation: "SqliteMutation", share: TenantShare, deadline: float
    ) -> None:
        live_bytes, history_bytes = mutation.growth
        try:
            with self.files.write_transaction(file_name(tenant), deadline) as connection:
                for statement in mutation.statements:
                    rows = run(connection, statement.name, statement.parameters)
                    if statement.name in RETURN_SIZES:
                        history_bytes -= removed_bytes(rows.fetchall())
                count_growth(run_for(connection, tenant), Growth(live_bytes, history_bytes), share)
        except sqlite3.IntegrityError as error:
            # How `save_project` refuses a version that is not the next one.
            if str(error) == "NOT NULL constraint failed: mcp_projects.version":
                raise project_busy(project) from None
            raise


@dataclass(frozen=True, slots=True)
class PendingStatement:
    """A statement to run when the mutation ends."""

    name: str
    parameters: dict[str, Any]


class SqliteMutation(StatementMutation):
    """Reads at once and collects what it writes in `statements`, for one short transaction when the block ends."""

    def __init__(self, connection: sqlite3.Connection, tenant: str, project: str) -> None:
        self._connection = connection
        self._scope = {"apikey_hash": tenant, "project": project}
        self.statements: list[PendingStatement] = []
        self.growth = Growth(0, 0)
        states = self._rows("project_state")
        self._state = ProjectState(**states[0]) if states else ProjectState()

    @property
    def state(self) -> ProjectState:
        """The project's counters when the lock was taken."""
        return self._state

    def look_up(self, path: str, above: Sequence[str], below: PathRange, *, with_content: bool) -> PathLookup:
        """Return what is at a path, below it, and above it."""
        files = self._rows("find_file", path=path, with_content=with_content)
        files_above = self.find_files_among(above) if above else []
        is_directory = not files and bool(self._rows("any_file_in", low=below.low, high=below.high)[0]["found"])
        return PathLookup(
            StoredFile(**files[0]) if files else None, is_directory, files_above[0] if files_above else None
        )

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if self.statements:
            raise RuntimeError("a mutation reads before it writes")
        return fetch_rows(self._connection, name, {**self._scope, **stored_values(parameters)})

    def _count(self, growth: Growth) -> None:
        self.growth = growth

    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        stamped = stored_values({"at": stamp.at, "version": stamp.version})
        self.statements.append(PendingStatement(name, {**self._scope, **stamped, **parameters}))


class SqliteSnapshot(StatementSnapshot):
    """Reads within one transaction of one connection, which it holds for as long as it is entered.

    The verbs that agents call most take their rows as tuples, without the detour through dictionaries.
    """

    __slots__ = ("_connection", "_snapshot", "_tenant")

    def __init__(self, snapshot: FileSnapshot, tenant: str) -> None:
        self._snapshot = snapshot
        self._tenant = tenant

    def __enter__(self) -> Self:
        # No context manager here: one would be a tenth of the time of a stat.
        try:
            self._connection = self._snapshot.__enter__()
        except sqlite3.Error as fault:
            raise to_holdfast_error(fault, _DATABASE) or fault from None
        return self

    def __exit__(self, _type: object, fault: BaseException | None, _trace: object) -> None:
        self._snapshot.__exit__()
        if isinstance(fault, sqlite3.Error) and (refusal := to_holdfast_error(fault, _DATABASE)) is not None:
            raise refusal from None

    def stat(self, project: str, path: str, below: PathRange) -> Stat:
        """Return what is at a path."""
        scope = {"apikey_hash": self._tenant, "project": project, "path": path, "low": below.low, "high": below.high}
        row = run(self._connection, "stat_path", scope).fetchone()
        if row is None:
            return Stat()
        path_type, size, created_at, updated_at = row
        return Stat(PathType(path_type), size, parse_time(created_at), parse_time(updated_at))

    def read_window(self, project: str, path: str, below: PathRange, start: int, count: int) -> Window | Stat:
        """Return bytes of a file, or what else is at the path."""
        scope = {"apikey_hash": self._tenant, "project": project, "path": path, "low": below.low, "high": below.high}
        row = run(self._connection, "read_window", {**scope, "start": start, "count": count}).fetchone()
        if row is None:
            return Stat()
        path_type, size, data = row
        return Window(size, start, data or b"") if path_type == PathType.FILE else Stat(PathType(path_type))

    def list_heads(self, project: str, span: PathRange, components: int, limit: int) -> list[FileSummary]:
        """Return the first file of each group that shares its first components."""
        scope = {"apikey_hash": self._tenant, "project": project, "low": span.low, "high": span.high}
        rows = run(self._connection, "list_heads", {**scope, "components": components, "limit": limit})
        parse = datetime.fromisoformat
        return [FileSummary(path, size, parse(created), parse(updated)) for path, size, created, updated in rows]

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        return fetch_rows(self._connection, name, {"apikey_hash": self._tenant, **stored_values(parameters)})
