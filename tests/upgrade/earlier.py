"""Fills a state folder and a database by running the code of an earlier commit, taken from the history of this checkout."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.agent import Agent
from tests.helpers.doors import House, is_alive, until
from tests.helpers.organising import Tidier
from tests.helpers.reviewer import TEXT, Reviewer
from tests.helpers.trees import plant

TOP = Path(__file__).parents[2]
COMMIT = "700053ff33ca6991a3bbb2cbc5aace848dc83ec3"
SETTINGS = {
    "review": {"wait_seconds": 0.5},
    "mcp": {"files": {"search": {"embedder": {"kind": "none"}}}},
}
SONGS = (3_000, 10_000, 30_000)
PROJECT = "notes"


def extract_source(commit: str, folder: Path) -> Path:
    """Write the package as a commit had it below a folder and return the folder to put on PYTHONPATH."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=TOP, capture_output=True, check=False)
    assert archive.returncode == 0, f"the history of this clone has no commit {commit}: fetch all of it"
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


@dataclass
class Earlier:
    """What the earlier code left behind: where, and the ids that a client was told."""

    house: House
    change_ids: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    song_count: int = 0


@contextmanager
def serve(house: House, source: Path | None = None) -> Iterator[Agent]:
    """Serve the house with the code below `source`, or with this checkout's, and connect a client to it."""
    env = {"PYTHONPATH": str(source)} if source else {}
    house.environment.update(env)
    try:
        with house.serve(str(house.root)), Agent([house.root], house.state, env=env) as agent:
            yield agent
    finally:
        for name in env:
            del house.environment[name]


def fill(house: House, source: Path) -> Earlier:
    """Leave changes, reviews, plans and stored files in every state behind; the server is killed while a plan runs."""
    house.settings(json.dumps({"settings": SETTINGS}))
    earlier = Earlier(house)
    with serve(house, source) as agent:
        _make_changes(agent, earlier)
        _make_reviews(Reviewer(agent, house.root, house.state), earlier)
        _make_stored_files(agent)
        _make_plans(Tidier(agent, house.root, house.state), earlier)
        _kill_while_a_plan_runs(Tidier(agent, house.root, house.state), earlier)
    return earlier


def _make_changes(agent: Agent, earlier: Earlier) -> None:
    agent.call("write_file", path="edited.txt", content="first\n").ok()
    agent.call("edit_file", path="edited.txt", edits=[{"oldText": "first", "newText": "second"}]).ok()
    plant(earlier.house.root, {"deleted.txt": "precious\n", "moved.txt": "travels\n"})
    agent.call("delete_file", path="deleted.txt").ok()
    agent.call("move_file", source="moved.txt", destination="elsewhere.txt").ok()
    agent.call("create_directory", path="made").ok()
    changes = agent.call("list_changes").ok().data["changes"]
    earlier.change_ids = {f"{change['kind']}": change["change_id"] for change in changes}


def _make_reviews(reviewer: Reviewer, earlier: Earlier) -> None:
    decisions = {"open": None, "approved": "approve", "rejected": "reject", "committed": "approve"}
    for name, decision in decisions.items():
        reviewer.write(f"{name}.txt")
        answer = reviewer.propose(path=f"{name}.txt", old_string="line 7\n", new_string=f"{name} 7\n")
        earlier.sessions[name] = answer["session_path"]
        if decision is not None:
            waiting = reviewer.person("pending_reviews")["reviews"]
            (review,) = [each for each in waiting if each["path"].endswith(f"/{name}.txt")]
            more = {"reason": "no"} if decision == "reject" else {}
            reviewer.decide(review, decision, **more)
    reviewer.commit(earlier.sessions["committed"], "committed.txt").ok()


def _make_stored_files(agent: Agent) -> None:
    for text in ("the heron waits\n", "the heron flies\n"):
        agent.call("file_write", project=PROJECT, path="/birds.md", content=text, mode="TRUNCATE").ok()
    agent.call("file_write", project=PROJECT, path="/gone.md", content="an owl\n").ok()
    agent.call("file_delete", project=PROJECT, path="/gone.md").ok()

    def is_indexed() -> bool:
        hits = agent.call("file_search", project=PROJECT, query="heron").ok().data["chunks"]
        return bool(hits)

    until("the stored file is found", is_indexed)


def _make_plans(tidier: Tidier, earlier: Earlier) -> None:
    for name in ("proposed", "approved", "executed", "undone"):
        plant(tidier.root, {name: {f"{name}{number}.mp3": f"{name} {number}" for number in range(3)}})
        plan = tidier.plan(name)
        earlier.plans[name] = plan["plan_id"]
        if name != "proposed":
            tidier.approve(plan)
        if name in ("executed", "undone"):
            tidier.execute(plan).ok()
        if name == "undone":
            tidier.undo(plan).ok()


def _kill_while_a_plan_runs(tidier: Tidier, earlier: Earlier) -> None:
    """Kill the server in the middle of a plan; on a busy machine a plan may be over too soon, and a longer one follows."""
    songs = tidier.root / "running"
    pid = int(json.loads((tidier.state / "server.json").read_text())["pid"])
    for count in SONGS:
        shutil.rmtree(songs, ignore_errors=True)
        plant(songs, {f"song{number}.mp3": f"song {number}" for number in range(count)})
        plan = tidier.plan("running")
        earlier.plans["running"] = plan["plan_id"]
        tidier.approve(plan)
        execution = tidier.agent.start("execute_plan", {"plan_id": plan["plan_id"]})
        until("some files have moved", lambda total=count: len(list(songs.glob("*.mp3"))) < total - 150)
        os.kill(pid, signal.SIGSTOP)
        earlier.song_count = count
        if list(songs.glob("*.mp3")):
            break
        os.kill(pid, signal.SIGCONT)
        execution.result(timeout=60)
    os.kill(pid, signal.SIGKILL)
    until("the server is gone", lambda: not is_alive(pid))
    execution.cancel()
    assert list(songs.glob("*.mp3")), "every plan was over before the server was stopped"


def person(earlier: Earlier, agent: Agent) -> Reviewer:
    """Return the person of the state folder beside a client."""
    return Reviewer(agent, earlier.house.root, earlier.house.state)


def committed_text(name: str) -> str:
    """Return what a reviewed file holds after its review was committed."""
    return TEXT.replace("line 7\n", f"{name} 7\n")


def answer(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed and return its data."""
    return agent.call(tool, **arguments).ok().data
