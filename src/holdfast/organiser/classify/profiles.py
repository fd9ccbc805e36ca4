"""Pure: how much files are like the known files of each folder, and which folder claims them.

Likeness says whether a file belongs anywhere at all: half of it is the nearness to the folder's centre, half that to the
two nearest files in it. Which folder is told by likeness and by what the file's neighbours say together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.graph import MAX_NODES, Graph
from holdfast.organiser.classify.space import unit
from holdfast.organiser.classify.tfidf import Floats

Labels = NDArray[numpy.int64]

DEFAULT_LIKENESS = 0.4
"""Likeness that a known file usually has to its folder, where there is nothing to measure it by."""

_CLOSEST = 2
_LINKED = 0.5


@dataclass(frozen=True, slots=True)
class Scores:
    """For each file: its likeness to each folder, and each folder's claim to it."""

    likeness: Floats
    claims: Floats

    @property
    def best(self) -> Labels:
        """Return the folder with the strongest claim to each file."""
        best: Labels = self.claims.argmax(axis=1)
        return best

    @property
    def margin(self) -> Floats:
        """Return by how much the strongest claim exceeds the next."""
        if self.claims.shape[1] < 2:
            return numpy.maximum(self.claims[:, 0], 0.0)
        two = numpy.partition(self.claims, -2, axis=1)[:, -2:]
        return two[:, 1] - two[:, 0]

    @property
    def nearness(self) -> Floats:
        """Return the likeness to the folder with the strongest claim."""
        return numpy.take_along_axis(self.likeness, self.best[:, None], axis=1)[:, 0]


@dataclass(frozen=True, slots=True)
class Profiles:
    """Known files as points with the numbers of their folders, the unfiled ones, and the graph of both.

    `own` and `foreign` are how like known files are to the others of their folder, and to the most like foreign one.
    """

    points: Floats
    labels: Labels
    folders: int
    unfiled: Floats
    graph: Graph
    own: Sequence[float]
    foreign: Sequence[float]

    @classmethod
    def of(cls, points: Floats, labels: Labels, folders: int, unfiled: Floats) -> "Profiles":
        """Link known and unfiled files; of very many unfiled ones a part."""
        most = max(MAX_NODES // 3, MAX_NODES - len(points))
        pool = unfiled[:: -(-len(unfiled) // most)] if len(unfiled) else unfiled
        own, foreign = left_out(points, labels, folders)
        graph = Graph.of(numpy.concatenate((points, pool)), _LINKED * usual_likeness(own))
        return cls(points, labels, folders, unfiled, graph, own, foreign)

    @property
    def is_whole(self) -> bool:
        """Return whether every unfiled file is in the graph."""
        return len(self.graph.nodes) == len(self.points) + len(self.unfiled)

    def scores(self) -> Scores:
        """Return how each unfiled file stands to each folder."""
        return self._scores(numpy.arange(len(self.points)), self.labels)

    def scores_from(self, files: Labels, labels: Labels) -> Scores:
        """Return how each unfiled file of a whole graph would stand to each folder if these files were all that is known."""
        return self._scores(len(self.points) + files, labels)

    def _scores(self, known: Labels, labels: Labels) -> Scores:
        shares = self.graph.spread(known, labels, self.folders)
        shares = shares[len(self.points) :] if self.is_whole else self.graph.followed(self.unfiled, shares)
        like = likeness(self.unfiled, self.graph.nodes[known], labels, self.folders)
        return Scores(like, like + shares)

    def judged(self, held: Labels) -> Scores:
        """Return how known files stand to each folder, judged as if they and they alone were unfiled."""
        kept = numpy.setdiff1d(numpy.arange(len(self.points)), held)
        shares = self.graph.spread(kept, self.labels[kept], self.folders)[held]
        like = likeness(self.points[held], self.points[kept], self.labels[kept], self.folders)
        return Scores(like, like + shares)


def likeness(points: Floats, examples: Floats, labels: Labels, folders: int) -> Floats:
    """Return the likeness of files to each folder, -1 for one without examples."""
    result = numpy.full((len(points), folders), -1.0, dtype=numpy.float32)
    for folder in numpy.unique(labels):
        mine = examples[labels == folder]
        centre = unit(mine.sum(axis=0, keepdims=True))[0]
        result[:, folder] = (points @ centre + _closest(points @ mine.T)) / 2
    return result


def left_out(points: Floats, labels: Labels, folders: int) -> tuple[list[float], list[float]]:
    """Return the likeness of known files to the others of their folder, and of each to the most like foreign one."""
    own: list[float] = []
    foreign: list[float] = []
    counts = numpy.bincount(labels, minlength=folders)
    other = likeness(points, points, labels, folders) if len(points) else numpy.zeros((0, folders))
    for at, (point, label) in enumerate(zip(points, labels, strict=True)):
        if counts[label] > 1:
            mine = points[(labels == label) & (numpy.arange(len(points)) != at)]
            centre = unit(mine.sum(axis=0, keepdims=True))[0]
            own.append(float((point @ centre + _closest((mine @ point)[None, :])[0]) / 2))
        strange = numpy.delete(other[at], label)
        if strange.size and strange.max() > -1.0:
            foreign.append(float(strange.max()))
    return own, foreign


def usual_likeness(own: Sequence[float]) -> float:
    """Return the likeness that three known files of four exceed to the others of their folder."""
    if len(own) < 4:
        return DEFAULT_LIKENESS
    return float(numpy.clip(numpy.quantile(own, 0.25), 0.2, 0.6))


def nearest(points: Floats, examples: Floats, count: int = 3) -> Sequence[Sequence[int]]:
    """Return for each file the numbers of the examples that are nearest to it, nearest first."""
    if not len(examples):
        return [[] for _ in points]
    similar = points @ examples.T
    return [row[:count].tolist() for row in numpy.argsort(-similar, axis=1, kind="stable")]


def _closest(similar: Floats) -> Floats:
    count = min(_CLOSEST, similar.shape[1])
    closest: Floats = numpy.partition(similar, -count, axis=1)[:, -count:].mean(axis=1)
    return closest
