"""Which file a plan means: described when it is planned, recognised when it is moved."""

import errno
import os
import stat

from holdfast.changes.disk.files import hash_bytes, stat_entry
from holdfast.changes.model import Item, NodeType, Op
from holdfast.errors import HoldfastError, NotFound, PermissionDenied
from holdfast.folders.access.descriptors import READ_FILE, composite_hash
from holdfast.folders.access.file_version import FileVersion, HashedVersion, identity_text
from holdfast.folders.access.jail import Place

_SOMETHING_ELSE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
"""What the system says where nothing, or something of another kind, stands."""


def describe_source(place: Place, seen: HashedVersion | None = None) -> Item:
    """Return what stands at a place as the source of a move; its destination is still to be said.

    A file that is as it was `seen` is not opened. NotFound when nothing is there, PermissionDenied for anything but a
    file, a link or a directory.
    """
    return _described(place.parent_fd, place.name, place.path, seen)


def _described(dir_fd: int, name: str, path: str, seen: HashedVersion | None = None) -> Item:
    status = stat_entry(dir_fd, name)
    if status is None:
        raise NotFound(f"No such file or directory: {path}")
    node = _node(status, path)
    composite = None
    if node is NodeType.FILE and seen is not None and FileVersion.from_stat(status) == seen.version:
        composite = seen.composite_hash
    elif node is NodeType.FILE:
        status, composite = _read(dir_fd, name, path)
    elif node is NodeType.LINK:
        composite = hash_bytes(os.fsencode(os.readlink(name, dir_fd=dir_fd)))
    return Item(
        Op.MOVE,
        path,
        node=node,
        size_bytes=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        identity=identity_text(status),
        composite_hash=composite,
    )


def is_as_planned(item: Item, dir_fd: int, name: str) -> bool:
    """Return whether the source that the plan means has that name, unchanged; a directory may hold other things.

    An attempt of ours that was taken back has set the time of the last change of status, so it counts only before one;
    a file with several names has it set with each of them.
    OSError when the disk does not say what stands there.
    """
    try:
        if item.node is NodeType.FILE:
            status, composite = _read(dir_fd, name, item.src_path)
            return _is_same(item, status) and composite == item.composite_hash
        found = _described(dir_fd, name, item.src_path)
    except HoldfastError:
        return False
    except OSError as error:
        if error.errno in _SOMETHING_ELSE:
            return False
        raise
    if found.node is not item.node or not is_same_entry(found.identity, item.identity):
        return False
    marks = (found.mtime_ns, found.composite_hash) == (item.mtime_ns, item.composite_hash)
    return item.node is NodeType.DIRECTORY or marks


def was_moved_to(item: Item, place: Place) -> bool:
    """Return whether the item's own source, or our copy of it, stands at its destination as it was put there."""
    status = stat_entry(place.parent_fd, place.name)
    if status is None or not is_same_entry(identity_text(status), item.dest_identity or item.identity):
        return False
    if item.node is not NodeType.FILE:
        return item.node is NodeType.DIRECTORY or status.st_mtime_ns == item.mtime_ns
    return (status.st_size, status.st_mtime_ns) == (item.size_bytes, item.mtime_ns)


def is_same_entry(found: str | None, journalled: str | None) -> bool:
    """Return whether an entry is the one that was journalled for its place: by the inode alone.

    Device numbers are given anew when a machine starts or a disk is plugged in again.
    """
    if found is None or journalled is None:
        return False
    return found.rpartition(":")[2] == journalled.rpartition(":")[2]


def _is_same(item: Item, status: os.stat_result) -> bool:
    if status.st_size != item.size_bytes or status.st_mtime_ns != item.mtime_ns:
        return False
    if item.identity is None or item.identity.rpartition(":")[2] != str(status.st_ino):
        return False
    return status.st_ctime_ns == item.ctime_ns or item.intended_at is not None or status.st_nlink > 1


def _node(status: os.stat_result, path: str) -> NodeType:
    if stat.S_ISREG(status.st_mode):
        return NodeType.FILE
    if stat.S_ISLNK(status.st_mode):
        return NodeType.LINK
    if stat.S_ISDIR(status.st_mode):
        return NodeType.DIRECTORY
    raise PermissionDenied(f"{path} is neither a file, a link nor a directory, so it is not moved.")


def _read(dir_fd: int, name: str, path: str) -> tuple[os.stat_result, str]:
    fd = os.open(name, READ_FILE, dir_fd=dir_fd)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionDenied(f"{path} is not a regular file any more.")
        return status, composite_hash(fd, status)
    finally:
        os.close(fd)
