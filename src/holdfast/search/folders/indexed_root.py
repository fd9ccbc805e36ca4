"""Keeps the index of one root up to date: scan, read texts, extract documents, embed.

Indexed text of a file that has changed since is never returned, because every passage is compared with its file first.
So indexing may be late, and the words of a file may be indexed before its vectors.
"""

import logging
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.clock import utc_clock
from holdfast.errors import HoldfastError, PermissionDenied
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.policy import PolicyRule
from holdfast.folders.access.policy_rules import policy_for
from holdfast.folders.access.roots import Identity, Root, close_roots
from holdfast.search.folders.file_text import FileReading, read_document, read_text
from holdfast.search.folders.index_state import RootIndexState, scan_root
from holdfast.search.folders.model import PROJECT, ContentKind, FileRecord, FolderLimits, index_key
from holdfast.search.folders.ports import FolderIndex, Watch, Watcher
from holdfast.search.index import chunks_with_tokens, embed_file
from holdfast.search.ports import Embedder, EmbedFault, IndexDamaged
from holdfast.search.tokens import TOKENIZER

_log = logging.getLogger(__name__)

QUICK_SCAN_SECONDS = 0.1
"""A root that is scanned faster than this is scanned for every search."""

SCAN_REST_FACTOR = 10
"""A root that keeps changing rests this many times as long as its scan took, before the next one."""

_MAX_WATCHED_SECONDS = 300.0
"""A watched root is scanned at least this often when it is searched, in case the watch missed a change."""


@dataclass(frozen=True)
class IndexingContext:
    """What all roots share; without an embedder they are searched by words alone."""

    index: FolderIndex
    limits: FolderLimits
    watcher: Watcher
    embedder: Embedder | None


