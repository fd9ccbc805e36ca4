"""Trees by descriptor: read one, build it again, compare two, take one away; links are never followed."""

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
    put_xattrs,
    read_xattrs,
    stat_entry,
    sync_directory,
    sync_file,
    write_new,
)
from holdfast.changes.model import Item, NodeType, Op
from holdfast.errors import Conflict, InvalidArgument, PermissionDenied
from holdfast.folders.access.descriptors import READ_DIRECTORY
from holdfast.folders.access.jail import QUARANTINE
from holdfast.folders.access.roots import Identity, identity_of

MAX_DEPTH = 256
"""Levels of a tree that are moved across devices, removed or brought back; each holds a descriptor while it is open."""


Contents = Callable[[Item], Iterable[bytes]]
Children = dict[str, list[Item]]


@dataclass(frozen=True, slots=True)
class TreeReader:
    """How to look at a tree: which entries are not ours to touch, and what is done with each file and link.

    `of_file` and `of_link` return the hash under which the bytes are known.
    """

    call: Call
    is_hidden: Callable[[Identity], bool]
    of_file: Callable[[int], str] = hash_file
    of_link: Callable[[bytes], str] = hash_bytes
    refuse_writers: bool = False


def read_tree(dir_fd: int, name: str, path: str, how: TreeReader) -> list[Item]:
    """Return an entry and all beneath it, top first, as items that would remove it.

    Raises PermissionDenied for anything that is neither file, link nor directory, or that is hidden;
    InvalidArgument for a tree that is nested too deeply.
    """
    return list(_stock(dir_fd, name, path, how, MAX_DEPTH))


def _stock(dir_fd: int, name: str, path: str, how: TreeReader, levels: int) -> Iterator[Item]:
    how.call.check()
    if levels == 0:
        raise InvalidArgument(f"The tree is nested deeper than {MAX_DEPTH} directories; take it in parts.")
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if name == QUARANTINE or how.is_hidden(identity_of(status)):
        raise PermissionDenied(f"{path} belongs to Holdfast itself and stays where it is.")
    if stat.S_ISDIR(status.st_mode):
        with open_directory(dir_fd, name) as below:
            yield _item(path, NodeType.DIRECTORY, status, None, read_xattrs(below))
            for entry in sorted(os.listdir(below)):
                yield from _stock(below, entry, f"{path}/{entry}", how, levels - 1)
    elif stat.S_ISLNK(status.st_mode):
        yield _item(path, NodeType.LINK, status, how.of_link(os.fsencode(os.readlink(name, dir_fd=dir_fd))))
    else:
        with open_file(dir_fd, name, path) as fd:
            if how.refuse_writers and has_writer(fd, dir_fd):
                raise Conflict(f"Another program is writing {path}.")
            status = os.fstat(fd)
            yield _item(path, NodeType.FILE, status, how.of_file(fd), read_xattrs(fd))


