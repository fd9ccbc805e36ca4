"""Compares passages with their files just before they are returned: text that a file no longer holds is left out."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.search.folders.file_text import MISSING, CurrentContent, read_current
from holdfast.search.folders.indexed_root import IndexedRoot
from holdfast.search.folders.model import ContentKind, FileRecord, FolderHit, FolderLimits
from holdfast.search.folders.multi_root_lookup import RootScope
from holdfast.search.folders.ports import FolderIndex
from holdfast.search.model import Hit


class VerifiedHits(NamedTuple):
    """The hits that their files still hold, best first, and by root the files that are to be read again."""

    hits: list[FolderHit]
    changed: dict[IndexedRoot, list[str]]


class PassageVerifier:
    """Made before a search and used once: the records of documents must be older than the passages to verify.

    A passage of a text is compared with the text; one of a document is valid while the file has the bytes that were
    extracted. Each file is read at most once.
    """

    def __init__(self, jail: Jail, index: FolderIndex, scopes: Sequence[RootScope], limits: FolderLimits) -> None:
        self._jail, self._index, self._limits = jail, index, limits
        self._roots = {scope.root.path: scope.root for scope in scopes}
        self._records = {scope.root.path: scope.root.state.all_records() for scope in scopes}
        self._contents: dict[str, CurrentContent] = {}

    def verify(self, hits: Sequence[Hit], limit: int) -> VerifiedHits:
        """Return up to `limit` valid hits; a passage that is in two roots counts once."""
        verified = VerifiedHits([], {})
        positions: set[tuple[str, int]] = set()
        for hit in hits:
            path = hit.project.rstrip("/") + hit.path
            if len(verified.hits) < limit and (path, hit.start) not in positions:
                positions.add((path, hit.start))
                self.verify_hit(hit, path, verified)
        return verified

    def verify_hit(self, hit: Hit, path: str, verified: VerifiedHits) -> None:
        """Add a hit to the verified ones if it is valid, and its file to the changed ones if it has changed."""
        root = self._roots[hit.project]
        record = self._records[hit.project].get(hit.path)
        content = self._read_content(path, record)
        if content.text is not None:
            is_valid = content.text[hit.start : hit.end] == hit.text.encode()
        else:
            is_valid = record is not None and record.digest == content.digest
        if is_valid:
            line = self._line_number(root, record, content, hit)
            verified.hits.append(FolderHit(path, line, hit.text, hit.score))
        if not is_valid or (record is not None and record.digest != content.digest):
            verified.changed.setdefault(root, []).append(hit.path)

    def _line_number(
        self, root: IndexedRoot, record: FileRecord | None, content: CurrentContent, hit: Hit
    ) -> int | None:
        if content.text is not None:
            return content.text.count(b"\n", 0, hit.start) + 1
        if record is not None and record.kind is ContentKind.DOCUMENT:
            return self._index.count_lines_before(root.key, hit.path, hit.start) + 1
        return None

    def _read_content(self, path: str, record: FileRecord | None) -> CurrentContent:
        if path not in self._contents:
            try:
                is_extracted = record is not None and record.kind.is_extracted
                self._contents[path] = read_current(self._jail, path, self._limits, is_extracted=is_extracted)
            except (HoldfastError, OSError):
                self._contents[path] = MISSING
        return self._contents[path]
