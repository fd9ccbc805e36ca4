"""The mutations of stored files, each under the project lock: write, restore, delete, rename.

`run_mutation` does what all have in common: idempotency check, work, quota, index jobs, stored answer. Every read comes before
the first write (see `ports.Mutation`), so each function looks, refuses or decides, then writes.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.errors import (
    AlreadyExists,
    Conflict,
    InvalidArgument,
    InvalidPath,
    IsDirectory,
    NotDirectory,
    NotEmpty,
    NotFound,
    PayloadTooLarge,
    QuotaExceeded,
)
from holdfast.store.content import WriteMode, apply_write
from holdfast.store.model import (
    AppliedRequest,
    IndexJob,
    Operation,
    PathLookup,
    ProjectState,
    Stamp,
    StoredFile,
    StoreLimits,
    next_stamp,
)
from holdfast.store.paths import (
    Move,
    StorePath,
    list_ancestors,
    list_target_directories,
    path_not_found,
    plan_moves,
    span_beneath,
    span_of_path,
)
from holdfast.store.ports import Mutation
from holdfast.store.tenant_share import Growth

MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A caller's idempotency key, and the hash of the request that it stands for."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation answers, and by how much it changed the project; no jobs means that nothing changed.

    `history_bytes` are those that became history: the ones before a write, those of deleted files.
    `size` is that of the file after a write. It is None for a request that was applied before: only its answer is kept.
    """

    answer: int
    jobs: tuple[IndexJob, ...] = ()
    files: int = 0
    bytes: int = 0
    history_bytes: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MutationContext:
    """An open mutation with its limits and its time.

    The stamp needs the project's state, so it is read after all other reads have been sent: they go out together.
    """

    mutation: Mutation
    limits: StoreLimits
    now: datetime

    @property
    def stamp(self) -> Stamp:
        """Return the version and time of this mutation."""
        return next_stamp(self.mutation.state, self.now)


Work = Callable[[MutationContext], MutationResult]


def identify_request(key: str | None, tool: str, *arguments: object) -> IdempotentRequest | None:
    """Return the identity of a request, None when the caller gave no key; InvalidArgument for an unusable key."""
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise InvalidArgument(f"idempotency_key must be 1 to {MAX_KEY_CHARS} printable characters")
    request = json.dumps([tool, *arguments]).encode()
    return IdempotentRequest(key, hashlib.sha256(request).hexdigest())


def run_mutation(context: MutationContext, request: IdempotentRequest | None, work: Work) -> MutationResult:
    """Do the work and return its result; a request that was applied before gets its first answer again.

    Conflict when the idempotency key was used for another request, QuotaExceeded when the project, or all that the tenant
    holds, would grow too large.
    """
    mutation = context.mutation
    if request is not None:
        applied = mutation.find_applied(request.key)
        if applied is not None:
            if applied.digest != request.digest:
                raise Conflict(f"idempotency_key was used for another request: {request.key[:80]!a}")
            return MutationResult(applied.answer)
    result = work(context)
    if not result.jobs:
        return result
    state, stamp = mutation.state, context.stamp
    total_bytes = state.total_bytes + result.bytes
    if result.bytes > 0 and total_bytes > context.limits.max_project_bytes:
        raise QuotaExceeded(
            f"the project would hold {total_bytes} bytes; the limit is {context.limits.max_project_bytes}. "
            f"It holds {state.total_bytes}: delete or shorten files, or use another project"
            " (the limit is settings.mcp.files.max_project_bytes)."
        )
    mutation.enqueue(result.jobs, stamp)
    mutation.settle(
        ProjectState(stamp.version, state.file_count + result.files, total_bytes, stamp.at),
        stamp,
        AppliedRequest(request.key, request.digest, result.answer) if request else None,
        Growth(result.bytes, result.history_bytes),
    )
    return result


