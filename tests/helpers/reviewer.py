"""An agent that proposes and a person who decides, both through the doors of a real server."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types

from holdfast.transport.client.calls import call_by_socket
from holdfast.transport.client.dial import NoServer
from holdfast.transport.state_folder import StateFolder
from tests.helpers.agent import MODERN, Agent, Reply, command
from tests.helpers.doors import until

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


class Reviewer:
    """One folder with one agent in it, and the person of the state folder."""

    def __init__(self, agent: Agent, root: Path, state: Path) -> None:
        self.agent = agent
        self.root = root
        self.state = state

    def write(self, name: str = "a.txt", text: str = TEXT) -> Path:
        """Put a file there as somebody else would."""
        path = self.root / name
        path.write_text(text)
        return path

    def start(self, **arguments: Any) -> "Future[Reply]":
        """Begin to propose; the answer comes with the decision."""
        return self.agent.start("propose_and_review", arguments)

    def propose(self, **arguments: Any) -> dict[str, Any]:
        """Propose, and return the answer that was given in the end."""
        return self.agent.call("propose_and_review", **arguments).ok().data

    def commit(self, session_path: str, path: str = "a.txt") -> Reply:
        """Commit a review."""
        return self.agent.call("commit_review", session_path=session_path, original_path=path)

    def person(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call one of the person's tools, as the commands do."""
        result = call_by_socket(StateFolder(str(self.state)), tool, arguments, "person")
        data: dict[str, Any] = result["structuredContent"]
        return data

    def waiting(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the person has so many open reviews of this folder, and return them."""

        def list_own() -> list[dict[str, Any]]:
            try:
                every = self.person("pending_reviews")["reviews"]
            except NoServer:
                return []
            own_reviews = [review for review in every if review["root"] == str(self.root)]
            return own_reviews if len(own_reviews) == count else []

        reviews: list[dict[str, Any]] = until(f"{count} reviews wait", list_own)
        return reviews

    def show(self, review: dict[str, Any]) -> dict[str, Any]:
        """Look at a review."""
        return self.person("show_review", review_id=review["review_id"])

    def decide(self, review: dict[str, Any], decision: str, **more: Any) -> dict[str, Any]:
        """Look at a review and decide on it."""
        view = self.show(review)
        return self.person(
            "decide_review",
            review_id=review["review_id"],
            decision=decision,
            shown_hash=view["shown_hash"],
            **more,
        )

    def sessions(self) -> set[str]:
        """Return the names of the session directories."""
        return set(os.listdir(self.state / "reviews"))

    def code(self, review_id: str = "") -> str:
        """Return the approval code that `holdfast review show` prints."""
        return str(json.loads(self.command("show", review_id, "--json").stdout)["code"])

    def approve(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Look at the one review that waits, and approve it by its code."""
        return self.command("approve", "", self.code(), "--yes", *arguments)

    def command(self, *arguments: str, stdin: str | None = None, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run `holdfast review` in a process of its own."""
        environment = {**os.environ, "HOLDFAST_STATE_DIR": str(self.state), **env}
        return subprocess.run(
            command("review", *arguments),
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


class Host:
    """The client's side of a question: keeps what was asked and answers as it was told."""

    def __init__(self, action: str = "accept", seconds: float = 0.0, **content: Any) -> None:
        self.questions: list[types.ElicitRequestFormParams] = []
        self.given_up = 0
        self._action = action
        self._seconds = seconds
        self._content = content

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params)
        try:
            await asyncio.sleep(self._seconds)
        except BaseException:
            self.given_up += 1
            raise
        content = self._content if self._action == "accept" else None
        return types.ElicitResult.model_validate({"action": self._action, "content": content})


@contextmanager
def reviewing(root: Path, state: Path, *, mode: str = MODERN, **env: str) -> Iterator[Reviewer]:
    """Connect an agent."""
    with Agent([root], state, mode=mode, env=env) as agent:
        yield Reviewer(agent, root, state)


def with_settings(state: Path, settings: dict[str, Any]) -> Path:
    """Write the settings that the servers of a state folder read; JSON is YAML."""
    state.mkdir(mode=0o700, exist_ok=True)
    (state / "settings.yml").write_text(json.dumps({"settings": settings}))
    return state
