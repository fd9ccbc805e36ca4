"""A state folder under load, for tests of backups: changes, stored files and a plan, with what was acknowledged when."""

import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.agent import Agent, Reply
from tests.helpers.doors import House
from tests.helpers.organising import Tidier
from tests.helpers.trees import plant

PROJECT = "load"
SETTINGS = {"mcp": {"files": {"search": {"embedder": {"kind": "none"}}}}}
SONG_COUNT = 4_000


@dataclass
class Load:
    """Agents at work, and what they were told is done, in order."""

    house: House
    change_ids: list[str] = field(default_factory=list)
    deleted: dict[str, tuple[Path, bytes]] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    plan_id: str = ""
    _ended: threading.Event = field(default_factory=threading.Event)

    def edit(self) -> None:
        """Write, edit and delete files until the end; the deleted ones are too large for the journal's rows."""
        chance, number = random.Random(1), 0
        with Agent([self.house.root], self.house.state) as agent:
            while not self._ended.is_set():
                number += 1
                small = agent.call("write_file", path=f"edited{number % 20}.txt", content=f"text {number}\n").ok()
                self.change_ids.append(change_of(small))
                path, content = self.house.root / f"large{number}.txt", chance.randbytes(80_000).hex().encode()
                path.write_bytes(content)
                change_id = change_of(agent.call("delete_file", path=path.name).ok())
                self.deleted[change_id] = (path, content)
                self.change_ids.append(change_id)

    def store(self) -> None:
        """Write files to the project store until the end."""
        number = 0
        with Agent([self.house.root], self.house.state) as agent:
            while not self._ended.is_set():
                number += 1
                path, text = f"/notes/{number}.md", f"note {number} " + "word " * (number % 300)
                agent.call("file_write", project=PROJECT, path=path, content=text, mode="TRUNCATE").ok()
                self.stored[path] = text

    def end(self) -> None:
        """Let the agents finish what they are doing."""
        self._ended.set()


@contextmanager
def load_on(house: House) -> Iterator[Load]:
    """Serve a house and keep agents at work in it: changes, stored files, and a plan of thousands of moves."""
    load = Load(house)
    house.settings(json.dumps({"settings": SETTINGS}))
    plant(house.root / "songs", {f"song{number}.mp3": f"song {number}" for number in range(SONG_COUNT)})
    with house.serve(str(house.root)), Agent([house.root], house.state) as agent:
        tidier = Tidier(agent, house.root, house.state)
        plan = tidier.plan("songs")
        tidier.approve(plan)
        load.plan_id = plan["plan_id"]
        threads = [threading.Thread(target=load.edit), threading.Thread(target=load.store)]
        execution: Future[Reply] = agent.start("execute_plan", {"plan_id": load.plan_id})
        try:
            for thread in threads:
                thread.start()
            yield load
        finally:
            load.end()
            for thread in threads:
                thread.join(60)
            execution.result(timeout=120).ok()


def change_of(reply: Reply) -> str:
    """Return the id of the change that an answer names."""
    return next(line for line in reply.text.splitlines() if line.startswith("change ")).split()[1]


def listed_changes(house: House) -> dict[str, dict[str, Any]]:
    """Return every change that a state folder knows, by id."""
    changes: dict[str, dict[str, Any]] = {}
    older: list[str] = []
    while True:
        ran = house.run("changes", "list", "--json", "--limit", "1000", *older)
        assert ran.returncode == 0, ran.stderr
        page = json.loads(ran.stdout)
        changes |= {change["change_id"]: change for change in page["changes"]}
        if not page["has_more"]:
            return changes
        older = ["--older", page["changes"][-1]["change_id"]]


def elsewhere(house: House, folder: Path) -> House:
    """Return a house with the same files and a state folder of its own."""
    folder.mkdir()
    other = House(folder)
    other.root = house.root
    return other
