"""Erases a tenant from its store file: rows are overwritten, the file is written anew without them, its log is emptied.

The file stays, empty, under a name that does not reveal the tenant: a server or worker may have it open, and writes of
theirs into a file without a name would be lost.
"""

import mmap
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress

from holdfast.adapters.sqlite.connection import transaction, translate_sqlite_errors
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.store.erase import Trace

_BUSY_SECONDS = 30.0
_DATABASE = "the database of this tenant's stored files"


class SqliteEraser:
    """Implements `holdfast.store.erase.TenantEraser` for the store files beneath a folder, and for `more_files`."""

    def __init__(self, folder: str, more_files: tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._more_files = more_files

    def count(self, tenant: str) -> Mapping[str, int]:
        """Return how many rows of the tenant each table holds."""
        if not os.path.exists(self._path(tenant)):
            return {}
        with self._open(tenant) as connection:
            counts = {}
            for table in _tables(connection):
                statement = f'SELECT count(*) FROM "{table}" WHERE apikey_hash = ?'  # noqa: S608 - a name of the schema
                (counts[table],) = connection.execute(statement, [tenant]).fetchone()
            return counts

    def delete(self, tenant: str) -> None:
        """Delete every row, overwrite what held them, write the file anew and empty its log."""
        if not os.path.exists(self._path(tenant)):
            return
        with self._open(tenant) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('delete-all')")
                for table in _tables(connection):
                    connection.execute(f'DELETE FROM "{table}" WHERE apikey_hash = ?', [tenant])  # noqa: S608 - likewise
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def find_traces(self, tenant: str) -> list[Trace]:
        """Search every byte of the file, of its log, and of the other files for the tenant."""
        path = self._path(tenant)
        names = [f"{name}{suffix}" for name in (path, *self._more_files) for suffix in ("", "-wal")]
        return [
            Trace(name, os.path.getsize(name), _occurrences(name, tenant.encode()))
            for name in names
            if os.path.exists(name)
        ]

    def close(self) -> None:
        """Close nothing: each step has a connection of its own."""

    @contextmanager
    def _open(self, tenant: str) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path(tenant), isolation_level=None, timeout=_BUSY_SECONDS)
        with translate_sqlite_errors(_DATABASE), closing(connection):
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection

    def _path(self, tenant: str) -> str:
        return os.path.join(self._folder, f"{file_name(tenant)}.db")


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return every table with rows of tenants, by the schema itself, so that none is forgotten."""
    rows = connection.execute(
        "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c ON c.name = 'apikey_hash' "
        "WHERE t.type = 'table' ORDER BY t.name"
    )
    return [name for (name,) in rows]


def _occurrences(path: str, text: bytes) -> int:
    """Return how often a text is in a file, pages on SQLite's free list included."""
    with suppress(ValueError):  # an empty file cannot be mapped
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as data:
                count, start = 0, data.find(text)
                while start >= 0:
                    count, start = count + 1, data.find(text, start + 1)
                return count
        finally:
            os.close(fd)
    return 0
