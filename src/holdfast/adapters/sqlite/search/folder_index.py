"""The indexes of local folders: one SQLite file for each root, readable by its owner only, removed when damaged.

All of it can be made again from the files, so a damaged index or one with another schema may be removed.
"""

import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from holdfast.adapters.sqlite.connection import apply_migrations
from holdfast.adapters.sqlite.search.index import SqliteIndex
from holdfast.adapters.sqlite.search.rows import translate_errors
from holdfast.adapters.sqlite.search.words import find_by_words, load_statistics
from holdfast.adapters.sqlite.search.write import write_file
from holdfast.adapters.sqlite.store.files import TenantFiles, file_name
from holdfast.adapters.sqlite.store.schema import CHUNK_TABLES
from holdfast.adapters.statements import named_statements
from holdfast.clock import format_utc
from holdfast.errors import StorageDamaged
from holdfast.search.folders.model import PROJECT, ContentKind, FileRecord
from holdfast.search.model import (
    Candidate,
    Chunk,
    ChunkText,
    IndexedFile,
    Passage,
    Scope,
    Statistics,
    Vector,
)
from holdfast.search.ports import IndexDamaged
from holdfast.search.tokens import TOKENIZER

_WAIT_SECONDS = 30.0
_DAY_SECONDS = 86_400
_MIGRATIONS = (
    """
    CREATE TABLE mcp_files (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        version INTEGER NOT NULL,
        deleted INTEGER NOT NULL DEFAULT false,
        look TEXT NOT NULL,
        kind TEXT NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (apikey_hash, project, path)
    ) WITHOUT ROWID;
    """,
    CHUNK_TABLES,
)


def migrate_folder_index(connection: sqlite3.Connection) -> None:
    """Bring the index of a folder to the newest schema. IndexDamaged for one of a newer release, which is made again."""
    try:
        apply_migrations(connection, _MIGRATIONS)
    except StorageDamaged:
        raise IndexDamaged("the index has the schema of a newer release") from None


class SqliteFolderIndex:
    """Implements `holdfast.search.folders.ports.FolderIndex`; a root's file is used by one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._files = TenantFiles(folder, migrate=migrate_folder_index)
        self._index = SqliteIndex(self._files)
        self._statements = named_statements(__package__, "folder_index.sql")
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._lock = threading.Lock()

    def load_records(self, root: str) -> dict[str, FileRecord]:
        """Return every file in the index."""
        with self._exclusive(root), self._files.snapshot(root) as connection:
            rows = self._run(connection, "indexed_files", root).fetchall()
        return {
            row["path"]: FileRecord(row["look"], ContentKind(row["kind"]), row["digest"], row["size"]) for row in rows
        }

    def put_file(self, root: str, path: str, record: FileRecord, chunks: Sequence[Chunk], at: datetime) -> None:
        """Store a file as it was read."""
        with self._exclusive(root):
            with self._write_transaction(root) as connection:
                columns = {
                    "look": record.version,
                    "kind": record.kind,
                    "digest": record.digest,
                    "size": record.text_bytes,
                }
                (version,) = self._run(connection, "put_file", root, path=path, **columns).fetchone()
            self._index.put_words(root, [IndexedFile(PROJECT, path, version, chunks)], TOKENIZER, at)

    def remove_files(self, root: str, paths: Sequence[str], at: datetime) -> None:
        """Remove files, all in one transaction."""
        stamp = {"apikey_hash": root, "tokenizer": TOKENIZER, "at": format_utc(at)}
        with self._exclusive(root), self._write_transaction(root) as connection:
            for path in paths:
                row = self._run(connection, "delete_file", root, path=path).fetchone()
                if row is not None:
                    write_file(connection, IndexedFile(PROJECT, path, row["version"], None), stamp)

    def load_statistics(self, root: str, terms: Sequence[str]) -> Statistics:
        """Return the totals of the index, and the document frequencies of these terms."""
        with self._exclusive(root), self._files.snapshot(root) as connection:
            return load_statistics(connection, root, terms)

    def find_by_words(
        self, root: str, scope: Scope, terms: Sequence[str], limit: int, statistics: Statistics
    ) -> list[Candidate]:
        """Return the best chunks by BM25."""
        with self._exclusive(root), self._files.snapshot(root) as connection:
            return find_by_words(connection, root, scope, terms, limit, statistics)

    def find_nearest(self, root: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector."""
        with self._exclusive(root):
            return self._index.find_nearest(root, scope, model, vector, limit)

    def load_passages(self, root: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still in the index."""
        with self._exclusive(root):
            return self._index.load_passages(root, scope, chunk_ids)

    def find_files_without_vectors(self, root: str, model: str) -> list[str]:
        """Return the files that have a chunk without a vector of a model."""
        with self._exclusive(root):
            return [path for _, path in self._index.find_files_without_vectors(root, model, -1)]

    def load_chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a file that have no vector of a model."""
        with self._exclusive(tenant):
            return self._index.load_chunks_without_vectors(tenant, project, path, model)

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Store the vectors whose chunk still exists."""
        with self._exclusive(tenant):
            self._index.put_vectors(tenant, model, vectors, at)

    def count_lines_before(self, root: str, path: str, start: int) -> int:
        """Return how many lines end before a chunk that begins at that byte."""
        with self._exclusive(root), self._files.snapshot(root) as connection:
            (lines,) = self._run(connection, "count_lines_before", root, path=path, start=start).fetchone()
            return int(lines)

    def mark_used(self, root: str) -> None:
        """Store that a root is in use, as the modification time of its file."""
        with suppress(FileNotFoundError):
            os.utime(self._path(file_name(root)))

    def remove_unused(self, days: float) -> int:
        """Remove the indexes of roots that were not used for `days`; returns how many."""
        oldest = time.time() - days * _DAY_SECONDS
        removed = 0
        for name in self._files.names():
            with self._lock_of(name), suppress(FileNotFoundError):
                if os.stat(self._path(name)).st_mtime < oldest:
                    self._files.remove(name)
                    removed += 1
        if removed:
            self._index.close()
        return removed

    def close(self) -> None:
        """Close every connection."""
        self._index.close()
        self._files.close()

    def _run(self, connection: sqlite3.Connection, name: str, root: str, **values: object) -> sqlite3.Cursor:
        return connection.execute(self._statements[name], {"apikey_hash": root, "project": PROJECT, **values})

    @contextmanager
    def _exclusive(self, root: str) -> Iterator[None]:
        """Use the file of a root exclusively; a damaged one is removed, and is empty the next time."""
        name = file_name(root)
        with self._lock_of(name):
            try:
                with translate_errors():
                    yield
            except IndexDamaged:
                self._index.close()
                self._files.remove(name)
                raise

    @contextmanager
    def _write_transaction(self, root: str) -> Iterator[sqlite3.Connection]:
        deadline = time.monotonic() + _WAIT_SECONDS
        with self._files.write_transaction(file_name(root), deadline, durable=False) as connection:
            yield connection

    def _lock_of(self, name: str) -> threading.RLock:
        with self._lock:
            return self._locks[name]

    def _path(self, name: str) -> str:
        return os.path.join(self._files.folder, f"{name}.db")
