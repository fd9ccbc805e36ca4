"""The project store as a deployment: a server on each database, its clients, and direct reads of its tables."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.auth.context import LOCAL_TENANT, LOCAL_USER
from tests.helpers.agent import Agent, Reply
from tests.helpers.databases import Backend, postgres_backend, sqlite_backend
from tests.helpers.doors import House
from tests.helpers.remote import RemoteAgent

OPEN = {"auth": {"mode": "open"}, "limits": {"tenant": dict.fromkeys(("read_per_minute", "write_per_minute"), 0)}}
SMALL = {
    "allow_root_wipe": True,
    "max_payload_bytes": 100,
    "max_file_bytes": 250,
    "max_project_bytes": 1000,
    "versions_kept": 2,
}


@dataclass
class Deployment:
    """One `holdfast serve` in the foreground, and its database opened beside it as another instance would."""

    house: House
    backend: Backend
    agent: Agent

    @property
    def is_postgres(self) -> bool:
        """Return which database it is."""
        return self.backend.name == "postgres"

    def tenant(self, key: str) -> Agent:
        """Return a client of the HTTP door with a key of its own; a context manager."""
        return RemoteAgent(self.house.url, key)

    def another_client(self) -> Agent:
        """Return one more client of this machine's user; a context manager."""
        return Agent([self.house.root], self.house.state)

    @contextmanager
    def holding(self, project: str) -> Iterator[None]:
        """Hold the lock of a project of the local user, as another instance would."""
        with self.backend.database().mutation(LOCAL_TENANT, project, 3000) as mutation:
            assert mutation.state is not None, "asking for it waits until the lock is there"
            yield

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return rows of the local user's tables, past every wall."""
        return self.backend.look(LOCAL_USER, query)


def words_alone(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with no model, unless they name one."""
    mcp = settings.get("mcp", {})
    files = {"search": {"embedder": {"kind": "none"}}, **mcp.get("files", {})}
    return {**settings, "mcp": {**mcp, "files": files}}


@contextmanager
def deployed(folder: Path, settings: dict[str, Any], database_url: str | None) -> Iterator[Deployment]:
    """Run a server on PostgreSQL, or on SQLite without an address, until the end.

    It indexes words alone unless the settings say something about search: embedding takes the machine's whole strength.
    """
    house = House(folder, **({"DATABASE_URL": database_url} if database_url else {}))
    house.settings(json.dumps({"settings": words_alone(settings)}))
    with ExitStack() as stack:
        stack.enter_context(house.serve(str(house.root)))
        beside = postgres_backend(database_url) if database_url else sqlite_backend(house.state / "store")
        backend = stack.enter_context(beside)
        agent = stack.enter_context(Agent([house.root], house.state))
        yield Deployment(house, backend, agent)


@dataclass(frozen=True)
class Files:
    """The store's tools with the project filled in."""

    agent: Agent
    project: str

    def __call__(self, tool: str, **arguments: Any) -> Reply:
        return self.agent.call(tool, **{"project": self.project, **arguments})

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed and return its data."""
        return self(tool, **arguments).ok().data

    def write(self, *paths: str) -> None:
        """Make files that hold their own path."""
        for path in paths:
            self("file_write", path=path, content=path).ok()

    def text(self, path: str) -> str:
        """Return what a file holds."""
        return str(self.data("file_read", path=path)["content"])

    def replace(self, path: str, text: str) -> None:
        """Make a file hold a text."""
        self("file_write", path=path, content=text, mode="TRUNCATE").ok()

    def paths(self) -> list[str]:
        """Return the paths of all files, as listed."""
        entries = self.data("file_list", depth=99)["entries"]
        return [entry["path"] for entry in entries if entry["type"] == "FILE"]
