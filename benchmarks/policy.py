"""What every tool answers under every kind of rule of the policy, through the official client.

    python benchmarks/policy.py

It prints Markdown: a row for each tool and a column for each access. Each access is given by a rule with a pattern, with a
root, with both, and for a client alone; where the four differ, the cell says so.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conftest import stop_server
from tests.helpers.agent import Agent, Reply
from tests.helpers.doors import until
from tests.helpers.reviewer import Reviewer, with_settings
from tests.helpers.verbs import CHANGING, EDIT, READING

ACCESSES = ("allow", "review", "read-only", "deny")
CLIENT = "auditor"
FORMS: dict[str, Callable[[Path], dict[str, str]]] = {
    "pattern": lambda _root: {"glob": "ruled/**"},
    "root": lambda root: {"root": str(root / "ruled")},
    "root and pattern": lambda root: {"root": str(root), "glob": "/ruled/*"},
    "client": lambda _root: {"glob": "ruled/**", "client": "audit*"},
}
PATHS = {"list_directory": "box", "list_directory_with_sizes": "box", "directory_tree": "box", "search_files": "box"}
PATHS |= {"search_folders": "box", "create_directory": "new", "query_json": "a.json", "query_yaml": "a.json"}
PATHS |= {"read_media_file": "a.png", "create_organization_plan": "heap"}
"""What a tool is tried on, beneath the directory of the rule; all others on a text of their own."""


def plant(root: Path) -> None:
    """Make what the tools are tried on."""
    ruled = root / "ruled"
    (ruled / "box").mkdir(parents=True)
    (root / "free").mkdir()
    for name in (*READING, *CHANGING, "box/a", "undone", "approved", "proposed"):
        (ruled / f"{name}.txt").write_text("plain text with a token\n")
    (ruled / "a.json").write_text('{"a": "plain"}')
    Image.new("RGB", (2, 2)).save(ruled / "a.png")
    for heap in ("heap", "heap2"):
        for folder in ("Invoices", "Letters"):
            (ruled / heap / folder).mkdir(parents=True)
            for number in range(6):
                (ruled / heap / folder / f"{folder} {number}.txt").write_text(f"{folder} about paper {number}\n")
        (ruled / heap / "Invoices extra.txt").write_text("Invoices about paper\n")


def word(reply: Reply) -> str:
    """Return what came of a call, in a word: the code of a refusal, `waits` for the person, or `yes`."""
    if reply.refusals:
        return reply.refusals[0]
    text = reply.text + json.dumps(reply.result.structured_content or {})
    return "waits for you" if "PENDING" in text and "session_path" in text else "yes"


class Bench:
    """One tree, one client, and the rules that are in force."""

    def __init__(self, agent: Agent, root: Path, state: Path) -> None:
        self.agent, self.root, self.state = agent, root, state
        self.desk = Reviewer(agent, root, state)

    def rule(self, rules: list[dict[str, str]]) -> None:
        """Put rules in force and wait for them."""
        marker = f"marker{os.urandom(4).hex()}"
        (self.root / marker).write_text("")
        settings = {"review": {"wait_seconds": 0.1}, "folders": {"compat": True}}
        policy = {"rules": [*rules, {"glob": marker, "access": "deny"}]}
        with_settings(self.state, {**settings, "organiser": {"require_approval": False}, "policy": policy})
        until("the rules hold", lambda: self.agent.call("read_text_file", path=marker).is_error)

    def prepare(self) -> dict[str, dict[str, Any]]:
        """Do, propose and plan before the rule what is asked for under it; return how each is then asked for."""
        call = self.agent.call
        call("write_file", path="ruled/undone.txt", content="x").ok()
        change = call("list_changes").ok().data["changes"][0]["change_id"]
        session = self.desk.propose(path="ruled/approved.txt", edits=EDIT)["session_path"]
        (review,) = self.desk.waiting()
        self.desk.decide(review, "approve")
        plan, executed = (
            call("create_organization_plan", folder_path=f"ruled/{heap}").ok().data["plan_id"]
            for heap in ("heap", "heap2")
        )
        call("execute_plan", plan_id=executed).ok()
        step = {"id": "a", "tool": "write_file", "arguments": {"path": "ruled/new.txt", "content": "x"}}
        read = {"id": "a", "tool": "read_text_file", "arguments": {"path": "ruled/box/a.txt"}}
        keep = {"path": "Invoices extra.txt", "folder": "Letters"}
        return {
            "undo_change": {"change_id": change},
            "commit_review": {"session_path": session, "original_path": "ruled/approved.txt"},
            "get_plan": {"plan_id": plan},
            "revise_plan": {"plan_id": plan, "changes": [keep]},
            "execute_plan": {"plan_id": plan},
            "undo_plan": {"plan_id": executed},
            "mcp_pipe, a step that reads": {"steps": [read]},
            "mcp_pipe, a step that writes": {"steps": [step]},
        }

    def try_all(self, rule: dict[str, str], access: str) -> Iterator[tuple[str, str]]:
        """Yield each tool with what came of it."""
        self.rule([])
        plant(self.root)
        prepared = self.prepare()
        self.rule([{**rule, "access": access}])
        for tool, arguments in {**READING, **CHANGING}.items():
            reply = self.agent.call(tool, **arguments(f"ruled/{PATHS.get(tool, f'{tool}.txt')}"))
            if tool == "search_folders" and not reply.is_error and "token" not in reply.text:
                reply = until("it is indexed", self._search)
            yield tool, word(reply)
        for step_name, values in prepared.items():
            reply = self.agent.call(step_name.split(",")[0], **values)
            if step_name.startswith("mcp_pipe"):
                (step,) = reply.data["steps"]
                code = (step.get("error") or {}).get("code")
                yield step_name, code or ("waits for you" if "PENDING" in json.dumps(step) else "yes")
            else:
                yield step_name, word(reply)
        listed = self.agent.call("list_changes").ok().text
        yield "list_changes", "listed" if "undone.txt" in listed else "left out"
        yield "list_reviews", "listed" if "ruled" in self.agent.call("list_reviews").ok().text else "left out"

    def _search(self) -> Reply | None:
        reply = self.agent.call("search_folders", query="token", path="ruled/box")
        return reply if "token" in reply.text else None


@contextlib.contextmanager
def open_bench() -> Iterator[Bench]:
    """Connect a client to a server of its own."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-policy-")))
        root, state = folder / "tree", folder / "state"
        root.mkdir()
        with_settings(state, {})
        stack.callback(stop_server, state)
        yield Bench(stack.enter_context(Agent([root], state, name=CLIENT, version="1")), root, state)


def main() -> None:
    """Print the table."""
    cells: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for form, make_rule in FORMS.items():
        for access in ACCESSES:
            with open_bench() as bench:
                for tool, came in bench.try_all(make_rule(bench.root), access):
                    cells[tool][access][came].append(form)
    print("| tool | " + " | ".join(ACCESSES) + " |\n|---|---|---|---|---|")
    for tool, row in cells.items():
        print(f"| {tool} | " + " | ".join(cell(row[access]) for access in ACCESSES) + " |")


def cell(outcomes: dict[str, list[str]]) -> str:
    """Return one outcome, or each with the forms of rules that had it."""
    if len(outcomes) == 1:
        return next(iter(outcomes))
    return "; ".join(f"{came} ({', '.join(forms)})" for came, forms in outcomes.items())


if __name__ == "__main__":
    main()
