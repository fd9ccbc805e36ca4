"""The entries of a directory, so many levels deep, in the order of their path's bytes."""

from holdfast.errors import InvalidOffset
from holdfast.store.model import DirectoryEntry, DirectoryListing, FileSummary, PathType, StoreLimits
from holdfast.store.mutation import Desk
from holdfast.store.paths import (
    MAX_PATH_BYTES,
    ROOT,
    StorePath,
    beneath,
    depth_of,
    head_of,
    late_directories,
    project_name,
    store_path,
)
from holdfast.store.ports import StoreSnapshot
from holdfast.store.read import not_found


def listing(desk: Desk, tenant: str, project: str, path: str = "", depth: int = 1, limit: int = 0) -> DirectoryListing:
    """Return the first entries; depth 0 is the path itself. NotFound for what is no directory."""
    project, checked = project_name(project), store_path(path)
    if depth < 0:
        raise InvalidOffset(f"depth must be 0 or more: {max(depth, -(10**18))}")
    most = entry_limit(limit, desk.limits)
    with desk.database.reading(tenant) as reading:
        if depth == 0:
            return _itself(reading, project, checked)
        return _levels(reading, project, checked, min(depth, MAX_PATH_BYTES), most)


def entry_limit(limit: int, limits: StoreLimits) -> int:
    """Return how many entries are shown: the default for 0 or less, never more than the most."""
    return min(limit if limit > 0 else limits.list_limit_default, limits.list_limit_max)


def _itself(reading: StoreSnapshot, project: str, path: StorePath) -> DirectoryListing:
    found = reading.stat(project, path, beneath(path))
    if found.type is None:
        if path == ROOT:
            return DirectoryListing((), has_more=False)
        raise not_found(path)
    if found.type is PathType.DIRECTORY:
        return DirectoryListing((DirectoryEntry(path, found.type),), has_more=False)
    return DirectoryListing(
        (DirectoryEntry(path, found.type, found.size, found.created_at, found.updated_at),), has_more=False
    )


def _levels(reading: StoreSnapshot, project: str, path: StorePath, depth: int, most: int) -> DirectoryListing:
    components = depth_of(path) + depth
    lines = reading.heads(project, beneath(path), components, most + 1)
    if not lines:
        if path == ROOT:
            return DirectoryListing((), has_more=False)
        raise not_found(path)
    entries = entries_of(path, components, lines)
    late = late_directories(path, head_of(lines[-1].path, components)) if len(lines) > most else []
    if late:
        found = reading.directories_among(project, late)
        entries.update((name, DirectoryEntry(name, PathType.DIRECTORY)) for name in found)
    ordered = [entries[name] for name in sorted(entries)]
    return DirectoryListing(tuple(ordered[:most]), len(ordered) > most)


def entries_of(path: str, components: int, lines: list[FileSummary]) -> dict[str, DirectoryEntry]:
    """Return by path the files and the directories that a row of files stands for."""
    entries: dict[str, DirectoryEntry] = {}
    for line in lines:
        head = head_of(line.path, components)
        above = head.rpartition("/")[0]
        while len(above) > len(path) and above not in entries:
            entries[above] = DirectoryEntry(above, PathType.DIRECTORY)
            above = above.rpartition("/")[0]
        if head == line.path:
            entries[head] = DirectoryEntry(head, PathType.FILE, line.size, line.created_at, line.updated_at)
        else:
            entries[head] = DirectoryEntry(head, PathType.DIRECTORY)
    return entries
