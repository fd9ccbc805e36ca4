"""Answers why a file lies where it lies, and where a file went."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.organiser.model import Notes, PastMove, SkippedFile, UncertainFile, Verdict

_MAX_HOPS = 50
_DONE = "DONE"
_ITSELF = "."
"""The scanned folder, where it was left alone itself."""

PastOf = Callable[[Sequence[str]], list[PastMove]]


@dataclass(frozen=True, slots=True)
class Hop:
    """One move of the file itself, or of a folder that it was in."""

    past: PastMove
    src: str
    dest: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a file is, the moves that brought it there (newest first), the plan that waits to move it, and why.

    Of one that nobody moved: what the newest plan doubts of it, or that the plan left it alone.
    """

    path: str
    moves: tuple[Hop, ...] = ()
    waiting: PastMove | None = None
    doubt: UncertainFile | None = None
    skip: SkippedFile | None = None
    verdict: Verdict | None = None


def trail_of(path: str, past_of: PastOf, *, is_there: bool) -> tuple[str, tuple[Hop, ...]]:
    """Return where a file is by the journal, and its moves, newest first.

    From a path where something is the trail leads back; from one where nothing is any more it leads onward.
    """
    if is_there:
        return path, tuple(_followed(path, past_of, back=True))
    onward = list(_followed(path, past_of, back=False))
    return (onward[-1].dest if onward else path), tuple(reversed(onward))


def left_by(notes: Notes, path: str) -> tuple[UncertainFile | None, SkippedFile | None]:
    """Return what a plan says of a file that it did not move: its doubt, or that it, or a folder above it, was left alone."""
    here = [one.removeprefix(f"{notes.folder.rstrip('/')}/") for one in ancestors(path)]
    doubt = next((one for one in notes.doubts if one.relative == here[0]), None)
    left = {skip.relative.rstrip("/"): skip for skip in notes.skips} if doubt is None else {}
    return doubt, next((left[one] for one in (*here, _ITSELF) if one in left), None)


def _followed(path: str, past_of: PastOf, *, back: bool) -> list[Hop]:
    hops: list[Hop] = []
    bound: int | None = None
    while len(hops) < _MAX_HOPS:
        found = [
            past for past in past_of(ancestors(path)) if past.status == _DONE and _is_next(past, path, bound, back)
        ]
        if not found:
            break
        past = max(found, key=lambda one: one.seq) if back else min(found, key=lambda one: one.seq)
        here, there = (past.dest, past.src) if back else (past.src, past.dest)
        other = there + path.removeprefix(here)
        hops.append(Hop(past, other, path) if back else Hop(past, path, other))
        path, bound = other, past.seq
    return hops


def _is_next(past: PastMove, path: str, bound: int | None, back: bool) -> bool:
    here = past.dest if back else past.src
    fits = path == here or path.startswith(f"{here}/")
    return fits and (bound is None or (past.seq < bound if back else past.seq > bound))


def ancestors(path: str) -> list[str]:
    """Return a path and all those above it."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 1, -1)]
