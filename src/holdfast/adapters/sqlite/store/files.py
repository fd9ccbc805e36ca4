"""The store's files: one SQLite database per tenant, opened when needed, a bounded number of idle connections.

Named statements run on them; times are stored as text.
"""

import glob
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.sqlite.connection import create_private_file, enable_wal, transaction
from holdfast.adapters.sqlite.store.schema import migrate_store
from holdfast.adapters.statements import named_statements
from holdfast.clock import format_utc
from holdfast.errors import ResourceBusy
from holdfast.store.paths import next_group_start
from holdfast.store.tenant_share import TenantUsage

MAX_IDLE_CONNECTIONS = 32
_EMPTY = ""
_SUFFIX = ".db"
_COARSE_NS = 30_000_000
"""Two changes within this time may leave the same modification time on a file."""

Migrate = Callable[[sqlite3.Connection], None]
"""Migrates a file to the current schema when it is opened."""

STATEMENTS = named_statements(__package__, "store.sql")


class TenantFiles:
    """Pools connections by tenant. One thread uses a connection at a time; the least recently used ones are closed."""

    def __init__(self, folder: str, max_idle: int = MAX_IDLE_CONNECTIONS, migrate: Migrate = migrate_store) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.folder = folder
        self._max_idle = max_idle
        self._migrate = migrate
        self._idle: list[tuple[str, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        self._writers = ThreadLocks()
        self._callbacks: tuple[Callable[[], None], ...] = ()

    def names(self) -> list[str]:
        """Return the names of all tenants' files, in order."""
        return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(self.folder) if name.endswith(_SUFFIX))

    def snapshot(self, tenant: str) -> "FileSnapshot":
        """Read one consistent state of a tenant's file. A tenant without a file reads an empty database, and gets none."""
        return FileSnapshot(self, file_name(tenant))

    def snapshot_of(self, name: str) -> "FileSnapshot":
        """Read one consistent state of a file by its name."""
        return FileSnapshot(self, name)

    @contextmanager
    def write_transaction(self, name: str, deadline: float, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Run the one write transaction of a file, committed at the end; ResourceBusy when it is not free in time.

        Threads queue for it here, because SQLite's own wait is a sleep that grows. One that is not durable may be lost,
        with others like it after it, when the power fails: right for what can be made again, and it waits for no disk.
        """
        with self._writers.hold(name, deadline) as is_free:
            if not is_free:
                raise _store_busy()
            connection = self._take_idle(name) or self._connect(name)
            try:
                wait_ms = max(0, int((deadline - time.monotonic()) * 1000))
                connection.execute(f"PRAGMA busy_timeout = {wait_ms:d}")
                connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
                with transaction(connection):
                    yield connection
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    raise _store_busy() from None
                raise
            finally:
                self.give_back(name, connection)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each mutation that this object commits; returns a function that ends it."""
        with self._lock:
            self._callbacks = (*self._callbacks, callback)

        def end() -> None:
            with self._lock:
                self._callbacks = tuple(known for known in self._callbacks if known is not callback)

        return end

    def notify_change(self) -> None:
        """Run the callbacks: a mutation was committed."""
        for callback in self._callbacks:
            callback()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are given back."""
        with self._lock:
            self._max_idle = 0
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def remove(self, name: str) -> None:
        """Remove a file that nobody is using."""
        while (connection := self._take_idle(name)) is not None:
            connection.close()
        for suffix in (_SUFFIX, f"{_SUFFIX}-wal", f"{_SUFFIX}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name + suffix))

    def borrow(self, name: str) -> tuple[str, sqlite3.Connection]:
        """Return a connection to read a file with, and the name to give it back by."""
        connection = self._take_idle(name)
        if connection is not None:
            return name, connection
        if os.path.exists(self._path(name)):
            return name, self._connect(name)
        return _EMPTY, self._take_idle(_EMPTY) or self._connect(_EMPTY)

    def give_back(self, name: str, connection: sqlite3.Connection) -> None:
        """Keep a connection for its next use, and close those that were unused for longest."""
        with self._lock:
            self._idle.append((name, connection))
            surplus = self._idle[: max(0, len(self._idle) - self._max_idle)]
            del self._idle[: len(surplus)]
        for _, unused in surplus:
            unused.close()

    def _take_idle(self, name: str) -> sqlite3.Connection | None:
        with self._lock:
            for at in range(len(self._idle) - 1, -1, -1):
                if self._idle[at][0] == name:
                    return self._idle.pop(at)[1]
        return None

    def signature(self, name: str) -> tuple[int, ...] | None:
        """Return a value that differs after every commit to a file by any process; None right after a commit.

        Each commit touches the write-ahead log, but its modification time is too coarse to tell two commits apart that
        are only milliseconds apart.
        """
        values: list[int] = []
        for suffix in (_SUFFIX, f"{_SUFFIX}-wal"):
            try:
                status = os.stat(os.path.join(self.folder, name + suffix))
            except FileNotFoundError:
                values.append(0)
                continue
            if abs(time.time_ns() - status.st_mtime_ns) < _COARSE_NS:
                return None
            values += (status.st_mtime_ns, status.st_size, status.st_ino)
        return tuple(values)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name + _SUFFIX)

    def _connect(self, name: str) -> sqlite3.Connection:
        path = ":memory:" if name == _EMPTY else self._path(name)
        if name != _EMPTY:
            create_private_file(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA busy_timeout = 10000")
            enable_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.create_function("beyond", 2, next_group_start, deterministic=True)
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class FileSnapshot:
    """A read transaction on a file; a plain class, which enters faster than a generator, because every read uses it."""

    __slots__ = ("_connection", "_files", "_name")

    def __init__(self, files: TenantFiles, name: str) -> None:
        self._files = files
        self._name = name

    def __enter__(self) -> sqlite3.Connection:
        self._name, self._connection = self._files.borrow(self._name)
        self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, *_fault: object) -> None:
        try:
            self._connection.execute("ROLLBACK")
        finally:
            self._files.give_back(self._name, self._connection)


def read_usages(folder: str) -> list[TenantUsage]:
    """Return what each tenant beneath a folder holds; files are only looked at, those of an earlier release left out."""
    usages = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), f"*{_SUFFIX}"))):
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            usages += [TenantUsage(*row) for row in connection.execute(STATEMENTS["list_usages"])]
    return usages


@lru_cache(maxsize=1024)
def file_name(tenant: str) -> str:
    """Return the name of a tenant's file: a hash, which does not reveal the tenant."""
    return hashlib.sha256(tenant.encode()).hexdigest()


def _store_busy() -> ResourceBusy:
    return ResourceBusy("the store is being written to; try again")


def run(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


def fetch_rows(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a named statement by column; columns that end in `_at` become datetimes."""
    return _rows_of(run(connection, name, parameters))


def _rows_of(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    for column in (name for name in names if name.endswith("_at")):
        for row in rows:
            row[column] = parse_time(row[column])
    return rows


def run_for(connection: sqlite3.Connection, tenant: str) -> Callable[[str, Mapping[str, Any]], list[dict[str, Any]]]:
    """Return a function that runs a named statement for a tenant and returns its rows."""

    def run_statement(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        cursor = run(connection, name, {"apikey_hash": tenant, **parameters})
        return _rows_of(cursor) if cursor.description else []

    return run_statement


def stored_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with each datetime as the text that is stored."""
    return {name: format_utc(value) if isinstance(value, datetime) else value for name, value in parameters.items()}


def parse_time(stored: str | None) -> datetime | None:
    """Return a stored time, None where there is none."""
    return None if stored is None else datetime.fromisoformat(stored)
