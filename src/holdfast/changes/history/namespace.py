"""Pure: the names of files at an earlier moment, and where each of these files is on the disk.

It starts with what is on the disk and goes backwards, change by change. Only what differs from the disk is stored, so a whole
directory that was moved is one entry.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.changes.model import Item, ItemStatus, NodeType, Op, Plan
from holdfast.changes.names import parent_of
from holdfast.changes.plans.layout import sort_items


@dataclass(frozen=True, slots=True)
class FormerEntry:
    """A file, link or directory of that moment: `present_path` is where it is on the disk, None when it is gone.

    `hash` is the content that it had, None when nothing has changed that.
    """

    present_path: str | None
    hash: str | None = None
    node: NodeType = NodeType.FILE


class Namespace:
    """Paths of an earlier moment; `revert` goes one step further back."""

    def __init__(self) -> None:
        self._entries: dict[str, FormerEntry | None] = {}
        self.created: list[FormerEntry] = []

    def __iter__(self) -> Iterator[tuple[str, FormerEntry]]:
        """Yield every path that had another entry than it has on the disk, with that entry."""
        return ((path, entry) for path, entry in self._entries.items() if entry is not None)

    def has(self, path: str) -> bool:
        """Return whether something is known of a path or of a directory above it."""
        return self._nearest(path) is not None

    def resolve(self, path: str) -> FormerEntry | None:
        """Return what a path named, None when it named nothing; what is not known is as the disk has it."""
        known = self._nearest(path)
        if known is None:
            return FormerEntry(path)
        entry = self._entries[known]
        if known == path or entry is None:
            return entry
        return None if entry.present_path is None else FormerEntry(entry.present_path + path[len(known) :])

    def revert(self, item: Item) -> None:
        """Go back to before one step of a change."""
        path, entry = item.src_path, self.resolve(item.src_path)
        if item.op is Op.MOVE:
            self._rename(item.dest_path or path, path, item.node)
        elif item.op is Op.RESTORE or item.op is Op.MKDIR or (item.op is Op.REPLACE and item.before_hash is None):
            self._remove(path, item.node)
        elif item.op is Op.REPLACE:
            self._entries[path] = FormerEntry(entry.present_path if entry else None, item.before_hash)
        elif item.op in (Op.REMOVE, Op.RMDIR):
            self._entries[path] = FormerEntry(None, item.before_hash, item.node)

    def _nearest(self, path: str) -> str | None:
        """Return the path itself or the nearest directory above it that has an entry here."""
        while path not in self._entries:
            if path == "/":
                return None
            path = parent_of(path)
        return path

    def _rename(self, source: str, target: str, node: NodeType) -> None:
        entry = self.resolve(source)
        if node is NodeType.DIRECTORY:
            for path in [path for path in self._entries if path.startswith(f"{source}/")]:
                self._entries[target + path[len(source) :]] = self._entries.pop(path)
        self._entries[source] = None
        self._entries[target] = None if entry is None else replace(entry, node=node)

    def _remove(self, path: str, node: NodeType) -> None:
        entry = self.resolve(path)
        if entry is not None:
            self.created.append(replace(entry, node=node))
        if node is NodeType.DIRECTORY:
            for below in [known for known in self._entries if known.startswith(f"{path}/")]:
                del self._entries[below]
        self._entries[path] = None


def steps_backwards(plan: Plan) -> list[Item]:
    """Return the steps of a change that were made, the last one first; those that an undo reversed were made too."""
    items = sort_items(plan.items) if plan.stepwise else list(plan.items)
    done_items = [
        item for item in items if item.status in (ItemStatus.DONE, ItemStatus.UNDONE) and item.op is not Op.SAVE
    ]
    return done_items[::-1]
