"""Answers a query: candidates by words and by meaning, fused, reranked, and checked against the live files.

A file may change while a search is under way. Candidates whose text is no longer what their file holds are dropped, and
the search is repeated a few times when that happened.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import SearchBackendError
from holdfast.observe.metrics import Metrics
from holdfast.observe.spans import record_part
from holdfast.search.model import Candidate, Hit, Passage, Scope, SearchLimits, Statistics, Vector, WordMatches
from holdfast.search.ports import Embedder, EmbedFault, IndexFault, Lookup, Reranker, RerankFault
from holdfast.search.scores import PendingMatch, Weights, fuse, scan_pending
from holdfast.search.tokens import tokenize_query
from holdfast.secret import Secret

PENDING_FILES = 64
PENDING_BYTES = 2_000_000
_ATTEMPTS = 3
_PREVIOUS_MODEL_CHECK_SECONDS = 30.0

_log = logging.getLogger(__name__)


class SearchCounts:
    """Counts searches and the parts of them that failed, here and in the metrics. Safe to share between threads."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self.metrics = metrics or Metrics()
        self._counts = Counter(searches=0, words_failed=0, meaning_failed=0, reranker_failed=0, served_at_failed=0)
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        """Add one to a count."""
        with self._lock:
            self._counts[name] += 1

    def add_failure(self, name: str, fault: Exception) -> None:
        """Add one to a count and log the fault."""
        self.add(name)
        self.metrics.search_part_failed(name.removesuffix("_failed"))
        _log.warning("search: %s: %s", name, fault)

    def as_json(self) -> dict[str, int]:
        """Return the counts by name."""
        with self._lock:
            return dict(self._counts)


@dataclass(frozen=True)
class SearchQuery:
    """One search: the tenant, the scope, the text, how many hits at most, the caller's key and its cancellation check."""

    tenant: str
    scope: Scope
    text: str
    limit: int
    key: Secret | None
    check: Callable[[], None]


class PreviousModel:
    """The embedder that was used before: it serves the chunks that have no vector of the present model yet.

    Once all chunks of a tenant have vectors of the present model, the previous one is never asked for that tenant again.
    """

    def __init__(self, embedder: Embedder, present: Embedder) -> None:
        self.embedder = embedder
        self._present = present
        self._next_check_at: dict[str, float] = {}
        self._finished_tenants: set[str] = set()
        self._lock = threading.Lock()

    def is_needed(self, index: Lookup, tenant: str) -> bool:
        """Return whether a tenant has a chunk without a vector of the present model; the index is asked now and then."""
        if tenant in self._finished_tenants or self._present.model == self.embedder.model:
            return False
        with self._lock:
            if time.monotonic() < self._next_check_at.get(tenant, 0.0):
                return True
            self._next_check_at[tenant] = time.monotonic() + _PREVIOUS_MODEL_CHECK_SECONDS
        if index.find_files_without_vectors(tenant, self._present.model, 1):
            return True
        self._finished_tenants.add(tenant)
        return False


class _RankedPassage(NamedTuple):
    passage: Passage
    score: float


