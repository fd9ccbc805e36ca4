"""Delete a file, or a directory with all that is beneath it; both can be restored until the purge."""

from functools import partial

from holdfast.errors import InvalidPath, NotEmpty, PermissionDenied
from holdfast.store.mutation import Desk, MutationContext, MutationResult, mutate, once
from holdfast.store.outbox import after_delete
from holdfast.store.paths import ROOT, Span, StorePath, beneath, exactly, project_name, store_path
from holdfast.store.read import not_found


def delete(
    desk: Desk, tenant: str, project: str, path: str, *, recursive: bool = False, idempotency_key: str | None = None
) -> int:
    """Delete and return the number of files; NotFound, NotEmpty for a directory without `recursive`."""
    project, checked = project_name(project), store_path(path)
    if checked == ROOT and not recursive:
        raise InvalidPath("path must name a file or directory; the root of a project can only be deleted recursively")
    if checked == ROOT and not desk.limits.allow_root_wipe:
        raise PermissionDenied("deleting a whole project is switched off (settings.mcp.files.allow_root_wipe)")
    request = once(idempotency_key, "delete", checked, recursive)
    work = partial(_deleted, checked, recursive)
    return mutate(desk, tenant, project, request, work)


def _deleted(path: StorePath, recursive: bool, turn: MutationContext) -> MutationResult:
    span = beneath(path)
    place = turn.mutation.place(path, [], span, with_content=False)
    if place.file is not None:
        return _emptied(turn, exactly(path), {path: place.file.size})
    if not place.is_directory:
        raise not_found(path)
    if not recursive:
        raise NotEmpty(f"the directory is not empty; set recursive to delete all of it: {path}")
    return _emptied(turn, span, {line.path: line.size for line in turn.mutation.files_in(span)})


def _emptied(turn: MutationContext, span: Span, sizes: dict[str, int]) -> MutationResult:
    turn.mutation.delete(span, turn.stamp)
    return MutationResult(len(sizes), tuple(after_delete(sizes)), files=-len(sizes), bytes=-sum(sizes.values()))
