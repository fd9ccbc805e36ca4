"""Pure: BM25: how much a term tells, and how much a piece tells about the terms of a query."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

from holdfast.search.model import Statistics

K1 = 1.2
B = 0.75


def weights(terms: Sequence[str], statistics: Statistics) -> dict[str, float]:
    """Return what one occurrence of each term is worth: rare terms more, repeated ones as often as they are asked."""
    asked = Counter(terms)
    return {term: count * telling(statistics.holding.get(term, 0), statistics.chunks) for term, count in asked.items()}


def telling(holding: int, chunks: int) -> float:
    """Return how much a term tells that so many of the pieces hold; never less than 0."""
    held = min(holding, chunks)
    return log(1 + (chunks - held + 0.5) / (held + 0.5))


def score(counts: Mapping[str, int], length: int, weight: Mapping[str, float], average: float) -> float:
    """Return the score of a piece by how often it holds each term."""
    room = K1 * (1 - B + B * length / average) if average > 0 else K1
    # In the order of the weights: pieces with the same counts have the very same score.
    held = ((worth, counts[term]) for term, worth in weight.items() if term in counts)
    return sum(worth * count * (K1 + 1) / (count + room) for worth, count in held)


def average_length(statistics: Statistics) -> float:
    """Return the mean number of tokens in a piece."""
    return statistics.tokens / statistics.chunks if statistics.chunks else 0.0
