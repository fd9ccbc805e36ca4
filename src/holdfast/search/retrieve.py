"""From a query to hits: candidates by words and by meaning, fused, reranked, and still true when they are handed out."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.errors import SearchBackendError
from holdfast.search.fuse import Weights, fuse
from holdfast.search.model import Candidate, Found, Hit, Passage, Scope, SearchLimits, Statistics, Vector
from holdfast.search.pending import Fresh, scan
from holdfast.search.ports import Embedder, EmbedFault, IndexFault, Lookup, Reranker, RerankFault
from holdfast.search.previous_model import Earlier, joined
from holdfast.search.tokens import query_tokens
from holdfast.secret import Secret

PENDING_FILES = 64
PENDING_BYTES = 2_000_000
_ATTEMPTS = 3

_log = logging.getLogger(__name__)


@dataclass
class Figures:
    """What happened to searches, by name: searches, words_down, meaning_down, rerank_fallbacks, touch_failures."""

    counts: Counter[str] = field(default_factory=Counter)

    def count(self, name: str) -> None:
        """Count one more."""
        self.counts[name] += 1


@dataclass(frozen=True)
class Query:
    """One search: whose, where, what, and how many hits at most."""

    tenant: str
    scope: Scope
    text: str
    limit: int
    key: Secret | None
    check: Callable[[], None]


@dataclass(frozen=True)
class Retriever:
    """What a search works with; without an embedder there are words alone."""

    index: Lookup
    limits: SearchLimits
    embedder: Embedder | None = None
    earlier: Earlier | None = None
    reranker: Reranker | None = None
    figures: Figures = field(default_factory=Figures)


class _Ranked(NamedTuple):
    passage: Passage
    score: float


def retrieve(with_: Retriever, query: Query) -> list[tuple[int, Hit]]:
    """Return chunk id and hit, best first; SearchBackendError when neither retriever answers.

    A file that changed between being found and being read is not handed out; the search is made again. What changed while
    a reranker thought about it is left out.
    """
    vectors = _vectors(with_, query)
    ranked: list[_Ranked] = []
    new: dict[int, Fresh] = {}
    for _ in range(_ATTEMPTS):
        query.check()
        fused, new = _candidates(with_, query, vectors)
        ranked = _readable(with_, query, fused, new)
        if len(ranked) == len(fused):
            break
    if with_.reranker is not None and ranked:
        scored = _reranked(with_, query, with_.reranker, ranked)
        ranked = _readable(with_, query, scored, new)
    return [(one.passage.chunk_id, _hit(one)) for one in ranked[: query.limit]]


def _vectors(with_: Retriever, query: Query) -> dict[str, Vector]:
    """Return the query's vectors by model: the present one's, and the earlier one's while it is needed."""
    embedders = [with_.embedder] if with_.embedder else []
    vectors: dict[str, Vector] = {}
    try:
        if with_.earlier is not None and with_.earlier.is_needed(with_.index, query.tenant):
            embedders.append(with_.earlier.embedder)
        for embedder in embedders:
            if query.key is not None or not embedder.needs_key:
                vectors[embedder.model] = embedder.embed([query.text], query.key, query.check)[0]
    except (EmbedFault, IndexFault) as fault:
        _down(with_, "meaning_down", fault)
    return vectors


def _candidates(with_: Retriever, query: Query, vectors: dict[str, Vector]) -> tuple[list[Candidate], dict[int, Fresh]]:
    """Return fused candidates, and by number those among them that are pieces of pending files."""
    terms = query_tokens(query.text)
    found, fresh = _by_words(with_, query, terms)
    meant = _by_meaning(with_, query, vectors)
    if found is None and meant is None:
        raise SearchBackendError("search cannot answer now; try again")
    new = {-1 - number: one for number, one in enumerate(fresh)}
    lexical = [*(found.candidates if found else ()), *(Candidate(number, one.score) for number, one in new.items())]
    lexical.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    weights = Weights(with_.limits.semantic_weight, with_.limits.lexical_weight)
    return fuse(meant or (), lexical[: with_.limits.bm25_candidates], weights), new


