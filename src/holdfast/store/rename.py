"""Give a file or a whole directory another path; versions go along, and nothing moves when anything is in the way."""

from functools import partial

from holdfast.errors import AlreadyExists, InvalidPath, NotDirectory
from holdfast.store.model import PathLookup
from holdfast.store.mutation import Desk, MutationContext, MutationResult, mutate, once
from holdfast.store.outbox import after_rename
from holdfast.store.paths import (
    Move,
    StorePath,
    ancestors,
    beneath,
    directories_above,
    exactly,
    file_path,
    moves_of,
    project_name,
)
from holdfast.store.ports import Mutation
from holdfast.store.read import not_found


def rename(
    desk: Desk,
    tenant: str,
    project: str,
    from_path: str,
    to_path: str,
    *,
    overwrite: bool = False,
    idempotency_key: str | None = None,
) -> int:
    """Move and return the number of files; a directory merges into an existing one only with `overwrite`."""
    project, source, target = project_name(project), file_path(from_path), file_path(to_path)
    request = once(idempotency_key, "rename", source, target, overwrite)
    work = partial(_renamed, source, target, overwrite)
    return mutate(desk, tenant, project, request, work)


def _renamed(source: StorePath, target: StorePath, overwrite: bool, turn: MutationContext) -> MutationResult:
    here = _place(turn.mutation, source)
    if here.file is None and not here.is_directory:
        raise not_found(source)
    if source == target:
        return MutationResult(0)
    if target.startswith(source + "/"):
        if here.file is not None:
            raise NotDirectory(f"a file cannot hold its own target: {target}")
        raise InvalidPath(f"a directory cannot move into itself: {source} to {target}")
    there = _place(turn.mutation, target)
    if there.file_above is not None:
        raise _not_directory(there.file_above)
    if (there.file is not None or there.is_directory) and not overwrite:
        raise _exists(target)
    if here.file is not None:
        return _file_moved(turn, source, target, there)
    return _directory_moved(turn, source, target, there)


def _file_moved(turn: MutationContext, source: StorePath, target: StorePath, there: PathLookup) -> MutationResult:
    if there.is_directory:
        raise _exists(target)
    moves, replaced = [Move(source, target)], there.file
    if replaced is not None:
        turn.mutation.delete(exactly(target), turn.stamp)
    turn.mutation.move(moves, turn.stamp)
    jobs = tuple(after_rename(moves))
    return MutationResult(1, jobs, files=-1 if replaced else 0, bytes=-replaced.size if replaced else 0)


def _directory_moved(turn: MutationContext, source: StorePath, target: StorePath, there: PathLookup) -> MutationResult:
    if there.file is not None:
        raise _exists(target)
    moves = moves_of(source, target, [line.path for line in turn.mutation.files_in(beneath(source))])
    if there.is_directory:
        _check_merge(turn.mutation, moves)
    turn.mutation.move(moves, turn.stamp)
    return MutationResult(len(moves), tuple(after_rename(moves)))


def _check_merge(mutation: Mutation, moves: list[Move]) -> None:
    targets = [move.target for move in moves]
    for taken in mutation.files_among(targets):
        raise _exists(taken)
    for taken in mutation.files_among(directories_above(moves)):
        raise _not_directory(taken)
    for taken in mutation.directories_among(targets):
        raise _exists(taken)


def _place(mutation: Mutation, path: StorePath) -> PathLookup:
    return mutation.place(path, ancestors(path), beneath(path), with_content=False)


def _exists(path: str) -> AlreadyExists:
    return AlreadyExists(f"there is already something at the target: {path}")


def _not_directory(path: str) -> NotDirectory:
    return NotDirectory(f"a file stands where a directory is needed: {path}")
