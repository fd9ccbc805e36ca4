"""Pure: latent semantic space: the principal directions of the word weights, by a randomised decomposition.

Files are points in it. Words that occur in the same files point in the same direction, so two files can be near without
sharing a word. It is learned from the files at hand in a fraction of a second and needs no model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy

from holdfast.organiser.classify.tfidf import Floats, Rows, Vocabulary

MAX_LEARNED = 1_000
"""Files that a space is learned from; more files change little."""

DIMENSIONS = 64
_OVERSAMPLING = 10
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Space:
    """The vocabulary, the mean weights over the files, and the principal directions as columns."""

    words: Vocabulary
    mean: Floats
    directions: Floats

    @classmethod
    def learn(cls, documents: Sequence[Mapping[str, int]], dimensions: int = DIMENSIONS) -> "Space":
        """Learn from files; at most MAX_LEARNED of them, evenly spread over the sequence."""
        count = min(MAX_LEARNED, len(documents))
        sample = [documents[at * len(documents) // count] for at in range(count)]
        words = Vocabulary.learn(sample)
        matrix = words.rows(sample).dense(len(words.index))
        mean = matrix.mean(axis=0) if len(matrix) else numpy.zeros(len(words.index), dtype=numpy.float32)
        centred = normalise(matrix - mean)
        return cls(words, mean, _directions(centred, _dimensions_for(len(sample), dimensions)))

    def rows(self, documents: Sequence[Mapping[str, int]]) -> Rows:
        """Return the word weights of files."""
        return self.words.rows(documents)

    def points(self, rows: Rows) -> Floats:
        """Return files as points, at length one."""
        return normalise(rows.times(self.directions) - self.mean @ self.directions)


def normalise(vectors: Floats) -> Floats:
    """Return vectors scaled to length one; a zero vector stays."""
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = (vectors / numpy.maximum(lengths, 1e-9)).astype(numpy.float32)
    return scaled


def _dimensions_for(files: int, dimensions: int) -> int:
    """Return how many directions a number of files allows: a third of it, but enough to keep a few files apart."""
    return max(1, min(dimensions, max(files // 3, min(files - 1, 16))))


def _directions(matrix: Floats, dimensions: int) -> Floats:
    """Return the principal directions as columns, by a randomised decomposition with a fixed seed."""
    files, terms = matrix.shape
    width = min(dimensions + _OVERSAMPLING, files, terms)
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
    count = min(dimensions, int((strengths > 1e-6 * max(strengths[0], 1e-12)).sum()) or 1)
    directions = small.T @ left[:, :count]
    columns: Floats = (directions / numpy.maximum(numpy.linalg.norm(directions, axis=0), 1e-9)).astype(numpy.float32)
    return columns
