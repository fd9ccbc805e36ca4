"""Pure: which index jobs a mutation owes: one for each path that it touched, and the last word on a path counts."""

from collections.abc import Iterable, Sequence

from holdfast.store.model import Job, Operation
from holdfast.store.paths import Move


def after_write(path: str) -> list[Job]:
    """Return the job of a written file."""
    return [Job(path, Operation.UPSERT)]


def after_delete(paths: Iterable[str]) -> list[Job]:
    """Return a job for every deleted file."""
    return [Job(path, Operation.DELETE) for path in paths]


def after_rename(moves: Sequence[Move]) -> list[Job]:
    """Return the jobs of moved files: each source goes, each target comes, and a path that is both comes."""
    owed = dict.fromkeys((move.source for move in moves), Operation.DELETE)
    owed.update(dict.fromkeys((move.target for move in moves), Operation.UPSERT))
    return [Job(path, operation) for path, operation in owed.items()]
