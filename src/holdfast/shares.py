"""Pure: divides a number of places between callers, so that a caller who takes many always leaves some for the others."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 3
"""Alone, a caller gets three quarters of the places."""
HALF = 1
"""Alone, a caller gets half of the places."""

_FEW = 4


class Shares:
    """Who holds how many of a number of places. Not safe to share between threads without a lock.

    A caller may take one more place while it holds less than `factor` times as many as are free: the dynamic threshold
    by which switches share a buffer. Alone it gets factor / (factor + 1) of the places, several get equal parts, and the
    more callers are busy the fewer places each may hold. The last free place is for a caller that holds none; where there
    are less than four places, only the factor counts.
    """

    def __init__(self, total: int, factor: int) -> None:
        self.total = total
        self.taken_places = 0
        self._factor = factor
        self._counts: Counter[str] = Counter()

    def has_room(self, caller: str) -> bool:
        """Return whether a caller may take one more place."""
        own, free = self._counts[caller], self.total - self.taken_places
        kept_free = 1 if own and self.total >= _FEW else 0
        return own < self._factor * (free - kept_free)

    def count(self, caller: str) -> int:
        """Return how many places a caller holds."""
        return self._counts[caller]

    def take(self, caller: str, places: int = 1) -> None:
        """Count more places of a caller."""
        self.taken_places += places
        self._counts[caller] += places

    def give_back(self, caller: str, places: int = 1) -> None:
        """Count fewer places of a caller."""
        self.taken_places -= places
        self._counts[caller] -= places
        if not self._counts[caller]:
            del self._counts[caller]

    @contextmanager
    def holding(self, caller: str, places: int) -> Iterator[None]:
        """Count places of a caller until the context is left."""
        self.take(caller, places)
        try:
            yield
        finally:
            self.give_back(caller, places)
