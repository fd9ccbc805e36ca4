"""The search index in the store file of each tenant: chunks, their words in FTS5, their vectors as bytes."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.adapters.search_parameters import file_parameters, json_list, scope_parameters
from holdfast.adapters.sqlite.search.rows import run, translate_errors
from holdfast.adapters.sqlite.search.words import find_by_words, load_statistics
from holdfast.adapters.sqlite.search.write import insert_part, write_file
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
    from holdfast.adapters.sqlite.search.vectors import VectorCache

_WAIT_SECONDS = 30.0


class SqliteIndex:
    """Implements `holdfast.search.ports.Index`; reads from snapshots, writes in short transactions beside the store's."""

    def __init__(self, files: TenantFiles) -> None:
        self._files = files

    def load_files(self, tenant: str, files: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files, all from one snapshot."""
        with translate_errors(), self._files.snapshot(tenant) as connection:
            rows = [run(connection, "load_file", file_parameters(tenant, *file)).fetchone() for file in files]
        return [Content(*row) if row else None for row in rows]

    def lack_vectors(self, tenant: str, files: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file whether a chunk of it has no vector of a model."""
        with translate_errors(), self._files.snapshot(tenant) as connection:
            parameters = ({**file_parameters(tenant, *file), "model": model} for file in files)
            return [run(connection, "chunks_without_vectors", each).fetchone() is not None for each in parameters]

    def load_indexed_chunks(self, tenant: str, project: str, path: str) -> list[IndexedChunk]:
        """Return the chunks that the index holds of a path."""
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return [
                IndexedChunk(*row) for row in run(connection, "indexed_chunks", file_parameters(tenant, project, path))
            ]

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Index the chunks and words of these files; a very long one is written in parts, and found when the last is written."""
        stamp = {"apikey_hash": tenant, "tokenizer": tokenizer, "at": format_utc(at)}
        with translate_errors():
            for file in files:
                has_more = bool(file.chunks)
                while has_more:
                    with self._write_transaction(tenant) as connection:
                        has_more = insert_part(connection, file, stamp)
            with self._write_transaction(tenant) as connection:
                return [write_file(connection, file, stamp) for file in files]

    def load_chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model."""
        parameters = {**file_parameters(tenant, project, path), "model": model}
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return [ChunkText(*row) for row in run(connection, "chunks_without_vectors", parameters)]

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Store the vectors whose chunk still exists."""
        from holdfast.adapters.sqlite.search.vectors import pack_vector

        rows = [
            {"id": chunk_id, "content_hash": content_hash, "embedding": pack_vector(vector)}
            for chunk_id, content_hash, vector in vectors
        ]
        shared = {"apikey_hash": tenant, "model": model, "at": format_utc(at)}
        with translate_errors(), self._write_transaction(tenant) as connection:
            for row in rows:
                run(connection, "insert_vector", {**shared, **row})

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks by BM25."""
        with translate_errors(), self._files.snapshot(tenant) as connection:
            statistics = load_statistics(connection, tenant, terms)
            return WordMatches(find_by_words(connection, tenant, scope, terms, limit, statistics), statistics)

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector."""
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return self._vector_cache.find_nearest(connection, tenant, scope, model, vector, limit)

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words are not indexed."""
        parameters = {**scope_parameters(tenant, scope), "limit": limit, "max_bytes": max_bytes}
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return [PendingFile(*row) for row in run(connection, "pending_files", parameters)]

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still what their live file holds."""
        parameters = {**scope_parameters(tenant, scope), "ids": json_list(chunk_ids)}
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return [Passage(*row) for row in run(connection, "live_chunks", parameters)]

    def load_live_versions(self, tenant: str, files: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""
        parameters = {"apikey_hash": tenant, "files": json_list(files)}
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return {(row[0], row[1]): row[2] for row in run(connection, "live_versions", parameters)}

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Store when chunks were last served."""
        parameters = {"apikey_hash": tenant, "ids": json_list(chunk_ids), "at": format_utc(at)}
        with translate_errors(), self._write_transaction(tenant) as connection:
            run(connection, "mark_served", parameters)

    def find_files_without_vectors(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return indexed live files that have a chunk without a vector of a model."""
        parameters = {"apikey_hash": tenant, "model": model, "limit": limit}
        with translate_errors(), self._files.snapshot(tenant) as connection:
            return [(row[0], row[1]) for row in run(connection, "files_without_vectors", parameters)]

    def list_models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of; each is sought after the one before it."""
        models = [""]
        with translate_errors(), self._files.snapshot(tenant) as connection:
            while row := run(connection, "next_model", {"apikey_hash": tenant, "after_model": models[-1]}).fetchone():
                models.append(row[0])
        return models[1:]

    def delete_outdated_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Delete some vectors of an outdated model."""
        parameters = {"apikey_hash": tenant, "outdated": outdated, "model": model, "limit": limit}
        with translate_errors(), self._write_transaction(tenant) as connection:
            return run(connection, "delete_outdated_vectors", {**parameters, "before": format_utc(before)}).rowcount

    def list_tenants(self) -> list[str]:
        """Return every tenant that has chunks."""
        tenants: list[str] = []
        with translate_errors():
            for name in self._files.names():
                with self._files.snapshot_of(name) as connection:
                    tenants += [row[0] for row in run(connection, "list_tenants", {})]
        return sorted(tenants)

    def run_maintenance(self) -> int:
        """Do nothing: FTS5 merges its segments as it is written."""
        return 0

    def close(self) -> None:
        """Free the vectors in memory; the connections belong to the store."""
        self.__dict__.pop("_vector_cache", None)

    @cached_property
    def _vector_cache(self) -> "VectorCache":
        from holdfast.adapters.sqlite.search.vectors import VectorCache

        return VectorCache()

    def _write_transaction(self, tenant: str) -> AbstractContextManager[sqlite3.Connection]:
        return self._files.write_transaction(file_name(tenant), time.monotonic() + _WAIT_SECONDS, durable=False)
