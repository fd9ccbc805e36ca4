"""Pure: what a link must say at another place so that it link_target where it led, the moves of its own plan counted in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.changes.model import Item, ItemStatus, NodeType, Op


@dataclass(frozen=True, slots=True)
class Links:
    """How the links of a plan are read; `moves` are the destinations of what it moves, by source.

    Directories are taken as they are written: those that a plan names are real ones, so `..` link_target to the one above.
    """

    moves: Mapping[str, str]

    @classmethod
    def of(cls, items: Iterable[Item]) -> "Links":
        """Read the links of a plan; one without links needs to know nothing. What an undo leaves does not move."""
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

    def will_lead(self, path: str, text: str) -> str:
        """Return where a link that stands at a path is to lead once the plan is carried out."""
        return self._moved(link_target(path, text))

    def rewritten(self, path: str, text: str, dest: str) -> str:
        """Return what a link that stands at a path must say at its destination."""
        meant = self.will_lead(path, text)
        return meant if text.startswith("/") else _from(dest.rpartition("/")[0], meant)

    def _moved(self, path: str) -> str:
        """Return where something is after the moves: itself, or the directory that it lies in, may be moved."""
        above = path
        while above:
            if above in self.moves:
                return self.moves[above] + path[len(above) :]
            above = above.rpartition("/")[0]
        return path


def link_target(path: str, text: str) -> str:
    """Return where a link that stands at a path link_target."""
    return text if text.startswith("/") else _joined(path.rpartition("/")[0], text)


def is_canonical_link(path: str, text: str) -> bool:
    """Return whether a link at a path says where it link_target in the one way that is found again after it was elsewhere."""
    return text.startswith("/") or _from(path.rpartition("/")[0], link_target(path, text)) == text


def _joined(folder: str, text: str) -> str:
    parts = folder.split("/")[1:] if folder else []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _from(folder: str, path: str) -> str:
    here, there = [part for part in folder.split("/") if part], [part for part in path.split("/") if part]
    shared = 0
    while shared < min(len(here), len(there)) and here[shared] == there[shared]:
        shared += 1
    return "/".join([".."] * (len(here) - shared) + there[shared:]) or "."
