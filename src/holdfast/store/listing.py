"""Lists a directory of the store, a number of levels deep, in the order of the paths' bytes."""

from holdfast.store.model import DirectoryEntry, DirectoryListing, FileSummary, PathType, StoreLimits
from holdfast.store.paths import (
    MAX_PATH_BYTES,
    ROOT,
    StorePath,
    count_components,
    first_components,
    path_not_found,
    span_beneath,
    uncovered_directories,
)
from holdfast.store.ports import StoreSnapshot


def list_path(snapshot: StoreSnapshot, project: str, path: StorePath) -> DirectoryListing:
    """Return one entry, for the path itself; NotFound when nothing is there, except for an empty root."""
    stat = snapshot.stat(project, path, span_beneath(path))
    if stat.type is None:
        return _empty_root(path)
    if stat.type is PathType.DIRECTORY:
        return DirectoryListing((DirectoryEntry(path, stat.type),), has_more=False)
    entry = DirectoryEntry(path, stat.type, stat.size, stat.created_at, stat.updated_at)
    return DirectoryListing((entry,), has_more=False)


def list_levels(
    snapshot: StoreSnapshot, project: str, path: StorePath, depth: int, max_entries: int
) -> DirectoryListing:
    """Return the first entries of a directory, that many levels deep; NotFound for what is no directory."""
    components = count_components(path) + min(depth, MAX_PATH_BYTES)
    files = snapshot.list_heads(project, span_beneath(path), components, max_entries + 1)
    if not files:
        return _empty_root(path)
    entries = entries_from_files(path, components, files)
    if len(files) > max_entries:
        last = first_components(files[-1].path, components)
        uncovered = uncovered_directories(path, last)
        for directory in snapshot.find_directories_among(project, uncovered) if uncovered else ():
            entries[directory] = DirectoryEntry(directory, PathType.DIRECTORY)
    ordered = [entries[name] for name in sorted(entries)]
    return DirectoryListing(tuple(ordered[:max_entries]), len(ordered) > max_entries)


def effective_limit(limit: int, limits: StoreLimits) -> int:
    """Return how many entries are listed: the default for 0 or less, never more than the maximum."""
    return min(limit if limit > 0 else limits.list_limit_default, limits.list_limit_max)


def entries_from_files(path: str, components: int, files: list[FileSummary]) -> dict[str, DirectoryEntry]:
    """Return by path the entries that files stand for: themselves, and every directory between them and `path`."""
    entries: dict[str, DirectoryEntry] = {}
    for file in files:
        head = first_components(file.path, components)
        parent = head.rpartition("/")[0]
        while len(parent) > len(path) and parent not in entries:
            entries[parent] = DirectoryEntry(parent, PathType.DIRECTORY)
            parent = parent.rpartition("/")[0]
        if head == file.path:
            entries[head] = DirectoryEntry(head, PathType.FILE, file.size, file.created_at, file.updated_at)
        else:
            entries[head] = DirectoryEntry(head, PathType.DIRECTORY)
    return entries


def _empty_root(path: StorePath) -> DirectoryListing:
    if path != ROOT:
        raise path_not_found(path)
    return DirectoryListing((), has_more=False)
