"""Compares passages with their files at the moment of the answer: what is not there any more is not handed out."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.search.folders.file_text import GONE, CurrentContent, read_now
from holdfast.search.folders.indexed_root import IndexedRoot
from holdfast.search.folders.model import ContentKind, FileRecord, FolderHit, FolderLimits
from holdfast.search.folders.multi_root_lookup import RootScope
from holdfast.search.folders.ports import FolderIndex
from holdfast.search.model import Hit


class VerifiedHits(NamedTuple):
    """The hits that are true, best first, and by root the files that are to be read again."""

    hits: list[FolderHit]
    changed: dict[IndexedRoot, list[str]]


class PassageVerifier:
    """Made before a search is, and used once: what is known of documents must be older than the passages of them.

    A passage of a text is compared with the text; one of a document is true while the file has the bytes that were
    extracted. Each file is read at most once.
    """

    def __init__(self, jail: Jail, index: FolderIndex, places: Sequence[RootScope], limits: FolderLimits) -> None:
        self._jail, self._index, self._limits = jail, index, limits
        self._roots = {place.root.path: place.root for place in places}
        self._known = {place.root.path: place.root.state.all_known() for place in places}
        self._read: dict[str, CurrentContent] = {}

    def check(self, found: Sequence[Hit], limit: int) -> VerifiedHits:
        """Return as many true hits as asked; a passage that two roots have counts once."""
        checked = VerifiedHits([], {})
        seen: set[tuple[str, int]] = set()
        for hit in found:
            path = hit.project.rstrip("/") + hit.path
            if len(checked.hits) < limit and (path, hit.start) not in seen:
                seen.add((path, hit.start))
                self._check(hit, path, checked)
        return checked

    def _check(self, hit: Hit, path: str, checked: VerifiedHits) -> None:
        root = self._roots[hit.project]
        known = self._known[hit.project].get(hit.path)
        now = self._now(path, known)
        is_true = _is_true(hit, known, now)
        if is_true:
            checked.hits.append(FolderHit(path, self._line(root, known, now, hit), hit.text, hit.score))
        if not is_true or (known is not None and known.digest != now.digest):
            checked.changed.setdefault(root, []).append(hit.path)

    def _line(self, root: IndexedRoot, known: FileRecord | None, now: CurrentContent, hit: Hit) -> int | None:
        if now.text is not None:
            return now.text.count(b"\n", 0, hit.start) + 1
        if known is not None and known.kind is ContentKind.DOCUMENT:
            return self._index.count_lines_before(root.key, hit.path, hit.start) + 1
        return None

    def _now(self, path: str, known: FileRecord | None) -> CurrentContent:
        if path not in self._read:
            try:
                is_extracted = known is not None and known.kind.is_extracted
                self._read[path] = read_now(self._jail, path, self._limits, is_extracted=is_extracted)
            except (HoldfastError, OSError):
                self._read[path] = GONE
        return self._read[path]


def _is_true(hit: Hit, known: FileRecord | None, now: CurrentContent) -> bool:
    """Return whether a file holds a passage: by its text, or by having the bytes that the text was taken out of."""
    if now.text is not None:
        return now.text[hit.start : hit.end] == hit.text.encode()
    return known is not None and known.digest == now.digest
