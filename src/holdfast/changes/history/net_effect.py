"""Pure: the net effect of many changes on each file: where it was and what it held before all of them, and where it is.

Changes are followed backwards from the present, so what was made and undone, or moved away and back, leaves nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.changes.history.namespace import FormerEntry, Namespace, steps_backwards
from holdfast.changes.model import NodeType, Plan


@dataclass(frozen=True, slots=True)
class NetFile:
    """One entry before the changes and now; a path is None where it did not or does not exist.

    `hash` is the content before, None when none of the changes touched the content.
    """

    former_path: str | None
    present_path: str | None
    hash: str | None
    node: NodeType


def trace_back(plans: Iterable[Plan]) -> list[NetFile]:
    """Return every entry that changes touched, by path; the changes come newest first.

    An entry whose `present_path` is still its path may have got back its content meanwhile: that the disk says.
    """
    names = Namespace()
    for plan in plans:
        for item in steps_backwards(plan):
            names.revert(item)
    created = {entry.present_path: entry for entry in names.created if entry.present_path is not None}
    files = [_net_file(path, entry, created) for path, entry in names]
    files += [NetFile(None, path, None, entry.node) for path, entry in created.items()]
    return sorted(
        (file for file in files if _is_visible(file)), key=lambda file: file.present_path or file.former_path or ""
    )


def _net_file(path: str, entry: FormerEntry, created: dict[str, FormerEntry]) -> NetFile:
    """Return an entry with where it is now: a new one at the same path, of the same type, has taken its place."""
    successor = created.get(path)
    if entry.present_path is None and successor is not None and successor.node is entry.node:
        del created[path]
        return NetFile(path, path, entry.hash, entry.node)
    return NetFile(path, entry.present_path, entry.hash, entry.node)


def _is_visible(file: NetFile) -> bool:
    return file.former_path != file.present_path or file.hash is not None
