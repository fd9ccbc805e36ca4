"""The models beside the words, when they are there; a model that fails leaves the words alone to decide."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy

from holdfast.errors import HoldfastError
from holdfast.organiser.classify.space import unit
from holdfast.organiser.classify.tfidf import Floats
from holdfast.organiser.ports import SentenceEmbedder

_STATIC_WEIGHT = 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddingModels:
    """A slow model of sentences for a few texts, and fast word vectors for all of them."""

    sentences: SentenceEmbedder | None = None
    static: SentenceEmbedder | None = None

    def embedded(self, texts: Sequence[str], check: Callable[[], None]) -> Floats | None:
        """Return the sentence vectors of texts, None when there is no model or it failed."""
        return _vectors(self.sentences, texts, check)

    def joined(self, points: Floats, texts: Sequence[str], check: Callable[[], None]) -> Floats:
        """Return points with the word vectors of their texts beside them, or as they are without any."""
        vectors = _vectors(self.static, texts, check) if len(texts) else None
        if vectors is None:
            return points
        centred = unit(vectors - vectors.mean(axis=0))
        return unit(numpy.concatenate((points, _STATIC_WEIGHT * centred), axis=1))


def _vectors(embedder: SentenceEmbedder | None, texts: Sequence[str], check: Callable[[], None]) -> Floats | None:
    if embedder is None:
        return None
    try:
        return numpy.array(embedder.embed(texts, None, check), dtype=numpy.float32)
    except HoldfastError:
        raise
    except Exception as error:  # noqa: BLE001 - an adapter's own faults; a plan is made without it
        _log.warning("files are judged by their words alone: %s failed (%s)", embedder.model, type(error).__name__)
        return None
