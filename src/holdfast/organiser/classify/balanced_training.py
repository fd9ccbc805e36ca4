"""Trains the text classifier on a sample in which no folder has far more files than the others.

Words that most files share distinguish none of them, so each file of a crowd looks as if it belonged nowhere. In that
case the classifier is trained again, with the word statistics of a balanced selection of the files. The second training
counts where it shows that the crowd is known: its files are at least as similar to their folder as the folder's own
files are to each other. For a crowd that belongs to no folder, the first training stands.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy

from holdfast.organiser.classify.confidence_model import MIN_EXAMPLES_TO_COMPARE
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.profiles import leave_one_out
from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.model import Category

_CROWD_SHARE = 0.4
"""Files are a crowd when one folder claims more than this share of all files."""

_MIN_FOLDERS = 3
_MIN_FILES = 5
_MIN_OF_EACH = 2
_MIN_LIKENESS = 0.05


def train_balanced(
    taxonomy: Sequence[Category],
    documents: Sequence[Counter[str]],
    texts: Sequence[str],
    models: EmbeddingModels,
    check: Callable[[], None],
) -> TextClassifier:
    """Return a classifier trained from the taxonomy and the files, with no more files of a crowd than of the others."""
    first = TextClassifier.train(taxonomy, documents, texts, models, check)
    if not _is_crowded(first):
        return first
    second = TextClassifier.train(taxonomy, documents, texts, models, check, chosen=_pick_balanced(first))
    return second if _is_crowd_known(second) else first


def _is_crowded(classifier: TextClassifier) -> bool:
    claimed = classifier.count_claimed()
    if len(claimed) < _MIN_FOLDERS or claimed.max() <= _CROWD_SHARE * len(classifier.points):
        return False
    return int((classifier.labels == claimed.argmax()).sum()) >= MIN_EXAMPLES_TO_COMPARE


def _pick_balanced(classifier: TextClassifier) -> list[int]:
    """Return evenly spread files of each folder, so many that with its examples no folder has far more than another."""
    example_counts = numpy.bincount(classifier.labels, minlength=len(classifier.names))
    per_folder = max(_MIN_FILES, int(numpy.median(example_counts + classifier.count_claimed())))
    chosen: list[int] = []
    for folder in range(len(classifier.names)):
        claimed = numpy.flatnonzero(classifier.scores.best == folder)
        room = max(_MIN_OF_EACH, per_folder - int(example_counts[folder]))
        chosen += claimed[:: max(1, len(claimed) // room)][:room].tolist()
    return sorted(chosen)


def _is_crowd_known(classifier: TextClassifier) -> bool:
    """Return whether the files of the crowd are as similar to their folder as its examples are to each other."""
    crowd = int(classifier.count_claimed().argmax())
    examples = classifier.example_points[classifier.labels == crowd]
    own, _ = leave_one_out(examples, numpy.zeros(len(examples), dtype=numpy.int64), 1)
    nearness = classifier.scores.nearness[classifier.scores.best == crowd]
    return bool(own) and float(numpy.median(nearness)) >= max(_MIN_LIKENESS, float(numpy.median(own)))
