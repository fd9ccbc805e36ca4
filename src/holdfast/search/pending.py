"""Pure: scores the text of files that are not indexed yet by BM25, as the index would."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


class _CountedChunk(NamedTuple):
    """A chunk, how many tokens it has, and how often it has each term of the query."""

    file: PendingFile
    chunk: Chunk
    token_count: int
    term_counts: Counter[str]


def scan_pending(
    files: Sequence[PendingFile], terms: Sequence[str], statistics: Statistics, limit: int, check: Callable[[], None]
) -> list[PendingMatch]:
    """Return the best chunks of pending files, scored as if they were indexed already. Calls `check` for each chunk."""
    chunks = list(_count_terms(files, frozenset(terms), check))
    statistics = _add_chunks(statistics, chunks)
    weights, average = term_weights(terms, statistics), average_length(statistics)
    matches = [
        PendingMatch(counted.file, counted.chunk, score(counted.term_counts, counted.token_count, weights, average))
        for counted in chunks
        if counted.term_counts
    ]
    matches.sort(key=lambda match: (-match.score, match.file.project, match.file.path, match.chunk.start))
    return matches[:limit]


def _count_terms(
    files: Sequence[PendingFile], terms: frozenset[str], check: Callable[[], None]
) -> Iterator[_CountedChunk]:
    for file in files:
        for start, end in chunk_ranges(file.data):
            check()
            chunk = make_chunk(file.data, start, end)
            tokens = tokenize(chunk.text)
            yield _CountedChunk(file, chunk, len(tokens), Counter(token for token in tokens if token in terms))


def _add_chunks(statistics: Statistics, chunks: Sequence[_CountedChunk]) -> Statistics:
    frequencies = Counter(statistics.document_frequencies)
    for counted in chunks:
        frequencies.update(counted.term_counts.keys())
    token_count = statistics.token_count + sum(counted.token_count for counted in chunks)
    return Statistics(statistics.chunk_count + len(chunks), token_count, frequencies)
