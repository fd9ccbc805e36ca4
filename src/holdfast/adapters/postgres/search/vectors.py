"""Nearest vectors in PostgreSQL by pgvector: exactly while they are few, through a graph where they are many.

A graph (HNSW) serves one model and is built in the background once there are enough vectors of all tenants. It holds two
bytes a number, and what it finds is scored again with four. The scan of a graph goes on until enough rows of the tenant
were found; a scan that stops early found 2 of 30 for a tenant of 1 %.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from holdfast.adapters.postgres.search.rows import STATEMENTS, listed, run, within
from holdfast.adapters.postgres.store.rows import Connection
from holdfast.search.model import Candidate, Scope, Vector

EXACT_AT_MOST = 20_000
_MATCHES_EACH = 2
_WIDER = 8
_BUILD_LOCK = 0x686F6C6467726170
"""The bytes of 'holdgrap': the advisory lock that only building a graph takes."""

_SETTINGS = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '400', true), "
    "set_config('hnsw.max_scan_tuples', '100000', true), set_config('enable_sort', 'off', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true)"
)
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON mcp_file_chunk_embeddings "
    "USING hnsw ((embedding::halfvec({length})) halfvec_l2_ops) WHERE model = {model}"
)
_NODE_BYTES = 600
"""What a row takes in a graph while it is built, without its numbers."""
_MOST_BUILD_BYTES = 2 << 30


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
        owner.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{_build_bytes(rows, length) >> 10}kB"])
        owner.execute(_CREATE.format(name=sql.Identifier(name), length=sql.Literal(length), model=sql.Literal(model)))
        return True

    def _is_large(self, connection: Connection, asked: dict[str, Any], model: str) -> bool:
        graph = connection.execute(_IS_VALID, [graph_name(model)])
        count = run(connection, "count_vectors", {**asked, "limit": self._graph_from + 1})
        found, counted = graph.fetchone(), count.fetchone()
        return bool(found and found["indisvalid"] and counted and counted["vectors"] > self._graph_from)


def _build_bytes(rows: int, length: int) -> int:
    """Return the memory in which a graph is built at once: one that does not fit takes many times as long."""
    return min(_MOST_BUILD_BYTES, max(64 << 20, rows * (2 * length + _NODE_BYTES)))


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
    query = STATEMENTS[statement] if length is None else STATEMENTS[statement].replace("(1)", f"({length:d})")
    rows = connection.execute(query.encode(), asked, prepare=length is None).fetchall()
    return [Candidate(row["chunk_id"], row["score"]) for row in rows]


def _live(connection: Connection, tenant: str, scope: Scope, ranked: Sequence[Candidate]) -> list[Candidate]:
    asked = {**within(tenant, scope), "ids": listed([one.chunk_id for one in ranked])}
    live = {row["id"] for row in run(connection, "live_chunks", asked)}
    return [one for one in ranked if one.chunk_id in live]
