"""Reranks passages through any endpoint that is compatible with Cohere's /v2/rerank, with the caller's own key."""

from collections.abc import Sequence
from typing import Any, cast

from holdfast.adapters.models.remote import Endpoint, ModelRequest, RemoteFault
from holdfast.search.ports import RerankFault
from holdfast.secret import Secret

_MAX_ANSWER_BYTES = 1_000_000
_MAX_SCORE = 1e300
"""Scores beyond it are dropped: the comparison also drops NaN, infinity and integers that no float can hold."""


class CohereReranker:
    """Sends one request without a retry: a search waits for it, and has an order of its own when it fails."""

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
            request = ModelRequest(body, key, timeout_ms / 1000, max_answer_bytes=_MAX_ANSWER_BYTES)
            answer = self._endpoint.post(request)
        except RemoteFault as fault:
            raise RerankFault(f"the reranker: {fault}") from None
        return _scores_from_answer(answer, len(texts))


def _scores_from_answer(answer: Any, count: int) -> list[float]:
    rows = answer.get("results") if isinstance(answer, dict) else None
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else []:
        fields = row if isinstance(row, dict) else {}
        position, score = fields.get("index"), cast("Any", fields.get("relevance_score"))
        if type(position) is int and type(score) in (int, float) and abs(score) < _MAX_SCORE:
            scores[position] = float(score)
    if sorted(scores) != list(range(count)):
        raise RerankFault(f"the reranker gave {len(scores)} usable scores, expected {count}")
    return [scores[position] for position in range(count)]