def write_file(context: MutationContext, path: StorePath, data: bytes, mode: WriteMode, offset: int) -> MutationResult:
    """Append to a file, overwrite a range of it or replace it, and answer the bytes given; a missing file is created."""
    mutation, limits = context.mutation, context.limits
    file = _find_writable(mutation, path, with_content=mode is WriteMode.OVERWRITE)
    if file is not None and mode is WriteMode.APPEND:
        size = file.size + len(data)
        _check_size(size, limits)
        mutation.append(file, data, context.stamp, limits.versions_kept)
        return MutationResult(len(data), tuple(after_write(path)), bytes=len(data), history_bytes=file.size, size=size)
    content = apply_write(file.content if file else None, data, mode, offset)
    return _save_content(context, path, file, content, answer=len(data))


def replace_text(context: MutationContext, path: StorePath, data: bytes, expected_hash: str | None) -> MutationResult:
    """Replace a file that has the expected SHA-256, or create one where none is expected; Conflict for another file.

    The same bytes again change nothing.
    """
    file = _find_writable(context.mutation, path, with_content=True)
    present = None if file is None else hashlib.sha256(file.content or b"").hexdigest()
    if present != expected_hash:
        raise _not_expected(path, present)
    if file is not None and file.content == data:
        return MutationResult(len(data), size=file.size)
    return _save_content(context, path, file, data, answer=len(data))


def _not_expected(path: str, present: str | None) -> Conflict:
    if present is None:
        return Conflict(f"{path} is not there any more. Nothing was written.")
    return Conflict(
        f"{path} is not the file that expected_hash describes. Nothing was written.", present_hash=f"sha256:{present}"
    )


def restore_version(context: MutationContext, path: StorePath, version: int, since: datetime) -> MutationResult:
    """Write the bytes of an earlier version and answer how many; NotFound when it is not kept."""
    content = context.mutation.load_version(path, stored_version(version), since)
    if content is None:
        raise version_not_found(path, version)
    file = _find_writable(context.mutation, path, with_content=False)
    return _save_content(context, path, file, content, answer=len(content))


def delete_path(context: MutationContext, path: StorePath, *, recursive: bool) -> MutationResult:
    """Delete a file, or with `recursive` a directory, and answer how many files; NotFound or NotEmpty."""
    mutation, span = context.mutation, span_beneath(path)
    target = mutation.look_up(path, [], span, with_content=False)
    if target.file is not None:
        span, sizes = span_of_path(path), {path: target.file.size}
    elif not target.is_directory:
        raise path_not_found(path)
    elif not recursive:
        raise NotEmpty(f"the directory is not empty; set recursive to delete all of it: {path}")
    else:
        sizes = {StorePath(file.path): file.size for file in mutation.list_files_in(span)}
    mutation.delete(span, context.stamp)
    total = sum(sizes.values())
    return MutationResult(len(sizes), tuple(after_delete(sizes)), files=-len(sizes), bytes=-total, history_bytes=total)


def delete_counted(context: MutationContext, path: StorePath, expected_files: int) -> MutationResult:
    """Delete a file or a directory with all its files; Conflict when they are not as many as were counted."""
    result = delete_path(context, path, recursive=True)
    if result.answer != expected_files:
        raise Conflict(f"{path} has {result.answer} files, not {expected_files}. Nothing was deleted.")
    return result


def restore_deleted(context: MutationContext, path: StorePath, version: int, since: datetime) -> MutationResult:
    """Bring back a deleted file as it was in a version; AlreadyExists when a file is there again."""
    if _find_writable(context.mutation, path, with_content=False) is not None:
        raise _already_exists(path)
    return restore_version(context, path, version, since)


