"""Ports of search in local folders: an index for each root, and a watcher of directories."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.search.folders.model import FileRecord
from holdfast.search.model import Candidate, Chunk, Passage, Scope, Statistics, Vector
from holdfast.search.ports import VectorIndex


class FolderIndex(VectorIndex, Protocol):
    """Chunks, words and vectors of each root, by the key of its index, separate from all others.

    Safe to use from any thread; IndexFault when the database fails. A damaged index is removed, so that it is empty from
    then on, and IndexDamaged is raised.
    """

    def load_records(self, root: str) -> dict[str, FileRecord]:
        """Return every file in the index, by its path beneath the root, which begins with `/`."""

    def put_file(self, root: str, path: str, record: FileRecord, chunks: Sequence[Chunk], at: datetime) -> None:
        """Store a file as it was read; no part of it is found before all of it is stored."""

    def remove_files(self, root: str, paths: Sequence[str], at: datetime) -> None:
        """Remove files from the index."""

    def load_statistics(self, root: str, terms: Sequence[str]) -> Statistics:
        """Return the totals of the index, and the document frequencies of these terms."""

    def find_by_words(
        self, root: str, scope: Scope, terms: Sequence[str], limit: int, statistics: Statistics
    ) -> list[Candidate]:
        """Return the best chunks by BM25, scored with the given statistics."""

    def find_nearest(self, root: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector, by cosine similarity."""

    def load_passages(self, root: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the passages of those chunks that are still in the index."""

    def find_files_without_vectors(self, root: str, model: str) -> list[str]:
        """Return the files that have a chunk without a vector of a model."""

    def count_lines_before(self, root: str, path: str, start: int) -> int:
        """Return how many lines end before a chunk that begins at that byte."""

    def mark_used(self, root: str) -> None:
        """Store that a root is in use at this time."""

    def remove_unused(self, days: float) -> int:
        """Remove the indexes of roots that were not used for `days`; returns how many."""

    def close(self) -> None:
        """Close every connection."""


class Watch(Protocol):
    """A running watch of some directories."""

    @property
    def is_alive(self) -> bool:
        """Return whether changes are still reported."""

    def close(self) -> None:
        """Stop watching."""


Watcher = Callable[[Sequence[str], Callable[[], None]], Watch | None]
"""Starts to watch directories, not what is below them, and calls back on each change; None when they are too many.

It opens nothing in them: what changed is read through the jail.
"""