def _readable(with_: Retriever, query: Query, found: Sequence[Candidate], new: dict[int, Fresh]) -> list[_Ranked]:
    """Return the candidates that are still what their file holds, best first."""
    wanted = [one.chunk_id for one in found if one.chunk_id >= 0]
    read = with_.index.passages(query.tenant, query.scope, wanted) if wanted else []
    places = {(one.file.project, one.file.path) for one in new.values()}
    versions = with_.index.versions(query.tenant, sorted(places)) if places else {}
    indexed = {(passage.project, passage.path) for passage in read}
    passages = {passage.chunk_id: passage for passage in read}
    for number, one in new.items():
        place = (one.file.project, one.file.path)
        if versions.get(place) == one.file.version and place not in indexed:
            passages[number] = _passage(number, one)
    ranked = [_Ranked(passages[one.chunk_id], one.score) for one in found if one.chunk_id in passages]
    return sorted(ranked, key=_order)


def _by_words(with_: Retriever, query: Query, terms: Sequence[str]) -> tuple[Found | None, list[Fresh]]:
    """Return candidates of the index, and pieces of files that it does not hold yet.

    The pending files are asked for first: one that is indexed meanwhile is found twice, which the version tells.
    """
    if not terms:
        return Found([], Statistics(0, 0, {})), []
    most = with_.limits.bm25_candidates
    try:
        waiting = with_.index.pending(query.tenant, query.scope, PENDING_FILES, PENDING_BYTES)
        found = with_.index.words(query.tenant, query.scope, terms, most)
    except IndexFault as fault:
        _down(with_, "words_down", fault)
        return None, []
    return found, scan(waiting, terms, found.statistics, most, query.check)


def _by_meaning(with_: Retriever, query: Query, vectors: dict[str, Vector]) -> list[Candidate] | None:
    most = with_.limits.vector_candidates
    try:
        found = [
            with_.index.nearest(query.tenant, query.scope, model, vector, most) for model, vector in vectors.items()
        ]
        if len(found) == 2:
            return joined(found[0], found[1], most)
        return found[0] if found else None
    except IndexFault as fault:
        _down(with_, "meaning_down", fault)
        return None


def _reranked(with_: Retriever, query: Query, reranker: Reranker, ranked: Sequence[_Ranked]) -> list[Candidate]:
    """Return the candidates with the reranker's scores, or with those that they had when it fails."""
    texts = [one.passage.text for one in ranked]
    scores = [one.score for one in ranked]
    try:
        given = reranker.rank(query.text, texts, query.key, with_.limits.rerank_timeout_ms)
        if len(given) != len(texts):
            raise RerankFault(f"{len(given)} scores for {len(texts)} texts")
        scores = given
    except RerankFault as fault:
        _down(with_, "rerank_fallbacks", fault)
    return [Candidate(one.passage.chunk_id, score) for one, score in zip(ranked, scores, strict=True)]


def _down(with_: Retriever, name: str, fault: Exception) -> None:
    with_.figures.count(name)
    _log.warning("search: %s: %s", name, fault)


def _order(one: _Ranked) -> tuple[float, str, str, int]:
    return (-one.score, one.passage.project, one.passage.path, one.passage.start)


def _passage(number: int, fresh: Fresh) -> Passage:
    file, chunk = fresh.file, fresh.chunk
    return Passage(number, file.project, file.path, chunk.start, chunk.end, chunk.text, len(file.data))


def _hit(one: _Ranked) -> Hit:
    passage = one.passage
    is_full = passage.start == 0 and passage.end == passage.file_size
    return Hit(passage.project, passage.path, passage.start, passage.end, passage.text, one.score, is_full)
