"""Bring back an earlier version of a path, as a new write."""

from datetime import datetime
from functools import partial

from holdfast.store.history import no_version, stored_number
from holdfast.store.model import StoreLimits
from holdfast.store.mutation import Desk, MutationContext, MutationResult, mutate, once
from holdfast.store.paths import StorePath, file_path, project_name
from holdfast.store.write import put, vacant


def restore(desk: Desk, tenant: str, project: str, path: str, version: int, idempotency_key: str | None = None) -> int:
    """Write the bytes of a version and return how many; NotFound when it is not kept. A deleted path comes back."""
    project, checked = project_name(project), file_path(path)
    request = once(idempotency_key, "restore", checked, version)
    since = desk.days_ago(desk.limits.version_days)
    work = partial(_restored, checked, version, since, desk.limits)
    return mutate(desk, tenant, project, request, work)


def _restored(
    path: StorePath, version: int, since: datetime, limits: StoreLimits, turn: MutationContext
) -> MutationResult:
    content = turn.mutation.version_content(path, stored_number(version), since)
    if content is None:
        raise no_version(path, version)
    file = vacant(turn.mutation, path, with_content=False)
    return put(turn, limits, path, file, content, len(content))
