"""Pure: the main directions of a folder's own words, found by a random projection; files are points in it.

Words that occur in the same files point the same way, so that two files can be near without sharing a word. It is
learned from the files at hand in a fraction of a second and needs no model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy

from holdfast.organiser.classify.tfidf import Floats, Rows, Vocabulary

MAX_LEARNED = 1_000
"""Files that a space is learned from; more change little."""

DIMENSIONS = 64
_EXTRA = 10
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Space:
    """Words, their mean over the files, and the directions that matter."""

    words: Vocabulary
    mean: Floats
    directions: Floats

    @classmethod
    def learn(cls, documents: Sequence[Mapping[str, int]], dimensions: int = DIMENSIONS) -> "Space":
        """Learn from files; at most MAX_LEARNED of them, evenly spread over the sequence."""
        chosen = _spread(documents, MAX_LEARNED)
        words = Vocabulary.learn(chosen)
        matrix = words.rows(chosen).dense(len(words.index))
        mean = matrix.mean(axis=0) if len(matrix) else numpy.zeros(len(words.index), dtype=numpy.float32)
        centred = unit(matrix - mean)
        return cls(words, mean, _directions(centred, _room(len(chosen), dimensions)))

    def rows(self, documents: Sequence[Mapping[str, int]]) -> Rows:
        """Return the weights of files."""
        return self.words.rows(documents)

    def points(self, rows: Rows) -> Floats:
        """Return where files lie, at length one."""
        return unit(rows.times(self.directions) - self.mean @ self.directions)


def unit(vectors: Floats) -> Floats:
    """Return vectors brought to length one; a vector of zeros stays."""
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = (vectors / numpy.maximum(lengths, 1e-9)).astype(numpy.float32)
    return scaled


def _spread(documents: Sequence[Mapping[str, int]], most: int) -> Sequence[Mapping[str, int]]:
    if len(documents) <= most:
        return documents
    return [documents[at * len(documents) // most] for at in range(most)]


def _room(files: int, wanted: int) -> int:
    """Return how many directions so few files can bear: a third of their number, but never less than what tells them apart."""
    return max(1, min(wanted, max(files // 3, min(files - 1, 16))))


def _directions(matrix: Floats, dimensions: int) -> Floats:
    """Return the main directions as columns, by a randomised decomposition with a fixed seed."""
    files, terms = matrix.shape
    width = min(dimensions + _EXTRA, files, terms)
    if width == 0:
        return numpy.zeros((terms, 1), dtype=numpy.float32)
    probe = numpy.random.default_rng(0).standard_normal((terms, width), dtype=numpy.float32)
    basis = matrix @ probe
    for _ in range(_ROUNDS):
        basis = numpy.linalg.qr(basis)[0]
        basis = matrix @ (matrix.T @ basis)
    basis = numpy.linalg.qr(basis)[0]
    small = basis.T @ matrix
    left, strengths, _ = numpy.linalg.svd(small @ small.T)
    kept = min(dimensions, int((strengths > 1e-6 * max(strengths[0], 1e-12)).sum()) or 1)
    turned = small.T @ left[:, :kept]
    columns: Floats = (turned / numpy.maximum(numpy.linalg.norm(turned, axis=0), 1e-9)).astype(numpy.float32)
    return columns
