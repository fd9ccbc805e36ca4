"""Search in temporary folders, in process: real files, a real index, real threads, without the protocol."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.adapters.sqlite.search.folder_index import SqliteFolderIndex
from holdfast.adapters.watching import watch_directories
from holdfast.folders.access.roots import close_roots
from holdfast.folders.service import Folders
from holdfast.search.folders.indexed_root import IndexingContext
from holdfast.search.folders.model import FileRecord, FolderAnswer, FolderLimits
from holdfast.search.folders.ports import Watcher
from holdfast.search.folders.service import FolderSearch
from holdfast.search.model import Chunk, SearchLimits
from holdfast.search.ports import Embedder
from tests.helpers.doors import until
from tests.helpers.finder import folders_over, new_call

LIMITS = FolderLimits(
    max_files=10_000, max_bytes=50_000_000, max_file_bytes=1_000_000, max_document_bytes=10_000_000, keep_days=30
)


def nobody_watches(_directories: Sequence[str], _report_change: Callable[[], None]) -> None:
    """Watch nothing, as where directories are too many."""


class StuckIndex(SqliteFolderIndex):
    """Stores so many files, and then no more until `let` is set."""

    def __init__(self, folder: str, takes: int = 1_000_000) -> None:
        super().__init__(folder)
        self.takes = takes
        self.let = threading.Event()

    def put_file(self, root: str, path: str, record: FileRecord, chunks: Sequence[Chunk], at: datetime) -> None:
        self.takes -= 1
        if self.takes < 0:
            self.let.wait(60)
        super().put_file(root, path, record, chunks, at)


class Searcher:
    """One server's search in folders. Use as a context manager."""

    def __init__(
        self,
        state: Path,
        embedder: Embedder | None = None,
        limits: FolderLimits = LIMITS,
        watcher: Watcher = watch_directories,
        index: SqliteFolderIndex | None = None,
    ) -> None:
        self.folder = state / "folders"
        self.index = index or SqliteFolderIndex(str(self.folder))
        self.search = FolderSearch(IndexingContext(self.index, limits, watcher, embedder), SearchLimits())
        self._folders: dict[tuple[Path, ...], Folders] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.search.close()
        self.let_go()

    def let_go(self) -> None:
        """Close the roots, as a caller that goes; the next search opens them anew."""
        for folders in self._folders.values():
            close_roots(folders.jail.roots)
        self._folders.clear()

    def find(self, query: str, *roots: Path, path: str = "", limit: int = 5) -> FolderAnswer:
        """Search once."""
        if roots not in self._folders:
            self._folders[roots] = folders_over(*roots)
        return self.search.search(self._folders[roots], new_call(), query, path, limit)

    def texts(self, query: str, *roots: Path, path: str = "", limit: int = 5) -> list[str]:
        """Search once and return the passages."""
        return [hit.text for hit in self.find(query, *roots, path=path, limit=limit).hits]

    def names(self, query: str, *roots: Path, path: str = "", limit: int = 5) -> list[str]:
        """Search once and return the names of the files."""
        return [Path(hit.path).name for hit in self.find(query, *roots, path=path, limit=limit).hits]

    def settle(self, *roots: Path) -> None:
        """Wait until the indexes of roots are made to the end."""
        until("the indexes are made", lambda: self.find("settle", *roots).ready == 100, 60)
