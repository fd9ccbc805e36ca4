"""The text of a file, or of a byte range of it."""

from holdfast.errors import IsDirectory, NotFound
from holdfast.store.content import check_range, sliced, window_of
from holdfast.store.model import ContentSlice, Stat
from holdfast.store.mutation import Desk
from holdfast.store.paths import beneath, file_path, project_name


def read(desk: Desk, tenant: str, project: str, path: str, offset: int = 0, length: int = -1) -> ContentSlice:
    """Return a range of a file; a range past the end is empty. InvalidOffset, IsDirectory or NotFound."""
    project, checked = project_name(project), file_path(path)
    check_range(offset, length)
    start, count = window_of(offset, length)
    with desk.database.reading(tenant) as reading:
        found = reading.window(project, checked, beneath(checked), start, count)
    if isinstance(found, Stat):
        raise IsDirectory(f"path is a directory: {checked}") if found.exists else not_found(checked)
    return sliced(found, offset, length)


def not_found(path: str) -> NotFound:
    """Return the one error for a path where nothing is."""
    return NotFound(f"there is no such path: {path}")
