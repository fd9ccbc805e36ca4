"""Pure: scores the text of files that are not indexed yet by BM25, as the index would."""

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import NamedTuple

from holdfast.search.chunk import chunk_ranges, make_chunk
from holdfast.search.model import Chunk, PendingFile, Statistics
from holdfast.search.scores import average_length, score, term_weights
from holdfast.search.tokens import tokenize


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
