"""Reads, builds, compares and erases directory trees by descriptor; links are never followed."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from holdfast.call import Call
from holdfast.changes.disk.files import (
    has_writer,
    hash_bytes,
    hash_file,
    open_file,
    read_xattrs,
    set_xattrs,
    stat_entry,
    sync_directory,
    sync_file,
    write_new,
)
from holdfast.changes.model import Item, NodeType, Op
from holdfast.errors import Conflict, InvalidArgument, PermissionDenied
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.folders.access.roots import Identity, identity_of
from holdfast.folders.access.syscalls import READ_DIRECTORY

MAX_DEPTH = 256
"""How deep a tree may be that is copied to another device, removed or restored: each level holds a descriptor open."""


ContentReader = Callable[[Item], Iterable[bytes]]
Children = dict[str, list[Item]]


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How to read a tree: which entries are hidden, and how each file and link is hashed.

    With `refuse_writers`, a file that another program has open for writing is a Conflict.
    """

    call: Call
    is_hidden: Callable[[Identity], bool]
    hash_file: Callable[[int], str] = hash_file
    hash_link: Callable[[bytes], str] = hash_bytes
    refuse_writers: bool = False

    @classmethod
    def without_hashes(cls, call: Call, is_hidden: Callable[[Identity], bool]) -> "TreeOptions":
        """Return options that read no file: for sizes, and to find out whether something in a tree is hidden."""
        return cls(call, is_hidden, hash_file=lambda _fd: "", hash_link=lambda _target: "")


def read_tree(dir_fd: int, name: str, path: str, options: TreeOptions) -> list[Item]:
    """Return an entry and everything beneath it, top first, as items that would remove it.

    Raises PermissionDenied for anything that is neither file, link nor directory, or that is hidden;
    InvalidArgument for a tree that is nested too deeply.
    """
    return list(_read_entries(dir_fd, name, path, options, MAX_DEPTH))


def _read_entries(dir_fd: int, name: str, path: str, options: TreeOptions, levels: int) -> Iterator[Item]:
    options.call.check()
    if levels == 0:
        raise InvalidArgument(f"The tree is nested deeper than {MAX_DEPTH} directories; handle it in parts.")
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if name == QUARANTINE or options.is_hidden(identity_of(status)):
        raise PermissionDenied(f"{path} belongs to Holdfast itself and stays where it is.")
    if stat.S_ISDIR(status.st_mode):
        with open_directory(dir_fd, name) as below:
            yield _item(path, NodeType.DIRECTORY, status, None, read_xattrs(below))
            for entry in sorted(os.listdir(below)):
                yield from _read_entries(below, entry, f"{path}/{entry}", options, levels - 1)
    elif stat.S_ISLNK(status.st_mode):
        yield _item(path, NodeType.LINK, status, options.hash_link(os.fsencode(os.readlink(name, dir_fd=dir_fd))))
    else:
        with open_file(dir_fd, name, path) as fd:
            if options.refuse_writers and has_writer(fd, dir_fd):
                raise Conflict(f"Another program is writing {path}.")
            status = os.fstat(fd)
            yield _item(path, NodeType.FILE, status, options.hash_file(fd), read_xattrs(fd))


