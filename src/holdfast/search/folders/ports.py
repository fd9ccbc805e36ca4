"""What search in local folders needs from outside: an index for each root, and somebody who watches directories."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.search.folders.model import FileRecord
from holdfast.search.model import Candidate, Chunk, Passage, Scope, Statistics, Vector
from holdfast.search.ports import VectorIndex


class FolderIndex(VectorIndex, Protocol):
    """Chunks, words and vectors of each root, by its key, apart from all others.

    Safe to use from any thread; IndexFault when the database fails. One that turns out damaged is removed, so that it
    is empty from then on, and IndexDamaged says so.
    """

    def load_records(self, root: str) -> dict[str, FileRecord]:
        """Return every file that the index holds, by its path beneath the root, which begins with `/`."""

    def put_file(self, root: str, path: str, known: FileRecord, chunks: Sequence[Chunk], at: datetime) -> None:
        """Make the index hold a file as it was read; nothing of it is found until all of it is in."""

    def remove_files(self, root: str, paths: Sequence[str], at: datetime) -> None:
        """Forget files."""

    def load_statistics(self, root: str, terms: Sequence[str]) -> Statistics:
        """Return what the index holds in all, and of these terms."""

    def find_by_words(
        self, root: str, scope: Scope, terms: Sequence[str], limit: int, statistics: Statistics
    ) -> list[Candidate]:
        """Return the best chunks by BM25, with the statistics given."""

    def find_nearest(self, root: str, scope: Scope, model: str, vector: Vector, limit: int) -> list[Candidate]:
        """Return the chunks nearest to a vector, by the cosine."""

    def load_passages(self, root: str, scope: Scope, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return those of the chunks that the index still holds."""

    def files_without_vectors(self, root: str, model: str) -> list[str]:
        """Return the files that have a chunk without a vector of a model."""

    def count_lines_before(self, root: str, path: str, start: int) -> int:
        """Return how many lines end before a chunk that begins at that byte."""

    def mark_used(self, root: str) -> None:
        """Remember that a root is used now."""

    def remove_unused(self, days: float) -> int:
        """Remove the indexes of roots that were not used for so many days; returns how many."""

    def close(self) -> None:
        """Give up every connection."""


class Watch(Protocol):
    """Somebody watches."""

    @property
    def is_alive(self) -> bool:
        """Return whether changes are still told."""

    def close(self) -> None:
        """Watch no more."""


Watcher = Callable[[Sequence[str], Callable[[], None]], Watch | None]
"""Watches directories, not what is below them, and calls when something in one changed; None when they are too many.

It opens nothing that it is told of: what changed is looked at through the jail.
"""
