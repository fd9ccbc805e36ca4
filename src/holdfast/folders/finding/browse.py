"""Pages through one directory for a person: any page by its number, the true total, sorted and filtered.

A directory of 100,000 entries is read once; its order is kept until the directory changes, so that every further page costs
what is on it.
"""

import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import Identity, identity_of
from holdfast.folders.finding.walk import EntryType, WalkStart, list_entries, open_start
from holdfast.text.decode import replace_lone_surrogates

_MAX_KEPT = 8
_SETTLED_SECONDS = 0.1
"""A directory that changed less than this before it was read may change again without a later time."""
_FACTS_SECONDS = 10.0
"""An order by size or time is read again after this: files change without their directory."""
_CHECK_EVERY = 4_096

Entry = tuple[str, EntryType]


class FolderOrder(StrEnum):
    """How the entries of a directory are sorted; ties are in the order of names."""

    NAME = "name"
    """Directories first, then by name without regard to case."""
    SIZE = "size"
    """Largest first; what is no regular file comes last."""
    MODIFIED = "modified"
    """Newest first."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry: its status is that of the entry itself, None when it went away meanwhile."""

    name: str
    type: EntryType
    status: os.stat_result | None


@dataclass(frozen=True, slots=True)
class FolderPage:
    """A page of a directory; `path` is its real path, `total` counts the entries that pass the filter."""

    path: str
    entries: tuple[FolderEntry, ...]
    total: int


class _Listing:
    """The entries of a directory in their order, and their names as a filter compares them."""

    def __init__(self, entries: Sequence[Entry], version: tuple[int, int]) -> None:
        self.entries = entries
        self.version = version
        self.read_at = time.monotonic()
        self._folded: Sequence[str] | None = None

    def matching(self, name_part: str) -> Sequence[Entry]:
        """Return the entries whose names have this part. The names are folded once: a filter asks at each letter."""
        if self._folded is None:
            self._folded = [replace_lone_surrogates(name).casefold() for name, _ in self.entries]
        part = name_part.casefold()
        return [entry for entry, name in zip(self.entries, self._folded, strict=True) if part in name]


class FolderBrowser:
    """Keeps the order of the last few directories. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listings: OrderedDict[tuple[Identity, FolderOrder], _Listing] = OrderedDict()

    def browse(
        self, jail: Jail, call: Call, path: str, *, offset: int, limit: int, order: FolderOrder, name_part: str = ""
    ) -> FolderPage:
        """Return a page of a directory. Raises what the jail raises; NotDirectory when something else is there."""
        with open_start(jail, path, ignore=False) as start:
            listing = self._sorted_entries(jail, call, start, order)
            entries = listing.matching(name_part) if name_part else listing.entries
            page = entries[offset : offset + limit]
            on_page = tuple(FolderEntry(name, kind, _status_of(start.fd, name)) for name, kind in page)
            return FolderPage(start.path, on_page, len(entries))

    def _sorted_entries(self, jail: Jail, call: Call, start: WalkStart, order: FolderOrder) -> _Listing:
        before = os.fstat(start.fd)
        key = (identity_of(before), order)
        version = (before.st_mtime_ns, before.st_ctime_ns)
        with self._lock:
            listing = self._listings.get(key) if jail.policy is None else None
        is_fresh = order is FolderOrder.NAME or (
            listing is not None and time.monotonic() - listing.read_at < _FACTS_SECONDS
        )
        if listing is not None and listing.version == version and is_fresh:
            return listing
        is_settled = time.time() - before.st_mtime > _SETTLED_SECONDS
        entries = list_entries(jail, start.fd, jail.policy_in(start.root, start.folder))
        entries.sort(key=_sort_key(call, start.fd, order))
        listing = _Listing(entries, version)
        if is_settled and jail.policy is None:
            with self._lock:
                self._listings[key] = listing
                self._listings.move_to_end(key)
                while len(self._listings) > _MAX_KEPT:
                    self._listings.popitem(last=False)
        return listing


def _sort_key(call: Call, fd: int, order: FolderOrder) -> Callable[[Entry], tuple[int, str]]:
    if order is FolderOrder.NAME:
        return lambda entry: (entry[1] is not EntryType.DIRECTORY, entry[0].casefold())
    count = 0

    def by_fact(entry: Entry) -> tuple[int, str]:
        nonlocal count
        count += 1
        if count % _CHECK_EVERY == 0:
            call.check()
        status = _status_of(fd, entry[0])
        if status is None:
            return (1, entry[0])
        if order is FolderOrder.MODIFIED:
            return (-status.st_mtime_ns, entry[0])
        return (-status.st_size if stat.S_ISREG(status.st_mode) else 1, entry[0])

    return by_fact


def _status_of(fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
