"""Searches several roots as one index: only the caller's roots are opened, and their chunks are ranked together."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from holdfast.search.folders.indexed_root import IndexedRoot
from holdfast.search.folders.model import PROJECT
from holdfast.search.folders.ports import FolderIndex
from holdfast.search.model import Candidate, Passage, PendingFile, Scope, Statistics, Vector, WordMatches
from holdfast.search.ports import IndexDamaged
from holdfast.store.paths import PathRange

UNREAD_VERSION = 0
"""The version of a file that is not in the index yet."""

Answer = TypeVar("Answer")

LoadUnread = Callable[[int, int], list[PendingFile]]
"""Returns files that wait to be read: at most as many files and bytes as the two arguments say."""


class RootScope(NamedTuple):
    """A root, and the span of its paths to search."""

    root: IndexedRoot
    span: PathRange

    @property
    def scope(self) -> Scope:
        """Return the scope within the index of the root."""
        return Scope(PROJECT, self.span)


class MultiRootLookup:
    """Implements `holdfast.search.ports.Lookup` over some roots; the project of a passage is the path of its root.

    The id of a chunk here is its id in its root's index, times the number of roots, plus the position of its root.
    """

    def __init__(self, index: FolderIndex, scopes: Sequence[RootScope], load_unread: LoadUnread) -> None:
        self._index, self._scopes, self._load_unread = index, scopes, load_unread

    def find_by_words(self, _tenant: str, _scope: Scope, terms: Sequence[str], limit: int) -> WordMatches:
        """Return the best chunks of all roots, scored with the statistics of all of them."""
        statistics = combine_statistics(
            [self._query(each, lambda key, _: self._index.load_statistics(key, terms)) for each in self._scopes]
        )
        candidates = self._best(
            limit, lambda key, scope: self._index.find_by_words(key, scope, terms, limit, statistics)
        )
        return WordMatches(candidates, statistics)

    def find_nearest(self, _tenant: str, _scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the nearest chunks of all roots."""
        return self._best(limit, lambda key, scope: self._index.find_nearest(key, scope, model, vector, limit))

    def load_pending_files(self, _tenant: str, _scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return files that wait to be read."""
        return self._load_unread(limit, max_bytes)

    def load_passages(self, _tenant: str, _scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still in the index."""
        count = len(self._scopes)
        return [
            passage._replace(chunk_id=passage.chunk_id * count + position, project=each.root.path)
            for position, each in enumerate(self._scopes)
            for passage in self._load_own_passages(each, [id_ // count for id_ in chunk_ids if id_ % count == position])
        ]

    def load_live_versions(self, _tenant: str, files: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the version of unread files for each: every passage is compared with its file later."""
        return dict.fromkeys(files, UNREAD_VERSION)

    def find_files_without_vectors(self, _tenant: str, _model: str, _limit: int) -> list[tuple[str, str]]:
        """Return nothing: local folders have one model and no previous one."""
        return []

    def _best(self, limit: int, find: Callable[[str, Scope], list[Candidate]]) -> list[Candidate]:
        count = len(self._scopes)
        candidates = [
            Candidate(candidate.chunk_id * count + position, candidate.score)
            for position, each in enumerate(self._scopes)
            for candidate in self._query(each, find)
        ]
        return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk_id))[:limit]

    def _load_own_passages(self, each: RootScope, own_ids: Sequence[int]) -> list[Passage]:
        return self._query(each, lambda key, scope: self._index.load_passages(key, scope, own_ids))

    def _query(self, each: RootScope, query: Callable[[str, Scope], Answer]) -> Answer:
        """Query the index of one root; a damaged one was removed, so the second query finds it empty."""
        try:
            return query(each.root.key, each.scope)
        except IndexDamaged:
            each.root.state.reset()
            return query(each.root.key, each.scope)


def combine_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Return the statistics of several indexes together."""
    frequencies: Counter[str] = Counter()
    for part in parts:
        frequencies.update(part.document_frequencies)
    return Statistics(sum(part.chunk_count for part in parts), sum(part.token_count for part in parts), frequencies)
