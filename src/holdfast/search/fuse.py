"""Pure: fuses the candidates of two retrievers: merge, normalise, weigh, sort.

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
