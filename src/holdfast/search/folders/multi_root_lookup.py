"""Several roots as one index for the length of a query: only the caller's are ever opened, and they rank as one."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from holdfast.search.folders.indexed_root import IndexedRoot
from holdfast.search.folders.model import PROJECT
from holdfast.search.folders.ports import FolderIndex
from holdfast.search.model import Candidate, Passage, PendingFile, Scope, Statistics, Vector, WordMatches
from holdfast.search.ports import IndexDamaged
from holdfast.store.paths import Span

UNREAD = 0
"""The version of a file that the index does not hold yet."""

Answer = TypeVar("Answer")

Unread = Callable[[int, int], list[PendingFile]]
"""Returns files that wait to be read, so many and so many bytes of them at most."""


class RootScope(NamedTuple):
    """A root, and which of its paths are meant."""

    root: IndexedRoot
    span: Span

    @property
    def scope(self) -> Scope:
        """Return it in the words of its index."""
        return Scope(PROJECT, self.span)


class MultiRootLookup:
    """Implements `holdfast.search.ports.Lookup` for some places; a hit's project is the path of its root.

    A chunk's number here is its own times the number of roots, plus the position of its root.
    """

    def __init__(self, index: FolderIndex, places: Sequence[RootScope], unread: Unread) -> None:
        self._index, self._places, self._unread = index, places, unread

    def find_by_words(self, _tenant: str, _scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks of all roots, by the statistics of all."""
        known = [self._ask(place, lambda key, _: self._index.load_statistics(key, terms)) for place in self._places]
        statistics = combine_statistics(known)
        return WordMatches(
            self._best(limit, lambda key, scope: self._index.find_by_words(key, scope, terms, limit, statistics)),
            statistics,
        )

    def find_nearest(self, _tenant: str, _scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the nearest chunks of all roots."""
        return self._best(limit, lambda key, scope: self._index.find_nearest(key, scope, model, vector, limit))

    def load_pending_files(self, _tenant: str, _scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return files that wait to be read."""
        return self._unread(limit, max_bytes)

    def load_passages(self, _tenant: str, _scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return those of the chunks that are still in the index."""
        count = len(self._places)
        return [
            passage._replace(chunk_id=passage.chunk_id * count + position, project=place.root.path)
            for position, place in enumerate(self._places)
            for passage in self._passages(place, [one // count for one in chunk_ids if one % count == position])
        ]

    def live_versions(self, _tenant: str, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the version that unread files have; every passage is compared with its file later."""
        return dict.fromkeys(places, UNREAD)

    def files_without_vectors(self, _tenant: str, _model: str, _limit: int) -> list[tuple[str, str]]:
        """Return nothing: one model serves local folders."""
        return []

    def _best(self, limit: int, ask: Callable[[str, Scope], list[Candidate]]) -> list[Candidate]:
        count = len(self._places)
        found = [
            Candidate(one.chunk_id * count + position, one.score)
            for position, place in enumerate(self._places)
            for one in self._ask(place, ask)
        ]
        return sorted(found, key=lambda one: (-one.score, one.chunk_id))[:limit]

    def _passages(self, place: RootScope, chunk_ids: Sequence[int]) -> list[Passage]:
        return self._ask(place, lambda key, scope: self._index.load_passages(key, scope, chunk_ids))

    def _ask(self, place: RootScope, ask: Callable[[str, Scope], Answer]) -> Answer:
        """Ask one root's index; one that is damaged is begun again, and holds nothing yet."""
        try:
            return ask(place.root.key, place.scope)
        except IndexDamaged:
            place.root.damaged()
            return ask(place.root.key, place.scope)


def combine_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Return what several indexes hold together."""
    frequencies: Counter[str] = Counter()
    for one in parts:
        frequencies.update(one.document_frequencies)
    return Statistics(sum(one.chunk_count for one in parts), sum(one.token_count for one in parts), frequencies)
