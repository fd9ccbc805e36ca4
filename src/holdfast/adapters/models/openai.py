"""Embeds by any endpoint that speaks as OpenAI's /v1/embeddings does, with the caller's own key."""

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, cast

from holdfast.adapters.models.remote import Endpoint, RemoteFault, pause
from holdfast.search.model import Vector
from holdfast.search.ports import EmbedFault
from holdfast.secret import Secret

_TEXTS_AT_ONCE = 64
_CHARS_AT_ONCE = 100_000
_ATTEMPTS = 3


class Patience(NamedTuple):
    """How long all attempts may take together, and the longest pause between two of them."""

    seconds: float = math.inf
    pause_seconds: float = 10.0


class OpenAIEmbedder:
    """Asks for some dozens of texts at a time; a busy endpoint is asked again a little later, a few times."""

    def __init__(self, endpoint: str, model: str, timeout_seconds: float, *, needs_key: bool = True) -> None:
        self._endpoint = Endpoint(endpoint)
        self._name = model
        self._timeout_seconds = timeout_seconds
        self.needs_key = needs_key
        self._patience = Patience()

    def for_queries(self) -> "OpenAIEmbedder":
        """Return it for one who waits: all attempts take the time of one at most, and a busy endpoint is left soon."""
        found = copy(self)
        found._patience = Patience(self._timeout_seconds, 1.0)
        return found

    @property
    def model(self) -> str:
        """Return the name that its vectors are kept under."""
        return self._name

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector for each text; EmbedFault when the endpoint fails or answers with anything else."""
        if key is None and self.needs_key:
            raise EmbedFault("a key for the embeddings endpoint is needed", retryable=False)
        vectors: list[Vector] = []
        for some in _batches(texts):
            vectors += self._embedded(some, key, check)
        return vectors

    def _embedded(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        body = {"model": self._name, "input": list(texts), "encoding_format": "float"}
        until = time.monotonic() + self._patience.seconds
        for attempt in range(1, _ATTEMPTS + 1):
            check()
            seconds = min(self._timeout_seconds, until - time.monotonic())
            try:
                return _vectors(self._endpoint.post(body, key, seconds, check), len(texts))
            except RemoteFault as fault:
                wait = fault.retry_after if fault.retry_after is not None else 0.5 * attempt
                longest = min(self._patience.pause_seconds, until - time.monotonic())
                if not fault.retryable or attempt == _ATTEMPTS or wait >= longest:
                    raise EmbedFault(f"the embeddings endpoint: {fault}", retryable=fault.retryable) from None
                pause(wait, check)
        raise AssertionError("the last attempt returns or raises")


def _batches(texts: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = []
    room = 0
    for text in texts:
        if not found or len(found[-1]) == _TEXTS_AT_ONCE or len(text) > room:
            found.append([])
            room = _CHARS_AT_ONCE
        # An empty text has no embedding anywhere.
        found[-1].append(text if text.strip() else ".")
        room -= len(text)
    return found


def _vectors(answer: Any, count: int) -> list[Vector]:
    """Return the vectors in the order of their texts; EmbedFault when they are not what was asked for."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, dict) for row in rows):
        raise EmbedFault(f"the embeddings endpoint gave no list of {count} embeddings")
    places = [row.get("index", at) for at, row in enumerate(rows)]
    if sorted(place for place in places if type(place) is int) != list(range(count)):
        raise EmbedFault("the embeddings endpoint numbered its embeddings wrongly")
    in_order = sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])
    found = [_normalised(row.get("embedding")) for _, row in in_order]
    if len({len(vector) for vector in found}) > 1:
        raise EmbedFault("the embeddings endpoint gave embeddings of different lengths")
    return found


def _normalised(values: Any) -> Vector:
    import numpy

    if not isinstance(values, list) or not values or not all(type(value) in (int, float) for value in values):
        raise EmbedFault("the embeddings endpoint gave something that is no vector")
    try:
        vector = numpy.asarray(values, dtype=numpy.float64)
    except OverflowError:
        raise EmbedFault("the embeddings endpoint gave a number that is too large") from None
    length = float(numpy.linalg.norm(vector))
    if not length > 0 or not math.isfinite(length):
        raise EmbedFault("the embeddings endpoint gave a vector without a direction")
    return cast("Vector", (vector / length).astype(numpy.float32))
