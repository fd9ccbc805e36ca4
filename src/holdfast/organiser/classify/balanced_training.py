"""A crowd of one kind among the files at hand, which would hide what its files have in common.

What most files share tells none of them from the rest, so each of a crowd looks as if it belonged nowhere. Then the space is
learned again from an even selection. The second look counts where it shows that the crowd is known: its files are at
least as like to their folder as the folder's own are to each other. A crowd of strangers keeps the first one.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy

from holdfast.organiser.classify.confidence_model import ENOUGH
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.profiles import left_out
from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.model import Category

_CROWD = 0.4
"""Share of the files at hand that one folder claims, above which they are a crowd."""

_FEWEST_FOLDERS = 3
_FEWEST_FILES = 5
_LEAST_OF_EACH = 2
_LEAST_LIKENESS = 0.05


def learned_evenly(
    taxonomy: Sequence[Category],
    documents: Sequence[Counter[str]],
    texts: Sequence[str],
    models: EmbeddingModels,
    check: Callable[[], None],
) -> TextClassifier:
    """Learn from the taxonomy and the files at hand, of a crowd no more than of the others."""
    first = TextClassifier.learn(taxonomy, documents, texts, models, check)
    if not _is_crowded(first):
        return first
    again = TextClassifier.learn(taxonomy, documents, texts, models, check, chosen=_even(first))
    return again if _is_known(again) else first


def _is_crowded(learned: TextClassifier) -> bool:
    claimed = learned.claimed()
    if len(claimed) < _FEWEST_FOLDERS or claimed.max() <= _CROWD * len(learned.points):
        return False
    return int((learned.labels == claimed.argmax()).sum()) >= ENOUGH


def _even(learned: TextClassifier) -> list[int]:
    """Return so many of the files that each folder claims, evenly spread, that with its known ones no folder has far more."""
    known, claimed = numpy.bincount(learned.labels, minlength=len(learned.names)), learned.claimed()
    most = max(_FEWEST_FILES, int(numpy.median(known + claimed)))
    chosen: list[int] = []
    for folder in range(len(learned.names)):
        mine = numpy.flatnonzero(learned.scores.best == folder)
        room = max(_LEAST_OF_EACH, most - int(known[folder]))
        chosen += mine[:: max(1, len(mine) // room)][:room].tolist()
    return sorted(chosen)


def _is_known(learned: TextClassifier) -> bool:
    crowd = int(learned.claimed().argmax())
    mine = learned.example_points[learned.labels == crowd]
    own, _ = left_out(mine, numpy.zeros(len(mine), dtype=numpy.int64), 1)
    near = learned.scores.nearness[learned.scores.best == crowd]
    return bool(own) and float(numpy.median(near)) >= max(_LEAST_LIKENESS, float(numpy.median(own)))
