"""Finds the nearest vectors of a tenant exactly, with a matrix in memory for each tenant and model.

The vector of a chunk never changes, so new vectors are those with a higher id than the last one read, whoever wrote them.
An endpoint may change the dimensions of its vectors under one model name; only those with the query's are compared.
Vectors of removed chunks stay in memory until they are many; the chunks they find are not live and are dropped.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.adapters.search_parameters import json_list, scope_parameters
from holdfast.adapters.sqlite.search.rows import run
from holdfast.search.model import Candidate, Scope, Vector

MAX_CACHE_BYTES = 1_000_000_000
_BATCH_ROWS = 8192
_MAX_SCOPE_CHUNKS = 20_000
_GROWTH_FACTOR = 8
_SCALE_BYTES = 4

Floats = NDArray[np.float32]


def pack_vector(vector: Vector) -> bytes:
    """Return a vector as its scale and one signed byte for each number."""
    values = np.asarray(vector, dtype=np.float32)
    scale = float(np.abs(values).max(initial=0.0)) / 127 or 1.0
    quantised: bytes = np.rint(values / scale).astype(np.int8).tobytes()
    return np.float32(scale).tobytes() + quantised


class MatrixView(NamedTuple):
    """A matrix at one moment: for each row its chunk, its project as a code in `project_codes`, its scale and values."""

    project_codes: dict[str, int]
    chunk_ids: NDArray[np.int64]
    projects: NDArray[np.int32]
    scales: Floats
    values: NDArray[np.int8]

    def rank(self, query: Floats, project: str | None, among: Sequence[int] | None, limit: int) -> list[Candidate]:
        """Return the nearest chunks, best first; only those of a project and of some chunks, where these are given."""
        if not len(self.chunk_ids):
            return []
        scores = np.empty(len(self.chunk_ids), np.float32)
        for start in range(0, len(scores), _BATCH_ROWS):
            batch = slice(start, start + _BATCH_ROWS)
            scores[batch] = self.values[batch].astype(np.float32) @ query
        scores = scores * self.scales
        if project is not None:
            scores[self.projects != self.project_codes.get(project, -1)] = -np.inf
        if among is not None:
            scores[~np.isin(self.chunk_ids, np.asarray(among, np.int64))] = -np.inf
        best = np.argpartition(-scores, limit - 1)[:limit] if limit < len(scores) else np.arange(len(scores))
        ordered = best[np.lexsort((self.chunk_ids[best], -scores[best]))]
        return [Candidate(int(self.chunk_ids[row]), float(scores[row])) for row in ordered if scores[row] > -np.inf]


class VectorMatrix:
    """The vectors of one tenant, model and dimension. Rows are only added, so a view stays valid while more are added."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._clear()

    @property
    def size_bytes(self) -> int:
        """Return the memory that it uses."""
        return self._values.nbytes + self._chunk_ids.nbytes + self._projects.nbytes + self._scales.nbytes

    def load_view(self, connection: sqlite3.Connection, tenant: str, model: str) -> MatrixView:
        """Read the vectors that were added to the file, and return a view of all."""
        parameters = {"apikey_hash": tenant, "model": model, "limit": _BATCH_ROWS}
        with self._lock:
            while rows := run(connection, "new_vectors", {**parameters, "after": self._last_id}).fetchall():
                self._add(rows)
            end = self._count
            arrays = self._chunk_ids[:end], self._projects[:end], self._scales[:end], self._values[:end]
            return MatrixView(self._project_codes, *arrays)

    def clear_if_mostly_dead(self, connection: sqlite3.Connection, tenant: str, model: str) -> None:
        """Drop all rows, to be read again, when more than half of them belong to removed chunks."""
        (vectors,) = run(connection, "count_vectors", {"apikey_hash": tenant, "model": model}).fetchone()
        with self._lock:
            if vectors * 2 < self._count:
                self._clear()

    def _clear(self) -> None:
        self._last_id = self._count = 0
        self._project_codes: dict[str, int] = {}
        self._chunk_ids = np.empty(0, np.int64)
        self._projects = np.empty(0, np.int32)
        self._scales = np.empty(0, np.float32)
        self._values = np.empty((0, self._dimensions), np.int8)

    def _add(self, rows: Sequence[sqlite3.Row]) -> None:
        row_bytes = _SCALE_BYTES + self._dimensions
        fitting = [row for row in rows if len(row["embedding"]) == row_bytes]
        self._reserve(len(fitting))
        start, end = self._count, self._count + len(fitting)
        raw = np.frombuffer(b"".join(row["embedding"] for row in fitting), np.uint8).reshape(len(fitting), row_bytes)
        self._scales[start:end] = np.ascontiguousarray(raw[:, :_SCALE_BYTES]).view(np.float32)[:, 0]
        self._values[start:end] = raw[:, _SCALE_BYTES:].view(np.int8)
        self._chunk_ids[start:end] = [row["chunk_id"] for row in fitting]
        codes = self._project_codes
        self._projects[start:end] = [codes.setdefault(row["project"], len(codes)) for row in fitting]
        self._count, self._last_id = end, rows[-1]["id"]

    def _reserve(self, more: int) -> None:
        needed = self._count + more
        if needed > len(self._chunk_ids):
            capacity = max(needed, len(self._chunk_ids) * 3 // 2)
            self._chunk_ids = _grow(self._chunk_ids, (capacity,))
            self._projects = _grow(self._projects, (capacity,))
            self._scales = _grow(self._scales, (capacity,))
            self._values = _grow(self._values, (capacity, self._dimensions))


class VectorCache:
    """The matrices that were used last, within a limit of memory."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._matrices: OrderedDict[tuple[str, str, int], VectorMatrix] = OrderedDict()
        self._lock = threading.Lock()

    def find_nearest(
        self, connection: sqlite3.Connection, tenant: str, scope: Scope, model: str, vector: Vector, limit: int
    ) -> list[Candidate]:
        """Return the nearest chunks of live files; takes more of the nearest while too few are live."""
        query = np.asarray(vector, dtype=np.float32)
        matrix = self._get_matrix(tenant, model, len(query))
        view = matrix.load_view(connection, tenant, model)
        among = _load_scope_chunks(connection, tenant, scope)
        count = limit * 2
        while True:
            ranked = view.rank(query, scope.project, among, count)
            ids = json_list([candidate.chunk_id for candidate in ranked])
            live_rows = run(connection, "live_chunks", {**scope_parameters(tenant, scope), "ids": ids})
            live_ids = {row[0] for row in live_rows}
            live = [candidate for candidate in ranked if candidate.chunk_id in live_ids]
            if len(live) >= limit or len(ranked) < count:
                break
            matrix.clear_if_mostly_dead(connection, tenant, model)
            count *= _GROWTH_FACTOR
        self._evict()
        return live[:limit]

    def _get_matrix(self, tenant: str, model: str, dimensions: int) -> VectorMatrix:
        key = (tenant, model, dimensions)
        with self._lock:
            matrix = self._matrices.setdefault(key, VectorMatrix(dimensions))
            self._matrices.move_to_end(key)
            return matrix

    def _evict(self) -> None:
        with self._lock:
            while len(self._matrices) > 1 and self._size_bytes() > self._max_bytes:
                self._matrices.popitem(last=False)

    def _size_bytes(self) -> int:
        return sum(matrix.size_bytes for matrix in self._matrices.values())


def _load_scope_chunks(connection: sqlite3.Connection, tenant: str, scope: Scope) -> list[int] | None:
    """Return the chunks of a scope; None when they are too many, or all of a project."""
    if scope.project is None or scope.span.low in ("", "/"):
        return None
    parameters = {**scope_parameters(tenant, scope), "limit": _MAX_SCOPE_CHUNKS + 1}
    ids = [row[0] for row in run(connection, "scope_chunks", parameters)]
    return ids if len(ids) <= _MAX_SCOPE_CHUNKS else None


def _grow(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    grown = np.empty(shape, array.dtype)
    if len(array):
        grown[: len(array)] = array
    return grown
