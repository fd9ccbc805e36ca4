"""Pure: scores text that was written a moment ago, by the words it holds, as the index would."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.search.bm25 import average_length, score, weights
from holdfast.search.chunk import chunk_at, ranges
from holdfast.search.model import Chunk, PendingFile, Statistics
from holdfast.search.tokens import tokens_of


class Fresh(NamedTuple):
    """A piece of a pending file that holds a term of the query."""

    file: PendingFile
    chunk: Chunk
    score: float


class _Piece(NamedTuple):
    """A piece, how many tokens it has, and how often each term of the query."""

    file: PendingFile
    chunk: Chunk
    length: int
    counts: Counter[str]


def scan(
    files: Sequence[PendingFile], terms: Sequence[str], statistics: Statistics, limit: int, check: Callable[[], None]
) -> list[Fresh]:
    """Return the best pieces of pending files; they are counted among those of the index. Calls `check` for each piece."""
    pieces = list(_pieces(files, frozenset(terms), check))
    counted = _with(statistics, pieces)
    weight, average = weights(terms, counted), average_length(counted)
    found = [Fresh(one.file, one.chunk, score(one.counts, one.length, weight, average)) for one in pieces if one.counts]
    found.sort(key=lambda fresh: (-fresh.score, fresh.file.project, fresh.file.path, fresh.chunk.start))
    return found[:limit]


def _pieces(files: Sequence[PendingFile], terms: frozenset[str], check: Callable[[], None]) -> Iterator[_Piece]:
    for file in files:
        for start, end in ranges(file.data):
            check()
            chunk = chunk_at(file.data, start, end)
            tokens = tokens_of(chunk.text)
            yield _Piece(file, chunk, len(tokens), Counter(token for token in tokens if token in terms))


def _with(statistics: Statistics, pieces: Sequence[_Piece]) -> Statistics:
    holding = Counter(statistics.holding)
    for piece in pieces:
        holding.update(piece.counts.keys())
    tokens = sum(piece.length for piece in pieces)
    return Statistics(statistics.chunks + len(pieces), statistics.tokens + tokens, holding)
