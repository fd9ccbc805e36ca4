"""The search index in the tenants' store files: chunks, their words in FTS5, their vectors as bytes."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.adapters.sqlite.search.rows import listed, run, told, within
from holdfast.adapters.sqlite.search.words import matching, statistics_of
from holdfast.adapters.sqlite.search.write import fill, write
from holdfast.adapters.sqlite.store.files import TenantFiles, file_name
from holdfast.clock import format_utc
from holdfast.search.model import (
    Candidate,
    ChunkText,
    Content,
    IndexedChunk,
    IndexedFile,
    Passage,
    PendingFile,
    Scope,
    Vector,
    WordMatches,
)

if TYPE_CHECKING:
    from holdfast.adapters.sqlite.search.vectors import Matrices

_WAIT_SECONDS = 30.0


class SqliteIndex:
    """Reads within one moment of a tenant's file; writes in short transactions beside the store's own."""

    def __init__(self, files: TenantFiles) -> None:
        self._files = files

    def load_files(self, tenant: str, places: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files, all of one moment."""
        with told(), self._files.snapshot(tenant) as connection:
            rows = [run(connection, "load_file", _place(tenant, *place)).fetchone() for place in places]
        return [Content(*row) if row else None for row in rows]

    def lack_vectors(self, tenant: str, places: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file whether a chunk of it has no vector of a model."""
        with told(), self._files.snapshot(tenant) as connection:
            asked = ({**_place(tenant, *place), "model": model} for place in places)
            return [run(connection, "unembedded", one).fetchone() is not None for one in asked]

    def indexed_chunks(self, tenant: str, project: str, path: str) -> list[IndexedChunk]:
        """Return the chunks that the index holds of a path."""
        with told(), self._files.snapshot(tenant) as connection:
            return [IndexedChunk(*row) for row in run(connection, "known_chunks", _place(tenant, project, path))]

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Make the index hold these files; a very long one comes in parts, and counts when the last is in."""
        stamp = {"apikey_hash": tenant, "tokenizer": tokenizer, "at": format_utc(at)}
        with told():
            for file in files:
                while self._is_filled(tenant, file, stamp):
                    pass
            with self._writing(tenant) as connection:
                return [write(connection, file, stamp) for file in files]

    def chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model."""
        asked = {**_place(tenant, project, path), "model": model}
        with told(), self._files.snapshot(tenant) as connection:
            return [ChunkText(*row) for row in run(connection, "unembedded", asked)]

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Keep vectors whose chunk is still there."""
        from holdfast.adapters.sqlite.search.vectors import packed

        rows = [
            {"id": number, "content_hash": content_hash, "embedding": packed(vector)}
            for number, content_hash, vector in vectors
        ]
        shared = {"apikey_hash": tenant, "model": model, "at": format_utc(at)}
        with told(), self._writing(tenant) as connection:
            for row in rows:
                run(connection, "insert_vector", {**shared, **row})

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks by BM25."""
        with told(), self._files.snapshot(tenant) as connection:
            statistics = statistics_of(connection, tenant, terms)
            return WordMatches(matching(connection, tenant, scope, terms, limit, statistics), statistics)

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector."""
        with told(), self._files.snapshot(tenant) as connection:
            return self._matrices.nearest(connection, tenant, scope, model, vector, limit)

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words are not in the index."""
        asked = {**within(tenant, scope), "limit": limit, "max_bytes": max_bytes}
        with told(), self._files.snapshot(tenant) as connection:
            return [PendingFile(*row) for row in run(connection, "pending_files", asked)]

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return those of the chunks that are still what their live file holds."""
        asked = {**within(tenant, scope), "ids": listed(chunk_ids)}
        with told(), self._files.snapshot(tenant) as connection:
            return [Passage(*row) for row in run(connection, "live_chunks", asked)]

    def live_versions(self, tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""
        asked = {"apikey_hash": tenant, "places": listed(places)}
        with told(), self._files.snapshot(tenant) as connection:
            return {(row[0], row[1]): row[2] for row in run(connection, "live_versions", asked)}

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Remember when chunks were last served."""
        asked = {"apikey_hash": tenant, "ids": listed(chunk_ids), "at": format_utc(at)}
        with told(), self._writing(tenant) as connection:
            run(connection, "touch_chunks", asked)

    def files_without_vectors(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return indexed live files that have a chunk without a vector of a model."""
        asked = {"apikey_hash": tenant, "model": model, "limit": limit}
        with told(), self._files.snapshot(tenant) as connection:
            return [(row[0], row[1]) for row in run(connection, "stale_files", asked)]

    def list_models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of; each is sought after the one before it."""
        found = [""]
        with told(), self._files.snapshot(tenant) as connection:
            while row := run(connection, "next_model", {"apikey_hash": tenant, "after_model": found[-1]}).fetchone():
                found.append(row[0])
        return found[1:]

    def delete_outdated_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Remove some vectors of an outdated model."""
        asked = {"apikey_hash": tenant, "outdated": outdated, "model": model, "limit": limit}
        with told(), self._writing(tenant) as connection:
            return run(connection, "drop_vectors", {**asked, "before": format_utc(before)}).rowcount

    def list_tenants(self) -> list[str]:
        """Return every tenant that has chunks."""
        found: list[str] = []
        with told():
            for name in self._files.names():
                with self._files.snapshot_of(name) as connection:
                    found += [row[0] for row in run(connection, "chunk_tenants", {})]
        return sorted(found)

    def run_maintenance(self) -> int:
        """Do nothing: FTS5 merges as it is written to."""
        return 0

    def close(self) -> None:
        """Let go of the vectors in memory; the connections are the store's."""
        self.__dict__.pop("_matrices", None)

    @cached_property
    def _matrices(self) -> "Matrices":
        from holdfast.adapters.sqlite.search.vectors import Matrices

        return Matrices()

    def _is_filled(self, tenant: str, file: IndexedFile, stamp: dict[str, str]) -> bool:
        if not file.chunks:
            return False
        with self._writing(tenant) as connection:
            return fill(connection, file, stamp)

    def _writing(self, tenant: str) -> AbstractContextManager[sqlite3.Connection]:
        return self._files.write_transaction(file_name(tenant), time.monotonic() + _WAIT_SECONDS, durable=False)


def _place(tenant: str, project: str, path: str) -> dict[str, str]:
    return {"apikey_hash": tenant, "project": project, "path": path}
