"""The directories that several items share, each found through the jail once and held open together."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from holdfast.changes.disk.files import stat_entry
from holdfast.errors import HoldfastError, InvalidPath
from holdfast.folders.access.jail import MAX_NAME_BYTES, Jail, JailedPath, Place
from holdfast.folders.access.roots import Identity, Root, identity_of

_KEPT = 100


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """An open directory with its real path, which may be looked up again as `jailed`.

    `is_real` says whether it was asked for by that path, and not through a link or another spelling.
    """

    root: Root
    fd: int
    path: str
    is_real: bool
    jailed: JailedPath
    identity: Identity


class Parents:
    """Use as a context manager; at its end the directories are closed. `most` directories are held at once."""

    def __init__(self, jail: Jail, most: int | None = None) -> None:
        self._jail = jail
        self._most = most
        self._held: dict[str, Parent] = {}
        self._are_gone = False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def find(self, path: str) -> tuple[Parent, str]:
        """Return the directory of a path and the name in it; raises what `Jail.place` does."""
        folder, _, name = path.rpartition("/")
        found = self._held.get(folder)
        if found is None or not _is_plain(name):
            jailed = self._jail.parse(path)
            if not jailed.parts or jailed.parts[-1] != name or name == "..":
                raise InvalidPath(f"{path} does not name a file in a directory.")
        if found is None:
            if self._most is not None and len(self._held) >= self._most:
                self._release()
            found = self._held[folder] = self._open(path, folder)
        return found, name

    def place(self, path: str) -> Place:
        """Return the place of a path as `Jail.place` does without following a last link."""
        parent, name = self.find(path)
        return Place(parent.root, parent.fd, name, f"{parent.path}/{name}", stat_entry(parent.fd, name))

    def refresh(self) -> None:
        """Forget what was found when there is much of it, or when some of it was elsewhere at the last look."""
        if len(self._held) > _KEPT or self._are_gone:
            self._release()

    def moved(self) -> set[Identity]:
        """Return the directories that are no longer where they were found."""
        gone = {parent.identity for parent in self._held.values() if not self._is_still(parent)}
        self._are_gone = bool(gone)
        return gone

    def _open(self, path: str, asked: str) -> Parent:
        with self._jail.place(path, follow=False) as place:
            folder = place.path[: -len(place.name) - 1]
            jailed, identity = self._jail.parse(folder or "/"), identity_of(os.fstat(place.parent_fd))
            fd = _kept(place.parent_fd)
            self._stack.callback(os.close, fd)
        return Parent(place.root, fd, folder, folder == asked, jailed, identity)

    def _is_still(self, parent: Parent) -> bool:
        try:
            return self._jail.directory_at(parent.jailed) == parent.identity
        except (HoldfastError, OSError):
            return False

    def _release(self) -> None:
        self._held.clear()
        self._are_gone = False
        self._stack.close()


def _kept(dir_fd: int) -> int:
    """Return a descriptor of the same directory that can be synced, or one that names it where it may not be read."""
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return os.dup(dir_fd)


def _is_plain(name: str) -> bool:
    """Return whether a name needs no second look: the jail has much to say about the others."""
    return name.isascii() and 0 < len(name) <= MAX_NAME_BYTES and name[0] != "." and "\0" not in name
