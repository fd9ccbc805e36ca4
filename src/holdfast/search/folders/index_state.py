"""What is known of one root in use: the files its index holds, those that wait, and who waits for them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from holdfast.search.folders.model import ContentKind, FileRecord, IndexProgress, UnsearchedCounts
from holdfast.store.paths import Span

_LOOK_SECONDS = 0.05
_MOST_PERCENT = 90
_PAUSES = (10.0, 120.0, 1800.0)
"""Seconds before each further try at a file whose reader failed; then it waits for a change, or for a restart."""


class RootIndexState:
    """Safe to share between threads. Texts are read by one lane; documents and meaning are the slow lane's."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = self._answered = 0
        self.used_at = time.monotonic()
        self.start_over()

    def start_over(self) -> None:
        """Know nothing; all is to be read."""
        with self._changed:
            self._known: dict[str, FileRecord] = {}
            self._texts: dict[str, None] = {}
            self._documents: dict[str, None] = {}
            self._owing: dict[str, None] = {}
            self._tried: dict[str, tuple[int, float]] = {}
            self._bytes = 0
            self._is_meant = False
            self._unruled: tuple[str, ...] = ()
            self._closed: tuple[str, ...] = ()
            self.is_loaded = self.is_scanned = self.is_cut = False

    def load(self, files: Mapping[str, FileRecord], owing: Iterable[str]) -> None:
        """Take over what an index holds; what had something in its way is tried again."""
        with self._changed:
            self._known = {path: known for path, known in files.items() if not known.kind.is_transient}
            self._bytes = sum(known.size for known in self._known.values())
            self._owing = dict.fromkeys(owing)
            self.is_loaded = True

    def ask(self) -> int:
        """Ask for a look at what changed; returns the number to wait with."""
        with self._changed:
            self.used_at = time.monotonic()
            self._asked += 1
            return self._asked

    @property
    def asked(self) -> int:
        """Return the number of the last question."""
        return self._asked

    @property
    def is_asked(self) -> bool:
        """Return whether somebody waits for a look."""
        return self._answered < self._asked

    def answer(self, asked: int) -> None:
        """Say that a look was had after that question, and that all texts are in."""
        with self._changed:
            self._answered = max(self._answered, asked)
            self._changed.notify_all()

    def wait(self, asked: int, until: float, check: Callable[[], None]) -> None:
        """Wait for the answer to a question, or until that time."""
        with self._changed:
            while self._answered < asked and time.monotonic() < until:
                check()
                self._changed.wait(_LOOK_SECONDS)

    def wait_for(self, paths: Iterable[str], until: float, check: Callable[[], None]) -> None:
        """Wait until files have been read, or until that time."""
        wanted = set(paths)
        with self._changed:
            while wanted & (self._texts.keys() | self._documents.keys()) and time.monotonic() < until:
                check()
                self._changed.wait(_LOOK_SECONDS)

    def seen(
        self, looks: Mapping[str, str], *, is_cut: bool, unruled: Iterable[str] = (), closed: Iterable[str] = ()
    ) -> list[str]:
        """Take notice of a scan: what changed waits to be read; returns what is gone."""
        with self._changed:
            changed = [path for path, look in looks.items() if self._is_to_read(path, look)]
            self._texts = {path: None for path in self._texts if path in looks} | dict.fromkeys(changed)
            self.is_cut, self.is_scanned = is_cut, True
            self._unruled, self._closed = tuple(unruled), tuple(closed)
            return [path for path in self._known if path not in looks]

    def reread(self, paths: Iterable[str]) -> None:
        """Let files be read again, whatever they look like."""
        with self._changed:
            self._texts.update(dict.fromkeys(paths))

    def next_text(self) -> str | None:
        """Return the next text to read."""
        with self._changed:
            return next(iter(self._texts), None)

    def next_document(self) -> str | None:
        """Return the next document to extract."""
        with self._changed:
            return next(iter(self._documents), None)

    def next_owing(self) -> str | None:
        """Return the next file that lacks vectors."""
        with self._changed:
            return next(iter(self._owing), None)

    def to_extract(self, path: str) -> None:
        """Leave a file to the slow lane."""
        with self._changed:
            self._texts.pop(path, None)
            self._documents[path] = None

    def embedded(self, path: str) -> None:
        """Take notice that a file has its vectors."""
        with self._changed:
            self._owing.pop(path, None)

    def remember(self, path: str, known: FileRecord, *, owes_meaning: bool) -> None:
        """Take notice of what the index holds of a file, and whether vectors are to be made."""
        with self._changed:
            before = self._known.get(path)
            self._bytes += known.size - (before.size if before else 0)
            self._known[path] = known
            self._count_tries(path, known, is_same=before is not None and before.look == known.look)
            if owes_meaning:
                self._owing[path] = None
            self._settle(path)

    def forget(self, paths: Iterable[str]) -> None:
        """Take notice that the index holds files no more."""
        with self._changed:
            for path in paths:
                known = self._known.pop(path, None)
                self._bytes -= known.size if known else 0
                self._owing.pop(path, None)
                self._tried.pop(path, None)
                self._settle(path)

    def known(self, path: str) -> FileRecord | None:
        """Return what the index holds of a file."""
        return self._known.get(path)

    def all_known(self) -> dict[str, FileRecord]:
        """Return what the index holds, as of now."""
        with self._changed:
            return dict(self._known)

    def waiting(self, span: Span) -> list[str]:
        """Return the texts in a span that wait to be read."""
        with self._changed:
            return [path for path in self._texts if span.low <= path < span.high]

    def has_room(self, path: str, size: int, max_bytes: int) -> bool:
        """Return whether a text of that size fits in."""
        with self._changed:
            before = self._known.get(path)
            return self._bytes - (before.size if before else 0) + size <= max_bytes

    def holds(self, span: Span) -> bool:
        """Return whether there is a text in a span, or may be one as long as not all is read."""
        with self._changed:
            has_text = (path for path, known in self._known.items() if known.size)
            paths = chain(has_text, self._texts, self._documents)
            return not self.is_scanned or any(span.low <= path < span.high for path in paths)

    def left_out(self, span: Span) -> UnsearchedCounts:
        """Return what is in a span and not searched."""
        with self._changed:
            known = [known for path, known in self._known.items() if span.low <= path < span.high]
            closed = sum(span.low <= f"{path}/" < span.high for path in self._closed)
        kinds = Counter(one.kind for one in known)
        textless = sum(one.kind is ContentKind.DOCUMENT and not one.size for one in known)
        return UnsearchedCounts(kinds[ContentKind.UNOPENED], closed, kinds[ContentKind.TOO_LARGE], textless)

    def progress(self) -> IndexProgress:
        """Return how far the index is."""
        with self._changed:
            waiting = self._texts.keys() | self._documents.keys()
            total = len(self._known.keys() | waiting)
            is_cut = self.is_cut or any(known.kind is ContentKind.NO_ROOM for known in self._known.values())
            embedded = total - len(self._owing.keys() | waiting)
            unread = len(self._tried.keys() - waiting)
            progress = IndexProgress(
                self.is_scanned, total, total - len(waiting), embedded, is_cut, unread, self._unruled
            )
            self._is_meant = self._is_meant or progress.meaning >= _MOST_PERCENT
            return progress

    def is_meant(self) -> bool:
        """Return whether most files have had their vectors: before, the few that have some would outdo all others."""
        self.progress()
        return self._is_meant

    def _is_to_read(self, path: str, look: str) -> bool:
        known = self._known.get(path)
        if known is None or known.look != look:
            return True
        tries, next_at = self._tried.get(path, (0, 0.0))
        return 0 < tries <= len(_PAUSES) and time.monotonic() >= next_at

    def _count_tries(self, path: str, known: FileRecord, *, is_same: bool) -> None:
        before = self._tried.pop(path, (0, 0.0))[0]
        if known.kind is ContentKind.UNREAD:
            tries = before + 1 if is_same else 1
            pause = _PAUSES[min(tries, len(_PAUSES)) - 1]
            self._tried[path] = tries, time.monotonic() + pause

    def _settle(self, path: str) -> None:
        self._texts.pop(path, None)
        self._documents.pop(path, None)
        self._changed.notify_all()
