"""The directories that several items share, each found through the jail once and held open together."""

from contextlib import ExitStack
from dataclasses import dataclass
from os import fstat
from types import TracebackType
from typing import Self

from holdfast.changes.disk import look
from holdfast.errors import HoldfastError, InvalidPath
from holdfast.folders.jail import MAX_NAME_BYTES, Jail, Place
from holdfast.folders.roots import Identity, Root, identity_of

_KEPT = 100


@dataclass(frozen=True, slots=True)
class Parent:
    """An open directory with its real path."""

    root: Root
    fd: int
    path: str
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
            found = self._held[folder] = self._open(path)
        return found, name

    def place(self, path: str) -> Place:
        """Return the place of a path as `Jail.place` does without following a last link."""
        parent, name = self.find(path)
        return Place(parent.root, parent.fd, name, f"{parent.path}/{name}", look(parent.fd, name))

    def refresh(self) -> None:
        """Forget what was found when there is much of it, or when some of it was elsewhere at the last look."""
        if len(self._held) > _KEPT or self._are_gone:
            self._release()

    def moved(self) -> set[Identity]:
        """Return the directories that are no longer where they were found."""
        gone = {parent.identity for parent in self._held.values() if not self._is_still(parent)}
        self._are_gone = bool(gone)
        return gone

    def _open(self, path: str) -> Parent:
        place = self._stack.enter_context(self._jail.place(path, follow=False))
        folder = place.path[: -len(place.name) - 1]
        return Parent(place.root, place.parent_fd, folder, identity_of(fstat(place.parent_fd)))

    def _is_still(self, parent: Parent) -> bool:
        try:
            with self._jail.open_directory(parent.path or "/") as now:
                return identity_of(fstat(now)) == parent.identity
        except (HoldfastError, OSError):
            return False

    def _release(self) -> None:
        self._held.clear()
        self._are_gone = False
        self._stack.close()


def _is_plain(name: str) -> bool:
    """Return whether a name needs no second look: the jail has much to say about the others."""
    return name.isascii() and 0 < len(name) <= MAX_NAME_BYTES and name[0] != "." and "\0" not in name
