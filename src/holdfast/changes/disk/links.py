"""Pure: the new target of a symbolic link that moves, so that it still leads to the same file when its plan moves both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.changes.model import Item, ItemStatus, NodeType, Op


@dataclass(frozen=True, slots=True)
class Links:
    """Resolves the links of a plan; `moves` are the destinations of what it moves, by source.

    Paths are resolved as text: the directories that a plan names are real ones, so `..` leads to the one above.
    """

    moves: Mapping[str, str]

    @classmethod
    def from_items(cls, items: Iterable[Item]) -> "Links":
        """Return the moves that matter for links: none for a plan without links. What an undo skips does not move."""
        moves = [item for item in items if item.op is Op.MOVE and item.dest_path]
        if all(item.node is not NodeType.LINK for item in moves):
            return cls({})
        return cls(
            {
                item.src_path: item.dest_path or ""
                for item in moves
                if item.reverses is None or item.status is not ItemStatus.SKIPPED
            }
        )

    def target_after_moves(self, path: str, text: str) -> str:
        """Return where a link at a path shall lead once the plan is executed."""
        return self._after_moves(link_target(path, text))

    def rewrite(self, path: str, text: str, dest: str) -> str:
        """Return the text that a link at a path must get at its destination."""
        target = self.target_after_moves(path, text)
        return target if text.startswith("/") else _relative_to(dest.rpartition("/")[0], target)

    def _after_moves(self, path: str) -> str:
        """Return the path of an entry after the moves: the entry or a directory above it may be moved."""
        above = path
        while above:
            if above in self.moves:
                return self.moves[above] + path[len(above) :]
            above = above.rpartition("/")[0]
        return path


def link_target(path: str, text: str) -> str:
    """Return the path that a link at a path leads to."""
    return text if text.startswith("/") else _join(path.rpartition("/")[0], text)


def is_canonical_link(path: str, text: str) -> bool:
    """Return whether `rewrite` would give a link at a path this very text, so that it survives a move and its undo."""
    return text.startswith("/") or _relative_to(path.rpartition("/")[0], link_target(path, text)) == text


def _join(folder: str, text: str) -> str:
    parts = folder.split("/")[1:] if folder else []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _relative_to(folder: str, path: str) -> str:
    start, end = [part for part in folder.split("/") if part], [part for part in path.split("/") if part]
    shared = 0
    while shared < min(len(start), len(end)) and start[shared] == end[shared]:
        shared += 1
    return "/".join([".."] * (len(start) - shared) + end[shared:]) or "."
