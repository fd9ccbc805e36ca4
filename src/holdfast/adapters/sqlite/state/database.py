"""One SQLite file of the state folder: private, write-ahead logged, one writer at a time."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from holdfast.adapters.sqlite.log import use_log
from holdfast.adapters.sqlite.private import make_private
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.adapters.statements import named_statements
from holdfast.errors import QuotaExceeded, ResourceBusy

Read = TypeVar("Read")

_BUSY_MS = 10_000
_LONG_LOG_PAGES = 4_000


class Database:
    """A connection shared by every thread under a lock, and a second one that folds the log back into the file.

    A durable transaction is on the disk when it ends; any other one is only in the log until the next durable one.
    """

    def __init__(self, path: str) -> None:
        make_private(path)
        self._lock = threading.RLock()
        self._statements = {
            **named_statements(__package__, "queries.sql"),
            **named_statements(__package__, "reviews.sql"),
        }
        self._connection = _connect(path)
        self._durable = True
        migrate(self._connection)
        self._folder = _connect(path)
        self._stretch_log()

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run several statements as one; an exception takes all of them back."""
        with self._lock:
            if durable is not self._durable:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise _told(error) from error
                raise

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
        self, read: Callable[[sqlite3.Row], Read], name: str, parameters: Mapping[str, Any] | None = None
    ) -> list[Read]:
        """Return all rows of a named query as something else, of which only that is ever held."""
        with self._lock:
            return [read(row) for row in self._connection.execute(self._statements[name], parameters or {})]

    def fold(self) -> None:
        """Move the log's pages into the file, without making the writer wait unless the log has grown long."""
        _, pages, _ = self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages > _LONG_LOG_PAGES:
            self._folder.execute("PRAGMA wal_checkpoint(RESTART)")

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
        self.fold()

    def close(self) -> None:
        """Close both connections; the last one to leave removes the log."""
        with self._lock:
            self._folder.close()
            self._connection.close()


def _told(error: sqlite3.OperationalError) -> Exception:
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return QuotaExceeded("The disk of the state folder is full, so the change could not be recorded or made.")
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
        return ResourceBusy("Another program holds the state database. Try again.")
    return error


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
    use_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection
