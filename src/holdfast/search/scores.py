"""Pure: scores chunks by BM25, those of files that are not indexed yet too, and fuses the candidates of two retrievers.

The two retrievers score on scales that cannot be compared, so each list is scaled to 0..1 on its own before the weights
apply. Equal scores keep chunk-id order: the same index and query always give the same answer.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from math import log
from typing import NamedTuple

from holdfast.search.chunk import chunk_ranges, make_chunk
from holdfast.search.model import Candidate, Chunk, PendingFile, Statistics
from holdfast.search.tokens import tokenize

K1 = 1.2
B = 0.75


def term_weights(terms: Sequence[str], statistics: Statistics) -> dict[str, float]:
    """Return the weight of each term: its inverse document frequency, times its occurrences in the query."""
    frequencies = statistics.document_frequencies
    return {
        term: count * inverse_document_frequency(frequencies.get(term, 0), statistics.chunk_count)
        for term, count in Counter(terms).items()
    }


def inverse_document_frequency(frequency: int, chunk_count: int) -> float:
    """Return the inverse document frequency of a term that `frequency` of the chunks have; never less than 0."""
    frequency = min(frequency, chunk_count)
    return log(1 + (chunk_count - frequency + 0.5) / (frequency + 0.5))


def score(term_counts: Mapping[str, int], length: int, weights: Mapping[str, float], average_length: float) -> float:
    """Return the score of a chunk of `length` tokens by how often it has each term."""
    saturation = K1 * (1 - B + B * length / average_length) if average_length > 0 else K1
    # In the order of the weights, so that chunks with the same counts have exactly the same score.
    present = ((weight, term_counts[term]) for term, weight in weights.items() if term in term_counts)
    return sum(weight * count * (K1 + 1) / (count + saturation) for weight, count in present)


def average_length(statistics: Statistics) -> float:
    """Return the mean number of tokens of a chunk."""
    return statistics.token_count / statistics.chunk_count if statistics.chunk_count else 0.0


class Weights(NamedTuple):
    """How much each retriever counts."""

    semantic: float
    lexical: float


def fuse(semantic: Sequence[Candidate], lexical: Sequence[Candidate], weights: Weights) -> list[Candidate]:
    """Return every candidate once, best first; a retriever that missed a chunk gives it 0."""
    by_meaning, by_words = normalise(semantic), normalise(lexical)
    fused = [
        Candidate(
            chunk_id,
            weights.semantic * by_meaning.get(chunk_id, 0.0) + weights.lexical * by_words.get(chunk_id, 0.0),
        )
        for chunk_id in by_meaning.keys() | by_words.keys()
    ]
    return sorted(fused, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def normalise(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Return scores by chunk, from 0 for the worst to 1 for the best; all 1 when all scores are equal."""
    if not candidates:
        return {}
    scores = [candidate.score for candidate in candidates]
    lowest, span = min(scores), max(scores) - min(scores)
    return {candidate.chunk_id: (candidate.score - lowest) / span if span > 0 else 1.0 for candidate in candidates}


class PendingMatch(NamedTuple):
    """A chunk of a pending file that holds a term of the query, and its score."""

    file: PendingFile
    chunk: Chunk
    score: float


class _CountedRange(NamedTuple):
    """A byte range of a file that has a term of the query: how many tokens it has, and how often each term."""

    file: PendingFile
    start: int
    end: int
    token_count: int
    term_counts: Counter[str]


def scan_pending(
    files: Sequence[PendingFile], terms: Sequence[str], statistics: Statistics, limit: int, check: Callable[[], None]
) -> list[PendingMatch]:
    """Return the best chunks of pending files, scored as if they were indexed already. Calls `check` for each chunk.

    Of a large file only the ranges that have a term are kept, and the text of the best ones is made at the end.
    """
    ranges, statistics = _count_terms(files, frozenset(terms), statistics, check)
    weights, average = term_weights(terms, statistics), average_length(statistics)
    scored = [(score(counted.term_counts, counted.token_count, weights, average), counted) for counted in ranges]
    return [
        PendingMatch(counted.file, make_chunk(counted.file.data, counted.start, counted.end), value)
        for value, counted in nsmallest(limit, scored, key=_rank_key)
    ]


def _rank_key(scored: tuple[float, _CountedRange]) -> tuple[float, str, str, int]:
    value, counted = scored
    return (-value, counted.file.project, counted.file.path, counted.start)


def _count_terms(
    files: Sequence[PendingFile], terms: frozenset[str], statistics: Statistics, check: Callable[[], None]
) -> tuple[list[_CountedRange], Statistics]:
    """Return the ranges that have a term, and the statistics with all chunks of these files added."""
    ranges: list[_CountedRange] = []
    chunk_count, token_count = statistics.chunk_count, statistics.token_count
    frequencies = Counter(statistics.document_frequencies)
    for file in files:
        for start, end in chunk_ranges(file.data):
            check()
            tokens = tokenize(file.data[start:end].decode())
            term_counts = Counter(token for token in tokens if token in terms)
            chunk_count += 1
            token_count += len(tokens)
            frequencies.update(term_counts.keys())
            if term_counts:
                ranges.append(_CountedRange(file, start, end, len(tokens), term_counts))
    return ranges, Statistics(chunk_count, token_count, frequencies)
