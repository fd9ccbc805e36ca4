"""Pure: scores text that was written a moment ago, by the words it holds, as the index would."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.search.bm25 import average_length, score, weights
from holdfast.search.chunk import chunks_of
from holdfast.search.model import Chunk, PendingFile, Statistics
from holdfast.search.tokens import tokens_of


class Fresh(NamedTuple):
    """A piece of a pending file that holds a term of the query."""

    file: PendingFile
    chunk: Chunk
    score: float


def scan(
    files: Sequence[PendingFile], terms: Sequence[str], statistics: Statistics, limit: int, check: Callable[[], None]
) -> list[Fresh]:
    """Return the best pieces of pending files; they are counted among those of the index."""
    pieces = list(_pieces(files, check))
    counted = _with(statistics, pieces, terms)
    weight, average = weights(terms, counted), average_length(counted)
    found = []
    for file, chunk in pieces:
        counts = {term: chunk.tokens.count(term) for term in weight}
        if any(counts.values()):
            found.append(Fresh(file, chunk, score(counts, len(chunk.tokens), weight, average)))
    found.sort(key=lambda fresh: (-fresh.score, fresh.file.project, fresh.file.path, fresh.chunk.start))
    return found[:limit]


def _pieces(files: Sequence[PendingFile], check: Callable[[], None]) -> Iterator[tuple[PendingFile, Chunk]]:
    for file in files:
        for chunk in chunks_of(file.data):
            check()
            yield file, chunk._replace(tokens=tokens_of(chunk.text))


def _with(statistics: Statistics, pieces: Sequence[tuple[PendingFile, Chunk]], terms: Sequence[str]) -> Statistics:
    holding = {
        term: statistics.holding.get(term, 0) + sum(term in chunk.tokens for _, chunk in pieces) for term in set(terms)
    }
    tokens = sum(len(chunk.tokens) for _, chunk in pieces)
    return Statistics(statistics.chunks + len(pieces), statistics.tokens + tokens, holding)
