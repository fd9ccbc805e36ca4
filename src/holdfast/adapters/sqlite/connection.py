"""Shared by every SQLite file: creates it private, switches it to WAL, migrates it, runs transactions, maps errors."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex

from holdfast.errors import HoldfastError, QuotaExceeded, ResourceBusy

_WAL_TIMEOUT_SECONDS = 10.0
_WAL_RETRY_SECONDS = 0.005


def create_private_file(path: str) -> None:
    """Create an empty file that only its owner can read, unless something is at the path; that is never opened.

    The locks of a file belong to the process: closing any descriptor of it releases all that SQLite holds there. Another
    process that leaves the database then believes that it is the last one, and removes the log that is still written to.
    A disk without hard links gets the file by a rename.
    """
    if os.path.exists(path):
        return
    new = f"{path}.{token_hex(8)}.new"
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        os.link(new, path)
    except FileExistsError:
        os.unlink(new)
    except OSError:
        os.rename(new, path)
    else:
        os.unlink(new)


def enable_wal(connection: sqlite3.Connection) -> None:
    """Switch a file to write-ahead logging, unless it is.

    Another connection that does the same at this moment is waited for, which SQLite's own busy timeout does not cover.
    """
    deadline = time.monotonic() + _WAL_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


def apply_migrations(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Apply the migrations that are missing, each in one transaction; any number of processes may do so at once."""
    for version in range(_schema_version(connection) + 1, len(migrations) + 1):
        with transaction(connection):
            if _schema_version(connection) < version:
                for statement in migrations[version - 1].split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version:d}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run statements as one write transaction; an exception rolls all of them back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def to_holdfast_error(error: sqlite3.OperationalError, when_full: str) -> HoldfastError | None:
    """Return what a caller is told about an error of the state database, None when it is a bug in Holdfast."""
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        return QuotaExceeded(when_full)
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
        return ResourceBusy("Another program holds the state database. Try again.")
    return None


def _schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
