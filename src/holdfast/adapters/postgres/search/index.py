"""The search index in PostgreSQL: chunks, their words as blocks of postings, their vectors by pgvector."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from holdfast.adapters.postgres.search.rows import listed, run, told, within
from holdfast.adapters.postgres.search.vectors import EXACT_AT_MOST, Graphs, written
from holdfast.adapters.postgres.search.write import write
from holdfast.adapters.postgres.store.rows import Connection, set_tenant
from holdfast.adapters.postgres.store.store import open_pool
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

_REPLACED = "\ufffd"
"""Stands in a stored chunk for the character NUL, which PostgreSQL's text cannot hold."""

WITHOUT_BITMAPS = "SELECT set_config('enable_bitmapscan', 'off', true)"
"""For fresh changes: the planner believes that two indexes of all jobs together are cheaper than the one of the fresh."""


class PostgresIndex:
    """Acts as the application's role, behind the wall of row-level security, with the tenant set."""

    def __init__(self, url: str, pool_size: int = 8, graph_from: int = EXACT_AT_MOST) -> None:
        self._pool = open_pool(url, "holdfast_app", pool_size, steady_plans=True)
        self._readers = open_pool(url, "holdfast_app", pool_size, isolation="repeatable read", steady_plans=True)
        self._everyone = open_pool(url, "holdfast_worker", 1)
        self._graphs = Graphs(url, graph_from)

    def load_files(self, tenant: str, places: Sequence[tuple[str, str]]) -> list[Content | None]:
        """Return live files, in one round trip."""
        with self._reading(tenant) as connection:
            asked = [run(connection, "load_file", _place(tenant, project, path)) for project, path in places]
            rows = [cursor.fetchone() for cursor in asked]
        return [Content(row["version"], row["content"]) if row else None for row in rows]

    def lack_vectors(self, tenant: str, places: Sequence[tuple[str, str]], model: str) -> list[bool]:
        """Return for each file whether a chunk of it has no vector of a model, in one round trip."""
        with self._reading(tenant) as connection:
            asked = [
                run(connection, "unembedded", {**_place(tenant, project, path), "model": model})
                for project, path in places
            ]
            return [cursor.fetchone() is not None for cursor in asked]

    def indexed_chunks(self, tenant: str, project: str, path: str) -> list[IndexedChunk]:
        """Return the chunks that the index holds of a path."""
        rows = self._rows(tenant, "known_chunks", _place(tenant, project, path))
        return [IndexedChunk(*row.values()) for row in rows]

    def put_words(self, tenant: str, files: Sequence[IndexedFile], tokenizer: str, at: datetime) -> list[bool]:
        """Make the index hold these files, and pack loose chunks into a block when there are many."""
        stamp = {"apikey_hash": tenant, "tokenizer": tokenizer, "at": at}
        with self._writing(tenant) as connection:
            done = [write(connection, file, stamp) for file in files]
        self._pack(tenant)
        return done

    def chunks_without_vectors(self, tenant: str, project: str, path: str, model: str) -> list[ChunkText]:
        """Return the chunks of a path that have no vector of a model."""
        rows = self._rows(tenant, "unembedded", {**_place(tenant, project, path), "model": model})
        return [ChunkText(*row.values()) for row in rows]

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, str, Vector]], at: datetime) -> None:
        """Keep vectors whose chunk is still there."""
        if vectors:
            self._graphs.seen(model, len(vectors[0][2]))
        made = [
            {"id": number, "content_hash": content_hash, "embedding": written(vector)}
            for number, content_hash, vector in vectors
        ]
        with self._writing(tenant) as connection:
            run(
                connection,
                "insert_vectors",
                {"apikey_hash": tenant, "model": model, "vectors": listed(made), "at": at},
            )

    def find_by_words(self, tenant: str, scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks by BM25."""
        from holdfast.adapters.postgres.search.words import matching

        with self._reading(tenant) as connection:
            return matching(connection, tenant, scope, terms, limit)

    def find_nearest(self, tenant: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector."""
        with self._reading(tenant) as connection:
            return self._graphs.nearest(connection, tenant, scope, model, vector, limit)

    def load_pending_files(self, tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return live files whose words are not in the index."""
        asked = {**within(tenant, scope), "limit": limit, "max_bytes": max_bytes}
        with self._reading(tenant) as connection:
            connection.execute(WITHOUT_BITMAPS)
            return [PendingFile(*row.values()) for row in run(connection, "pending_files", asked)]

    def load_passages(self, tenant: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return those of the chunks that are still what their live file holds."""
        asked = {**within(tenant, scope), "ids": listed(chunk_ids)}
        with self._reading(tenant) as connection:
            found = [Passage(*row.values()) for row in run(connection, "live_chunks", asked)]
            return [_whole(connection, tenant, passage) for passage in found]

    def live_versions(self, tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the versions of live files by project and path."""
        rows = self._rows(tenant, "live_versions", {"apikey_hash": tenant, "places": listed(places)})
        return {(row["project"], row["path"]): row["version"] for row in rows}

    def mark_served(self, tenant: str, chunk_ids: Sequence[int], at: datetime) -> None:
        """Remember when chunks were last served; in one order, so that two searches never wait for each other in turn."""
        with self._writing(tenant) as connection:
            run(connection, "touch_chunks", {"apikey_hash": tenant, "ids": listed(sorted(chunk_ids)), "at": at})

    def files_without_vectors(self, tenant: str, model: str, limit: int) -> list[tuple[str, str]]:
        """Return indexed live files that have a chunk without a vector of a model."""
        rows = self._rows(tenant, "stale_files", {"apikey_hash": tenant, "model": model, "limit": limit})
        return [(row["project"], row["file_path"]) for row in rows]

    def list_models(self, tenant: str) -> list[str]:
        """Return the models that a tenant has vectors of; each is sought after the one before it."""
        found = [""]
        while rows := self._rows(tenant, "next_model", {"apikey_hash": tenant, "after_model": found[-1]}):
            found.append(rows[0]["model"])
        return found[1:]

    def delete_outdated_vectors(self, tenant: str, outdated: str, model: str, before: datetime, limit: int) -> int:
        """Remove some vectors of an outdated model."""
        asked = {"apikey_hash": tenant, "outdated": outdated, "model": model, "before": before, "limit": limit}
        with self._writing(tenant) as connection:
            cursor = run(connection, "drop_vectors", asked)
        return cursor.rowcount

    def list_tenants(self) -> list[str]:
        """Return every tenant that has chunks."""
        with told(), self._everyone.connection() as connection:
            return [row["apikey_hash"].rstrip() for row in run(connection, "chunk_tenants", {})]

    def run_maintenance(self) -> int:
        """Build the graph that a model with many vectors needs; takes minutes, and nobody waits for it."""
        with told():
            return self._graphs.build()

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        self._readers.close()
        self._everyone.close()

    def _pack(self, tenant: str) -> None:
        from holdfast.adapters.postgres.search.blocks import is_due, pack

        with self._reading(tenant) as connection:
            if not is_due(connection, tenant):
                return
        is_worn = True
        while is_worn:
            with self._writing(tenant) as connection:
                is_worn = pack(connection, tenant)

    def _rows(self, tenant: str, name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with self._reading(tenant) as connection:
            return run(connection, name, parameters).fetchall()

    @contextmanager
    def _reading(self, tenant: str) -> Iterator[Connection]:
        """Give one moment of a tenant's rows."""
        with told(), self._readers.connection() as connection, connection.pipeline():
            set_tenant(connection, tenant)
            yield connection

    @contextmanager
    def _writing(self, tenant: str) -> Iterator[Connection]:
        with told(), self._pool.connection() as connection, connection.pipeline(), connection.transaction():
            set_tenant(connection, tenant)
            yield connection


def _place(tenant: str, project: str, path: str) -> dict[str, str]:
    return {"apikey_hash": tenant, "project": project, "path": path}


def _whole(connection: Connection, tenant: str, passage: Passage) -> Passage:
    """Return a passage with the text of its file, where the stored text may lack a character."""
    if _REPLACED not in passage.text:
        return passage
    asked = {**_place(tenant, passage.project, passage.path), "start": passage.start}
    rows = run(connection, "slice_file", {**asked, "count": passage.end - passage.start}).fetchall()
    return passage._replace(text=rows[0]["data"].decode()) if rows else passage
