"""Recognises the source of a move: describes it when a plan is made, compares it when the move is executed."""

import errno
import os
import stat

from holdfast.changes.disk.files import hash_bytes, stat_entry
from holdfast.changes.model import Item, NodeType, Op
from holdfast.errors import HoldfastError, NotFound, PermissionDenied
from holdfast.folders.access.file_version import FileVersion, HashedVersion, identity_text
from holdfast.folders.access.jail import Place
from holdfast.folders.access.syscalls import READ_FILE, composite_hash

_NOT_THE_SOURCE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
"""Errors of the system for an entry that is missing or of another type."""


def describe_source(place: Place, known_version: HashedVersion | None = None) -> Item:
    """Return the entry at a place as the source of a move without a destination.

    A file that still has the `known_version` is not opened. NotFound when nothing is there, PermissionDenied for anything but a
    file, a link or a directory.
    """
    return _describe(place.parent_fd, place.name, place.path, known_version)


def _describe(dir_fd: int, name: str, path: str, known_version: HashedVersion | None = None) -> Item:
    status = stat_entry(dir_fd, name)
    if status is None:
        raise NotFound(f"No such file or directory: {path}")
    node = _node_type(status, path)
    composite = None
    if node is NodeType.FILE and known_version is not None and FileVersion.from_stat(status) == known_version.version:
        composite = known_version.composite_hash
    elif node is NodeType.FILE:
        status, composite = _read_file(dir_fd, name, path)
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
    """Return whether the planned source has that name, unchanged; a directory may have other entries by now.

    A move of ours that was reverted has set the ctime, so the ctime counts only before the first attempt; a file with
    several hard links gets a new one with each of them. OSError when the entry cannot be read.
    """
    try:
        if item.node is NodeType.FILE:
            status, composite = _read_file(dir_fd, name, item.src_path)
            return _has_same_status(item, status) and composite == item.composite_hash
        present = _describe(dir_fd, name, item.src_path)
    except HoldfastError:
        return False
    except OSError as error:
        if error.errno in _NOT_THE_SOURCE:
            return False
        raise
    if present.node is not item.node or not is_same_entry(present.identity, item.identity):
        return False
    is_unchanged = (present.mtime_ns, present.composite_hash) == (item.mtime_ns, item.composite_hash)
    return item.node is NodeType.DIRECTORY or is_unchanged


def has_planned_status(item: Item, status: os.stat_result) -> bool:
    """Return whether a planned source looks unchanged by its status alone; a directory may have other entries by now."""
    if item.node is NodeType.FILE:
        return stat.S_ISREG(status.st_mode) and _has_same_status(item, status)
    is_of_node = stat.S_ISLNK(status.st_mode) if item.node is NodeType.LINK else stat.S_ISDIR(status.st_mode)
    return is_of_node and is_same_entry(identity_text(status), item.identity)


def was_moved_to(item: Item, place: Place) -> bool:
    """Return whether the source of an item, or our copy of it, is at its destination, unchanged since the move."""
    status = stat_entry(place.parent_fd, place.name)
    if status is None or not is_same_entry(identity_text(status), item.dest_identity or item.identity):
        return False
    if item.node is not NodeType.FILE:
        return item.node is NodeType.DIRECTORY or status.st_mtime_ns == item.mtime_ns
    return (status.st_size, status.st_mtime_ns) == (item.size_bytes, item.mtime_ns)


def is_same_entry(present: str | None, journalled: str | None) -> bool:
    """Return whether two identities name the same entry, by the inode alone.

    Device numbers change when a machine starts or a disk is plugged in again.
    """
    if present is None or journalled is None:
        return False
    return present.rpartition(":")[2] == journalled.rpartition(":")[2]


def _has_same_status(item: Item, status: os.stat_result) -> bool:
    if status.st_size != item.size_bytes or status.st_mtime_ns != item.mtime_ns:
        return False
    if item.identity is None or item.identity.rpartition(":")[2] != str(status.st_ino):
        return False
    return status.st_ctime_ns == item.ctime_ns or item.intended_at is not None or status.st_nlink > 1


def _node_type(status: os.stat_result, path: str) -> NodeType:
    if stat.S_ISREG(status.st_mode):
        return NodeType.FILE
    if stat.S_ISLNK(status.st_mode):
        return NodeType.LINK
    if stat.S_ISDIR(status.st_mode):
        return NodeType.DIRECTORY
    raise PermissionDenied(f"{path} is neither a file, a link nor a directory, so it is not moved.")


def _read_file(dir_fd: int, name: str, path: str) -> tuple[os.stat_result, str]:
    fd = os.open(name, READ_FILE, dir_fd=dir_fd)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionDenied(f"{path} is not a regular file any more.")
        return status, composite_hash(fd, status)
    finally:
        os.close(fd)
