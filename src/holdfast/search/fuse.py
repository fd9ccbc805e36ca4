"""Pure: merge, dedupe, normalise, weigh.

The two retrievers score on scales that cannot be compared, so each list is scaled to 0..1 on its own before the weights
apply. Equal scores keep chunk-id order: the same index and query always give the same answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.search.model import Candidate


class Weights(NamedTuple):
    """How much each retriever counts."""

    semantic: float
    lexical: float


def fuse(semantic: Sequence[Candidate], lexical: Sequence[Candidate], weights: Weights) -> list[Candidate]:
    """Return every candidate once, best first; a retriever that missed a chunk gives it 0."""
    by_meaning, by_words = scaled(semantic), scaled(lexical)
    fused = [
        Candidate(
            chunk_id,
            weights.semantic * by_meaning.get(chunk_id, 0.0) + weights.lexical * by_words.get(chunk_id, 0.0),
        )
        for chunk_id in by_meaning.keys() | by_words.keys()
    ]
    return sorted(fused, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def scaled(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Return scores from 0 for the least to 1 for the best; candidates that are all alike are all best."""
    if not candidates:
        return {}
    scores = [candidate.score for candidate in candidates]
    least, span = min(scores), max(scores) - min(scores)
    return {one.chunk_id: (one.score - least) / span if span > 0 else 1.0 for one in candidates}
