"""Pure: who is near whom among the files, and how folders spread from their known files to the neighbours of these.

A folder may hold several kinds of files: nothing is averaged over it, each file follows its own neighbours.
"""

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.tfidf import Floats

NEIGHBOURS = 15
MAX_NODES = 3_000
"""Files of a graph; further ones follow those of it that are nearest."""

_ROUNDS = 20
_ONWARD = 0.9
_AT_ONCE = 1_024


@dataclass(frozen=True, slots=True)
class Graph:
    """The nearest neighbours of each file, and how much each of them counts; the counts of a file add up to one, or to none."""

    nodes: Floats
    neighbours: NDArray[numpy.int64]
    weights: Floats
    floor: float

    @classmethod
    def of(cls, nodes: Floats, floor: float) -> "Graph":
        """Link each file with its nearest ones, as far as they are more similar than `floor`."""
        return cls(nodes, *_links(nodes, nodes, floor, alone=True), floor)

    def spread(self, known: NDArray[numpy.int64], labels: NDArray[numpy.int64], folders: int) -> Floats:
        """Return each folder's share of each file, starting from known files and the numbers of their folders."""
        source = numpy.zeros((len(self.nodes), folders), dtype=numpy.float32)
        source[known, labels] = 1.0
        source /= numpy.maximum(source.sum(axis=0), 1.0)
        mass = source
        for _ in range(_ROUNDS):
            mass = _ONWARD * self._gathered(mass) + (1 - _ONWARD) * source
        mass = mass / numpy.maximum(mass.sum(axis=0), 1e-12)
        return _shares(mass)

    def followed(self, points: Floats, shares: Floats) -> Floats:
        """Return the shares of files outside the graph, by those of their nearest ones in it."""
        neighbours, weights = _links(points, self.nodes, self.floor, alone=False)
        return _shares(numpy.einsum("nk,nkc->nc", weights, shares[neighbours]).astype(numpy.float32))

    def _gathered(self, mass: Floats) -> Floats:
        gathered: Floats = numpy.einsum("nk,nkc->nc", self.weights, mass[self.neighbours])
        return gathered


def _shares(mass: Floats) -> Floats:
    shares: Floats = mass / numpy.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
    return shares


def _links(points: Floats, nodes: Floats, floor: float, *, alone: bool) -> tuple[NDArray[numpy.int64], Floats]:
    count = min(NEIGHBOURS, len(nodes) - 1) if alone else min(NEIGHBOURS, len(nodes))
    if count < 1:
        return numpy.zeros((len(points), 1), dtype=numpy.int64), numpy.zeros((len(points), 1), dtype=numpy.float32)
    nearest, similar = [], []
    for first in range(0, len(points), _AT_ONCE):
        part = points[first : first + _AT_ONCE] @ nodes.T
        if alone:
            part[numpy.arange(len(part)), numpy.arange(first, first + len(part))] = -1.0
        chosen = numpy.argpartition(-part, count - 1, axis=1)[:, :count]
        nearest.append(chosen)
        similar.append(numpy.take_along_axis(part, chosen, axis=1))
    joined = numpy.concatenate(similar)
    weights = numpy.where(joined > floor, joined, 0.0) ** 2
    weights /= numpy.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return numpy.concatenate(nearest), weights.astype(numpy.float32)
