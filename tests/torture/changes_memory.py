"""File systems in memory that forget what was not synced: two devices, every entry and every byte volatile until then.

`Disks` stands in for the module `os` in the code under test. A change of names is one act that touches entries of one
or two directories; it is durable once the directory that got the name was synced after it. After a power cut any other
change may or may not be there, in any combination that a change made before on the same name allows; the bytes of a
file are those of its last sync or any version, whole or cut short, that was written since.
"""

import errno
import os
import random
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

_PURE = frozenset("fsencode fsdecode strerror path stat_result W_OK fspath PathLike sep".split())
_FIRST_FD = 1_000_000
_NOREPLACE, _EXCHANGE = 1, 2


class PowerCut(BaseException):
    """The machine is off: nothing that the process still tries has any effect."""


@dataclass
class Node:
    """A file, a link or a directory. `entries` are the names as a running system sees them."""

    number: int
    device: int
    mode: int
    data: bytes = b""
    synced: bytes = b""
    versions: list[bytes] = field(default_factory=list)
    entries: dict[str, "Node"] = field(default_factory=dict)
    durable_entries: dict[str, "Node"] = field(default_factory=dict)
    mtime_ns: int = 0
    owner: tuple[int, int] = (0, 0)
    xattrs: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Act:
    """One change of names: what each (directory, name) holds afterwards; `unsynced` are directories still to sync."""

    sets: list[tuple[Node, str, Node | None]]
    unsynced: list[Node]


@dataclass
class _Open:
    node: Node
    flags: int


