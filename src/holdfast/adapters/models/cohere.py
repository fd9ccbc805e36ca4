"""Reranks by any endpoint that speaks as Cohere's /v2/rerank does, with the caller's own key."""

from collections.abc import Sequence
from typing import Any, cast

from holdfast.adapters.models.remote import Endpoint, RemoteFault
from holdfast.search.ports import RerankFault
from holdfast.secret import Secret

_MAX_ANSWER_BYTES = 1_000_000
_MOST = 1e300
"""No score is larger; the comparison leaves out what is no number, infinite, or an integer beyond all floats."""


class CohereReranker:
    """Asks once: whoever searches waits for it, and there is an order without it."""

    def __init__(self, endpoint: str, model: str) -> None:
        self._endpoint = Endpoint(endpoint)
        self._model = model

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        """Return a score for each text in order; RerankFault on any failure, and when a score is missing."""
        body = {
            "model": self._model,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
            "return_documents": False,
        }
        try:
            answer = self._endpoint.post(body, key, timeout_ms / 1000, max_bytes=_MAX_ANSWER_BYTES)
        except RemoteFault as fault:
            raise RerankFault(f"the reranker: {fault}") from None
        return _scores(answer, len(texts))


def _scores(answer: Any, count: int) -> list[float]:
    rows = answer.get("results") if isinstance(answer, dict) else None
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else []:
        found = row if isinstance(row, dict) else {}
        place, score = found.get("index"), cast("Any", found.get("relevance_score"))
        if type(place) is int and type(score) in (int, float) and abs(score) < _MOST:
            scores[place] = float(score)
    if sorted(scores) != list(range(count)):
        raise RerankFault(f"the reranker gave {len(scores)} scores that can be used, expected {count}")
    return [scores[place] for place in range(count)]
