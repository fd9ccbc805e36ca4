"""Pages through one directory of a project for a person: any page by its number, the true total, filtered by name.

A directory of 100,000 entries is read once; its order is kept until the project changes, so that every further page costs
what is on it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.store.listing import entries_from_files
from holdfast.store.model import DirectoryEntry, FileSummary, PathType
from holdfast.store.paths import (
    MAX_PATH_BYTES,
    ROOT,
    PathRange,
    StorePath,
    count_components,
    next_group_start,
    path_not_found,
    span_beneath,
)
from holdfast.store.ports import StoreSnapshot

_CHUNK = 5_000
_MAX_KEPT = 4
_MAX_KEPT_ENTRIES = 200_000

Check = Callable[[], None]


class DirectoryPage(NamedTuple):
    """A page of a directory; `total` counts the entries that pass the filter."""

    entries: Sequence[DirectoryEntry]
    total: int


class _SortedDirectory(NamedTuple):
    entries: Sequence[DirectoryEntry]
    changed_at: datetime


class ProjectBrowser:
    """Keeps the order of the last few directories, of each tenant by itself. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listings: OrderedDict[tuple[str, str, StorePath], _SortedDirectory] = OrderedDict()

    def browse(
        self,
        snapshot: StoreSnapshot,
        tenant: str,
        project: str,
        path: StorePath,
        *,
        offset: int,
        limit: int,
        name_part: str,
        check: Check,
    ) -> DirectoryPage:
        """Return a page, directories first; NotFound for what is no directory."""
        entries = self._sorted_entries(snapshot, (tenant, project, path), check)
        if not entries and path != ROOT:
            raise path_not_found(path)
        if name_part:
            part = name_part.casefold()
            entries = [entry for entry in entries if part in entry.name.casefold()]
        return DirectoryPage(entries[offset : offset + limit], len(entries))

    def _sorted_entries(
        self, snapshot: StoreSnapshot, key: tuple[str, str, StorePath], check: Check
    ) -> Sequence[DirectoryEntry]:
        _, project, path = key
        changed_at = next((each.updated_at for each in snapshot.list_projects() if each.project == project), None)
        if changed_at is None:
            return ()
        with self._lock:
            listing = self._listings.get(key)
        if listing is not None and listing.changed_at == changed_at:
            return listing.entries
        components = count_components(path) + 1
        files = _read_all(snapshot, project, span_beneath(path), components, check)
        entries = list(entries_from_files(path, components, files).values())
        entries.sort(key=lambda entry: (entry.type is not PathType.DIRECTORY, entry.name.casefold(), entry.name))
        if len(entries) <= _MAX_KEPT_ENTRIES:
            with self._lock:
                self._listings[key] = _SortedDirectory(entries, changed_at)
                self._listings.move_to_end(key)
                while len(self._listings) > _MAX_KEPT:
                    self._listings.popitem(last=False)
        return entries


def list_beneath(snapshot: StoreSnapshot, project: str, path: StorePath, check: Check) -> list[FileSummary]:
    """Return the file at a path, or every file beneath it; NotFound when there is none."""
    stat = snapshot.stat(project, path, span_beneath(path))
    if stat.type is PathType.FILE and stat.created_at and stat.updated_at:
        return [FileSummary(path, stat.size, stat.created_at, stat.updated_at)]
    files = _read_all(snapshot, project, span_beneath(path), MAX_PATH_BYTES, check)
    if not files:
        raise path_not_found(path)
    return files


def _read_all(
    snapshot: StoreSnapshot, project: str, span: PathRange, components: int, check: Check
) -> list[FileSummary]:
    """Return the first file of every group of a span, in pieces between which a call can be cancelled."""
    files: list[FileSummary] = []
    while True:
        check()
        chunk = snapshot.list_heads(project, span, components, _CHUNK)
        files += chunk
        if len(chunk) < _CHUNK:
            return files
        span = PathRange(next_group_start(chunk[-1].path, components), span.high)
