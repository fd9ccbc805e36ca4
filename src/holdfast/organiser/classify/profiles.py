"""Pure: scores of files for each folder: the likeness to its known files, and its claim.

Likeness says whether a file belongs anywhere at all: half of it is the similarity to the folder's centre, half that to
the two nearest files in it. The claim decides which folder: likeness plus the share of the file's neighbours.
That share spreads from known files through the nearest-neighbour graph: a folder may hold several kinds of files, so
each file follows its own neighbours and nothing is averaged over a folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.word_space import Floats, normalise

NEIGHBOURS = 15
MAX_NODES = 3_000
"""Files in the graph; others follow their nearest files in it."""

_ROUNDS = 20
_DAMPING = 0.9
_BLOCK_ROWS = 1_024
Labels = NDArray[numpy.int64]
DEFAULT_LIKENESS = 0.4
"""The usual likeness of a known file to its folder, where too few files are known to measure it."""
_NEAREST_FILES = 2
_LINK_FLOOR = 0.5


@dataclass(frozen=True, slots=True)
class Graph:
    """The nearest neighbours of each file and their weights; the weights of a file add up to one, or to zero."""

    nodes: Floats
    neighbours: NDArray[numpy.int64]
    weights: Floats
    floor: float

    @classmethod
    def build(cls, nodes: Floats, floor: float) -> "Graph":
        """Link each file with its nearest ones, if their similarity is above `floor`."""
        return cls(nodes, *_link(nodes, nodes, floor, exclude_self=True), floor)

    def spread_labels(self, known: NDArray[numpy.int64], labels: NDArray[numpy.int64], folders: int) -> Floats:
        """Return the share of each folder in each file, propagated from known files and the indices of their folders."""
        source = numpy.zeros((len(self.nodes), folders), dtype=numpy.float32)
        source[known, labels] = 1.0
        source /= numpy.maximum(source.sum(axis=0), 1.0)
        mass = source
        for _ in range(_ROUNDS):
            mass = _DAMPING * numpy.einsum("nk,nkc->nc", self.weights, mass[self.neighbours]) + (1 - _DAMPING) * source
        mass = mass / numpy.maximum(mass.sum(axis=0), 1e-12)
        return _to_shares(mass)

    def extend_shares(self, points: Floats, shares: Floats) -> Floats:
        """Return the shares of files outside the graph, from their nearest files in it."""
        neighbours, weights = _link(points, self.nodes, self.floor, exclude_self=False)
        return _to_shares(numpy.einsum("nk,nkc->nc", weights, shares[neighbours]).astype(numpy.float32))


def _to_shares(mass: Floats) -> Floats:
    shares: Floats = mass / numpy.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
    return shares


def _link(points: Floats, nodes: Floats, floor: float, *, exclude_self: bool) -> tuple[NDArray[numpy.int64], Floats]:
    """Return the nearest nodes of each point and their weights; `exclude_self` is for points that are the nodes."""
    count = min(NEIGHBOURS, len(nodes) - 1) if exclude_self else min(NEIGHBOURS, len(nodes))
    if count < 1:
        return numpy.zeros((len(points), 1), dtype=numpy.int64), numpy.zeros((len(points), 1), dtype=numpy.float32)
    nearest, similarities = [], []
    for first in range(0, len(points), _BLOCK_ROWS):
        block = points[first : first + _BLOCK_ROWS] @ nodes.T
        if exclude_self:
            block[numpy.arange(len(block)), numpy.arange(first, first + len(block))] = -1.0
        neighbours = numpy.argpartition(-block, count - 1, axis=1)[:, :count]
        nearest.append(neighbours)
        similarities.append(numpy.take_along_axis(block, neighbours, axis=1))
    similarity = numpy.concatenate(similarities)
    weights = numpy.where(similarity > floor, similarity, 0.0) ** 2
    weights /= numpy.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return numpy.concatenate(nearest), weights.astype(numpy.float32)


@dataclass(frozen=True, slots=True)
class Scores:
    """For each file (row) and each folder (column) the likeness and the claim."""

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
    """Known files as points with the indices of their folders, unfiled files as points, and the graph of both.

    `own` are the likenesses of known files to the others of their folder, `foreign` to the most similar other folder.
    """

    points: Floats
    labels: Labels
    folders: int
    unfiled: Floats
    graph: Graph
    own: Sequence[float]
    foreign: Sequence[float]

    @classmethod
    def build(cls, points: Floats, labels: Labels, folders: int, unfiled: Floats) -> "Profiles":
        """Link known and unfiled files in a graph; of very many unfiled files, an even part."""
        max_unfiled = max(MAX_NODES // 3, MAX_NODES - len(points))
        pool = unfiled[:: -(-len(unfiled) // max_unfiled)] if len(unfiled) else unfiled
        own, foreign = leave_one_out(points, labels, folders)
        graph = Graph.build(numpy.concatenate((points, pool)), _LINK_FLOOR * usual_likeness(own))
        return cls(points, labels, folders, unfiled, graph, own, foreign)

    @property
    def is_whole(self) -> bool:
        """Return whether every unfiled file is in the graph."""
        return len(self.graph.nodes) == len(self.points) + len(self.unfiled)

    def scores(self) -> Scores:
        """Return the scores of the unfiled files."""
        return self._scores_from_nodes(numpy.arange(len(self.points)), self.labels)

    def scores_from(self, files: Labels, labels: Labels) -> Scores:
        """Return the scores of the unfiled files if these unfiled files were the only known ones; the graph must be whole."""
        return self._scores_from_nodes(len(self.points) + files, labels)

    def _scores_from_nodes(self, known: Labels, labels: Labels) -> Scores:
        shares = self.graph.spread_labels(known, labels, self.folders)
        shares = shares[len(self.points) :] if self.is_whole else self.graph.extend_shares(self.unfiled, shares)
        like = likeness(self.unfiled, self.graph.nodes[known], labels, self.folders)
        return Scores(like, like + shares)

    def scores_without(self, held_out: Labels) -> Scores:
        """Return the scores of known files, as if they and they alone were unfiled."""
        others = numpy.setdiff1d(numpy.arange(len(self.points)), held_out)
        shares = self.graph.spread_labels(others, self.labels[others], self.folders)[held_out]
        like = likeness(self.points[held_out], self.points[others], self.labels[others], self.folders)
        return Scores(like, like + shares)


def likeness(points: Floats, examples: Floats, labels: Labels, folders: int) -> Floats:
    """Return the likeness of files to each folder, -1 for a folder without examples."""
    result = numpy.full((len(points), folders), -1.0, dtype=numpy.float32)
    for folder in numpy.unique(labels):
        own = examples[labels == folder]
        centre = normalise(own.sum(axis=0, keepdims=True))[0]
        result[:, folder] = (points @ centre + _mean_of_nearest(points @ own.T)) / 2
    return result


def leave_one_out(points: Floats, labels: Labels, folders: int) -> tuple[list[float], list[float]]:
    """Return the likenesses of known files to the others of their folder, and to the most similar other folder."""
    own: list[float] = []
    foreign: list[float] = []
    counts = numpy.bincount(labels, minlength=folders)
    to_folders = likeness(points, points, labels, folders) if len(points) else numpy.zeros((0, folders))
    for at, (point, label) in enumerate(zip(points, labels, strict=True)):
        if counts[label] > 1:
            others = points[(labels == label) & (numpy.arange(len(points)) != at)]
            centre = normalise(others.sum(axis=0, keepdims=True))[0]
            own.append(float((point @ centre + _mean_of_nearest((others @ point)[None, :])[0]) / 2))
        to_others = numpy.delete(to_folders[at], label)
        if to_others.size and to_others.max() > -1.0:
            foreign.append(float(to_others.max()))
    return own, foreign


def usual_likeness(own: Sequence[float]) -> float:
    """Return the likeness that three of four known files exceed; a default where too few are known."""
    if len(own) < 4:
        return DEFAULT_LIKENESS
    return float(numpy.clip(numpy.quantile(own, 0.25), 0.2, 0.6))


def find_nearest(points: Floats, examples: Floats, count: int = 3) -> Sequence[Sequence[int]]:
    """Return for each file the indices of the nearest examples, nearest first."""
    if not len(examples):
        return [[] for _ in points]
    similarities = points @ examples.T
    return [row[:count].tolist() for row in numpy.argsort(-similarities, axis=1, kind="stable")]


def _mean_of_nearest(similarities: Floats) -> Floats:
    count = min(_NEAREST_FILES, similarities.shape[1])
    means: Floats = numpy.partition(similarities, -count, axis=1)[:, -count:].mean(axis=1)
    return means
