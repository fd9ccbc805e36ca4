"""Looks through files that wait to be read, for the words of a query, within a bound of time."""

import time
from collections.abc import Callable, Iterator, Sequence

from holdfast.errors import HoldfastError
from holdfast.folders.jail import Jail
from holdfast.search.folders.lookup import UNREAD, Place
from holdfast.search.folders.model import FolderLimits
from holdfast.search.folders.text import read_quickly
from holdfast.search.model import PendingFile
from holdfast.search.tokens import plain, query_tokens

_SECONDS = 2.0
_SHORT_CHARS = 3


class UnreadFiles:
    """The unread files of some places that hold a word of the query; they are looked through once."""

    def __init__(
        self, jail: Jail, places: Sequence[Place], query: str, limits: FolderLimits, check: Callable[[], None]
    ) -> None:
        self._jail, self._places, self._limits, self._check = jail, places, limits, check
        self._found: list[PendingFile] | None = None
        self._needles = [_needle(token) for token in set(query_tokens(query))]

    def __call__(self, limit: int, max_bytes: int) -> list[PendingFile]:
        """Return those files, so many and so many bytes of them at most."""
        if self._found is None:
            self._found = self._looked_through(limit, max_bytes)
        return self._found

    def _looked_through(self, limit: int, max_bytes: int) -> list[PendingFile]:
        found: list[PendingFile] = []
        for file in self._matching(time.monotonic() + _SECONDS):
            max_bytes -= len(file.data)
            if max_bytes < 0 and found:
                break
            found.append(file)
            if len(found) == limit:
                break
        return found

    def _matching(self, until: float) -> Iterator[PendingFile]:
        for place in self._places:
            for path in place.root.state.waiting(place.span):
                self._check()
                if time.monotonic() > until:
                    return
                data = self._text(place.root.path.rstrip("/") + path)
                folded = plain(data.decode()).casefold()
                if any(needle in folded for needle in self._needles):
                    yield PendingFile(place.root.path, path, UNREAD, data)

    def _text(self, path: str) -> bytes:
        try:
            return read_quickly(self._jail, path, self._limits).data or b""
        except (HoldfastError, OSError):
            return b""


def _needle(token: str) -> str:
    """Return what a text with that token holds: a stem may end in another letter than the word it stands for."""
    return token[:-1] if len(token) > _SHORT_CHARS and token.isalpha() else token
