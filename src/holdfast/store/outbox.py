"""Pure: which index jobs a mutation owes: one for each path that it touched."""

from collections.abc import Iterable, Sequence

from holdfast.store.model import IndexJob, Operation
from holdfast.store.paths import Move


def after_write(path: str) -> list[IndexJob]:
    """Return the job of a written file."""
    return [IndexJob(path, Operation.UPSERT)]


def after_delete(paths: Iterable[str]) -> list[IndexJob]:
    """Return a job for every deleted file."""
    return [IndexJob(path, Operation.DELETE) for path in paths]


def after_rename(moves: Sequence[Move]) -> list[IndexJob]:
    """Return the jobs of moved files: DELETE for each source, UPSERT for each target, UPSERT for a path that is both."""
    operations = dict.fromkeys((move.source for move in moves), Operation.DELETE)
    operations.update(dict.fromkeys((move.target for move in moves), Operation.UPSERT))
    return [IndexJob(path, operation) for path, operation in operations.items()]