@contextmanager
def open_directory(dir_fd: int, name: str) -> Iterator[int]:
    """Open a directory inside another one and close it at the end."""
    fd = os.open(name, READ_DIRECTORY, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def is_same_tree(left: Sequence[Item], right: Sequence[Item]) -> bool:
    """Return whether two trees, at whatever paths, have the same entries with the same bytes."""
    return tree_digest(left) == tree_digest(right)


def tree_digest(items: Sequence[Item]) -> str:
    """Return one hash for a tree: that of the bytes for a single file or link, of all entries for a directory."""
    top = items[0]
    if top.node is not NodeType.DIRECTORY:
        return content_hash(top) or ""
    digest = sha256()
    for line in sorted(f"{i.src_path[len(top.src_path) :]}\0{i.node}\0{content_hash(i)}" for i in items):
        digest.update(os.fsencode(line) + b"\0\0")
    return digest.hexdigest()


def content_hash(item: Item) -> str | None:
    """Return the hash of the bytes that an item removes or restores."""
    return item.before_hash or item.after_hash


def build_tree(dir_fd: int, name: str, items: Sequence[Item], contents: ContentReader, call: Call) -> None:
    """Create a tree under a free name, durably, with modes, times and (where allowed) owners.

    `contents` gives the bytes of a file or the target of a link. The caller erases the tree if this fails.
    """
    _build_entry(dir_fd, name, items[0], _group_by_directory(items), contents, call)


def repair_tree(dir_fd: int, name: str, items: Sequence[Item], contents: ContentReader, call: Call) -> None:
    """Create again what is missing of a tree that was erased in part; existing entries stay as they are."""
    _repair_entry(dir_fd, name, items[0], _group_by_directory(items), contents, call)


def _group_by_directory(items: Sequence[Item]) -> Children:
    children: Children = {}
    for item in items[1:]:
        children.setdefault(os.path.dirname(item.src_path), []).append(item)
    return children


def _repair_entry(dir_fd: int, name: str, item: Item, children: Children, contents: ContentReader, call: Call) -> None:
    status = stat_entry(dir_fd, name)
    if status is None:
        _build_entry(dir_fd, name, item, children, contents, call)
    elif item.node is NodeType.DIRECTORY and stat.S_ISDIR(status.st_mode):
        with open_directory(dir_fd, name) as below:
            for child in children.get(item.src_path, ()):
                _repair_entry(below, os.path.basename(child.src_path), child, children, contents, call)
            _set_metadata(below, item)


def _build_entry(dir_fd: int, name: str, item: Item, children: Children, contents: ContentReader, call: Call) -> None:
    call.check()
    if item.node is NodeType.LINK:
        _build_link(dir_fd, name, item, contents)
    elif item.node is NodeType.FILE:
        write_new(dir_fd, name, contents(item), mode=0o600, set_metadata=lambda fd: _set_metadata(fd, item))
    else:
        os.mkdir(name, 0o700, dir_fd=dir_fd)
        with open_directory(dir_fd, name) as below:
            for child in children.get(item.src_path, ()):
                _build_entry(below, os.path.basename(child.src_path), child, children, contents, call)
            _set_metadata(below, item)
            sync_file(below)


def _build_link(dir_fd: int, name: str, item: Item, contents: ContentReader) -> None:
    os.symlink(b"".join(contents(item)), os.fsencode(name), dir_fd=dir_fd)
    with suppress(PermissionError):
        os.chown(name, item.uid, item.gid, dir_fd=dir_fd, follow_symlinks=False)
    os.utime(name, ns=(item.mtime_ns, item.mtime_ns), dir_fd=dir_fd, follow_symlinks=False)


def _set_metadata(fd: int, item: Item) -> None:
    """Set the owner (where allowed), extended attributes, mode and time of an open file or directory."""
    with suppress(PermissionError):
        os.fchown(fd, item.uid, item.gid)
    set_xattrs(fd, item.xattrs)
    os.fchmod(fd, item.mode)
    os.utime(fd, ns=(item.mtime_ns, item.mtime_ns))


def erase_known(dir_fd: int, name: str, known: Sequence[Item]) -> None:
    """Erase the known entries of a tree under a temporary name, deepest first.

    The caller has compared the tree with `known`; what came after that is not touched. OSError when something
    cannot be erased or other entries remain; then a part may be gone, which `repair_tree` creates again.
    """
    top = known[0]
    if top.node is not NodeType.DIRECTORY:
        os.unlink(name, dir_fd=dir_fd)
        return
    start = len(top.src_path) + 1
    _erase_directory(dir_fd, name, "", {item.src_path[start:]: item.node for item in known[1:]})


def _erase_directory(dir_fd: int, name: str, prefix: str, known: dict[str, NodeType]) -> None:
    with open_directory(dir_fd, name) as below:
        for entry in os.listdir(below):
            node = known.get(f"{prefix}{entry}")
            if node is NodeType.DIRECTORY:
                _erase_directory(below, entry, f"{prefix}{entry}/", known)
            elif node is not None:
                os.unlink(entry, dir_fd=below)
    os.rmdir(name, dir_fd=dir_fd)


def erase_tree(dir_fd: int, name: str) -> None:
    """Erase a tree that only we can have made, complete or not, durably."""
    _erase_all(dir_fd, name)
    sync_directory(dir_fd)


def _erase_all(dir_fd: int, name: str) -> None:
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=dir_fd)
        return
    with open_directory(dir_fd, name) as below:
        for entry in os.listdir(below):
            _erase_all(below, entry)
    os.rmdir(name, dir_fd=dir_fd)


def _item(path: str, node: NodeType, status: os.stat_result, hash_: str | None, xattrs: str | None = None) -> Item:
    return Item(
        Op.REMOVE,
        path,
        node=node,
        before_hash=hash_,
        size_bytes=status.st_size if node is NodeType.FILE else 0,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        xattrs=xattrs,
    )
