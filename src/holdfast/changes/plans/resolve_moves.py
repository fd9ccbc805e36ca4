"""Turns requested moves into the items of a plan: identifies each file, finds it a free name, adds missing directories."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.changes.disk.identity import describe_source
from holdfast.changes.model import Item, NodeType, Op, is_beneath
from holdfast.changes.names import collision_key, free_name, parent_of
from holdfast.changes.plans.parents import Parents
from holdfast.changes.single.directories import missing_directories
from holdfast.errors import InvalidArgument, NotFound
from holdfast.folders.access.file_version import HashedVersion, identity_text
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import identity_of

_OPEN_DIRECTORIES = 200


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """One move to plan: from where to where, why, and with what confidence.

    `known_version` is the version of the source that was read before; a source that still has it is not opened again.
    Moves with the same `unit` are made together or not at all.
    """

    src: str
    dest: str
    reasoning: str | None = None
    confidence: float | None = None
    known_version: HashedVersion | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class PlanLayout:
    """The items of a plan and the allowed directories that they are in; the first is that of the first source."""

    items: tuple[Item, ...]
    roots: tuple[str, ...]


def build_layout(jail: Jail, requests: Sequence[MoveRequest], call: Call) -> PlanLayout:
    """Return the items for the requested moves; a move to where the file is already gives none.

    Raises what the jail raises for a path, InvalidArgument for moves that contradict each other.
    """
    return assign_destinations(jail, describe_moves(jail, requests, call), call)


def describe_moves(jail: Jail, requests: Sequence[MoveRequest], call: Call, first: int = 0) -> list[Item]:
    """Return the requested moves, numbered from `first`, each with what identifies its source."""
    sources: list[Item] = []
    with Parents(jail, _OPEN_DIRECTORIES) as parents:
        for position, request in enumerate(requests, start=first):
            call.check()
            place = parents.place(request.src)
            if place.status is not None and jail.is_hidden(identity_of(place.status)):
                raise NotFound(f"No such file or directory: {request.src}")
            source = describe_source(place, request.known_version)
            sources.append(
                source._replace(
                    source_directory=identity_text(os.fstat(place.parent_fd)),
                    dest_path=request.dest,
                    reasoning=request.reasoning,
                    confidence=request.confidence,
                    position=position,
                    unit=request.unit,
                )
            )
    return sources


def assign_destinations(jail: Jail, moves: Sequence[Item], call: Call) -> PlanLayout:
    """Give every move a destination that is free and that no other move gets, and add the missing directories."""
    _check_sources(moves)
    targets = _Targets(jail)
    resolved = []
    for move in moves:
        call.check()
        resolved.append((move, *targets.resolve(move.dest_path or "")))
    placed = [
        move._replace(dest_path=targets.free(folder, name, move.src_path), dest_directory=targets.identity(folder))
        for move, folder, name in resolved
        if f"{folder.rstrip('/')}/{name}" != move.src_path
    ]
    _check_targets(placed)
    roots = dict.fromkeys([*(jail.parse(move.src_path).root.path for move in placed), *targets.roots])
    if len(roots) > 2:
        raise InvalidArgument(f"A plan may touch two allowed directories at most; this one touches {len(roots)}.")
    after = max((move.position for move in moves), default=-1) + 1
    new_directories = [
        Item(
            Op.MKDIR,
            path,
            node=NodeType.DIRECTORY,
            position=after + number,
            source_directory=targets.identity(parent_of(path)),
        )
        for number, path in enumerate(targets.missing)
    ]
    return PlanLayout((*placed, *new_directories), tuple(roots))


@dataclass
class _Targets:
    """The destination directories: which are missing, and which names in them are taken."""

    jail: Jail
    missing: dict[str, None] = field(default_factory=dict)
    roots: dict[str, None] = field(default_factory=dict)
    _folders: dict[str, str] = field(default_factory=dict)
    _used_keys: dict[str, set[str]] = field(default_factory=dict)
    _identities: dict[str, str | None] = field(default_factory=dict)

    def resolve(self, dest: str) -> tuple[str, str]:
        """Return the real directory and the name of a destination."""
        folder, name = os.path.split(self.jail.absolute(dest))
        if name in {"", ".", ".."}:
            raise InvalidArgument(f"{dest} does not name a file in a directory.")
        if folder not in self._folders:
            self._folders[folder] = self._find(folder)
        return self._folders[folder], name

    def free(self, folder: str, name: str, src: str) -> str:
        """Return a free path in a directory; the name of the source itself in that directory counts as free."""
        used_keys = self._keys_in(folder)
        own = collision_key(os.path.basename(src)) if parent_of(src) == folder else None
        if own is not None and collision_key(name) == own and name != os.path.basename(src):
            return f"{folder.rstrip('/')}/{name}"
        return f"{folder.rstrip('/')}/{free_name(name, used_keys)}"

    def identity(self, folder: str) -> str | None:
        """Return the identity of a directory, None for one that the plan is to make."""
        if folder not in self._identities:
            self._identities[folder] = None if folder in self.missing else self._read_identity(folder)
        return self._identities[folder]

    def _read_identity(self, folder: str) -> str:
        device, inode = self.jail.directory_at(self.jail.parse(folder))
        return f"{device}:{inode}"

    def _find(self, folder: str) -> str:
        if folder in self.jail.allowed_paths:
            self.roots[folder] = None
            return folder
        missing, root, real = missing_directories(self.jail, folder)
        self.roots[root] = None
        self.missing.update(dict.fromkeys(missing))
        return real

    def _keys_in(self, folder: str) -> set[str]:
        if folder not in self._used_keys:
            new_keys = {collision_key(os.path.basename(path)) for path in self.missing if parent_of(path) == folder}
            self._used_keys[folder] = new_keys if folder in self.missing else new_keys | self._names(folder)
        return self._used_keys[folder]

    def _names(self, folder: str) -> set[str]:
        with self.jail.open_directory(folder) as fd:
            return {collision_key(name) for name in os.listdir(fd)}


def _check_sources(moves: Sequence[Item]) -> None:
    sources: set[str] = set()
    for move in moves:
        if move.src_path in sources:
            raise InvalidArgument(f"{move.src_path} is moved twice by the same plan.")
        sources.add(move.src_path)
    trees = {move.src_path for move in moves if move.node is NodeType.DIRECTORY}
    for move in moves:
        if trees and _inside(parent_of(move.src_path), trees):
            raise InvalidArgument(f"{move.src_path} lies in a directory that is moved by the same plan.")


def _check_targets(moves: Sequence[Item]) -> None:
    trees = {move.src_path for move in moves if move.node is NodeType.DIRECTORY}
    for move in moves:
        target = move.dest_path or ""
        if is_beneath(target, [move.src_path]):
            raise InvalidArgument(f"{move.src_path} cannot be moved into itself.")
        if trees and _inside(parent_of(target), trees):
            raise InvalidArgument(f"{target} lies in a directory that is moved by the same plan.")


def _inside(path: str, trees: set[str]) -> bool:
    while path not in trees:
        if path == "/":
            return False
        path = parent_of(path)
    return True
