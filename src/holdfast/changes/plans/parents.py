"""Keeps the parent directories of a batch open, each found through the jail once."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from holdfast.changes.disk.files import stat_entry
from holdfast.changes.disk.identity import is_same_entry
from holdfast.errors import HoldfastError, InvalidPath
from holdfast.folders.access.jail import Jail, JailedPath, Place
from holdfast.folders.access.path_syntax import MAX_NAME_BYTES
from holdfast.folders.access.roots import Identity, Root, identity_of

_MAX_KEPT_BETWEEN_BATCHES = 100


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """An open directory with its real path; `jailed` finds it again.

    `is_real` says whether it was named by that path, and not through a link or in another spelling.
    """

    root: Root
    fd: int
    path: str
    is_real: bool
    jailed: JailedPath
    identity: Identity

    def is_planned(self, identity: str | None) -> bool:
        """Return whether this is the directory of that identity; a plan without one accepts any."""
        return identity is None or is_same_entry(str(self.identity[1]), identity)


class Parents:
    """A context manager that closes the directories at its end. At most `max_open` are open at once."""

    def __init__(self, jail: Jail, max_open: int | None = None) -> None:
        self._jail = jail
        self._max_open = max_open
        self._open_parents: dict[str, Parent] = {}
        self._have_moved = False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_all()

    def find(self, path: str) -> tuple[Parent, str]:
        """Return the directory of a path and the name in it; raises what `Jail.place` does."""
        folder, _, name = path.rpartition("/")
        parent = self._open_parents.get(folder)
        if parent is None or not _is_plain(name):
            jailed = self._jail.parse(path)
            if not jailed.parts or jailed.parts[-1] != name or name == "..":
                raise InvalidPath(f"{path} does not name a file in a directory.")
        if parent is None:
            if self._max_open is not None and len(self._open_parents) >= self._max_open:
                self._close_all()
            parent = self._open_parents[folder] = self._open(path, folder)
        return parent, name

    def place(self, path: str) -> Place:
        """Return the place of a path as `Jail.place` does without following a last link."""
        parent, name = self.find(path)
        return Place(parent.root, parent.fd, name, f"{parent.path}/{name}", stat_entry(parent.fd, name))

    def refresh(self) -> None:
        """Close the directories when there are many, or when some had moved at the last check."""
        if len(self._open_parents) > _MAX_KEPT_BETWEEN_BATCHES or self._have_moved:
            self._close_all()

    def find_moved(self) -> set[Identity]:
        """Return the directories that are no longer where they were found."""
        moved = {parent.identity for parent in self._open_parents.values() if not self._is_in_place(parent)}
        self._have_moved = bool(moved)
        return moved

    def _open(self, path: str, given_folder: str) -> Parent:
        with self._jail.place(path, follow=False) as place:
            folder = place.path[: -len(place.name) - 1]
            jailed, identity = self._jail.parse(folder or "/"), identity_of(os.fstat(place.parent_fd))
            fd = _reopen(place.parent_fd)
            self._stack.callback(os.close, fd)
        return Parent(place.root, fd, folder, folder == given_folder, jailed, identity)

    def _is_in_place(self, parent: Parent) -> bool:
        try:
            return self._jail.directory_at(parent.jailed) == parent.identity
        except (HoldfastError, OSError):
            return False

    def _close_all(self) -> None:
        self._open_parents.clear()
        self._have_moved = False
        self._stack.close()


def _reopen(dir_fd: int) -> int:
    """Return a descriptor of the same directory that can be synced, or an O_PATH one where it may not be read."""
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return os.dup(dir_fd)


def _is_plain(name: str) -> bool:
    """Return whether a name needs no check by the jail."""
    return name.isascii() and 0 < len(name) <= MAX_NAME_BYTES and name[0] != "." and "\0" not in name
