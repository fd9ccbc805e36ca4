"""state.db, the SQLite file of the state folder: private, write-ahead logged, one writer at a time."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote

from holdfast.adapters.sqlite.connection import create_private_file, enable_wal, to_holdfast_error, transaction
from holdfast.adapters.sqlite.state.journal_rows import read_path
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.adapters.statements import named_statements
from holdfast.changes.model import is_beneath

Value = TypeVar("Value")

_BUSY_MS = 10_000
_LONG_LOG_PAGES = 4_000


class Database:
    """A connection shared by every thread under a lock, and a second one that checkpoints the log into the file.

    A durable transaction is on the disk when it ends; any other one is only in the log until the next durable one.
    """

    def __init__(self, path: str) -> None:
        create_private_file(path)
        self._lock = threading.RLock()
        self._statements = {
            **named_statements(__package__, "queries.sql"),
            **named_statements(__package__, "reviews.sql"),
        }
        self._connection = _connect(path)
        self._durable = True
        migrate(self._connection)
        self._checkpointer = _connect(path)
        self._stretch_log()

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run several statements as one; an exception rolls all of them back."""
        with self._lock:
            if durable is not self._durable:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with state_transaction(
                self._connection, "The disk of the state folder is full, so the change could not be recorded or made."
            ):
                yield

    def run(self, name: str, parameters: Mapping[str, Any] | None = None) -> sqlite3.Cursor:
        """Run a named statement inside a transaction."""
        return self._connection.execute(self._statements[name], parameters or {})

    def run_many(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Run a named statement once for each row."""
        self._connection.executemany(self._statements[name], rows)

    def fetch(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[sqlite3.Row]:
        """Return all rows of a named query."""
        with self._lock:
            return self._connection.execute(self._statements[name], parameters or {}).fetchall()

    def fetch_as(
        self,
        read: Callable[[sqlite3.Row], Value],
        columns: Sequence[str],
        name: str,
        parameters: Mapping[str, Any] | None = None,
    ) -> list[Value]:
        """Return all rows of a named query, each read at once, so that the rows are never all in memory.

        The query must have exactly these columns, in this order, so that `read` may go by position.
        """
        with self._lock:
            cursor = self._connection.execute(self._statements[name], parameters or {})
            if [column[0] for column in cursor.description] != [*columns]:
                raise AssertionError(f"the columns of {name} are not {', '.join(columns)}")
            return [read(row) for row in cursor]

    def checkpoint(self) -> None:
        """Move the log's pages into the file, without making the writer wait unless the log has grown long."""
        _, pages, _ = self._checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages > _LONG_LOG_PAGES:
            self._checkpointer.execute("PRAGMA wal_checkpoint(RESTART)")

    def _stretch_log(self) -> None:
        """Give the log its size at once: a commit into room that exists takes half as long as one that adds some.

        A process that was killed here has left its table behind.
        """
        for statement in (
            "DROP TABLE IF EXISTS stretch",
            "CREATE TABLE stretch (filler BLOB)",
            "INSERT INTO stretch VALUES (zeroblob(4000000))",
            "DROP TABLE stretch",
        ):
            self._connection.execute(statement)
        self.checkpoint()

    def close(self) -> None:
        """Close both connections; the last one to leave removes the log."""
        with self._lock:
            self._checkpointer.close()
            self._connection.close()


@contextmanager
def state_transaction(connection: sqlite3.Connection, when_full: str) -> Iterator[None]:
    """Run one write transaction of state.db; QuotaExceeded with that text on a full disk, ResourceBusy when it is held."""
    try:
        with transaction(connection):
            yield
    except sqlite3.OperationalError as error:
        refusal = to_holdfast_error(error, when_full)
        if refusal is None:
            raise
        raise refusal from error


def inspect_database(path: str) -> str | None:
    """Return what is wrong with a database file, None when it opens, is sound and is in WAL mode. Changes nothing."""
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        return str(error)
    try:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            return f"its journal mode is {mode!r}, expected 'wal'"
        report = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        return None if report == "ok" else str(report)
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
    enable_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    register_functions(connection)
    return connection


def register_functions(connection: sqlite3.Connection) -> None:
    """Add the SQL functions that our statements use to a connection."""
    connection.create_function("is_beneath", 2, _is_stored_path_beneath, deterministic=True)


def _is_stored_path_beneath(stored: str | bytes, roots: str) -> bool:
    """Return whether a stored path is one of the roots, a JSON list, or lies inside one."""
    return is_beneath(read_path(stored) or "/", _parse_roots(roots))


@lru_cache(maxsize=64)
def _parse_roots(roots: str) -> tuple[str, ...]:
    return tuple(json.loads(roots))
