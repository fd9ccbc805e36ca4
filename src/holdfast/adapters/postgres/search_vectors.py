"""Nearest vectors in PostgreSQL by pgvector: exactly while they are few, through a graph where they are many.

A graph (HNSW) serves one model and is built in the background once there are enough vectors of all tenants. The scan of a
graph goes on until enough rows of the tenant were found; a scan that stops early found 2 of 30 for a tenant of 1 %.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from holdfast.adapters.postgres.search_rows import STATEMENTS, listed, run, within
from holdfast.adapters.postgres.store_rows import Connection
from holdfast.search.model import Candidate, Scope, Vector

EXACT_AT_MOST = 20_000
_MATCHES_EACH = 2
_WIDER = 8
_BUILD_LOCK = 0x686F6C6467726170
"""The bytes of 'holdgrap': the advisory lock that only building a graph takes."""

_SETTINGS = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '100', true), "
    "set_config('hnsw.max_scan_tuples', '100000', true), set_config('enable_sort', 'off', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true)"
)
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON mcp_file_chunk_embeddings "
    "USING hnsw ((embedding::vector({length})) vector_l2_ops) WHERE model = {model}"
)


def written(vector: Vector) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(format(float(value), ".7g") for value in vector) + "]"


def graph_name(model: str) -> str:
    """Return the name of a model's graph."""
    return f"mcp_file_chunk_embeddings_{hashlib.blake2b(model.encode(), digest_size=6).hexdigest()}"


class Graphs:
    """Which models have a graph, and who is asked through it: those with more than `graph_from` vectors."""

    def __init__(self, url: str, graph_from: int) -> None:
        self._url = url
        self._graph_from = graph_from
        self._lengths: dict[str, int] = {}

    def seen(self, model: str, length: int) -> None:
        """Remember a model that vectors were made with."""
        self._lengths[model] = length

    def nearest(
        self, connection: Connection, tenant: str, scope: Scope, model: str, vector: Vector, limit: int
    ) -> list[Candidate]:
        """Return the nearest chunks of live files; looks further while too few of them are live."""
        asked: dict[str, Any] = {**within(tenant, scope), "model": model, "vector": written(vector)}
        if scope.project is not None and scope.span.low not in ("", "/"):
            return _nearest(connection, "nearest_in_scope", asked, tenant, scope, limit)
        if self._is_large(connection, asked, model):
            connection.execute(_SETTINGS)
            return _nearest(connection, "nearest_around", asked, tenant, scope, limit, len(vector))
        return _nearest(connection, "nearest_exactly", asked, tenant, scope, limit)

    def build(self) -> int:
        """Build the graphs that are missing; returns how many. One instance does it, the others go on."""
        with psycopg.connect(self._url, autocommit=True) as owner:
            if not _first(owner, "SELECT pg_try_advisory_lock(%s)", [_BUILD_LOCK]):
                return 0
            return sum(self._built(owner, model, length) for model, length in list(self._lengths.items()))

    def _built(self, owner: "psycopg.Connection[Any]", model: str, length: int) -> bool:
        name = graph_name(model)
        rows = _first(
            owner, "SELECT reltuples::bigint FROM pg_class WHERE oid = 'mcp_file_chunk_embeddings'::regclass", []
        )
        is_valid = _first(owner, _IS_VALID, [name])
        if rows <= self._graph_from or is_valid:
            return False
        if is_valid is False:
            owner.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
        owner.execute("SET maintenance_work_mem = '512MB'")
        owner.execute(_CREATE.format(name=sql.Identifier(name), length=sql.Literal(length), model=sql.Literal(model)))
        return True

    def _is_large(self, connection: Connection, asked: dict[str, Any], model: str) -> bool:
        graph = connection.execute(_IS_VALID, [graph_name(model)])
        count = run(connection, "count_vectors", {**asked, "limit": self._graph_from + 1})
        found, counted = graph.fetchone(), count.fetchone()
        return bool(found and found["indisvalid"] and counted and counted["vectors"] > self._graph_from)


_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def _first(owner: "psycopg.Connection[Any]", query: Any, values: Sequence[object]) -> Any:
    row = owner.execute(query, values).fetchone()
    return row[0] if row else None


def _nearest(
    connection: Connection,
    statement: str,
    asked: dict[str, Any],
    tenant: str,
    scope: Scope,
    limit: int,
    length: int | None = None,
) -> list[Candidate]:
    most = limit * _MATCHES_EACH
    while True:
        ranked = _ranked(connection, statement, {**asked, "most": most}, length)
        live = _live(connection, tenant, scope, ranked)
        if len(live) >= limit or len(ranked) < most:
            return live[:limit]
        most *= _WIDER


def _ranked(connection: Connection, statement: str, asked: dict[str, Any], length: int | None) -> list[Candidate]:
    if length is None:
        rows = run(connection, statement, asked).fetchall()
        return [Candidate(row["chunk_id"], row["score"]) for row in rows]
    query = STATEMENTS[statement].replace("vector(1)", f"vector({length:d})")
    rows = connection.execute(query.encode(), asked, prepare=False).fetchall()
    found = [Candidate(row["chunk_id"], 1 - row["distance"] ** 2 / 2) for row in rows]
    return sorted(found, key=lambda one: (-one.score, one.chunk_id))


def _live(connection: Connection, tenant: str, scope: Scope, ranked: Sequence[Candidate]) -> list[Candidate]:
    asked = {**within(tenant, scope), "ids": listed([one.chunk_id for one in ranked])}
    live = {row["id"] for row in run(connection, "live_chunks", asked)}
    return [one for one in ranked if one.chunk_id in live]
