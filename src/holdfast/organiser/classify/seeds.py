"""Chooses first example files (seeds) for folders that have none: those that fit the folder's name best."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.starter import MIN_WORDS, find_starter, split_words
from holdfast.organiser.classify.word_space import Floats, Rows, Space, normalise
from holdfast.organiser.model import Category

SAMPLE = 96
"""Files that are embedded to find seeds by meaning."""

_MIN_TERMS = 40
"""A file with fewer different terms resembles others by chance."""

_SEED_SHARE = 0.25
_MIN_SEEDS = 3


def find_seeds(
    space: Space,
    documents: Sequence[Mapping[str, int]],
    texts: Sequence[str],
    taxonomy: Sequence[Category],
    models: EmbeddingModels,
    check: Callable[[], None],
) -> list[tuple[int, int]]:
    """Return pairs of a file and the empty category that it fits best, by index.

    The model is asked only if the starter list does not know a folder's name, and only about a sample. Meaning alone is
    enough for such folders only: every file means something, so other folders get no seed without their words.
    """
    empty = {at for at, category in enumerate(taxonomy) if not category.examples}
    if not empty or not documents:
        return []
    fit = _fit_by_words(space, space.rows(documents), documents, taxonomy)
    unknown = [at for at in sorted(empty) if find_starter(taxonomy[at].name) is None]
    if unknown:
        size = min(SAMPLE, len(documents))
        sample = [at * len(documents) // size for at in range(size)]
        by_meaning = _fit_by_meaning(models, [texts[at] for at in sample], taxonomy, check)
        if by_meaning is not None:
            is_candidate = fit[sample] > 0
            is_candidate[:, unknown] = True
            return _pick(_standardise(fit)[sample] + by_meaning, is_candidate, sample, empty)
    return _pick(fit, fit > 0, list(range(len(documents))), empty)


def has_enough_words(document: Mapping[str, int], category: Category) -> bool:
    """Return whether a file has enough words to be compared with seeds: many terms, or one that is known of the category."""
    return len(document) >= _MIN_TERMS or not _known_words(category).isdisjoint(document)


def _pick(
    fit: Floats, is_candidate: NDArray[numpy.bool_], pool: Sequence[int], empty: set[int]
) -> list[tuple[int, int]]:
    """Return the files of the pool that fit each empty category with the greatest margin."""
    categories = fit.shape[1]
    best = fit.argmax(axis=1)
    margin = fit.max(axis=1) - (numpy.partition(fit, -2, axis=1)[:, -2] if categories > 1 else 0.0)
    max_seeds = max(_MIN_SEEDS, int(_SEED_SHARE * len(pool) / categories))
    seeds: list[tuple[int, int]] = []
    for category in sorted(empty):
        rows = [
            row
            for row in numpy.argsort(-margin, kind="stable")
            if best[row] == category and fit[row, category] > 0 and is_candidate[row, category]
        ]
        seeds += [(pool[row], category) for row in rows[:max_seeds]]
    return seeds


def _fit_by_words(
    space: Space, rows: Rows, documents: Sequence[Mapping[str, int]], taxonomy: Sequence[Category]
) -> Floats:
    """Return how well the known words of each category fit each file; 0 where too few of them occur."""
    known_words = [_known_words(category) for category in taxonomy]
    queries = space.rows([Counter(dict.fromkeys(words, 1)) for words in known_words])
    fit = rows.times(queries.dense(len(space.words.index)).T)
    fit -= fit.mean(axis=0)
    for column, words in enumerate(known_words):
        min_matches = MIN_WORDS + 1 if len(words) > 2 * MIN_WORDS else 1
        for row, document in enumerate(documents):
            if len(words & document.keys()) < min_matches:
                fit[row, column] = 0.0
    return fit


def _fit_by_meaning(
    models: EmbeddingModels, texts: Sequence[str], taxonomy: Sequence[Category], check: Callable[[], None]
) -> Floats | None:
    descriptions = [" ".join([category.name, *sorted(_known_words(category))]) for category in taxonomy]
    vectors = models.embed_sentences([*descriptions, *texts], check)
    if vectors is None:
        return None
    names, files = vectors[: len(taxonomy)], vectors[len(taxonomy) :]
    return _standardise(normalise(files - files.mean(axis=0)) @ normalise(names - names.mean(axis=0)).T)


def _standardise(fit: Floats) -> Floats:
    scaled: Floats = ((fit - fit.mean(axis=0)) / numpy.maximum(fit.std(axis=0), 1e-6)).astype(numpy.float32)
    return scaled


def _known_words(category: Category) -> set[str]:
    starter = find_starter(category.name)
    return {*split_words(category.name), *(starter.text_words if starter is not None else ())}
