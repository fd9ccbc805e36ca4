"""Pure: which changes a person means, and which before-images."""

from dataclasses import dataclass

from holdfast.auth.context import ClientInfo
from holdfast.changes.model import ChangeKind, Plan


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes a list has; every condition that is set must hold.

    An empty name or version in `client` stands for any. `directory` is one that the change touched something in;
    with `or_moved_to` changes count too that moved something to one of these paths.
    """

    client: ClientInfo | None = None
    since: str | None = None
    until: str | None = None
    kinds: tuple[ChangeKind, ...] = ()
    directory: str | None = None
    or_moved_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PruneSelection:
    """Which before-images a person lets go: those last used `before` a time, or the oldest until `to_bytes` are left.

    With `roots`, only those that changes beneath them alone need.
    """

    before: str | None = None
    to_bytes: int | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrunedImages:
    """Before-images that were removed, or would be; `changes` counts those that can then not be undone."""

    images: int
    size_bytes: int
    changes: int
    newest_changes: tuple[Plan, ...] = ()
