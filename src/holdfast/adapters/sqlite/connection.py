"""Shared by every SQLite file: creates it private, switches it to WAL, migrates it, runs transactions, maps errors."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex

from holdfast.errors import HoldfastError, PermissionDenied, ResourceBusy, StorageDamaged, StorageFull

_WAL_TIMEOUT_SECONDS = 10.0
_WAL_RETRY_SECONDS = 0.005
_FULL_DISK = (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)
"""A full disk as some file systems report it: when the log's index grows, or only at the sync."""


CALLS_TABLE = """
    CREATE TABLE mcp_calls (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_hash TEXT NOT NULL,
        id TEXT NOT NULL,
        tool TEXT NOT NULL,
        kind TEXT NOT NULL,
        identity TEXT NOT NULL,
        client_name TEXT NOT NULL,
        client_version TEXT NOT NULL,
        door TEXT NOT NULL,
        started_at TEXT NOT NULL,
        duration_ms REAL NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('ok', 'error', 'cancelled', 'input_required')),
        code TEXT NOT NULL,
        cost REAL NOT NULL,
        parameters TEXT NOT NULL
    );
    """
"""The call log, in state.db and in each tenant's file alike."""


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


def apply_migrations(connection: sqlite3.Connection, migrations: Sequence[str], newest: int | None = None) -> None:
    """Apply the migrations that are missing, each in one transaction; any number of processes may do so at once.

    StorageDamaged, and nothing changed, for a file whose schema is newer than `newest`, by default the last of these.
    """
    known = len(migrations) if newest is None else newest
    present = _schema_version(connection)
    if present > known:
        raise StorageDamaged(newer_schema(present, known))
    for version in range(present + 1, len(migrations) + 1):
        with transaction(connection):
            if _schema_version(connection) < version:
                for statement in migrations[version - 1].split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version:d}")


def newer_schema(version: int, known: int) -> str:
    """Return what is wrong with a database that a newer release has migrated, and how to go on."""
    return (
        f"This state was written by a newer release of Holdfast (its database has version {version}; this release knows "
        f"versions up to {known}). Nothing was changed. Use that release or a later one, or restore a backup that an "
        "earlier release made: docs/how-to/backup.md."
    )


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


_DAMAGE_ADVICE = (
    "`holdfast doctor` checks it. Put it back from a backup, or move it aside to start over without what it holds."
)


def to_holdfast_error(error: sqlite3.Error, database: str) -> HoldfastError | None:
    """Return what a caller is told about an error of a database file, None when it is a bug in Holdfast.

    `database` names the file for the message. SQLite's own text names no path and no value in these cases.
    """
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return None
    code = extended & 0xFF
    if code == sqlite3.SQLITE_FULL or extended in _FULL_DISK:
        return StorageFull(f"The disk that holds {database} is full; nothing was changed. Free some space on it.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ResourceBusy(f"Another program holds {database}. Try again.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StorageDamaged(f"{database} is damaged ({error}). {_DAMAGE_ADVICE}")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return StorageDamaged(f"{database} cannot be read or written ({error}). Check the disk; nothing was changed.")
    if code == sqlite3.SQLITE_READONLY:
        return PermissionDenied(f"The operating system does not allow writing to {database}.")
    return None


@contextmanager
def translate_sqlite_errors(database: str) -> Iterator[None]:
    """Turn what SQLite says about a full, held or damaged file into errors of ours."""
    try:
        yield
    except sqlite3.Error as error:
        refusal = to_holdfast_error(error, database)
        if refusal is None:
            raise
        raise refusal from None


def truncate_log(connection: sqlite3.Connection) -> bool:
    """Move the whole write-ahead log into its file and give its space back; False when somebody is using it.

    Nobody waits: most pages are moved while others write, and the rest only when neither reader nor writer is in the
    way. The connection must have a busy timeout of 0.
    """
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
