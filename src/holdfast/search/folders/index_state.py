"""The state of one root's index in memory: its records, the queues of files to read, extract and embed, and waiters.

A scan of the root says which files there are to index; it opens none of them.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from holdfast.call import Call
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.walk import EntryType, Walk, open_start
from holdfast.search.folders.model import ContentKind, FileRecord, IndexProgress, UnsearchedCounts
from holdfast.store.paths import PathRange
from holdfast.text.decode import has_lone_surrogate

_POLL_SECONDS = 0.05
_MOST_PERCENT = 90
RETRY_PAUSES = (10.0, 120.0, 1800.0)
"""Seconds before each retry of a file whose reader failed; after the last one it waits for a change or a restart."""


@dataclass(slots=True)
class RootScan:
    """File versions by path beneath the root, and the directories that were scanned.

    `unsearched_directories` have more ignore rules than are followed: nothing in them may be shown. `unopened_directories`
    may not be opened; they are named by their path beneath the root. `is_truncated` says that there are more files.
    """

    versions: dict[str, str] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    unsearched_directories: list[str] = field(default_factory=list)
    unopened_directories: list[str] = field(default_factory=list)
    is_truncated: bool = False


def scan_root(jail: Jail, call: Call, max_files: int) -> RootScan:
    """Return the files of the one root of a jail, without hidden files, ignored files and what is behind links.

    Names with a lone surrogate, and names that no caller could give, are left out. Raises Cancelled.
    """
    scan = RootScan()
    with open_start(jail, ".", ignore=True) as start:
        walk = Walk(jail, call, start, ignore=True)
        scan.directories.append(start.path)
        prefix = start.path.rstrip("/") + "/"
        for folder, entries in walk:
            last_name, last_kind = entries[-1]
            if folder.rules.is_cut:
                path = f"{prefix}{folder.relative}".rstrip("/")
                if path not in scan.unsearched_directories[-1:]:
                    scan.unsearched_directories.append(path)
                if last_kind is EntryType.DIRECTORY:
                    walk.prune()
                continue
            for name, kind in entries:
                if kind is EntryType.FILE and not name.startswith(".") and not has_lone_surrogate(name):
                    status = walk.stat(folder, name)
                    if status is not None:
                        scan.versions[f"/{folder.relative}{name}"] = FileVersion.from_stat(status).index_text
            if last_kind is EntryType.DIRECTORY and (last_name.startswith(".") or has_lone_surrogate(last_name)):
                walk.prune()
            elif last_kind is EntryType.DIRECTORY:
                scan.directories.append(f"{prefix}{folder.relative}{last_name}")
            if len(scan.versions) > max_files:
                scan.is_truncated = True
                scan.versions = dict(list(scan.versions.items())[:max_files])
                break
        scan.unopened_directories = [f"/{relative}" for relative in walk.unreadable]
    return scan


class RootIndexState:
    """Safe to share between threads. One thread reads texts; another one extracts documents and embeds."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last_request = self._completed_request = 0
        self.used_at = time.monotonic()
        self.reset()

    def reset(self) -> None:
        """Forget everything; all files are to be read."""
        with self._changed:
            self._records: dict[str, FileRecord] = {}
            self._texts: dict[str, None] = {}
            self._documents: dict[str, None] = {}
            self._without_vectors: dict[str, None] = {}
            self._failures: dict[str, tuple[int, float]] = {}
            self._text_bytes = 0
            self._had_most_vectors = False
            self._unsearched_directories: tuple[str, ...] = ()
            self._unopened_directories: tuple[str, ...] = ()
            self.is_loaded = self.is_scanned = self.is_truncated = False

    def load(self, records: Mapping[str, FileRecord], without_vectors: Iterable[str]) -> None:
        """Take over the records of an index; files whose obstacle was temporary are read again."""
        with self._changed:
            self._records = {path: record for path, record in records.items() if not record.kind.is_transient}
            self._text_bytes = sum(record.text_bytes for record in self._records.values())
            self._without_vectors = dict.fromkeys(without_vectors)
            self.is_loaded = True

    def request_scan(self) -> int:
        """Request a scan for changes; returns the number of the request, to wait with."""
        with self._changed:
            self.used_at = time.monotonic()
            self._last_request += 1
            return self._last_request

    @property
    def last_request(self) -> int:
        """Return the number of the last request."""
        return self._last_request

    @property
    def is_scan_requested(self) -> bool:
        """Return whether a requested scan is not completed yet."""
        return self._completed_request < self._last_request

    def complete_requests(self, request: int) -> None:
        """Record that a scan began after this request, and that all texts are read."""
        with self._changed:
            self._completed_request = max(self._completed_request, request)
            self._changed.notify_all()

    def wait_for_scan(self, request: int, deadline: float, check: Callable[[], None]) -> None:
        """Wait until a request is completed, or until the deadline."""
        with self._changed:
            while self._completed_request < request and time.monotonic() < deadline:
                check()
                self._changed.wait(_POLL_SECONDS)

    def wait_until_read(self, paths: Iterable[str], deadline: float, check: Callable[[], None]) -> None:
        """Wait until files are read, or until the deadline."""
        waiting = set(paths)
        with self._changed:
            while waiting & (self._texts.keys() | self._documents.keys()) and time.monotonic() < deadline:
                check()
                self._changed.wait(_POLL_SECONDS)

    def apply_scan(self, scan: RootScan) -> list[str]:
        """Queue the files that a scan found changed; returns the paths of records whose file is gone."""
        with self._changed:
            changed = [path for path, version in scan.versions.items() if self._must_read(path, version)]
            still_queued = {path: None for path in self._texts if path in scan.versions}
            self._texts = still_queued | dict.fromkeys(changed)
            self.is_truncated, self.is_scanned = scan.is_truncated, True
            self._unsearched_directories = tuple(scan.unsearched_directories)
            self._unopened_directories = tuple(scan.unopened_directories)
            return [path for path in self._records if path not in scan.versions]

    def queue_texts(self, paths: Iterable[str]) -> None:
        """Queue files to be read, whatever their version."""
        with self._changed:
            self._texts.update(dict.fromkeys(paths))

    def queue_document(self, path: str) -> None:
        """Queue a file to be extracted instead of read."""
        with self._changed:
            self._texts.pop(path, None)
            self._documents[path] = None

    def next_text(self) -> str | None:
        """Return the next file to read."""
        with self._changed:
            return next(iter(self._texts), None)

    def next_document(self) -> str | None:
        """Return the next document to extract."""
        with self._changed:
            return next(iter(self._documents), None)

    def next_without_vectors(self) -> str | None:
        """Return the next file to embed."""
        with self._changed:
            return next(iter(self._without_vectors), None)

    def mark_embedded(self, path: str) -> None:
        """Remove a file from the queue of those to embed."""
        with self._changed:
            self._without_vectors.pop(path, None)

    def put_record(self, path: str, record: FileRecord, *, needs_vectors: bool) -> None:
        """Keep the record of a file that was read, and queue it to be embedded if it needs vectors."""
        with self._changed:
            before = self._records.get(path)
            self._text_bytes += record.text_bytes - (before.text_bytes if before else 0)
            self._records[path] = record
            failures = self._failures.pop(path, (0, 0.0))[0]
            if record.kind is ContentKind.READER_FAILED:
                is_same_version = before is not None and before.version == record.version
                failures = failures + 1 if is_same_version else 1
                pause = RETRY_PAUSES[min(failures, len(RETRY_PAUSES)) - 1]
                self._failures[path] = failures, time.monotonic() + pause
            if needs_vectors:
                self._without_vectors[path] = None
            self._dequeue(path)

    def remove_records(self, paths: Iterable[str]) -> None:
        """Forget files that are no longer in the index."""
        with self._changed:
            for path in paths:
                record = self._records.pop(path, None)
                self._text_bytes -= record.text_bytes if record else 0
                self._without_vectors.pop(path, None)
                self._failures.pop(path, None)
                self._dequeue(path)

    def get_record(self, path: str) -> FileRecord | None:
        """Return the record of a file."""
        return self._records.get(path)

    def all_records(self) -> dict[str, FileRecord]:
        """Return a copy of all records, by path."""
        with self._changed:
            return dict(self._records)

    def unread_texts(self, span: PathRange) -> list[str]:
        """Return the files in a span that wait to be read."""
        with self._changed:
            return [path for path in self._texts if span.low <= path < span.high]

    def has_room(self, path: str, size: int, max_bytes: int) -> bool:
        """Return whether a text of that size fits into the index."""
        with self._changed:
            before = self._records.get(path)
            return self._text_bytes - (before.text_bytes if before else 0) + size <= max_bytes

    def may_have_text(self, span: PathRange) -> bool:
        """Return whether a file in a span has text, or may have some because it is not read yet."""
        with self._changed:
            with_text = (path for path, record in self._records.items() if record.text_bytes)
            paths = chain(with_text, self._texts, self._documents)
            return not self.is_scanned or any(span.low <= path < span.high for path in paths)

    def count_unsearched(self, span: PathRange) -> UnsearchedCounts:
        """Return how much in a span is not searched, by reason."""
        with self._changed:
            records = [record for path, record in self._records.items() if span.low <= path < span.high]
            directories = sum(span.low <= f"{path}/" < span.high for path in self._unopened_directories)
        kinds = Counter(record.kind for record in records)
        without_text = sum(record.kind is ContentKind.DOCUMENT and not record.text_bytes for record in records)
        return UnsearchedCounts(kinds[ContentKind.UNOPENED], directories, kinds[ContentKind.TOO_LARGE], without_text)

    def progress(self) -> IndexProgress:
        """Return how far the index is."""
        with self._changed:
            queued = self._texts.keys() | self._documents.keys()
            total = len(self._records.keys() | queued)
            has_no_room = any(record.kind is ContentKind.NO_ROOM for record in self._records.values())
            progress = IndexProgress(
                is_scanned=self.is_scanned,
                total=total,
                read=total - len(queued),
                embedded=total - len(self._without_vectors.keys() | queued),
                is_truncated=self.is_truncated or has_no_room,
                reader_failures=len(self._failures.keys() - queued),
                unsearched_directories=self._unsearched_directories,
            )
            self._had_most_vectors = self._had_most_vectors or progress.meaning_percent >= _MOST_PERCENT
            return progress

    def had_most_vectors(self) -> bool:
        """Return whether most files have had vectors: before that, the few that have some would outrank all others."""
        self.progress()
        return self._had_most_vectors

    def _must_read(self, path: str, version: str) -> bool:
        record = self._records.get(path)
        if record is None or record.version != version:
            return True
        failures, retry_at = self._failures.get(path, (0, 0.0))
        return 0 < failures <= len(RETRY_PAUSES) and time.monotonic() >= retry_at

    def _dequeue(self, path: str) -> None:
        self._texts.pop(path, None)
        self._documents.pop(path, None)
        self._changed.notify_all()
