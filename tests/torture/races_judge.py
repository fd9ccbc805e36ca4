"""Pure: what a project held and when, and whether an answer of a search can be true.

A project's moments follow each other: each begins when its change is sent and ends, at the latest, when the next change is
acknowledged. An answer is right when all of its hits are true in one moment that the search may have met.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from holdfast.search.model import Hit

Files = Mapping[str, bytes]


@dataclass
class Moment:
    """What a project holds after a change, by path; it was sent and acknowledged at these times."""

    files: Files
    sent_at: float
    acknowledged_at: float = inf


class Query(NamedTuple):
    """A search: its words, when it began and when it had its answer."""

    words: Sequence[str]
    begun_at: float
    ended_at: float


@dataclass
class History:
    """The moments of one project, which one writer changes. Safe to use from any thread."""

    moments: list[Moment] = field(default_factory=lambda: [Moment({}, -inf, -inf)])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def files(self) -> Files:
        """Return what the project holds after the last change."""
        return self.moments[-1].files

    def send(self, files: Files, now: float) -> None:
        """Note that a change is about to be made, and what it leads to."""
        with self._lock:
            self.moments.append(Moment(files, now))

    def acknowledge(self, now: float) -> None:
        """Note that the last change was acknowledged."""
        with self._lock:
            self.moments[-1].acknowledged_at = now

    def met_by(self, query: Query) -> list[Moment]:
        """Return the moments that a search may have met: begun before its end, not over before its beginning."""
        with self._lock:
            moments: list[Moment] = []
            for at in range(len(self.moments) - 1, -1, -1):
                if self.moments[at].sent_at <= query.ended_at:
                    moments.append(self.moments[at])
                if self.moments[at].acknowledged_at < query.begun_at:
                    break
            return moments


def problem_with(history: History, query: Query, hits: Sequence[Hit]) -> str | None:
    """Return what is wrong with an answer, None when nothing is."""
    met = history.met_by(query)
    wrong = [hit for hit in hits if not any(is_true(hit, moment.files) for moment in met)]
    if wrong:
        hit = wrong[0]
        return f"old text at {hit.path} [{hit.start}, {hit.end}) for {query.words}: {hit.text[:60]!r}"
    if not any(all(is_true(hit, moment.files) for hit in hits) for moment in met):
        return f"a mixture of {len(met)} moments for {query.words}: {sorted({hit.path for hit in hits})}"
    if len(met) == 1:
        missed = [word for word in query.words if _stands(word, met[0].files) and not _is_hit(word, hits)]
        if missed:
            return f"{missed[0]} stands in a file and is not found"
    return None


def is_true(hit: Hit, files: Files) -> bool:
    """Return whether a file holds exactly that text at that place, and is it alone when the hit says so."""
    data = files.get(hit.path)
    if data is None or data[hit.start : hit.end] != hit.text.encode():
        return False
    return hit.is_full_file == (hit.start == 0 and hit.end == len(data))


def _stands(word: str, files: Files) -> bool:
    return any(word.encode() in data for data in files.values())


def _is_hit(word: str, hits: Sequence[Hit]) -> bool:
    return any(word in hit.text for hit in hits)
