"""Looks through files that wait to be read, for the words of a query, within a bound of time."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.search.folders.file_text import read_quickly
from holdfast.search.folders.model import FolderLimits
from holdfast.search.folders.multi_root_lookup import UNREAD, RootScope
from holdfast.search.model import PendingFile
from holdfast.search.tokens import plain, tokenize_query, unquoted

_SECONDS = 2.0
_SHORT_CHARS = 2
_PART_CHARS = 65_536
_OVERLAP_CHARS = 256
"""A word is shorter, so the one that a part begins or ends in is whole in its neighbour."""


class UnreadFileScanner:
    """The unread files of some places that hold a word of the query; they are looked through once."""

    def __init__(
        self, jail: Jail, places: Sequence[RootScope], query: str, limits: FolderLimits, check: Callable[[], None]
    ) -> None:
        self._jail, self._places, self._limits, self._check = jail, places, limits, check
        self._found: list[PendingFile] | None = None
        self._until = 0.0
        self._needles = [_needle(token) for token in set(tokenize_query(query))]

    def __call__(self, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return those files, so many and so many bytes of them at most."""
        if self._found is None:
            self._found = self._looked_through(limit, max_bytes)
        return self._found

    def _looked_through(self, limit: int, max_bytes: int) -> list[PendingFile]:
        found: list[PendingFile] = []
        self._until = time.monotonic() + _SECONDS
        for file in self._matching(max_bytes):
            found.append(file)
            max_bytes -= len(file.data)
            if len(found) == limit or max_bytes <= 0:
                break
        return found

    def _matching(self, max_bytes: int) -> Iterator[PendingFile]:
        for place in self._places:
            for path in place.root.state.waiting(place.span):
                if not self._has_time():
                    return
                text = self._beginning(place.root.path.rstrip("/") + path, max_bytes)
                if self._holds_a_needle(text):
                    yield PendingFile(place.root.path, path, UNREAD, text.encode())

    def _holds_a_needle(self, text: str) -> bool:
        """Return whether a needle is in a text, as far as time allows: part by part, because a text may be very long."""
        starts = takewhile(lambda _: self._has_time(), range(0, len(text), _PART_CHARS))
        parts = (unquoted(plain(text[start : start + _PART_CHARS + _OVERLAP_CHARS])).casefold() for start in starts)
        return any(needle in part for part in parts for needle in self._needles)

    def _has_time(self) -> bool:
        self._check()
        return time.monotonic() <= self._until

    def _beginning(self, path: str, max_bytes: int) -> str:
        """Return what a text begins with, as much as may be scored while somebody waits."""
        try:
            data = read_quickly(self._jail, path, self._limits).data or b""
        except (HoldfastError, OSError):
            return ""
        return data[:max_bytes].decode(errors="ignore")


def _needle(token: str) -> str:
    """Return what a text with that token holds: a stem may end in another letter than the word it stands for."""
    return token[:-1] if len(token) > _SHORT_CHARS and token.isalpha() else token
