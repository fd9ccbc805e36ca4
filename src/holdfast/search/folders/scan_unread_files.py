"""Searches files that are not indexed yet for the words of a query, for a bounded time."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.search.folders.file_text import read_text
from holdfast.search.folders.model import FolderLimits
from holdfast.search.folders.multi_root_lookup import UNREAD_VERSION, RootScope
from holdfast.search.model import PendingFile
from holdfast.search.tokens import remove_quotes, strip_accents, tokenize_query

_MAX_SECONDS = 2.0
_SHORT_CHARS = 2
_PART_CHARS = 65_536
_OVERLAP_CHARS = 256
"""Longer than any word, so that a word at the end of a part is whole in this part or the next."""


class UnreadFileScanner:
    """Finds the unread files of some roots that hold a word of the query; they are read once."""

    def __init__(
        self, jail: Jail, scopes: Sequence[RootScope], query: str, limits: FolderLimits, check: Callable[[], None]
    ) -> None:
        self._jail, self._scopes, self._limits, self._check = jail, scopes, limits, check
        self._files: list[PendingFile] | None = None
        self._deadline = 0.0
        self._stems = [_searchable_stem(token) for token in set(tokenize_query(query))]

    def load(self, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return those files: at most `limit`, and `max_bytes` of them; the same files at every call."""
        if self._files is None:
            self._files = []
            self._deadline = time.monotonic() + _MAX_SECONDS
            for file in self._matching_files(max_bytes):
                self._files.append(file)
                max_bytes -= len(file.data)
                if len(self._files) == limit or max_bytes <= 0:
                    break
        return self._files

    def _matching_files(self, max_bytes: int) -> Iterator[PendingFile]:
        for root, span in self._scopes:
            for path in root.state.unread_texts(span):
                if not self._has_time():
                    return
                text = self._read_beginning(root.path.rstrip("/") + path, max_bytes)
                if self._has_word(text):
                    yield PendingFile(root.path, path, UNREAD_VERSION, text.encode())

    def _read_beginning(self, path: str, max_bytes: int) -> str:
        """Return the beginning of a text, as much as can be scored during a search."""
        try:
            text = read_text(self._jail, path, self._limits).text or b""
        except (HoldfastError, OSError):
            return ""
        return text[:max_bytes].decode(errors="ignore")

    def _has_word(self, text: str) -> bool:
        """Return whether a text holds a word of the query, searched part by part while there is time."""
        starts = takewhile(lambda _: self._has_time(), range(0, len(text), _PART_CHARS))
        parts = (
            remove_quotes(strip_accents(text[start : start + _PART_CHARS + _OVERLAP_CHARS])).casefold()
            for start in starts
        )
        return any(stem in part for part in parts for stem in self._stems)

    def _has_time(self) -> bool:
        self._check()
        return time.monotonic() <= self._deadline


def _searchable_stem(token: str) -> str:
    """Return what every text with that token holds: a stem may end in another letter than its word does."""
    return token[:-1] if len(token) > _SHORT_CHARS and token.isalpha() else token
