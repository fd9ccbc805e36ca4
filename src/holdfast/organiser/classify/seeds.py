"""First files for folders that have none: those whose words, or whose meaning, fit the folder's name best."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.space import Space, unit
from holdfast.organiser.classify.starter import MIN_WORDS, known_as, name_words
from holdfast.organiser.classify.tfidf import Floats, Rows
from holdfast.organiser.model import Category

SAMPLE = 96
"""Files that are embedded to find first files by meaning."""

_MANY_TERMS = 40
"""A file with fewer different terms resembles others by chance."""

_SHARE = 0.25
_LEAST = 3


def seeds(
    space: Space,
    documents: Sequence[Mapping[str, int]],
    texts: Sequence[str],
    taxonomy: Sequence[Category],
    models: EmbeddingModels,
    check: Callable[[], None],
) -> list[tuple[int, int]]:
    """Return pairs of a file and the empty category that it fits best, by number.

    The model is asked only when a folder's name is unknown to the starter list, and only about a sample. What it says
    is enough for such folders alone: every file means something, so the others are given no file without their words.
    """
    empty = {at for at, category in enumerate(taxonomy) if not category.examples}
    if not empty or not documents:
        return []
    fit = _by_words(space, space.rows(documents), documents, taxonomy)
    unknown = [at for at in sorted(empty) if known_as(taxonomy[at].name) is None]
    if unknown:
        size = min(SAMPLE, len(documents))
        sample = [at * len(documents) // size for at in range(size)]
        meant = _by_meaning(models, [texts[at] for at in sample], taxonomy, check)
        if meant is not None:
            may_be_first = fit[sample] > 0
            may_be_first[:, unknown] = True
            return _chosen(_scaled(fit)[sample] + meant, may_be_first, sample, empty)
    return _chosen(fit, fit > 0, list(range(len(documents))), empty)


def speaks_for(document: Mapping[str, int], category: Category) -> bool:
    """Return whether a file can be said to resemble the first files of a category: by a word known of it, or by many words."""
    return len(document) >= _MANY_TERMS or not _words_of(category).isdisjoint(document)


def _chosen(
    fit: Floats, may_be_first: NDArray[numpy.bool_], pool: Sequence[int], empty: set[int]
) -> list[tuple[int, int]]:
    categories = fit.shape[1]
    best = fit.argmax(axis=1)
    margin = fit.max(axis=1) - (numpy.partition(fit, -2, axis=1)[:, -2] if categories > 1 else 0.0)
    most = max(_LEAST, int(_SHARE * len(pool) / categories))
    chosen: list[tuple[int, int]] = []
    for category in sorted(empty):
        mine = [
            row
            for row in numpy.argsort(-margin, kind="stable")
            if best[row] == category and fit[row, category] > 0 and may_be_first[row, category]
        ]
        chosen += [(pool[row], category) for row in mine[:most]]
    return chosen


def _by_words(space: Space, rows: Rows, documents: Sequence[Mapping[str, int]], taxonomy: Sequence[Category]) -> Floats:
    """Return how well the words known of each category cover each file; 0 where too few of them occur."""
    wanted = [_words_of(category) for category in taxonomy]
    queries = space.rows([Counter(dict.fromkeys(words, 1)) for words in wanted])
    fit = rows.times(queries.dense(len(space.words.index)).T)
    fit -= fit.mean(axis=0)
    for column, words in enumerate(wanted):
        least = MIN_WORDS + 1 if len(words) > 2 * MIN_WORDS else 1
        for row, document in enumerate(documents):
            if len(words & document.keys()) < least:
                fit[row, column] = 0.0
    return fit


def _by_meaning(
    models: EmbeddingModels, texts: Sequence[str], taxonomy: Sequence[Category], check: Callable[[], None]
) -> Floats | None:
    described = [" ".join([category.name, *sorted(_words_of(category))]) for category in taxonomy]
    vectors = models.embedded([*described, *texts], check)
    if vectors is None:
        return None
    names, files = vectors[: len(taxonomy)], vectors[len(taxonomy) :]
    return _scaled(unit(files - files.mean(axis=0)) @ unit(names - names.mean(axis=0)).T)


def _scaled(fit: Floats) -> Floats:
    scaled: Floats = ((fit - fit.mean(axis=0)) / numpy.maximum(fit.std(axis=0), 1e-6)).astype(numpy.float32)
    return scaled


def _words_of(category: Category) -> set[str]:
    known = known_as(category.name)
    return {*name_words(category.name), *(known.text_words if known is not None else ())}