@contextmanager
def open_directory(dir_fd: int, name: str) -> Iterator[int]:
    """Open a directory beneath another one."""
    fd = os.open(name, READ_DIRECTORY, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def is_same_tree(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Return whether two trees hold the same entries with the same bytes, wherever each of them stands."""
    return tree_digest(one) == tree_digest(other)


def tree_digest(items: Sequence[Item]) -> str:
    """Return one hash for a tree: that of the bytes for a single file or link, of all entries for a directory."""
    top = items[0]
    if top.node is not NodeType.DIRECTORY:
        return content_hash(top) or ""
    whole = sha256()
    for line in sorted(f"{i.src_path[len(top.src_path) :]}\0{i.node}\0{content_hash(i)}" for i in items):
        whole.update(os.fsencode(line) + b"\0\0")
    return whole.hexdigest()


def content_hash(item: Item) -> str | None:
    """Return the hash of what an item removes or restores."""
    return item.before_hash or item.after_hash


def moved_to(items: Sequence[Item], path: str) -> list[Item]:
    """Return the items of a tree as they are called when its top stands at another path."""
    top = items[0].src_path
    return [item._replace(src_path=path + item.src_path[len(top) :]) for item in items]


def build_tree(dir_fd: int, name: str, items: Sequence[Item], contents: Contents, call: Call) -> None:
    """Make a tree under a name that is free, durably, with modes, times and (where allowed) owners.

    `contents` gives the bytes of a file or the target of a link. The caller takes the tree away if this fails.
    """
    _build(dir_fd, name, items[0], _by_directory(items), contents, call)


def repair_tree(dir_fd: int, name: str, items: Sequence[Item], contents: Contents, call: Call) -> None:
    """Make again what is missing of a tree that was taken away in part; what is there stays as it is."""
    _mend(dir_fd, name, items[0], _by_directory(items), contents, call)


def _by_directory(items: Sequence[Item]) -> Children:
    children: Children = {}
    for item in items[1:]:
        children.setdefault(os.path.dirname(item.src_path), []).append(item)
    return children


def _mend(dir_fd: int, name: str, item: Item, children: Children, contents: Contents, call: Call) -> None:
    status = stat_entry(dir_fd, name)
    if status is None:
        _build(dir_fd, name, item, children, contents, call)
    elif item.node is NodeType.DIRECTORY and stat.S_ISDIR(status.st_mode):
        with open_directory(dir_fd, name) as below:
            for child in children.get(item.src_path, ()):
                _mend(below, os.path.basename(child.src_path), child, children, contents, call)
            _dress(below, item)


def _build(dir_fd: int, name: str, item: Item, children: Children, contents: Contents, call: Call) -> None:
    call.check()
    if item.node is NodeType.LINK:
        _build_link(dir_fd, name, item, contents)
    elif item.node is NodeType.FILE:
        write_new(dir_fd, name, contents(item), mode=0o600, dress=lambda fd: _dress(fd, item))
    else:
        os.mkdir(name, 0o700, dir_fd=dir_fd)
        with open_directory(dir_fd, name) as below:
            for child in children.get(item.src_path, ()):
                _build(below, os.path.basename(child.src_path), child, children, contents, call)
            _dress(below, item)
            sync_file(below)


def _build_link(dir_fd: int, name: str, item: Item, contents: Contents) -> None:
    os.symlink(b"".join(contents(item)), os.fsencode(name), dir_fd=dir_fd)
    with suppress(PermissionError):
        os.chown(name, item.uid, item.gid, dir_fd=dir_fd, follow_symlinks=False)
    os.utime(name, ns=(item.mtime_ns, item.mtime_ns), dir_fd=dir_fd, follow_symlinks=False)


def _dress(fd: int, item: Item) -> None:
    """Give an open file or directory its owner (where allowed), attributes, mode and time."""
    with suppress(PermissionError):
        os.fchown(fd, item.uid, item.gid)
    put_xattrs(fd, item.xattrs)
    os.fchmod(fd, item.mode)
    os.utime(fd, ns=(item.mtime_ns, item.mtime_ns))


def erase_known(dir_fd: int, name: str, known: Sequence[Item]) -> None:
    """Take away the known entries of a tree under a helper name, deepest first.

    The caller has compared the tree with `known`; whatever came after that is not touched. OSError when something
    cannot be taken away or others remain; then a part may be gone, which `repair_tree` makes again.
    """
    top = known[0]
    if top.node is not NodeType.DIRECTORY:
        os.unlink(name, dir_fd=dir_fd)
        return
    prefix = len(top.src_path) + 1
    _erase(dir_fd, name, "", {item.src_path[prefix:]: item.node for item in known[1:]})


def _erase(dir_fd: int, name: str, inside: str, known: dict[str, NodeType]) -> None:
    with open_directory(dir_fd, name) as below:
        for entry in os.listdir(below):
            node = known.get(f"{inside}{entry}")
            if node is NodeType.DIRECTORY:
                _erase(below, entry, f"{inside}{entry}/", known)
            elif node is not None:
                os.unlink(entry, dir_fd=below)
    os.rmdir(name, dir_fd=dir_fd)


def erase_tree(dir_fd: int, name: str) -> None:
    """Take away a tree that only we can have made, complete or not, durably."""
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
