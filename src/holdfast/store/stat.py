"""What is at a path."""

from holdfast.store.model import Stat
from holdfast.store.mutation import Desk
from holdfast.store.paths import beneath, project_name, store_path


def stat(desk: Desk, tenant: str, project: str, path: str) -> Stat:
    """Return type, size and times; a path where nothing is does not exist, which is no error."""
    project, checked = project_name(project), store_path(path)
    with desk.database.reading(tenant) as reading:
        return reading.stat(project, checked, beneath(checked))
