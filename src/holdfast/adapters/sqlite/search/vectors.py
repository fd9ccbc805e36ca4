"""Nearest vectors of a tenant, exactly: a matrix in memory for each tenant and model, kept up to date from its file.

A chunk's vector never changes, so what is new is what has a higher number than the last one read, whoever wrote it.
An endpoint may change the length of its vectors under one name; then only those as long as the query's are compared.
Vectors of chunks that are gone stay until they are many; what they find is not live and so is no candidate.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.adapters.sqlite.search.rows import listed, run, within
from holdfast.search.model import Candidate, Scope, Vector

KEPT_BYTES = 1_000_000_000
_ROWS_AT_ONCE = 8192
_IN_SCOPE_AT_MOST = 20_000
_WIDER = 8
_SCALE_BYTES = 4

Floats = NDArray[np.float32]


def packed(vector: Vector) -> bytes:
    """Return a vector as its scale and one signed byte a number."""
    values = np.asarray(vector, dtype=np.float32)
    scale = float(np.abs(values).max(initial=0.0)) / 127 or 1.0
    small: bytes = np.rint(values / scale).astype(np.int8).tobytes()
    return np.float32(scale).tobytes() + small


class View(NamedTuple):
    """A matrix as it is at one moment; `numbers` are the chunks, `projects` their projects by place in `names`."""

    names: dict[str, int]
    numbers: NDArray[np.int64]
    projects: NDArray[np.int32]
    scales: Floats
    values: NDArray[np.int8]

    def ranked(self, query: Floats, project: str | None, among: Sequence[int] | None, most: int) -> list[Candidate]:
        """Return the nearest chunks, best first, of a project or all, and of some chunks or all."""
        if not len(self.numbers):
            return []
        scores = self._scores(query)
        if project is not None:
            scores[self.projects != self.names.get(project, -1)] = -np.inf
        if among is not None:
            scores[~np.isin(self.numbers, np.asarray(among, np.int64))] = -np.inf
        best = np.argpartition(-scores, most - 1)[:most] if most < len(scores) else np.arange(len(scores))
        ordered = best[np.lexsort((self.numbers[best], -scores[best]))]
        return [Candidate(int(self.numbers[at]), float(scores[at])) for at in ordered if scores[at] > -np.inf]

    def _scores(self, query: Floats) -> Floats:
        scores = np.empty(len(self.numbers), np.float32)
        for low in range(0, len(scores), _ROWS_AT_ONCE):
            scores[low : low + _ROWS_AT_ONCE] = self.values[low : low + _ROWS_AT_ONCE].astype(np.float32) @ query
        return scores * self.scales


class Matrix:
    """The vectors of one tenant, model and length. Rows are only ever added, so a view stays true while more come."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()
        self._forget()

    @property
    def size_bytes(self) -> int:
        """Return the memory that it takes."""
        return self._values.nbytes + self._numbers.nbytes + self._projects.nbytes + self._scales.nbytes

    def view(self, connection: sqlite3.Connection, tenant: str, model: str) -> View:
        """Take in what the file has more, and return what there is."""
        asked = {"apikey_hash": tenant, "model": model, "limit": _ROWS_AT_ONCE}
        with self._lock:
            while rows := run(connection, "new_vectors", {**asked, "after": self._after}).fetchall():
                self._add(rows)
            end = self._count
            arrays = self._numbers[:end], self._projects[:end], self._scales[:end], self._values[:end]
            return View(self._names, *arrays)

    def shrink(self, connection: sqlite3.Connection, tenant: str, model: str) -> None:
        """Forget everything, to be read again, when more than half of it is of chunks that are gone."""
        (vectors,) = run(connection, "count_vectors", {"apikey_hash": tenant, "model": model}).fetchone()
        with self._lock:
            if vectors * 2 < self._count:
                self._forget()

    def _forget(self) -> None:
        self._after = self._count = 0
        self._names: dict[str, int] = {}
        self._numbers = np.empty(0, np.int64)
        self._projects = np.empty(0, np.int32)
        self._scales = np.empty(0, np.float32)
        self._values = np.empty((0, self._width), np.int8)

    def _add(self, rows: Sequence[sqlite3.Row]) -> None:
        stored = _SCALE_BYTES + self._width
        kept = [row for row in rows if len(row["embedding"]) == stored]
        self._make_room(len(kept))
        start, end = self._count, self._count + len(kept)
        raw = np.frombuffer(b"".join(row["embedding"] for row in kept), np.uint8).reshape(len(kept), stored)
        self._scales[start:end] = np.ascontiguousarray(raw[:, :_SCALE_BYTES]).view(np.float32)[:, 0]
        self._values[start:end] = raw[:, _SCALE_BYTES:].view(np.int8)
        self._numbers[start:end] = [row["chunk_id"] for row in kept]
        self._projects[start:end] = [self._names.setdefault(row["project"], len(self._names)) for row in kept]
        self._count, self._after = end, rows[-1]["id"]

    def _make_room(self, more: int) -> None:
        needed = self._count + more
        if needed > len(self._numbers):
            room = max(needed, len(self._numbers) * 3 // 2)
            self._numbers = _grown(self._numbers, (room,))
            self._projects = _grown(self._projects, (room,))
            self._scales = _grown(self._scales, (room,))
            self._values = _grown(self._values, (room, self._width))


class Matrices:
    """The matrices that were lately used, within a bound of memory."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._matrices: OrderedDict[tuple[str, str, int], Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def nearest(
        self, connection: sqlite3.Connection, tenant: str, scope: Scope, model: str, vector: Vector, limit: int
    ) -> list[Candidate]:
        """Return the nearest chunks of live files; looks further while too few of them are live."""
        query = np.asarray(vector, dtype=np.float32)
        matrix = self._matrix(tenant, model, len(query))
        view = matrix.view(connection, tenant, model)
        among = _few_in_scope(connection, tenant, scope)
        most = limit * 2
        while True:
            ranked = view.ranked(query, scope.project, among, most)
            live = _live(connection, tenant, scope, ranked)
            if len(live) >= limit or len(ranked) < most:
                break
            matrix.shrink(connection, tenant, model)
            most *= _WIDER
        self._trim()
        return live[:limit]

    def _matrix(self, tenant: str, model: str, width: int) -> Matrix:
        key = (tenant, model, width)
        with self._lock:
            matrix = self._matrices.setdefault(key, Matrix(width))
            self._matrices.move_to_end(key)
            return matrix

    def _trim(self) -> None:
        with self._lock:
            while len(self._matrices) > 1 and sum(one.size_bytes for one in self._matrices.values()) > self._kept_bytes:
                self._matrices.popitem(last=False)


def _few_in_scope(connection: sqlite3.Connection, tenant: str, scope: Scope) -> list[int] | None:
    """Return the chunks of a scope when they are few; None when they are many, or all of a project."""
    if scope.project is None or scope.span.low in ("", "/"):
        return None
    asked = {**within(tenant, scope), "limit": _IN_SCOPE_AT_MOST + 1}
    ids = [row[0] for row in run(connection, "scope_chunks", asked)]
    return ids if len(ids) <= _IN_SCOPE_AT_MOST else None


def _live(connection: sqlite3.Connection, tenant: str, scope: Scope, ranked: Sequence[Candidate]) -> list[Candidate]:
    asked = {**within(tenant, scope), "ids": listed([one.chunk_id for one in ranked])}
    live = {row[0] for row in run(connection, "live_chunks", asked)}
    return [one for one in ranked if one.chunk_id in live]


def _grown(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    grown = np.empty(shape, array.dtype)
    if len(array):
        grown[: len(array)] = array
    return grown
