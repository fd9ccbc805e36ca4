"""Explains why a file is where it is and where it went, and gives the excerpts of uncertain files.

No excerpt outlives its file: for a file that changed or is gone since the plan was made, there is only a note that says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import HoldfastError, NotDirectory, NotFound
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail
from holdfast.organiser.model import Excerpt, Notes, PastMove, SkippedFile, UncertainFile, Verdict

_MAX_HOPS = 50
_DONE = "DONE"
_SCANNED_FOLDER = "."
"""The path of the scanned folder where it was skipped itself."""

_FILE_MISSING = "It was removed since the plan was made."
_CHANGED = "It changed since the plan was made; make a new plan to classify it."

FindMoves = Callable[[Sequence[str]], list[PastMove]]
"""Returns the moves in the journal from or to any of the paths."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One move of the file itself, or of a folder that it was in; `src` and `dest` are paths of the file."""

    move: PastMove
    src: str
    dest: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a file is, the moves that brought it there (newest first), the move that waits for execution, and why.

    For a file that was never moved: the newest plan lists it as uncertain, or skipped it.
    """

    path: str
    hops: tuple[Hop, ...] = ()
    pending: PastMove | None = None
    uncertain: UncertainFile | None = None
    skipped: SkippedFile | None = None
    verdict: Verdict | None = None


def trace_moves(path: str, find_moves: FindMoves, *, exists: bool) -> tuple[str, tuple[Hop, ...]]:
    """Return where a file is according to the journal, and its moves, newest first.

    The moves are traced backward from a path that exists, and forward from one that does not exist any more.
    """
    if exists:
        return path, tuple(_follow(path, find_moves, backward=True))
    hops = _follow(path, find_moves, backward=False)
    return (hops[-1].dest if hops else path), tuple(reversed(hops))


def find_in_notes(notes: Notes, path: str) -> tuple[UncertainFile | None, SkippedFile | None]:
    """Return what a plan notes of a file that it did not move: uncertain, or skipped itself or with a folder above it."""
    relatives = [above.removeprefix(f"{notes.folder.rstrip('/')}/") for above in path_and_parents(path)]
    for uncertain in notes.uncertain:
        if uncertain.relative == relatives[0]:
            return uncertain, None
    skipped = {entry.relative.rstrip("/"): entry for entry in notes.skipped}
    return None, next((skipped[above] for above in (*relatives, _SCANNED_FOLDER) if above in skipped), None)


def read_current_excerpts(
    jail: Jail, folder: str, files: Sequence[UncertainFile], excerpts: Mapping[str, Excerpt]
) -> Iterator[tuple[UncertainFile, str]]:
    """Yield uncertain files with their texts; for one that changed or is gone, only that it did. Excerpts are by hash."""
    for file in files:
        change = _change_since(jail, f"{folder.rstrip('/')}/{file.relative}", file)
        if change:
            yield replace(file, category="", confidence=0.0, reasoning=change), ""
        else:
            yield file, excerpts[file.file_hash].text if file.file_hash in excerpts else ""


def path_and_parents(path: str) -> list[str]:
    """Return a path and the paths of all directories above it."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 1, -1)]


def _follow(path: str, find_moves: FindMoves, *, backward: bool) -> list[Hop]:
    """Return the moves of a file, one after the other in time; each continues where the one before ended."""
    hops: list[Hop] = []
    last_seq: int | None = None
    while len(hops) < _MAX_HOPS:
        candidates = []
        for move in find_moves(path_and_parents(path)):
            here = move.dest if backward else move.src
            concerns = path == here or path.startswith(f"{here}/")
            follows = last_seq is None or (move.seq < last_seq if backward else move.seq > last_seq)
            if move.status == _DONE and concerns and follows:
                candidates.append(move)
        if not candidates:
            break
        move = (max if backward else min)(candidates, key=lambda candidate: candidate.seq)
        here, there = (move.dest, move.src) if backward else (move.src, move.dest)
        other_end = there + path.removeprefix(here)
        hops.append(Hop(move, other_end, path) if backward else Hop(move, path, other_end))
        path, last_seq = other_end, move.seq
    return hops


def _change_since(jail: Jail, path: str, file: UncertainFile) -> str:
    """Return what happened to a file since the scan, empty if it is unchanged."""
    try:
        with jail.place(path, follow=False) as place:
            status = place.status
    except (NotFound, NotDirectory):
        return _FILE_MISSING
    except HoldfastError as error:
        return f"It cannot be read any more: {error.message}"
    if status is None:
        return _FILE_MISSING
    version = FileVersion.from_stat(status).scan_text
    return _CHANGED if file.file_hash and version != file.version_text else ""
