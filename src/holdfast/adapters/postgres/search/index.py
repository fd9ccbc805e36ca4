"""The search index in PostgreSQL: chunks, their words in blocks of postings, their vectors in pgvector."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from holdfast.adapters.postgres.search.rows import run, translate_errors
from holdfast.adapters.postgres.search.vectors import MAX_EXACT_VECTORS, VectorGraphs, vector_text
from holdfast.adapters.postgres.search.write import NUL_REPLACEMENT, write_file
from holdfast.adapters.postgres.store.store import Connection, open_pool, set_tenant
from holdfast.adapters.search_parameters import file_parameters, json_list, scope_parameters
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

WITHOUT_BITMAPS = "SELECT set_config('enable_bitmapscan', 'off', true)"
"""For pending files: otherwise the planner combines two indexes of all jobs instead of using the one of fresh jobs."""


class PostgresIndex:
    """Implements `holdfast.search.ports.Index`, as the application's role, under row-level security with the tenant set."""

    def __init__(self, url: str, pool_size: int = 8, graph_from: int = MAX_EXACT_VECTORS) -> None:
        self._pool = open_pool(url, "holdfast_app", pool_size, steady_plans=True)
        self._readers = open_pool(url, "holdfast_app", pool_size, isolation="repeatable read", steady_plans=True)
        self._all_tenants = open_pool(url, "holdfast_worker", 1)
        self._graphs = VectorGraphs(url, graph_from)

    def load_files(self, tenant: str, files: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files, in one round trip."""
        with self._snapshot(tenant) as connection:
            cursors = [run(connection, "load_file", file_parameters(tenant, project, path)) for project, path in files]
            rows = [cursor.fetchone() for cursor in cursors]
        return [Content(row["version"], row["content"]) if row else None for row in rows]

    def lack_vectors(self, tenant: str, files: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file whether a chunk of it has no vector of a model, in one round trip."""
        with self._snapshot(tenant) as connection:
            cursors = [
                run(connection, "chunks_without_vectors", {**file_parameters(tenant, project, path), "model": model})
                for project, path in files
            ]
            return [cursor.fetchone() is not None for cursor in cursors]

    def load_indexed_chunks(self, tenant: str, project: str, path: str) -> list[IndexedChunk]:
        """Return the chunks of a path in the index."""
        rows = self._fetch_rows(tenant, "indexed_chunks", file_parameters(tenant, project, path))
        return [IndexedChunk(*row.values()) for row in rows]

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Index the chunks and words of these files, and pack them into blocks when many chunks are unpacked."""
        stamp = {"apikey_hash": tenant, "tokenizer": tokenizer, "at": at}
        with self._write_transaction(tenant) as connection:
            is_indexed = [write_file(connection, file, stamp) for file in files]
        self._pack_if_needed(tenant)
        return is_indexed

    def load_chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model."""
        rows = self._fetch_rows(
            tenant, "chunks_without_vectors", {**file_parameters(tenant, project, path), "model": model}
        )
        return [ChunkText(*row.values()) for row in rows]

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Store the vectors whose chunk still exists."""
        if vectors:
            self._graphs.add_model(model, len(vectors[0][2]))
        rows = [
            {"id": chunk_id, "content_hash": content_hash, "embedding": vector_text(vector)}
            for chunk_id, content_hash, vector in vectors
        ]
        with self._write_transaction(tenant) as connection:
            run(
                connection,
                "insert_vectors",
                {"apikey_hash": tenant, "model": model, "vectors": json_list(rows), "at": at},
            )

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks by BM25."""
        from holdfast.adapters.postgres.search.words import find_by_words

        with self._snapshot(tenant) as connection:
            return find_by_words(connection, tenant, scope, terms, limit)

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector."""
        with self._snapshot(tenant) as connection:
            return self._graphs.find_nearest(connection, tenant, scope, model, vector, limit)

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words are not indexed."""
        parameters = {**scope_parameters(tenant, scope), "limit": limit, "max_bytes": max_bytes}
        with self._snapshot(tenant) as connection:
            connection.execute(WITHOUT_BITMAPS)
            return [PendingFile(*row.values()) for row in run(connection, "pending_files", parameters)]

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still what their live file holds."""
        parameters = {**scope_parameters(tenant, scope), "ids": json_list(chunk_ids)}
        with self._snapshot(tenant) as connection:
            passages = [Passage(*row.values()) for row in run(connection, "live_chunks", parameters)]
            return [_restore_nul(connection, tenant, passage) for passage in passages]

    def load_live_versions(self, tenant: str, files: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""
        rows = self._fetch_rows(tenant, "live_versions", {"apikey_hash": tenant, "files": json_list(files)})
        return {(row["project"], row["path"]): row["version"] for row in rows}

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Store when chunks were last served; in the order of their ids, so that two searches cannot deadlock."""
        with self._write_transaction(tenant) as connection:
            run(connection, "mark_served", {"apikey_hash": tenant, "ids": json_list(sorted(chunk_ids)), "at": at})

    def find_files_without_vectors(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return indexed live files that have a chunk without a vector of a model."""
        rows = self._fetch_rows(
            tenant, "files_without_vectors", {"apikey_hash": tenant, "model": model, "limit": limit}
        )
        return [(row["project"], row["file_path"]) for row in rows]

    def list_models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of; each is sought after the previous one."""
        models = [""]
        while rows := self._fetch_rows(tenant, "next_model", {"apikey_hash": tenant, "after_model": models[-1]}):
            models.append(rows[0]["model"])
        return models[1:]

    def delete_outdated_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Delete some vectors of an outdated model."""
        parameters = {"apikey_hash": tenant, "outdated": outdated, "model": model, "before": before, "limit": limit}
        with self._write_transaction(tenant) as connection:
            cursor = run(connection, "delete_outdated_vectors", parameters)
        return cursor.rowcount

    def list_tenants(self) -> list[str]:
        """Return every tenant that has chunks."""
        with translate_errors(), self._all_tenants.connection() as connection:
            return [row["apikey_hash"].rstrip() for row in run(connection, "list_tenants", {})]

    def run_maintenance(self) -> int:
        """Build the graph of each model with many vectors that has none; takes minutes."""
        with translate_errors():
            return self._graphs.build()

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        self._readers.close()
        self._all_tenants.close()

    def _pack_if_needed(self, tenant: str) -> None:
        from holdfast.adapters.postgres.search.blocks import needs_packing, pack_blocks

        with self._snapshot(tenant) as connection:
            if not needs_packing(connection, tenant):
                return
        may_have_more = True
        while may_have_more:
            with self._write_transaction(tenant) as connection:
                may_have_more = pack_blocks(connection, tenant)

    def _fetch_rows(self, tenant: str, name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with self._snapshot(tenant) as connection:
            return run(connection, name, parameters).fetchall()

    @contextmanager
    def _snapshot(self, tenant: str) -> Iterator[Connection]:
        """Open a snapshot of a tenant's rows."""
        with translate_errors(), self._readers.connection() as connection, connection.pipeline():
            set_tenant(connection, tenant)
            yield connection

    @contextmanager
    def _write_transaction(self, tenant: str) -> Iterator[Connection]:
        with translate_errors(), self._pool.connection() as connection, connection.pipeline(), connection.transaction():
            set_tenant(connection, tenant)
            yield connection


def _restore_nul(connection: Connection, tenant: str, passage: Passage) -> Passage:
    """Return a passage with the text of its file, where NUL may be replaced in the stored text."""
    if NUL_REPLACEMENT not in passage.text:
        return passage
    parameters = {**file_parameters(tenant, passage.project, passage.path), "start": passage.start}
    rows = run(connection, "slice_file", {**parameters, "count": passage.end - passage.start}).fetchall()
    return passage._replace(text=rows[0]["data"].decode()) if rows else passage
