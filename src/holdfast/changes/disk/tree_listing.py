"""Lists a file, link or directory tree for a person who decides on it, with a fingerprint of exactly what was listed."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from holdfast.call import Call
from holdfast.changes.disk.tree import MAX_DEPTH, open_directory
from holdfast.changes.model import NodeType
from holdfast.errors import Conflict, InvalidArgument
from holdfast.text.display import display_name, format_size, quantity

MAX_LISTED = 500
"""Most entries of a tree that are listed by name; all of them are counted, and all are part of the fingerprint."""


@dataclass(frozen=True, slots=True)
class TreeListing:
    """What is at a place. `lines` name the first entries of a directory; a directory counts itself.

    The fingerprint changes with the name, inode, size and times of any file, and with the target of any link. Of a
    directory its inode and names count, because its times change with what other programs put into it and take out.
    """

    node: NodeType
    files: int
    directories: int
    size_bytes: int
    fingerprint: str
    lines: tuple[str, ...]

    @property
    def entries(self) -> int:
        """Return how many files, links and directories these are, the top included."""
        return self.files + self.directories

    @property
    def summary(self) -> str:
        """Return what it is and how much, such as `directory (120 files, 3.10 MB)`."""
        if self.node is NodeType.LINK:
            return "link"
        if self.node is NodeType.FILE:
            return f"file ({format_size(self.size_bytes)})"
        if not self.lines:
            return "empty directory"
        return f"directory ({quantity(self.files, 'file', separator=',')}, {format_size(self.size_bytes)})"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    status: os.stat_result
    target: str = ""


def list_tree(dir_fd: int, name: str, call: Call) -> TreeListing:
    """Return what has that name in a directory. InvalidArgument for a tree that is nested too deeply."""
    digest = sha256()
    lines: list[str] = []
    files, directories, size_bytes, node = 0, 0, 0, None
    for entry in _entries(dir_fd, name, "", call, MAX_DEPTH):
        status = entry.status
        digest.update(_fingerprint(entry))
        if stat.S_ISDIR(status.st_mode):
            kind = NodeType.DIRECTORY
            directories += 1
        else:
            kind = NodeType.LINK if stat.S_ISLNK(status.st_mode) else NodeType.FILE
            files += 1
            size_bytes += status.st_size if kind is NodeType.FILE else 0
        node = node or kind
        if entry.path and len(lines) <= MAX_LISTED:
            lines.append(_line(entry, kind))
    more = files + directories - 1 - MAX_LISTED
    if len(lines) > MAX_LISTED:
        lines[MAX_LISTED:] = [f"and {quantity(more, 'more entry', 'more entries', separator=',')}"]
    return TreeListing(node or NodeType.FILE, files, directories, size_bytes, digest.hexdigest(), tuple(lines))


def check_listing(dir_fd: int, name: str, path: str, expected: str, call: Call) -> None:
    """Raise Conflict unless what has that name is what was listed with that fingerprint."""
    try:
        fingerprint = list_tree(dir_fd, name, call).fingerprint
    except FileNotFoundError:
        fingerprint = ""
    if fingerprint != expected:
        raise Conflict(
            f"{path} is not what the user approved: it, or something in it, has changed since. Nothing was changed.",
            hint="Look at it again, and ask again with the same tool.",
        )


def check_entries(dir_fd: int, name: str, path: str, expected: int, call: Call) -> None:
    """Raise Conflict unless what has that name is as many entries as expected."""
    present = list_tree(dir_fd, name, call).entries
    if present != expected:
        counts = f"{quantity(present, 'entry', 'entries')} where {expected} were expected"
        raise Conflict(f"{path} has changed: it holds {counts}. Nothing was changed. Look at it again.")


def _entries(dir_fd: int, name: str, path: str, call: Call, levels: int) -> Iterator[_Entry]:
    call.check()
    if levels == 0:
        raise InvalidArgument(f"The tree is nested deeper than {MAX_DEPTH} directories; handle it in parts.")
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    yield _Entry(path, status, os.readlink(name, dir_fd=dir_fd) if stat.S_ISLNK(status.st_mode) else "")
    if stat.S_ISDIR(status.st_mode):
        with open_directory(dir_fd, name) as below:
            for child in sorted(os.listdir(below)):
                yield from _entries(below, child, f"{path}/{child}" if path else child, call, levels - 1)


def _fingerprint(entry: _Entry) -> bytes:
    """Return an entry as bytes that no other entry has; the rename of a tree changes none of its entries."""
    status = entry.status
    facts = [entry.path, f"{stat.S_IFMT(status.st_mode):o}", str(status.st_ino)]
    if not stat.S_ISDIR(status.st_mode):
        facts += [str(status.st_size), str(status.st_mtime_ns), str(status.st_ctime_ns), entry.target]
    return os.fsencode("".join(f"{len(fact)}:{fact}" for fact in facts))


def _line(entry: _Entry, node: NodeType) -> str:
    name = display_name(entry.path)
    if node is NodeType.DIRECTORY:
        return f"{name}/"
    return (
        f"{name} -> {display_name(entry.target)}"
        if node is NodeType.LINK
        else f"{name} ({format_size(entry.status.st_size)})"
    )
