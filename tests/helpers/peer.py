"""The reference filesystem server beside ours: the same calls through the same client on two equal trees."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mcp import StdioServerParameters

from benchmarks.measure.servers import REFERENCE, node
from tests.helpers.agent import LEGACY, Agent, Reply
from tests.helpers.trees import Tree, harvest, plant

PATHS = ("path", "source", "destination")


class Reference(Agent):
    """A client of `@modelcontextprotocol/server-filesystem` with one allowed directory."""

    def __init__(self, root: Path) -> None:
        super().__init__([root], root, mode=LEGACY)
        script = str(REFERENCE / "dist" / "index.js")
        self._parameters = StdioServerParameters(command=node(), args=[script, str(root)], cwd=str(root))


@dataclass(frozen=True)
class Side:
    """One server with the folder that a test works in."""

    agent: Agent
    folder: Path

    def call(self, tool: str, **arguments: Any) -> Reply:
        """Call a tool; paths are taken from the folder."""
        return self.agent.call(tool, **self.placed(arguments))

    def placed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with every path made absolute."""
        placed = {name: str(self.folder / value) if name in PATHS else value for name, value in arguments.items()}
        if "paths" in placed:
            placed["paths"] = [str(self.folder / path) for path in placed["paths"]]
        return placed

    def plain(self, text: str) -> str:
        """Return a text without the part of its paths that differs between the two."""
        return text.replace(str(self.folder), "<folder>")

    def files(self) -> dict[str, bytes]:
        """Return what is on disk."""
        return harvest(self.folder)


@dataclass(frozen=True)
class Pair:
    """Both servers, with equal trees."""

    ours: Side
    theirs: Side

    def plant(self, tree: Tree) -> Self:
        """Make the same files on both sides."""
        plant(self.ours.folder, tree)
        plant(self.theirs.folder, tree)
        return self

    def call(self, tool: str, **arguments: Any) -> tuple[Reply, Reply]:
        """Make the same call on both sides; ours comes first."""
        return self.ours.call(tool, **arguments), self.theirs.call(tool, **arguments)

    def same(self, tool: str, meaning: Callable[[str], Any] = str, **arguments: Any) -> Any:
        """Make the same call on both sides, check that both mean the same, and return that."""
        ours, theirs = self.call(tool, **arguments)
        meant_by_ours = meaning(self.ours.plain(ours.ok().text))
        assert meant_by_ours == meaning(self.theirs.plain(theirs.ok().text))
        return meant_by_ours

    def both_refuse(self, tool: str, **arguments: Any) -> Reply:
        """Check that the call is an error on both sides and changed nothing, and return our refusal."""
        before = self.ours.files(), self.theirs.files()
        ours, theirs = self.call(tool, **arguments)
        assert theirs.is_error, theirs.text
        assert ours.is_error, ours.text
        assert (self.ours.files(), self.theirs.files()) == before
        return ours

    def same_disk(self) -> dict[str, bytes]:
        """Check that both folders hold the same, and return it."""
        files = self.ours.files()
        assert files == self.theirs.files()
        return files
