"""One root in use, as the lanes work on it: scan, read texts, extract documents, embed.

What the index holds of a file that changed meanwhile is never shown, because every passage is compared with its file
before it is handed out; so a lane may be late, and the words of a file may come before its meaning.
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
from holdfast.folders.access.roots import Identity, Root, close_roots
from holdfast.search.folders.file_text import FileReading, read_document, read_quickly
from holdfast.search.folders.index_state import RootIndexState
from holdfast.search.folders.model import PROJECT, ContentKind, FileRecord, FolderLimits, key_of
from holdfast.search.folders.ports import FolderIndex, Watch, Watcher
from holdfast.search.folders.scan import scan_root
from holdfast.search.index import chunks_with_tokens, embed_file
from holdfast.search.ports import Embedder, EmbedFault, IndexDamaged
from holdfast.search.tokens import TOKENIZER

_log = logging.getLogger(__name__)

_QUICK_SCAN_SECONDS = 0.1
_TRUST_SECONDS = 300.0
_REST = 10
"""A root that keeps changing is scanned so much more seldom than a scan takes."""


@dataclass(frozen=True)
class IndexingContext:
    """What all roots are worked on with; without an embedder there are words alone."""

    index: FolderIndex
    limits: FolderLimits
    watcher: Watcher
    embedder: Embedder | None


class IndexedRoot:
    """Has a descriptor of its own, which goes with it; `stirred` is called when something in the root changed."""

    def __init__(
        self, root: Root, hidden: Iterable[Identity], workshop: IndexingContext, stirred: Callable[[], None]
    ) -> None:
        own = replace(root, fd=os.dup(root.fd))
        self.path, self.key, self.identity = root.path, key_of(TOKENIZER, root.path), root.identity
        self.state = RootIndexState()
        self._jail = Jail([own], hidden)
        weakref.finalize(self._jail, close_roots, [own])
        self._index, self._limits, self._watcher = workshop.index, workshop.limits, workshop.watcher
        self._embedder, self._stirred = workshop.embedder, stirred
        self._watch: Watch | None = None
        self._watched: list[str] = []
        self._is_stirred = False
        self._scanned_at = self._scan_seconds = 0.0

    def has_reading(self) -> bool:
        """Return whether the reading lane has something to do here."""
        return self.state.is_asked or self._is_due() or self.state.next_text() is not None

    def has_slow_work(self) -> bool:
        """Return whether the slow lane has something to do here."""
        return self.state.next_document() is not None or self.state.next_owing() is not None

    def look(self, call: Call, seconds: float) -> None:
        """Scan where that is needed, and read texts for so long; answers those who wait when all are in."""
        with self._mending():
            self._load()
            asked = self.state.asked
            if self._is_due() or (self.state.is_asked and not self._is_trusted()):
                self._scan(call)
            until = time.monotonic() + seconds
            while (path := self.state.next_text()) is not None:
                call.check()
                self._read(path)
                if time.monotonic() > until:
                    return
            self.state.answer(asked)

    def extract_one(self, call: Call) -> bool:
        """Extract one document; returns whether there was one."""
        path = self.state.next_document()
        if path is None:
            return False
        with self._mending():
            try:
                reading = read_document(call, self._jail, path[1:], self._limits, self.state.known(path))
            except (HoldfastError, OSError) as error:
                call.check()
                self._miss(path, error)
            else:
                self._put(path, reading)
        return True

    def embed_one(self, call: Call) -> bool:
        """Embed what one file lacks; returns whether there was one. A file that the model fails on waits for a restart."""
        path = self.state.next_owing()
        if path is None or self._embedder is None:
            return False
        with self._mending():
            try:
                embed_file(self._index, self._embedder, (self.key, PROJECT, path), None, call.check)
            except EmbedFault as fault:
                _log.warning("a file in a folder has words alone: %s", fault)
            self.state.embedded(path)
        return True

    def damaged(self) -> None:
        """Begin again, because the index is gone."""
        self.state.start_over()

    def close(self) -> None:
        """Watch no more."""
        if self._watch is not None:
            self._watch.close()

    @contextmanager
    def _mending(self) -> Iterator[None]:
        try:
            yield
        except IndexDamaged:
            self.damaged()

    def _load(self) -> None:
        if not self.state.is_loaded:
            files = self._index.load_records(self.key)
            self.state.load(
                files, self._index.files_without_vectors(self.key, self._embedder.model) if self._embedder else ()
            )

    def _is_due(self) -> bool:
        is_rested = time.monotonic() - self._scanned_at > self._scan_seconds * _REST
        return not self.state.is_scanned or (self._is_stirred and is_rested)

    def _is_trusted(self) -> bool:
        """Return whether a scan would be long and is hardly needed: nothing stirred, or nobody watches and it is fresh."""
        is_watched = self._watch is not None and self._watch.is_alive
        trusted = _TRUST_SECONDS if is_watched else self._scan_seconds * _REST
        is_fresh = time.monotonic() - self._scanned_at < trusted
        return self._scan_seconds > _QUICK_SCAN_SECONDS and is_fresh and not self._is_stirred

    def _scan(self, call: Call) -> None:
        began = time.monotonic()
        self._is_stirred = False
        found = scan_root(self._jail, call, self._limits.max_files)
        self._drop(self.state.seen(found.looks, is_cut=found.is_cut, unruled=found.unruled, closed=found.closed))
        self._watch_over(found.directories)
        self._scanned_at = time.monotonic()
        self._scan_seconds = self._scanned_at - began

    def _watch_over(self, directories: list[str]) -> None:
        """Watch the directories that there are now; what changed before somebody watched is found by one more scan."""
        is_watching = self._watch is not None and self._watch.is_alive
        if directories == self._watched and is_watching:
            return
        self.close()
        self._watched = directories
        self._watch = self._watcher(directories, self._stir)
        self._is_stirred = self._watch is not None

    def _stir(self) -> None:
        self._is_stirred = True
        self._stirred()

    def _read(self, path: str) -> None:
        try:
            reading = read_quickly(self._jail, path[1:], self._limits, self.state.known(path))
        except (HoldfastError, OSError) as error:
            self._miss(path, error)
            return
        if reading.known.kind.is_extracted:
            self.state.to_extract(path)
        else:
            self._put(path, reading)

    def _miss(self, path: str, error: Exception) -> None:
        """Forget a file that is gone; one that is there and could not be opened is tried again at each scan."""
        if not isinstance(error, PermissionDenied | OSError):
            self._drop([path])
            return
        known = self.state.known(path)
        is_known = known is not None and known.kind is ContentKind.UNOPENED
        self._put(path, FileReading(FileRecord("", ContentKind.UNOPENED), None if is_known else b""))

    def _put(self, path: str, reading: FileReading) -> None:
        known, data = reading
        if data is None:
            self.state.remember(path, known, owes_meaning=False)
            return
        if not self.state.has_room(path, len(data), self._limits.max_bytes):
            known, data = FileRecord(known.look, ContentKind.NO_ROOM), b""
        self._index.put_file(self.key, path, known, chunks_with_tokens(data), utc_clock())
        self.state.remember(path, known, owes_meaning=self._embedder is not None and bool(data))

    def _drop(self, paths: list[str]) -> None:
        if paths:
            self._index.remove_files(self.key, paths, utc_clock())
            self.state.forget(paths)
