"""Search among very many chunks: how long filling takes, and how long a search takes by words, by meaning and by both."""

import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.measure.table import Sample
from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import Scope, SearchLimits, Vector
from holdfast.search.ports import Index
from holdfast.search.service import Search
from holdfast.secret import Secret
from holdfast.store.model import StoreLimits
from holdfast.store.paths import span_with_prefix
from tests.helpers.databases import Backend, new_caller
from tests.helpers.indexing import drain

LENGTH = 384
CLUSTERS = 2000
VOCABULARY = 60_000
FILE_BYTES = 256_000
CHUNK_BYTES = 1400
BARS_MS = {100_000: 100.0, 1_000_000: 300.0}
PROBES = 50
NEAREST = 30


class Synthetic:
    """Vectors around 2,000 centres; a query is one of them with noise, and costs nothing to embed."""

    model = "synthetic"
    needs_key = False

    def __init__(self) -> None:
        self._noise = np.random.default_rng(7)
        self._centres = self._noise.normal(size=(CLUSTERS, LENGTH)).astype(np.float32)

    def draw(self, count: int) -> NDArray[np.float32]:
        """Return so many vectors of length one."""
        cluster_centres = self._centres[self._noise.integers(0, CLUSTERS, count)]
        vectors = cluster_centres + 0.7 * self._noise.normal(size=(count, LENGTH)).astype(np.float32)
        unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:  # noqa: ARG002 - the port's
        """Return a vector for each text."""
        return list(self.draw(len(texts)))