class Disks:
    """The part of `os` that the changes use, over devices in memory, and the power switch."""

    def __init__(self) -> None:
        self._numbers = iter(range(2, 10**9))
        self._fds: dict[int, _Open] = {}
        self._acts: list[Act] = []
        self.acts_until_cut = -1
        self.is_off = False
        self.root = self._node(1, stat.S_IFDIR | 0o755)
        self.on_fsync: Callable[[Node], bool] = lambda _node: True

    def __getattr__(self, name: str) -> Any:
        if name in _PURE or name.startswith("O_"):
            return getattr(os, name)
        raise AttributeError(f"the model has no os.{name}")

    def add_device(self, name: str, device: int) -> None:
        """Put a directory of a device of its own below the top, durably."""
        node = self._node(device, stat.S_IFDIR | 0o755)
        self.root.entries[name] = self.root.durable_entries[name] = node

    def tick(self) -> None:
        """Count one more thing that reaches towards a disk; the power goes when its number is up."""
        if self.is_off:
            raise PowerCut
        if self.acts_until_cut == 0:
            self.is_off = True
            raise PowerCut
        self.acts_until_cut -= 1

    def cut(self, chance: random.Random) -> None:
        """Take the power away and bring it back: every disk holds one of the states that it may hold."""
        self._fds.clear()
        survivors = self._survivors(chance)
        for act in self._acts:
            if id(act) in survivors:
                _apply(act, "durable_entries")
        self._acts.clear()
        visited: set[int] = set()
        self._come_back(self.root, chance, visited)
        self.is_off = False

    def _survivors(self, chance: random.Random) -> set[int]:
        """Choose the changes of names that reached the disk: the synced ones, and some of the others."""
        mood = chance.choice((0.0, 0.5, 1.0))
        by_device = {device: chance.choice((mood, 0.0, 1.0, 0.5)) for device in range(8)}
        survivors = {
            id(act) for act in self._acts if not act.unsynced or chance.random() < by_device[act.sets[0][0].device]
        }
        return _closed(self._acts, survivors)

    def _come_back(self, node: Node, chance: random.Random, visited: set[int]) -> None:
        if node.number in visited:
            return
        visited.add(node.number)
        if stat.S_ISDIR(node.mode):
            node.entries = dict(node.durable_entries)
            for child in node.entries.values():
                self._come_back(child, chance, visited)
            return
        if node.versions:
            version = chance.choice([node.synced, *node.versions])
            node.data = (
                version[: chance.choice((len(version), len(version) // 2, 0))] if version in node.versions else version
            )
        node.synced, node.versions = node.data, []

    def _node(self, device: int, mode: int) -> Node:
        return Node(next(self._numbers), device, mode)

    def _act(self, *sets: tuple[Node, str, Node | None]) -> None:
        gaining = [directory for directory, _, node in sets if node is not None]
        act = Act(list(sets), gaining or [directory for directory, _, _ in sets])
        _apply(act, "entries")
        self._acts.append(act)

    def _directory(self, dir_fd: int | None, path: str | bytes) -> tuple[Node, str]:
        """Return the directory that holds the last component of a path, and that component."""
        text = os.fsdecode(path)
        node = self.root if text.startswith("/") or dir_fd is None else self._fds[dir_fd].node
        *above, name = [part for part in text.split("/") if part not in ("", ".")] or ["."]
        for part in above:
            node = self._child(node, part)
        return node, name

    def _child(self, node: Node, name: str) -> Node:
        if name == ".":
            return node
        if not stat.S_ISDIR(node.mode):
            raise _error(errno.ENOTDIR, name)
        if name not in node.entries:
            raise _error(errno.ENOENT, name)
        return node.entries[name]

    def _find(self, path: str | bytes | int, dir_fd: int | None = None) -> Node:
        if isinstance(path, int):
            return self._fds[path].node
        return self._child(*self._directory(dir_fd, path))

    def _hand_out(self, node: Node, flags: int) -> int:
        fd = next(number for number in range(_FIRST_FD, _FIRST_FD + 10_000) if number not in self._fds)
        self._fds[fd] = _Open(node, flags)
        return fd

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        directory, name = self._directory(dir_fd, path)
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return self._hand_out(self._node(self._child(directory, name).device, stat.S_IFREG | mode), flags)
        if flags & os.O_CREAT and name not in directory.entries:
            self.tick()
            self._act((directory, name, self._node(directory.device, stat.S_IFREG | mode & ~0o022)))
        elif flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        node = self._child(directory, name)
        if flags & os.O_NOFOLLOW and stat.S_ISLNK(node.mode):
            raise _error(errno.ELOOP, path)
        if flags & os.O_DIRECTORY and not stat.S_ISDIR(node.mode):
            raise _error(errno.ENOTDIR, path)
        return self._hand_out(node, flags)

    def close(self, fd: int) -> None:
        self._fds.pop(fd, None)

    def dup(self, fd: int) -> int:
        return self._hand_out(self._fds[fd].node, self._fds[fd].flags)

    def stat(self, path: str | int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return self.fstat_of(self._find(path, dir_fd))

    def fstat(self, fd: int) -> os.stat_result:
        return self.fstat_of(self._fds[fd].node)

    def fstat_of(self, node: Node) -> os.stat_result:
        """Return a node's status."""
        seconds = node.mtime_ns / 1e9
        values = (node.mode, node.number, node.device, 1, *node.owner, len(node.data), seconds, seconds, seconds)
        nanoseconds = {"st_mtime_ns": node.mtime_ns, "st_atime_ns": node.mtime_ns, "st_ctime_ns": 0}
        return os.stat_result(values, nanoseconds)

    def statvfs(self, path: str) -> SimpleNamespace:
        """Return that there is room."""
        self._find(path)
        return SimpleNamespace(f_bavail=1 << 30, f_frsize=4096)

    def access(self, path: str, mode: int, *, dir_fd: int | None = None) -> bool:
        return self._find(path, dir_fd) is not None

    def pread(self, fd: int, count: int, at: int) -> bytes:
        return self._fds[fd].node.data[at : at + count]

    def write(self, fd: int, data: Any) -> int:
        self.tick()
        node = self._fds[fd].node
        node.data += bytes(data)
        node.versions.append(node.data)
        node.mtime_ns += 1_000
        return len(data)

    def fsync(self, fd: int) -> None:
        self.tick()
        node = self._fds[fd].node
        if not self.on_fsync(node):
            return
        node.synced, node.versions = node.data, []
        for act in self._acts:
            act.unsynced = [directory for directory in act.unsynced if directory is not node]
        while self._acts and not self._acts[0].unsynced:
            _apply(self._acts.pop(0), "durable_entries")

    def link(self, source: str, name: str, *, dst_dir_fd: int, follow_symlinks: bool = True, **_: Any) -> None:
        assert source.startswith("/proc/self/fd/"), source
        self.tick()
        directory, name = self._directory(dst_dir_fd, name)
        if name in directory.entries:
            raise _error(errno.EEXIST, name)
        self._act((directory, name, self._fds[int(source.rpartition("/")[2])].node))

    def renameat2(self, old_dir: int, old: str, new_dir: int, new: str, flags: int) -> None:
        self.tick()
        source, old = self._directory(old_dir, old)
        target, new = self._directory(new_dir, new)
        node = self._child(source, old)
        if source.device != target.device:
            raise _error(errno.EXDEV, new)
        if flags & _EXCHANGE:
            self._act((source, old, self._child(target, new)), (target, new, node))
            return
        if flags & _NOREPLACE and new in target.entries:
            raise _error(errno.EEXIST, new)
        self._act((source, old, None), (target, new, node))

    def rename(self, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self.renameat2(src_dir_fd, old, dst_dir_fd, new, 0)

    replace = rename

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        self.tick()
        directory, name = self._directory(dir_fd, path)
        if stat.S_ISDIR(self._child(directory, name).mode):
            raise _error(errno.EISDIR, name)
        self._act((directory, name, None))

    def mkdir(self, path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self.tick()
        directory, name = self._directory(dir_fd, path)
        if name in directory.entries:
            raise _error(errno.EEXIST, name)
        self._act((directory, name, self._node(directory.device, stat.S_IFDIR | mode & ~0o022)))

    def makedirs(self, path: str, mode: int = 0o777, *, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path, mode)
        except FileExistsError:
            if not exist_ok:
                raise

    def rmdir(self, path: str, *, dir_fd: int | None = None) -> None:
        self.tick()
        directory, name = self._directory(dir_fd, path)
        if self._child(directory, name).entries:
            raise _error(errno.ENOTEMPTY, name)
        self._act((directory, name, None))

    def symlink(self, target: str | bytes, name: str | bytes, *, dir_fd: int | None = None) -> None:
        self.tick()
        directory, last = self._directory(dir_fd, name)
        node = self._node(directory.device, stat.S_IFLNK | 0o777)
        node.data = node.synced = os.fsencode(target)
        self._act((directory, last, node))

    def readlink(self, path: str, *, dir_fd: int | None = None) -> str:
        return os.fsdecode(self._find(path, dir_fd).data)

    def listdir(self, path: str | int) -> list[str]:
        return list(self._find(path).entries)

    def scandir(self, path: str | int) -> list[Any]:
        node = self._find(path)
        return [
            SimpleNamespace(name=name, path=f"{path}/{name}", is_dir=lambda child=child: stat.S_ISDIR(child.mode))
            for name, child in node.entries.items()
        ]

    def fchmod(self, fd: int, mode: int) -> None:
        self._chmod(self._fds[fd].node, mode)

    def chmod(self, path: str | int, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        self._chmod(self._find(path, dir_fd), mode)

    def _chmod(self, node: Node, mode: int) -> None:
        self.tick()
        node.mode = stat.S_IFMT(node.mode) | mode

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        self._fds[fd].node.owner = (uid, gid)

    def chown(
        self, path: str | int, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> None:
        self._find(path, dir_fd).owner = (uid, gid)

    def utime(
        self, path: str | int, *, ns: tuple[int, int], dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> None:
        self._find(path, dir_fd).mtime_ns = ns[1]

    def listxattr(self, fd: int) -> list[str]:
        return list(self._fds[fd].node.xattrs)

    def getxattr(self, fd: int, name: str) -> bytes:
        return self._fds[fd].node.xattrs[name]

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        self._fds[fd].node.xattrs[name] = value

    def tree(self, name: str) -> dict[str, bytes | None]:
        """Return what a running system sees below the top: bytes of files and links, None for directories."""
        return dict(_walk(self.root.entries[name], name))


def _walk(node: Node, path: str) -> Iterator[tuple[str, bytes | None]]:
    for name, child in sorted(node.entries.items()):
        is_directory = stat.S_ISDIR(child.mode)
        yield f"{path}/{name}", None if is_directory else child.data
        yield from _walk(child, f"{path}/{name}")


def _apply(act: Act, where: str) -> None:
    for directory, name, node in act.sets:
        entries: dict[str, Node] = getattr(directory, where)
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _touch(act: Act, other: Act) -> bool:
    return any(a[0] is b[0] and a[1] == b[1] for a in act.sets for b in other.sets)


def _closed(acts: list[Act], survivors: set[int]) -> set[int]:
    """Add every change that a kept later one rests on: one made before on the same name."""
    for at in range(len(acts) - 1, -1, -1):
        if id(acts[at]) in survivors:
            survivors |= {id(before) for before in acts[:at] if _touch(before, acts[at])}
    return survivors


def _error(number: int, name: str | bytes) -> OSError:
    return OSError(number, os.strerror(number), name)
