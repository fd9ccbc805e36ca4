"""The projects of a tenant."""

from holdfast.store.model import ProjectSummary
from holdfast.store.mutation import Desk


def projects(desk: Desk, tenant: str) -> list[ProjectSummary]:
    """Return the caller's own projects that hold files, by name."""
    with desk.database.reading(tenant) as reading:
        return reading.projects()
