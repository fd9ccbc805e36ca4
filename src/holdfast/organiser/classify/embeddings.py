"""The optional embedding models beside the word statistics; where a model fails, words alone decide."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy

from holdfast.errors import HoldfastError
from holdfast.organiser.classify.word_space import Floats, normalise
from holdfast.organiser.ports import SentenceEmbedder

_STATIC_WEIGHT = 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddingModels:
    """A slow sentence model for a few texts, and fast word vectors for all of them; None where it is not installed."""

    sentences: SentenceEmbedder | None = None
    static: SentenceEmbedder | None = None

    def embed_sentences(self, texts: Sequence[str], check: Callable[[], None]) -> Floats | None:
        """Return the sentence vectors of texts, None if there is no model or it failed."""
        return _embed(self.sentences, texts, check)

    def append_word_vectors(self, points: Floats, texts: Sequence[str], check: Callable[[], None]) -> Floats:
        """Return points extended by the word vectors of their texts, or unchanged without a model."""
        vectors = _embed(self.static, texts, check) if len(texts) else None
        if vectors is None:
            return points
        centred = normalise(vectors - vectors.mean(axis=0))
        return normalise(numpy.concatenate((points, _STATIC_WEIGHT * centred), axis=1))


def _embed(embedder: SentenceEmbedder | None, texts: Sequence[str], check: Callable[[], None]) -> Floats | None:
    if embedder is None:
        return None
    try:
        return numpy.array(embedder.embed(texts, None, check), dtype=numpy.float32)
    except HoldfastError:
        raise
    except Exception as error:  # noqa: BLE001 - an adapter's own faults; a plan is made without it
        _log.warning("files are classified by their words alone: %s failed (%s)", embedder.model, type(error).__name__)
        return None
