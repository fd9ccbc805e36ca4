"""Embeds texts through any endpoint that is compatible with OpenAI's /v1/embeddings, with the caller's own key."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, cast

from holdfast.adapters.models.remote import Endpoint, ModelRequest, RemoteFault, RetryPolicy, send_with_retries
from holdfast.search.model import Vector
from holdfast.search.ports import EmbedFault
from holdfast.secret import Secret

_BATCH_TEXTS = 64
_BATCH_CHARS = 100_000
_MAX_PAUSE_SECONDS = 10.0
_MAX_PAUSE_OF_A_QUERY_SECONDS = 1.0


class OpenAIEmbedder:
    """Sends batches of texts; a request to a busy endpoint is retried a few times."""

    def __init__(self, endpoint: str, model: str, timeout_seconds: float, *, needs_key: bool = True) -> None:
        self._endpoint = Endpoint(endpoint)
        self._name = model
        self._timeout_seconds = timeout_seconds
        self.needs_key = needs_key
        self._policy = RetryPolicy(_MAX_PAUSE_SECONDS)

    def for_queries(self) -> "OpenAIEmbedder":
        """Return a copy for searches: all attempts together take one timeout at most, with short pauses only."""
        embedder = copy(self)
        embedder._policy = RetryPolicy(_MAX_PAUSE_OF_A_QUERY_SECONDS, self._timeout_seconds)
        return embedder

    @property
    def model(self) -> str:
        """Return the name that its vectors are stored under."""
        return self._name

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector for each text; EmbedFault when the endpoint fails or answers with anything else."""
        if key is None and self.needs_key:
            raise EmbedFault("a key for the embeddings endpoint is needed", retryable=False)
        vectors: list[Vector] = []
        for batch in _batches(texts):
            vectors += self._embed_batch(batch, key, check)
        return vectors

    def _embed_batch(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        body = {"model": self._name, "input": list(texts), "encoding_format": "float"}

        def send(seconds_left: float) -> list[Vector]:
            request = ModelRequest(body, key, min(self._timeout_seconds, seconds_left), check)
            return _vectors_from_answer(self._endpoint.post(request), len(texts))

        try:
            return send_with_retries(send, self._policy, check)
        except RemoteFault as fault:
            raise EmbedFault(f"the embeddings endpoint: {fault}", retryable=fault.retryable) from None


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    chars_left = 0
    for text in texts:
        if not batches or len(batches[-1]) == _BATCH_TEXTS or len(text) > chars_left:
            batches.append([])
            chars_left = _BATCH_CHARS
        # Endpoints refuse an empty text.
        batches[-1].append(text if text.strip() else ".")
        chars_left -= len(text)
    return batches


def _vectors_from_answer(answer: Any, count: int) -> list[Vector]:
    """Return the vectors in the order of their texts; EmbedFault when they are not what was asked for."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, dict) for row in rows):
        raise EmbedFault(f"the embeddings endpoint gave no list of {count} embeddings")
    positions = [row.get("index", position) for position, row in enumerate(rows)]
    if sorted(position for position in positions if type(position) is int) != list(range(count)):
        raise EmbedFault("the embeddings endpoint returned wrong indexes")
    in_order = sorted(zip(positions, rows, strict=True), key=lambda pair: pair[0])
    vectors = [_normalise(row.get("embedding")) for _, row in in_order]
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbedFault("the embeddings endpoint gave embeddings of different lengths")
    return vectors


def _normalise(values: Any) -> Vector:
    import numpy

    if not isinstance(values, list) or not values or not all(type(value) in (int, float) for value in values):
        raise EmbedFault("the embeddings endpoint gave something other than a vector")
    try:
        vector = numpy.asarray(values, dtype=numpy.float64)
    except OverflowError:
        raise EmbedFault("the embeddings endpoint gave a number that is too large") from None
    length = float(numpy.linalg.norm(vector))
    if not length > 0 or not math.isfinite(length):
        raise EmbedFault("the embeddings endpoint gave a vector that is zero or not finite")
    return cast("Vector", (vector / length).astype(numpy.float32))
