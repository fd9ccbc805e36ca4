"""Put text into a file: append, overwrite in place, or replace."""

from functools import partial

from holdfast.errors import IsDirectory, NotDirectory, PayloadTooLarge
from holdfast.store.content import Mode, check_offset, combined, encoded, mode_of
from holdfast.store.model import StoredFile, StoreLimits
from holdfast.store.mutation import Desk, MutationContext, MutationResult, mutate, once
from holdfast.store.outbox import after_write
from holdfast.store.paths import StorePath, ancestors, beneath, file_path, project_name
from holdfast.store.ports import Mutation


def write(
    desk: Desk,
    tenant: str,
    project: str,
    path: str,
    content: str,
    content_encoding: str = "utf-8",
    offset: int = 0,
    mode: str = "APPEND",
    idempotency_key: str | None = None,
) -> int:
    """Write and return the bytes of the content; the bytes before are kept as a version."""
    project, checked, how = project_name(project), file_path(path), mode_of(mode)
    check_offset(how, offset)
    data = encoded(content, content_encoding)
    if len(data) > desk.limits.max_payload_bytes:
        raise PayloadTooLarge(f"content has {len(data)} bytes, over {desk.limits.max_payload_bytes}")
    request = once(idempotency_key, "write", checked, content, offset, how)
    work = partial(_written, checked, data, how, offset, desk.limits)
    return mutate(desk, tenant, project, request, work)


def _written(
    path: StorePath, data: bytes, mode: Mode, offset: int, limits: StoreLimits, turn: MutationContext
) -> MutationResult:
    file = vacant(turn.mutation, path, with_content=mode is Mode.OVERWRITE)
    if file is not None and mode is Mode.APPEND:
        return _appended(turn, limits, file, data)
    return put(turn, limits, path, file, combined(file.content if file else None, data, mode, offset), len(data))


def _appended(turn: MutationContext, limits: StoreLimits, file: StoredFile, data: bytes) -> MutationResult:
    _check_size(file.size + len(data), limits)
    turn.mutation.append(file, data, turn.stamp, limits.versions_kept)
    return MutationResult(len(data), tuple(after_write(file.path)), bytes=len(data))


def vacant(mutation: Mutation, path: StorePath, *, with_content: bool) -> StoredFile | None:
    """Return the file at a path, None when one can be made there; IsDirectory or NotDirectory when none can be."""
    place = mutation.place(path, ancestors(path), beneath(path), with_content=with_content)
    if place.file_above is not None:
        raise NotDirectory(f"a file stands where a directory is needed: {place.file_above}")
    if place.is_directory:
        raise IsDirectory(f"path is a directory: {path}")
    return place.file


def put(
    turn: MutationContext, limits: StoreLimits, path: str, file: StoredFile | None, content: bytes, answer: int
) -> MutationResult:
    """Make a file hold a content; PayloadTooLarge when that is more than a file may hold."""
    _check_size(len(content), limits)
    jobs = tuple(after_write(path))
    if file is None:
        turn.mutation.create(path, content, turn.stamp)
        return MutationResult(answer, jobs, files=1, bytes=len(content))
    turn.mutation.replace(file, content, turn.stamp, limits.versions_kept)
    return MutationResult(answer, jobs, bytes=len(content) - file.size)


def _check_size(size: int, limits: StoreLimits) -> None:
    if size > limits.max_file_bytes:
        raise PayloadTooLarge(f"the file would have {size} bytes, over {limits.max_file_bytes}")
