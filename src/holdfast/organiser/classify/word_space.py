"""Pure: turns the words of files, in any language, into tf-idf weights and into points of a latent semantic space.

Terms are runs of letters in lower case; scripts without spaces are split into pairs of characters; a number counts by its
length. The shape of a text (length of its lines, shares of digits and capitals) counts as terms too, and so do the words
of the file's name and its type.

The space has the principal directions of the weights, by a randomised decomposition. Words that occur in the same files point
in the same direction, so two files can be near without sharing a word. It is learned from the files at hand in a fraction of a
second and needs no model.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import log, log2
from statistics import median

import numpy
from numpy.typing import NDArray

Floats = NDArray[numpy.float32]

MAX_TERMS = 8_192
_WORD = re.compile(r"[^\W\d_]+|\d+")
_SCRIPTS_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_NO_DIGITS = str.maketrans("", "", "0123456789")
_NO_CAPITALS = str.maketrans("", "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_PREFIXES = "#~"
"""First characters of terms that are not words: numbers by length, and the shape of a text."""


def count_terms(text: str, name: str = "", content_type: str = "") -> Counter[str]:
    """Return the terms of a file and how often each occurs."""
    terms = Counter(_split_terms(text))
    stem, _, suffix = name.rpartition(".")
    for word in _split_terms(stem or name):
        terms[word] += 2
    if stem and suffix:
        terms[f"~.{suffix.casefold()}"] = 3
    if content_type:
        terms[f"~{content_type.partition('/')[0]}"] = 3
    if text:
        terms.update(_shape_terms(text))
    return terms


def is_word(term: str) -> bool:
    """Return whether a term is a word that can be shown to a person."""
    return len(term) > 1 and term[0] not in _PREFIXES


def _split_terms(text: str) -> Iterable[str]:
    words = _WORD.findall(text.casefold())
    if text.isascii():
        return [word if word > ":" else f"#{len(word)}" for word in words]
    if _SCRIPTS_WITHOUT_SPACES.search(text):
        words = [
            part for word in words for part in (_split_pairs(word) if _SCRIPTS_WITHOUT_SPACES.search(word) else (word,))
        ]
    return [f"#{len(word)}" if word[0].isdigit() else word for word in words]


def _split_pairs(word: str) -> Iterable[str]:
    rest = [piece for piece in _SCRIPTS_WITHOUT_SPACES.split(word) if piece]
    runs = _SCRIPTS_WITHOUT_SPACES.findall(word)
    return [*rest, *(run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1)))]


def _shape_terms(text: str) -> dict[str, int]:
    lengths = [len(line) for line in text.split("\n") if line.strip()]
    digits = 1 - len(text.translate(_NO_DIGITS)) / len(text)
    capitals = 1 - len(text.translate(_NO_CAPITALS)) / len(text)
    return {
        f"~lines{int(log2(median(lengths) + 1)) if lengths else 0}": 3,
        f"~digits{int(20 * digits)}": 2,
        f"~capitals{int(10 * capitals)}": 2,
    }


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse weights of files: those of file i are `values[starts[i]:starts[i + 1]]`, at the terms `columns`."""

    columns: NDArray[numpy.int32]
    values: Floats
    starts: NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, file: int) -> tuple[NDArray[numpy.int32], Floats]:
        """Return the terms and the weights of one file."""
        part = slice(int(self.starts[file]), int(self.starts[file + 1]))
        return self.columns[part], self.values[part]

    def dense(self, width: int) -> Floats:
        """Return the weights as a dense matrix; for some hundreds of files."""
        matrix = numpy.zeros((len(self), width), dtype=numpy.float32)
        matrix[numpy.repeat(numpy.arange(len(self)), numpy.diff(self.starts)), self.columns] = self.values
        return matrix

    def times(self, matrix: Floats) -> Floats:
        """Return the product with a matrix that has a row for each term."""
        result = numpy.zeros((len(self), matrix.shape[1]), dtype=numpy.float32)
        for first in range(0, len(self), 256):
            last = min(first + 256, len(self))
            part = slice(int(self.starts[first]), int(self.starts[last]))
            filled = numpy.flatnonzero(numpy.diff(self.starts[first : last + 1]))
            if filled.size:
                products = matrix[self.columns[part]] * self.values[part, None]
                offsets = self.starts[first:last][filled] - self.starts[first]
                result[first + filled] = numpy.add.reduceat(products, offsets, axis=0)
        return result


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The terms that at least two files share, with their inverse document frequencies."""

    index: Mapping[str, int]
    weights: Floats

    @classmethod
    def learn(cls, documents: Sequence[Mapping[str, int]], max_terms: int = MAX_TERMS) -> "Vocabulary":
        """Return the vocabulary of files; with very few files, a term of one file counts as well."""
        files_per_term = Counter(term for document in documents for term in document)
        min_files = 2 if len(documents) >= 8 else 1
        terms = [(term, count) for term, count in files_per_term.most_common(max_terms) if count >= min_files]
        weights = [log((1 + len(documents)) / (1 + count)) + 1 for _, count in terms]
        return cls({term: at for at, (term, _) in enumerate(terms)}, numpy.array(weights, dtype=numpy.float32))

    def rows(self, documents: Sequence[Mapping[str, int]]) -> Rows:
        """Return the weights of files, each scaled to length one."""
        columns: list[int] = []
        counts: list[int] = []
        ends = [0]
        for document in documents:
            columns.extend(map(self.index.get, document, repeat(-1)))
            counts.extend(document.values())
            ends.append(len(columns))
        all_columns = numpy.array(columns, dtype=numpy.int32)
        known = all_columns >= 0
        bounds = numpy.concatenate(([0], numpy.cumsum(known, dtype=numpy.int64)))[numpy.array(ends)]
        known_columns = all_columns[known]
        values = (1 + numpy.log(numpy.array(counts, dtype=numpy.float32)[known])) * self.weights[known_columns]
        squares = numpy.concatenate(([0.0], numpy.cumsum(values.astype(numpy.float64) ** 2)))
        lengths = numpy.sqrt(numpy.maximum(squares[bounds[1:]] - squares[bounds[:-1]], 1e-12))
        return Rows(known_columns, (values / numpy.repeat(lengths, numpy.diff(bounds))).astype(numpy.float32), bounds)


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