class IndexedRoot:
    """Has its own descriptor of the root; `on_change` is called when something in the root changed.

    What `rules`, which bind every client, hide is not indexed.
    """

    def __init__(
        self,
        root: Root,
        hidden: Iterable[Identity],
        rules: tuple[PolicyRule, ...],
        context: IndexingContext,
        on_change: Callable[[], None],
    ) -> None:
        own_root = replace(root, fd=os.dup(root.fd))
        self.rules = rules
        self.path, self.key, self.identity = root.path, index_key(TOKENIZER, root.path), root.identity
        self.state = RootIndexState()
        self._jail = Jail([own_root], hidden, policy_for(rules, [root.path]), rules)
        weakref.finalize(self._jail, close_roots, [own_root])
        self._index, self._limits, self._watcher = context.index, context.limits, context.watcher
        self._embedder, self._on_change = context.embedder, on_change
        self._watch: Watch | None = None
        self._watched_directories: list[str] = []
        self._has_changed = False
        self._scanned_at = self._scan_seconds = 0.0

    def has_text_work(self) -> bool:
        """Return whether the root is to be scanned, or texts are to be read."""
        return self.state.is_scan_requested or self._is_scan_due() or self.state.next_text() is not None

    def has_slow_work(self) -> bool:
        """Return whether documents are to be extracted, or files to be embedded."""
        return self.state.next_document() is not None or self.state.next_without_vectors() is not None

    def scan_and_read(self, call: Call, seconds: float) -> None:
        """Scan if needed, and read texts for `seconds` at most; completes the requests when all texts are read."""
        with self._reset_when_damaged():
            if not self.state.is_loaded:
                records = self._index.load_records(self.key)
                model = self._embedder.model if self._embedder else None
                self.state.load(records, self._index.find_files_without_vectors(self.key, model) if model else ())
            request = self.state.last_request
            if self._is_scan_due() or (self.state.is_scan_requested and not self._is_scan_recent()):
                self._scan(call)
            deadline = time.monotonic() + seconds
            while (path := self.state.next_text()) is not None:
                call.check()
                self._read_text(path)
                if time.monotonic() > deadline:
                    return
            self.state.complete_requests(request)

    def extract_next(self, call: Call) -> bool:
        """Extract one document; returns whether there was one."""
        path = self.state.next_document()
        if path is None:
            return False
        with self._reset_when_damaged():
            try:
                reading = read_document(call, self._jail, path[1:], self._limits, self.state.get_record(path))
            except (HoldfastError, OSError) as error:
                call.check()
                self._put_unreadable(path, error)
            else:
                self._put(path, reading)
        return True

    def embed_next(self, call: Call) -> None:
        """Embed the chunks of one file, if there is one; after a fault of the model it waits for a restart."""
        path = self.state.next_without_vectors()
        if path is None or self._embedder is None:
            return
        with self._reset_when_damaged():
            try:
                embed_file(self._index, self._embedder, (self.key, PROJECT, path), None, call.check)
            except EmbedFault as fault:
                _log.warning("a file in a folder is found by words alone: %s", fault)
            self.state.mark_embedded(path)

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()

    @contextmanager
    def _reset_when_damaged(self) -> Iterator[None]:
        """Begin again with an empty state when the index was damaged and therefore removed."""
        try:
            yield
        except IndexDamaged:
            self.state.reset()

    def _is_scan_due(self) -> bool:
        has_rested = time.monotonic() - self._scanned_at > self._scan_seconds * SCAN_REST_FACTOR
        return not self.state.is_scanned or (self._has_changed and has_rested)

    def _is_scan_recent(self) -> bool:
        """Return whether a search may do without a scan: it takes long, nothing changed, and the last one is recent."""
        is_watched = self._watch is not None and self._watch.is_alive
        max_age = _MAX_WATCHED_SECONDS if is_watched else self._scan_seconds * SCAN_REST_FACTOR
        is_recent = time.monotonic() - self._scanned_at < max_age
        return self._scan_seconds > QUICK_SCAN_SECONDS and is_recent and not self._has_changed

    def _scan(self, call: Call) -> None:
        started = time.monotonic()
        self._has_changed = False
        scan = scan_root(self._jail, call, self._limits.max_files)
        self._remove(self.state.apply_scan(scan))
        self._watch_directories(scan.directories)
        self._scanned_at = time.monotonic()
        self._scan_seconds = self._scanned_at - started

    def _watch_directories(self, directories: list[str]) -> None:
        """Watch these directories; one more scan follows a new watch, for what changed before it began."""
        is_watching = self._watch is not None and self._watch.is_alive
        if directories == self._watched_directories and is_watching:
            return
        self.close()
        self._watched_directories = directories
        self._watch = self._watcher(directories, self._report_change)
        self._has_changed = self._watch is not None

    def _report_change(self) -> None:
        self._has_changed = True
        self._on_change()

    def _read_text(self, path: str) -> None:
        try:
            reading = read_text(self._jail, path[1:], self._limits, self.state.get_record(path))
        except (HoldfastError, OSError) as error:
            self._put_unreadable(path, error)
            return
        if reading.record.kind.is_extracted:
            self.state.queue_document(path)
        else:
            self._put(path, reading)

    def _put_unreadable(self, path: str, error: Exception) -> None:
        """Remove a file that is gone; one that exists and cannot be opened is tried again at each scan."""
        if not isinstance(error, PermissionDenied | OSError):
            self._remove([path])
            return
        indexed = self.state.get_record(path)
        is_indexed = indexed is not None and indexed.kind is ContentKind.UNOPENED
        self._put(path, FileReading(FileRecord("", ContentKind.UNOPENED), None if is_indexed else b""))

    def _put(self, path: str, reading: FileReading) -> None:
        record, text = reading
        if text is None:
            self.state.put_record(path, record, needs_vectors=False)
            return
        if not self.state.has_room(path, len(text), self._limits.max_bytes):
            record, text = FileRecord(record.version, ContentKind.NO_ROOM), b""
        self._index.put_file(self.key, path, record, chunks_with_tokens(text), utc_clock())
        self.state.put_record(path, record, needs_vectors=self._embedder is not None and bool(text))

    def _remove(self, paths: list[str]) -> None:
        if paths:
            self._index.remove_files(self.key, paths, utc_clock())
            self.state.remove_records(paths)
