"""A messy folder with an agent and its person, for tests of the organiser through real doors."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.transport.client.calls import call_by_socket
from holdfast.transport.state_folder import StateFolder
from tests.helpers.agent import Agent, Reply, command
from tests.helpers.trees import Tree

INVOICE = (
    "Invoice number {0}. Amount due {0}00 EUR with VAT, payable by bank transfer within 30 days. Acme GmbH, billing.\n"
)
RECIPE = "Recipe {0}: mix flour, sugar, butter and {0} eggs, knead the dough and bake it in the oven for 30 minutes.\n"

HOUSE: Tree = {
    "Invoices": {f"inv{number}.txt": INVOICE.format(number) for number in range(5)},
    "Recipes": {f"cake{number}.txt": RECIPE.format(number) for number in range(5)},
    "scan_0012.txt": INVOICE.format(77),
    "pasta.txt": RECIPE.format(88),
    "movie.mp4": "moving",
    "qwx": "zz",
}


class Tidier:
    """One folder with one agent in it, and the person of the state folder."""

    def __init__(self, agent: Agent, root: Path, state: Path) -> None:
        self.agent, self.root, self.state = agent, root, state

    def plan(self, folder: str = ".", **arguments: Any) -> dict[str, Any]:
        """Make a plan."""
        return self.agent.call("create_organization_plan", folder_path=folder, **arguments).ok().data

    def moves(self, plan: dict[str, Any]) -> dict[str, str]:
        """Return where the files of a plan go."""
        plan_data = self.agent.call("get_plan", plan_id=plan["plan_id"]).ok().data
        return {move["path"]: move["to"] for move in plan_data["moves"]}

    def revise(self, plan: dict[str, Any], **folders: str | None) -> dict[str, Any]:
        """Decide on files, each named by a keyword with `__` for a dot."""
        return self.agent.call("revise_plan", plan_id=plan["plan_id"], changes=_changes(folders)).ok().data

    def correct(self, plan: dict[str, Any], **folders: str | None) -> dict[str, Any]:
        """Decide on files as the person does, each named in the same way."""
        result = self.person("correct_plan", plan_id=plan["plan_id"], changes=_changes(folders))
        assert not result["isError"], result
        corrected: dict[str, Any] = result["structuredContent"]
        return corrected

    def person(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call one of the person's tools, as the commands do, and return its whole result."""
        return call_by_socket(StateFolder(str(self.state)), tool, arguments, "person")

    def approve(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Approve a plan as it is now."""
        plan_data = self.agent.call("get_plan", plan_id=plan["plan_id"]).ok().data
        return self.person("approve_plan", plan_id=plan["plan_id"], plan_hash=plan_data["plan_hash"])

    def execute(self, plan: dict[str, Any]) -> Reply:
        """Carry a plan out."""
        return self.agent.call("execute_plan", plan_id=plan["plan_id"])

    def undo(self, plan: dict[str, Any], *paths: str) -> Reply:
        """Take a plan back, or some files of it."""
        selection = {"paths": list(paths)} if paths else {}
        return self.agent.call("undo_plan", plan_id=plan["plan_id"], **selection)


def _changes(folders: dict[str, str | None]) -> list[dict[str, str]]:
    return [
        {"path": name.replace("__", "."), **({"folder": folder} if folder is not None else {})}
        for name, folder in folders.items()
    ]


@contextmanager
def tidying(root: Path, state: Path, **options: Any) -> Iterator[Tidier]:
    """Connect an agent."""
    with Agent([root], state, **options) as agent:
        yield Tidier(agent, root, state)


def organise(state: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `holdfast organise` in a process of its own."""
    environment = {**os.environ, "HOLDFAST_STATE_DIR": str(state)}
    words = command("organise", *arguments)
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)


def approved(state: Path, plan: str = "") -> dict[str, Any]:
    """Look at a plan, the newest when none is named, and approve it by its code."""
    plan_shown = organised(state, "show", plan)
    return organised(state, "approve", plan_shown["plan_id"], plan_shown["code"], "--yes")


def organised(state: Path, *arguments: str) -> dict[str, Any]:
    """Run it with --json, see that it succeeded and return what it printed."""
    done = organise(state, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
