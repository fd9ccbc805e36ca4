"""What a path held before, until it is too old, too many versions back, or purged."""

from holdfast.errors import NotFound
from holdfast.store.model import Version
from holdfast.store.mutation import Desk
from holdfast.store.paths import file_path, project_name
from holdfast.store.read import not_found


def history(desk: Desk, tenant: str, project: str, path: str) -> list[Version]:
    """Return the kept versions of a path, newest first; deleted paths have theirs. NotFound for an unknown path."""
    project, checked = project_name(project), file_path(path)
    since = desk.days_ago(desk.limits.version_days)
    with desk.database.reading(tenant) as reading:
        found = reading.history(project, checked, since, desk.limits.versions_kept)
        if not found and not reading.knows(project, checked):
            raise not_found(checked)
        return found


def version_text(desk: Desk, tenant: str, project: str, path: str, version: int) -> str:
    """Return the text of one version, for a person who compares; NotFound when it is not kept."""
    project, checked = project_name(project), file_path(path)
    since = desk.days_ago(desk.limits.version_days)
    with desk.database.reading(tenant) as reading:
        content = reading.version_content(project, checked, stored_number(version), since)
    if content is None:
        raise no_version(checked, version)
    return content.decode()


def no_version(path: str, version: int) -> NotFound:
    """Return the error for a version that is not kept."""
    return NotFound(f"there is no version {stored_number(version)} of {path}")


def stored_number(version: int) -> int:
    """Return a number that a database can look up; one that is out of range is no version."""
    return version if 0 <= version < 2**63 else -1
