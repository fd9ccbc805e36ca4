"""Finds the nearest vectors with pgvector: exactly while they are few, through an HNSW graph when they are many.

A graph serves one model and is built in the background once there are enough vectors of all tenants. It stores two bytes
a number, and what it finds is scored again with four. The scan of a graph is iterative, until enough rows of the tenant
are found; a scan that stopped early found 2 of 30 for a tenant with 1 % of the vectors.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from holdfast.adapters.postgres.search.rows import STATEMENTS, run
from holdfast.adapters.postgres.store.store import Connection
from holdfast.adapters.search_parameters import json_list, scope_parameters
from holdfast.search.model import Candidate, Scope, Vector

MAX_EXACT_VECTORS = 20_000
_MATCHES_PER_HIT = 2
_GROWTH_FACTOR = 8
_BUILD_LOCK = 0x686F6C6467726170
"""The bytes of 'holdgrap': the advisory lock for building graphs."""

_GRAPH_SETTINGS = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '400', true), "
    "set_config('hnsw.max_scan_tuples', '100000', true), set_config('enable_sort', 'off', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true)"
)
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON mcp_file_chunk_embeddings "
    "USING hnsw ((embedding::halfvec({length})) halfvec_l2_ops) WHERE model = {model}"
)
_NODE_BYTES = 600
"""The memory of a row in a graph while it is built, without its vector."""
_MAX_BUILD_BYTES = 2 << 30


def vector_text(vector: Vector) -> str:
    """Return a vector in the text format of pgvector."""
    return "[" + ",".join(format(float(value), ".7g") for value in vector) + "]"


def graph_name(model: str) -> str:
    """Return the name of a model's graph."""
    return f"mcp_file_chunk_embeddings_{hashlib.blake2b(model.encode(), digest_size=6).hexdigest()}"


class VectorGraphs:
    """Searches vectors, and builds a graph for each model with more than `graph_from` vectors."""

    def __init__(self, url: str, graph_from: int) -> None:
        self._url = url
        self._graph_from = graph_from
        self._dimensions: dict[str, int] = {}

    def add_model(self, model: str, dimensions: int) -> None:
        """Keep a model in mind, for `build`, and the dimensions of its vectors."""
        self._dimensions[model] = dimensions

    def find_nearest(
        self, connection: Connection, tenant: str, scope: Scope, model: str, vector: Vector, limit: int
    ) -> list[Candidate]:
        """Return the nearest chunks of live files."""
        parameters: dict[str, Any] = {**scope_parameters(tenant, scope), "model": model, "vector": vector_text(vector)}
        if scope.project is not None and scope.span.low not in ("", "/"):
            return _find_nearest(connection, "nearest_in_scope", parameters, tenant, scope, limit)
        if self._uses_graph(connection, parameters, model):
            connection.execute(_GRAPH_SETTINGS)
            return _find_nearest(connection, "nearest_approximately", parameters, tenant, scope, limit, len(vector))
        return _find_nearest(connection, "nearest_exactly", parameters, tenant, scope, limit)

    def build(self) -> int:
        """Build the graphs that are missing; returns how many. Only one server does it at a time."""
        with psycopg.connect(self._url, autocommit=True) as owner:
            if not _fetch_value(owner, "SELECT pg_try_advisory_lock(%s)", [_BUILD_LOCK]):
                return 0
            return sum(
                self._build_graph(owner, model, dimensions) for model, dimensions in list(self._dimensions.items())
            )

    def _build_graph(self, owner: "psycopg.Connection[Any]", model: str, dimensions: int) -> bool:
        """Build the graph of a model if it needs one; returns whether it was built. A broken one is dropped first."""
        name = graph_name(model)
        rows = _fetch_value(
            owner, "SELECT reltuples::bigint FROM pg_class WHERE oid = 'mcp_file_chunk_embeddings'::regclass", []
        )
        is_valid = _fetch_value(owner, _IS_VALID, [name])
        if rows <= self._graph_from or is_valid:
            return False
        if is_valid is False:
            owner.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
        owner.execute(
            "SELECT set_config('maintenance_work_mem', %s, false)", [f"{_build_memory(rows, dimensions) >> 10}kB"]
        )
        owner.execute(
            _CREATE.format(name=sql.Identifier(name), length=sql.Literal(dimensions), model=sql.Literal(model))
        )
        return True

    def _uses_graph(self, connection: Connection, parameters: dict[str, Any], model: str) -> bool:
        # Both statements are sent before the first answer is fetched: the connection is in pipeline mode.
        graph_cursor = connection.execute(_IS_VALID, [graph_name(model)])
        count_cursor = run(connection, "count_vectors", {**parameters, "limit": self._graph_from + 1})
        graph, count = graph_cursor.fetchone(), count_cursor.fetchone()
        return bool(graph and graph["indisvalid"] and count and count["vectors"] > self._graph_from)


def _build_memory(rows: int, dimensions: int) -> int:
    """Return the memory for building a graph: one that does not fit into it takes many times as long."""
    return min(_MAX_BUILD_BYTES, max(64 << 20, rows * (2 * dimensions + _NODE_BYTES)))


_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def _fetch_value(owner: "psycopg.Connection[Any]", query: Any, values: Sequence[object]) -> Any:
    row = owner.execute(query, values).fetchone()
    return row[0] if row else None


def _find_nearest(
    connection: Connection,
    statement: str,
    parameters: dict[str, Any],
    tenant: str,
    scope: Scope,
    limit: int,
    dimensions: int | None = None,
) -> list[Candidate]:
    """Return the nearest chunks of live files; takes more of the nearest while too few are live."""
    query = STATEMENTS[statement]
    if dimensions is not None:
        query = query.replace("(1)", f"({dimensions:d})")
    count = limit * _MATCHES_PER_HIT
    while True:
        rows = connection.execute(query.encode(), {**parameters, "most": count}, prepare=dimensions is None).fetchall()
        nearest = [Candidate(row["chunk_id"], row["score"]) for row in rows]
        ids = json_list([candidate.chunk_id for candidate in nearest])
        live_ids = {
            row["id"] for row in run(connection, "live_chunks", {**scope_parameters(tenant, scope), "ids": ids})
        }
        live = [candidate for candidate in nearest if candidate.chunk_id in live_ids]
        if len(live) >= limit or len(nearest) < count:
            return live[:limit]
        count *= _GROWTH_FACTOR