class Retriever:
    """Finds the best passages in one index; without an embedder it searches by words alone."""

    def __init__(
        self,
        index: Lookup,
        limits: SearchLimits,
        embedder: Embedder | None = None,
        previous_model: PreviousModel | None = None,
        reranker: Reranker | None = None,
        counts: SearchCounts | None = None,
    ) -> None:
        self._index = index
        self._limits = limits
        self._embedder = embedder
        self._previous_model = previous_model
        self._reranker = reranker
        self._counts = counts or SearchCounts()

    def retrieve(self, query: SearchQuery) -> list[tuple[int, Hit]]:
        """Return chunk id and hit, best first; ids of chunks that are not indexed yet are negative.

        SearchBackendError when neither words nor vectors can be searched. What changes while the reranker works is left
        out.
        """
        with record_part("search: embed the query"):
            vectors = self._embed_query(query)
        ranked: list[_RankedPassage] = []
        pending: dict[int, PendingMatch] = {}
        for _ in range(_ATTEMPTS):
            query.check()
            candidates, pending = self._find_candidates(query, vectors)
            with record_part("search: load passages"):
                ranked = self._load_live_passages(query, candidates, pending)
            if len(ranked) == len(candidates):
                break
        if self._reranker is not None and ranked:
            with record_part("search: rerank"):
                reranked = self._rerank(query, self._reranker, ranked)
            ranked = self._load_live_passages(query, reranked, pending)
        return [(passage.chunk_id, _to_hit(passage, score)) for passage, score in ranked[: query.limit]]

    def _embed_query(self, query: SearchQuery) -> dict[str, Vector]:
        """Return the query's vectors by model: the present one, and the previous one while it is needed."""
        embedders = [self._embedder] if self._embedder else []
        vectors: dict[str, Vector] = {}
        try:
            if self._previous_model is not None and self._previous_model.is_needed(self._index, query.tenant):
                embedders.append(self._previous_model.embedder)
            for embedder in embedders:
                if query.key is not None or not embedder.needs_key:
                    vectors[embedder.model] = embedder.embed([query.text], query.key, query.check)[0]
        except (EmbedFault, IndexFault) as fault:
            self._counts.add_failure("meaning_failed", fault)
        return vectors

    def _find_candidates(
        self, query: SearchQuery, vectors: dict[str, Vector]
    ) -> tuple[list[Candidate], dict[int, PendingMatch]]:
        """Return the fused candidates, and by their negative ids the matches in pending files."""
        with record_part("search: words"):
            matches, pending_matches = self._search_words(query)
        with record_part("search: vectors"):
            semantic = self._search_vectors(query, vectors)
        if matches is None and semantic is None:
            raise SearchBackendError("search cannot answer now; try again")
        pending = {-1 - position: match for position, match in enumerate(pending_matches)}
        lexical = [
            *(matches.candidates if matches else ()),
            *(Candidate(chunk_id, match.score) for chunk_id, match in pending.items()),
        ]
        lexical.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
        weights = Weights(self._limits.semantic_weight, self._limits.lexical_weight)
        return fuse(semantic or (), lexical[: self._limits.bm25_candidates], weights), pending

    def _search_words(self, query: SearchQuery) -> tuple[WordMatches | None, list[PendingMatch]]:
        """Return the matches in the index (None when it fails), and those in files that it does not hold yet.

        The pending files are read first: a file that is indexed in between is then found twice and not missed, and its
        version tells which one to drop.
        """
        terms = tokenize_query(query.text)
        if not terms:
            return WordMatches([], Statistics(0, 0, {})), []
        limit = self._limits.bm25_candidates
        try:
            pending_files = self._index.load_pending_files(query.tenant, query.scope, PENDING_FILES, PENDING_BYTES)
            matches = self._index.find_by_words(query.tenant, query.scope, terms, limit)
        except IndexFault as fault:
            self._counts.add_failure("words_failed", fault)
            return None, []
        return matches, scan_pending(pending_files, terms, matches.statistics, limit, query.check)

    def _search_vectors(self, query: SearchQuery, vectors: dict[str, Vector]) -> list[Candidate] | None:
        """Return the nearest chunks; None when there is no vector to search with, or the index fails."""
        limit = self._limits.vector_candidates
        try:
            by_model = [
                self._index.find_nearest(query.tenant, query.scope, model, vector, limit)
                for model, vector in vectors.items()
            ]
        except IndexFault as fault:
            self._counts.add_failure("meaning_failed", fault)
            return None
        if len(by_model) == 2:
            present, previous = by_model
            return merge_models(present, previous, limit)
        return by_model[0] if by_model else None

    def _load_live_passages(
        self, query: SearchQuery, candidates: Sequence[Candidate], pending: dict[int, PendingMatch]
    ) -> list[_RankedPassage]:
        """Return the passages of those candidates that are still what their file holds, best first."""
        chunk_ids = [candidate.chunk_id for candidate in candidates if candidate.chunk_id >= 0]
        indexed = self._index.load_passages(query.tenant, query.scope, chunk_ids) if chunk_ids else []
        indexed_files = {(passage.project, passage.path) for passage in indexed}
        pending_files = {(match.file.project, match.file.path) for match in pending.values()}
        versions = self._index.load_live_versions(query.tenant, sorted(pending_files)) if pending_files else {}
        passages = {passage.chunk_id: passage for passage in indexed}
        for chunk_id, match in pending.items():
            file, chunk = match.file, match.chunk
            is_live = versions.get((file.project, file.path)) == file.version
            if is_live and (file.project, file.path) not in indexed_files:
                passages[chunk_id] = Passage(
                    chunk_id, file.project, file.path, chunk.start, chunk.end, chunk.text, len(file.data)
                )
        ranked = [
            _RankedPassage(passages[candidate.chunk_id], candidate.score)
            for candidate in candidates
            if candidate.chunk_id in passages
        ]
        return sorted(ranked, key=_rank_key)

    def _rerank(self, query: SearchQuery, reranker: Reranker, ranked: Sequence[_RankedPassage]) -> list[Candidate]:
        """Return the candidates with the reranker's scores, or with the scores they have when it fails."""
        texts = [passage.text for passage, _ in ranked]
        try:
            scores = reranker.rank(query.text, texts, query.key, self._limits.rerank_timeout_ms)
            if len(scores) != len(texts):
                raise RerankFault(f"{len(scores)} scores for {len(texts)} texts")
        except RerankFault as fault:
            self._counts.add_failure("reranker_failed", fault)
            scores = [score for _, score in ranked]
        return [Candidate(passage.chunk_id, score) for (passage, _), score in zip(ranked, scores, strict=True)]


def merge_models(present: list[Candidate], previous: list[Candidate], limit: int) -> list[Candidate]:
    """Return the candidates of both models by cosine similarity; for a chunk that both found, the present one's counts."""
    scores = dict([*previous, *present])
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [Candidate(chunk_id, score) for chunk_id, score in ordered[:limit]]


def _rank_key(ranked: _RankedPassage) -> tuple[float, str, str, int]:
    passage = ranked.passage
    return (-ranked.score, passage.project, passage.path, passage.start)


def _to_hit(passage: Passage, score: float) -> Hit:
    is_full_file = passage.start == 0 and passage.end == passage.file_size
    return Hit(passage.project, passage.path, passage.start, passage.end, passage.text, score, is_full_file)
