"""Measure search on both databases: how good its answers are on public sets, and how fast it is with very many chunks.

    python benchmarks/search.py quality DATA [--sets scifact,cranfield] [--cache FILE] [--words-only] [--json FILE]
    python benchmarks/search.py scale [--chunks 100000] [--json FILE]

DATA is a folder of sets in BEIR's layout (corpus.jsonl, queries.jsonl, qrels.tsv). Every document is written as a file
through the store, indexed by the product's own passes and asked for through the service behind `file_search`. A cache
keeps vectors by text between runs. At scale the text is drawn from a vocabulary with the frequencies of English, and the
vectors are synthetic: 2,000 clusters with noise.
"""

import argparse
import hashlib
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.measure.retrieval import JudgedSet, judge, judged_set
from benchmarks.measure.search_scale import measure_scale
from holdfast.adapters.models.minilm import OnnxEmbedder
from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import SearchLimits, Vector
from holdfast.search.ports import Embedder
from holdfast.search.service import Search
from holdfast.secret import Secret
from holdfast.store.model import StoreLimits
from tests.helpers.databases import (
    Backend,
    new_caller,
    postgres_backend,
    postgres_database,
    postgres_server,
    sqlite_backend,
)
from tests.helpers.indexing import drain

ROOMY = StoreLimits(max_project_bytes=10**12)
PUBLISHED = {
    "scifact": "BM25 (Anserini) .679; all-MiniLM-L6-v2 .645; bge-small-en-v1.5 .713; bge-base-en-v1.5 .741",
    "cranfield": "none under this protocol",
}
BARS = {"scifact": 0.72, "cranfield": 0.43}


class CachedEmbedder:
    """The built-in model, with a file that remembers its vectors by text."""

    needs_key = False

    def __init__(self, file: str) -> None:
        self._inner = OnnxEmbedder()
        self.model = self._inner.model
        self._book = sqlite3.connect(file, check_same_thread=False)
        self._book.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB)")

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:  # noqa: ARG002 - the port's
        """Return a vector for each text."""
        return [self._vector(text, check) for text in texts]

    def _vector(self, text: str, check: Callable[[], None]) -> Vector:
        name = hashlib.sha256(f"{self.model}\0{text}".encode()).hexdigest()
        row = self._book.execute("SELECT vector FROM vectors WHERE text = ?", [name]).fetchone()
        if row is None:
            (embedding,) = self._inner.embed([text], None, check)
            row = (np.asarray(embedding, np.float32).tobytes(),)
            self._book.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", [name, row[0]])
            self._book.commit()
        vector: Vector = np.frombuffer(row[0], np.float32)  # type: ignore[assignment]
        return vector


def main() -> None:
    """Run what was asked for and print it."""
    options = _options()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        for name in options.databases.split(","):
            with _backend(name, Path(folder)) as (backend, url):
                if options.what == "quality":
                    rows += _quality(options, backend)
                else:
                    rows += measure_scale(backend, url, options.chunks)
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": platform.platform(), "rows": rows}, indent=1))


@contextmanager
def _backend(name: str, folder: Path) -> Iterator[tuple[Backend, str | None]]:
    if name == "sqlite":
        with sqlite_backend(folder / "store") as backend:
            yield backend, None
    else:
        with postgres_server() as server, postgres_database(server) as url, postgres_backend(url) as backend:
            yield backend, url


def _quality(options: argparse.Namespace, backend: Backend) -> list[dict[str, Any]]:
    embedder = None if options.words_only else CachedEmbedder(options.cache)
    rows = []
    for name in options.sets.split(","):
        test_set, me = judged_set(Path(options.data) / name), new_caller()
        _fill(backend, me, test_set, embedder)
        for how, search in _ways(backend, embedder):
            gain, share = judge(test_set, partial(_ranked, search, me))
            bar = BARS.get(name) if how == "hybrid" else None
            rows.append({"set": name, "database": backend.name, "how": how, "ndcg": gain, "recall": share, "bar": bar})
            verdict = "" if bar is None else f"  bar {bar}: {'met' if gain >= bar else 'MISSED'}"
            print(f"{name:10} {backend.name:9} {how:8} nDCG@10 {gain:.4f}  Recall@20 {share:.4f}{verdict}", flush=True)
        print(f"{name:10} published: {PUBLISHED.get(name, '')}")
    return rows


def _fill(backend: Backend, me: AuthContext, test_set: JudgedSet, embedder: Embedder | None) -> None:
    store, started = backend.store(ROOMY), time.perf_counter()
    for name, text in test_set.texts.items():
        store.write(me, "p", f"/{name}.txt", text)
    written = time.perf_counter()
    drain(backend.open_queue(), Indexer(backend.open_index(), None))
    indexed = time.perf_counter()
    if embedder is not None:
        _embed(backend, me, embedder)
    size = sum(len(text.encode()) for text in test_set.texts.values()) / 1e6
    print(
        f"{test_set.name}: {len(test_set.texts)} files, {size:.1f} MB; written in {written - started:.1f} s, words indexed "
        f"in {indexed - written:.1f} s ({size / (indexed - written):.2f} MB/s), meaning in {time.perf_counter() - indexed:.1f} s",
        flush=True,
    )


def _embed(backend: Backend, me: AuthContext, embedder: Embedder) -> None:
    index = backend.open_index()
    for project, path in index.find_files_without_vectors(me.apikey_hash, embedder.model, 10**6):
        chunks = index.load_chunks_without_vectors(me.apikey_hash, project, path, embedder.model)
        vectors = embedder.embed([chunk.text for chunk in chunks], None, lambda: None)
        rows = [(chunk.id, chunk.content_hash, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        index.put_vectors(me.apikey_hash, embedder.model, rows, utc_clock())


def _ways(backend: Backend, embedder: Embedder | None) -> list[tuple[str, Search]]:
    ways = [("words", backend.search(SearchLimits(limit_max=100)))]
    if embedder is not None:
        meaning = SearchLimits(limit_max=100, semantic_weight=1.0, lexical_weight=0.0)
        ways.append(("meaning", backend.search(meaning, embedder=embedder)))
        ways.append(("hybrid", backend.search(SearchLimits(limit_max=100), embedder=embedder)))
    return ways


def _ranked(search: Search, me: AuthContext, query: str) -> list[str]:
    hits = search.search(me, "p", query, limit=100)
    return list(dict.fromkeys(hit.path[1:].removesuffix(".txt") for hit in hits))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--json")
    what = parser.add_subparsers(dest="what", required=True)
    quality = what.add_parser("quality")
    quality.add_argument("data")
    quality.add_argument("--sets", default="scifact,cranfield")
    quality.add_argument("--cache", default=":memory:")
    quality.add_argument("--words-only", action="store_true")
    scale = what.add_parser("scale")
    scale.add_argument("--chunks", type=int, default=100_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
