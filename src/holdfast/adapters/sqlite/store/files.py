"""The store's files: one SQLite database per tenant, opened when needed, a bounded number kept open."""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.sqlite.log import use_log
from holdfast.adapters.sqlite.private import make_private
from holdfast.adapters.sqlite.store.schema import migrate_store
from holdfast.errors import ResourceBusy
from holdfast.store.paths import next_group_start

KEPT_OPEN = 32
_EMPTY = ""
_SUFFIX = ".db"
_COARSE_NS = 30_000_000

Migrate = Callable[[sqlite3.Connection], None]
"""Brings a file to the newest shape when it is opened."""


class TenantFiles:
    """Connections by tenant. Each is used by one thread at a time; the least lately used ones are closed."""

    def __init__(self, folder: str, kept_open: int = KEPT_OPEN, migrate: Migrate = migrate_store) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.folder = folder
        self._kept_open = kept_open
        self._migrate = migrate
        self._idle: list[tuple[str, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        self._writers = ThreadLocks()
        self._rings: tuple[Callable[[], None], ...] = ()

    def names(self) -> list[str]:
        """Return the names of all tenants' files, in order."""
        return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(self.folder) if name.endswith(_SUFFIX))

    def snapshot(self, tenant: str) -> "Snapshot":
        """Give one moment of a tenant's file. A tenant without a file gets an empty database, and stays without."""
        return Snapshot(self, file_name(tenant))

    def snapshot_of(self, name: str) -> "Snapshot":
        """Give one moment of a file by its name."""
        return Snapshot(self, name)

    @contextmanager
    def writing(self, name: str, deadline: float, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Give a file's one write transaction, committed at the end; ResourceBusy when it is not free in time.

        Threads queue for it here, because SQLite's own wait is a sleep that grows. One that is not durable may be lost,
        with others like it after it, when the power fails: right for what can be made again, and it waits for no disk.
        """
        with self._writers.hold(name, deadline) as is_free:
            if not is_free:
                raise _busy()
            connection = self._taken(name) or self._opened(name)
            try:
                _begin(connection, deadline, durable)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self.give_back(name, connection)

    def on_change(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` after each mutation that this object commits; returns what ends that."""
        with self._lock:
            self._rings = (*self._rings, ring)

        def end() -> None:
            with self._lock:
                self._rings = tuple(other for other in self._rings if other is not ring)

        return end

    def changed(self) -> None:
        """Tell those who asked that a mutation was committed."""
        for ring in self._rings:
            ring()

    def close(self) -> None:
        """Close what is idle; connections in use are closed when they come back."""
        with self._lock:
            self._kept_open = 0
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def remove(self, name: str) -> None:
        """Remove a file that nobody is using."""
        while (connection := self._taken(name)) is not None:
            connection.close()
        for suffix in (_SUFFIX, f"{_SUFFIX}-wal", f"{_SUFFIX}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name + suffix))

    def borrowed(self, name: str) -> tuple[str, sqlite3.Connection]:
        """Return a connection to read a file with, and the name to give it back by."""
        connection = self._taken(name)
        if connection is not None:
            return name, connection
        if os.path.exists(self._path(name)):
            return name, self._opened(name)
        return _EMPTY, self._taken(_EMPTY) or self._opened(_EMPTY)

    def give_back(self, name: str, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next one who needs it, and close those that were longest unused."""
        with self._lock:
            self._idle.append((name, connection))
            surplus = self._idle[: max(0, len(self._idle) - self._kept_open)]
            del self._idle[: len(surplus)]
        for _, unused in surplus:
            unused.close()

    def _taken(self, name: str) -> sqlite3.Connection | None:
        with self._lock:
            for at in range(len(self._idle) - 1, -1, -1):
                if self._idle[at][0] == name:
                    return self._idle.pop(at)[1]
        return None

    def signature(self, name: str) -> tuple[int, ...] | None:
        """Return what differs after every commit to a file by any process; None while that cannot be told.

        The write-ahead log is touched by each commit. Its time is too coarse to tell two commits of one moment apart,
        so for a moment after a commit there is no signature.
        """
        found: list[int] = []
        for suffix in (_SUFFIX, f"{_SUFFIX}-wal"):
            try:
                status = os.stat(os.path.join(self.folder, name + suffix))
            except FileNotFoundError:
                found.append(0)
                continue
            if abs(time.time_ns() - status.st_mtime_ns) < _COARSE_NS:
                return None
            found += (status.st_mtime_ns, status.st_size, status.st_ino)
        return tuple(found)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name + _SUFFIX)

    def _opened(self, name: str) -> sqlite3.Connection:
        path = ":memory:" if name == _EMPTY else self._path(name)
        if name != _EMPTY:
            make_private(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA busy_timeout = 10000")
            use_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.create_function("beyond", 2, next_group_start, deterministic=True)
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class Snapshot:
    """One moment of a file, for as long as it is entered; a plain class, because every reading passes here."""

    __slots__ = ("_connection", "_files", "_name")

    def __init__(self, files: TenantFiles, name: str) -> None:
        self._files = files
        self._name = name

    def __enter__(self) -> sqlite3.Connection:
        self._name, self._connection = self._files.borrowed(self._name)
        self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, *_fault: object) -> None:
        try:
            self._connection.execute("ROLLBACK")
        finally:
            self._files.give_back(self._name, self._connection)


@lru_cache(maxsize=1024)
def file_name(tenant: str) -> str:
    """Return the name of a tenant's file, which says nothing of the tenant."""
    return hashlib.sha256(tenant.encode()).hexdigest()


def _begin(connection: sqlite3.Connection, deadline: float, durable: bool) -> None:
    wait_ms = max(0, int((deadline - time.monotonic()) * 1000))
    connection.execute(f"PRAGMA busy_timeout = {wait_ms:d}")
    connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise _busy() from None
        raise


def _busy() -> ResourceBusy:
    return ResourceBusy("the store is being written to; try again")