def rename_path(context: MutationContext, source: StorePath, target: StorePath, *, overwrite: bool) -> MutationResult:
    """Give a file or a directory another path and answer how many files moved; nothing moves when anything is in the way."""
    mutation = context.mutation
    here = _look_around(mutation, source)
    if here.file is None and not here.is_directory:
        raise path_not_found(source)
    if source == target:
        return MutationResult(0)
    if target.startswith(source + "/"):
        if here.file is not None:
            raise NotDirectory(f"a file cannot be moved beneath itself: {target}")
        raise InvalidPath(f"a directory cannot move into itself: {source} to {target}")
    there = _look_around(mutation, target)
    if there.file_above is not None:
        raise _not_directory(there.file_above)
    if (there.file is not None or there.is_directory) and not overwrite:
        raise _already_exists(target)
    if here.file is not None:
        return _rename_file(context, source, target, there)
    return _rename_directory(context, source, target, there)


def _rename_file(context: MutationContext, source: StorePath, target: StorePath, there: PathLookup) -> MutationResult:
    if there.is_directory:
        raise _already_exists(target)
    moves, replaced = [Move(source, target)], there.file
    if replaced is not None:
        context.mutation.delete(span_of_path(target), context.stamp)
    context.mutation.move(moves, context.stamp)
    jobs = tuple(after_rename(moves))
    if replaced is None:
        return MutationResult(1, jobs)
    return MutationResult(1, jobs, files=-1, bytes=-replaced.size, history_bytes=replaced.size)


def _rename_directory(
    context: MutationContext, source: StorePath, target: StorePath, there: PathLookup
) -> MutationResult:
    mutation = context.mutation
    if there.file is not None:
        raise _already_exists(target)
    moves = plan_moves(source, target, [file.path for file in mutation.list_files_in(span_beneath(source))])
    if there.is_directory:  # a merge: no target may be taken, nor be needed as a directory where a file is
        targets = [move.target for move in moves]
        for path in mutation.find_files_among(targets):
            raise _already_exists(path)
        for path in mutation.find_files_among(list_target_directories(moves)):
            raise _not_directory(path)
        for path in mutation.find_directories_among(targets):
            raise _already_exists(path)
    mutation.move(moves, context.stamp)
    return MutationResult(len(moves), tuple(after_rename(moves)))


def _find_writable(mutation: Mutation, path: StorePath, *, with_content: bool) -> StoredFile | None:
    """Return the file at a path, None when one can be made there; IsDirectory or NotDirectory when none can be."""
    target = mutation.look_up(path, list_ancestors(path), span_beneath(path), with_content=with_content)
    if target.file_above is not None:
        raise _not_directory(target.file_above)
    if target.is_directory:
        raise IsDirectory(f"path is a directory: {path}")
    return target.file


def _save_content(
    context: MutationContext, path: StorePath, file: StoredFile | None, content: bytes, answer: int
) -> MutationResult:
    """Create a file with a content, or replace its content; PayloadTooLarge when that is more than a file may hold."""
    _check_size(len(content), context.limits)
    jobs = tuple(after_write(path))
    if file is None:
        context.mutation.create(path, content, context.stamp)
        return MutationResult(answer, jobs, files=1, bytes=len(content), size=len(content))
    context.mutation.replace(file, content, context.stamp, context.limits.versions_kept)
    return MutationResult(answer, jobs, bytes=len(content) - file.size, history_bytes=file.size, size=len(content))


def _look_around(mutation: Mutation, path: StorePath) -> PathLookup:
    return mutation.look_up(path, list_ancestors(path), span_beneath(path), with_content=False)


def _check_size(size: int, limits: StoreLimits) -> None:
    if size > limits.max_file_bytes:
        raise PayloadTooLarge(f"the file would have {size} bytes; the limit is {limits.max_file_bytes}")


def version_not_found(path: str, version: int) -> NotFound:
    """Return the error for a version that is not kept."""
    return NotFound(f"there is no version {version} of {path}")


def stored_version(version: int) -> int:
    """Return a version that a database can look up: -1, which no file has, for one that is out of range."""
    return version if 0 <= version < 2**63 else -1


def _already_exists(path: str) -> AlreadyExists:
    return AlreadyExists(f"there is already something at the target: {path}")


def _not_directory(path: str) -> NotDirectory:
    return NotDirectory(f"a parent of the path is a file: {path}")


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