class Exact:
    """The true neighbours of some probes among all vectors that were added."""

    def __init__(self, model: Synthetic) -> None:
        self.probes = model.draw(PROBES)
        self._scores = np.empty((PROBES, 0), np.float32)
        self._ids = np.empty((PROBES, 0), np.int64)

    def add(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Take in more vectors and keep the nearest of all."""
        scores = np.concatenate([self._scores, self.probes @ vectors.T], axis=1)
        numbers = np.concatenate([self._ids, np.broadcast_to(np.asarray(ids, np.int64), (PROBES, len(ids)))], axis=1)
        best = np.argsort(-scores, axis=1)[:, :NEAREST]
        self._scores = np.take_along_axis(scores, best, axis=1)
        self._ids = np.take_along_axis(numbers, best, axis=1)

    def recall(self, index: Index, me: AuthContext, model: str) -> float:
        """Return the share of the true neighbours that an index finds."""
        scope = Scope("p", span_with_prefix(""))
        hits = 0
        for probe, true_ids in zip(self.probes, self._ids, strict=True):
            near = index.find_nearest(me.apikey_hash, scope, model, list(map(float, probe)), NEAREST)
            hits += len({candidate.chunk_id for candidate in near} & set(true_ids.tolist()))
        return hits / self._ids.size


def measure_scale(backend: Backend, url: str | None, chunks: int, queries: int = 60) -> list[dict[str, Any]]:
    """Fill one tenant's index, search it, and return one row for each way of searching."""
    me, model = new_caller(), Synthetic()
    words = [_word(number) for number in range(VOCABULARY)]
    chunk_count = _fill(backend, me, chunks, words)
    exact = Exact(model)
    _add_vectors(backend, url, me, model, exact)
    index = backend.open_index()
    if url is not None:
        _build_graph(index, me, url)
    recall = exact.recall(index, me, model.model)
    print(f"{backend.name}: {recall:.3f} of the {NEAREST} nearest found", flush=True)
    rows: list[dict[str, Any]] = [{"database": backend.name, "chunks": chunk_count, "how": "recall", "recall": recall}]
    for how, limits, embedder in (
        ("words", SearchLimits(), None),
        ("meaning", SearchLimits(semantic_weight=1.0, lexical_weight=0.0), model),
        ("hybrid", SearchLimits(), model),
    ):
        search = Search(index, limits, embedder)
        timings = _timed(search, me, words, queries)
        bar = next((bar for size, bar in BARS_MS.items() if size >= chunk_count * 0.9), None)
        row = {
            "database": backend.name,
            "chunks": chunk_count,
            "how": how,
            **timings,
            "bar_ms": bar,
            "rss_mb": _rss_mb(),
        }
        rows.append(row)
        print(
            f"{backend.name:9} {chunk_count:8} chunks {how:8} p50 {timings['p50_ms']:.1f} ms  p95 {timings['p95_ms']:.1f} ms  "
            f"CPU here {timings['cpu_ms']:.1f} ms  RSS {row['rss_mb']} MB",
            flush=True,
        )
    return rows


def _fill(backend: Backend, me: AuthContext, chunks: int, words: Sequence[str]) -> int:
    store = backend.store(StoreLimits(max_project_bytes=10**12))
    started, size = time.perf_counter(), 0
    queue, indexer = backend.open_queue(), Indexer(backend.open_index(), None)
    for number, text in enumerate(_texts(chunks * CHUNK_BYTES, words)):
        store.write(me, "p", f"/d{number % 50}/{number}.txt", text)
        size += len(text)
    written = time.perf_counter()
    cpu = time.process_time()
    drain(queue, indexer, meaning=False)
    spent, cpu = time.perf_counter() - written, time.process_time() - cpu
    ((chunk_count,),) = [
        tuple(row.values()) for row in backend.look(me, _of_tenant("SELECT count(*) AS n FROM mcp_file_chunks", me))
    ]
    print(
        f"{backend.name}: {chunk_count} chunks, {size / 1e6:.0f} MB written in {written - started:.0f} s; words indexed in "
        f"{spent:.0f} s, {size / 1e6 / spent:.2f} MB/s (CPU here {cpu:.0f} s)",
        flush=True,
    )
    return int(chunk_count)


def _texts(total: int, words: Sequence[str]) -> Iterator[str]:
    noise = np.random.default_rng(3)
    shares = 1.0 / (np.arange(len(words)) + 2.7)
    shares /= shares.sum()
    while total > 0:
        word_indexes = noise.choice(len(words), size=FILE_BYTES // 7, p=shares)
        lines = [" ".join(words[at] for at in word_indexes[low : low + 12]) for low in range(0, len(word_indexes), 12)]
        text = "\n".join(lines)
        total -= len(text)
        yield text


def _word(number: int) -> str:
    letters = ""
    number += 27
    while number:
        number, rest = divmod(number, 26)
        letters += "etaoinshrdlucmfwypvbgkjqxz"[rest]
    return letters


def _add_vectors(backend: Backend, url: str | None, me: AuthContext, model: Synthetic, exact: Exact) -> None:
    started = time.perf_counter()
    chunk_rows = backend.look(me, _of_tenant("SELECT id, content_hash FROM mcp_file_chunks", me))
    index = backend.open_index()
    for low in range(0, len(chunk_rows), 5000):
        part = chunk_rows[low : low + 5000]
        vectors = model.draw(len(part))
        exact.add([row["id"] for row in part], vectors)
        if url is None:
            rows = [(row["id"], row["content_hash"], vector) for row, vector in zip(part, vectors, strict=True)]
            index.put_vectors(me.apikey_hash, model.model, rows, utc_clock())
        else:
            _copy(url, me, model.model, [row["id"] for row in part], vectors)
    print(f"{backend.name}: {len(chunk_rows)} vectors in {time.perf_counter() - started:.0f} s", flush=True)


def _copy(url: str, me: AuthContext, model: str, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
    columns = "apikey_hash, project, chunk_id, model, embedding, created_at, updated_at"
    command = f"COPY mcp_file_chunk_embeddings ({columns}) FROM STDIN".encode()
    with psycopg.connect(url) as owner, owner.cursor() as cursor, cursor.copy(command) as copy:
        for number, vector in zip(ids, vectors, strict=True):
            vector_text = "[" + ",".join(f"{value:.5g}" for value in vector) + "]"
            copy.write_row((me.apikey_hash, "p", number, model, vector_text, utc_clock(), utc_clock()))


def _build_graph(index: Index, me: AuthContext, url: str) -> None:
    started = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")
    index.put_vectors(me.apikey_hash, Synthetic.model, [(-1, "", [0.0] * LENGTH)], utc_clock())
    built = index.run_maintenance()
    with psycopg.connect(url) as owner:
        sizes = "SELECT pg_total_relation_size('mcp_file_chunk_embeddings'), pg_database_size(current_database())"
        vectors, everything = (size // 1_000_000 for size in owner.execute(sizes).fetchone() or (0, 0))
    spent = time.perf_counter() - started
    print(f"postgres: {built} graph built in {spent:.0f} s; vectors {vectors} MB, database {everything} MB", flush=True)


def _timed(search: Search, me: AuthContext, words: Sequence[str], queries: int) -> dict[str, float]:
    choose, walls = random.Random(5), []
    drawn_queries = [
        " ".join(choose.choice(words[10 ** choose.randrange(1, 4) : 20_000]) for _ in range(choose.randrange(3, 9)))
        for _ in range(queries + 3)
    ]
    for query in drawn_queries[:3]:
        search.search(me, "p", query)
    cpu = time.process_time()
    for query in drawn_queries[3:]:
        began = time.perf_counter()
        search.search(me, "p", query)
        walls.append((time.perf_counter() - began) * 1000)
    cpu = (time.process_time() - cpu) * 1000 / queries
    sample = Sample(walls)
    return {"p50_ms": statistics.median(walls), "p95_ms": sample.p95, "cpu_ms": cpu}


def _of_tenant(query: str, me: AuthContext) -> str:
    return f"{query} WHERE apikey_hash = '{me.apikey_hash}'"


def _rss_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
