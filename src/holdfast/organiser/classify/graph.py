"""Pure: the nearest-neighbour graph of files, and label propagation from known files to their neighbours.

A folder may hold several kinds of files: nothing is averaged over a folder, each file follows its own neighbours.
"""

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.tfidf import Floats

NEIGHBOURS = 15
MAX_NODES = 3_000
"""Files in the graph; others follow their nearest files in it."""

_ROUNDS = 20
_DAMPING = 0.9
_BLOCK_ROWS = 1_024


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
        chosen = numpy.argpartition(-block, count - 1, axis=1)[:, :count]
        nearest.append(chosen)
        similarities.append(numpy.take_along_axis(block, chosen, axis=1))
    similarity = numpy.concatenate(similarities)
    weights = numpy.where(similarity > floor, similarity, 0.0) ** 2
    weights /= numpy.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return numpy.concatenate(nearest), weights.astype(numpy.float32)
