"""A thousand secrets go through the server as contents, names, queries, keys and replacement texts. None is in any log.

Looked at: what a server in the foreground prints, the log of one in the background, what relays and commands print on
stderr, the call logs of the user and of a tenant, the metrics, what is sent to Langfuse and to a collector of traces, the
lines that faults of calls, threads and requests leave, the console's events, and the errors of agents and of the console. A
name may stand in its owner's call log; a name or a query in the answer to the caller who gave it.
"""

import hashlib
import json
import re
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.helpers.agent import Agent
from tests.helpers.collector import Collector, trace_collector
from tests.helpers.console import Page, sign_in
from tests.helpers.databases import postgres_database
from tests.helpers.disks import noise
from tests.helpers.doors import INITIALIZE, House, until
from tests.helpers.events import EventReader
from tests.helpers.langfuse import LangfuseServer, langfuse_server
from tests.helpers.models import ModelServer, model_server
from tests.helpers.remote import RemoteAgent

pytestmark = pytest.mark.timeout(240)

MARK = "canary"
ROUNDS = 40


@dataclass
class Canaries:
    """Secrets by what they were used as."""

    used: dict[str, list[str]] = field(default_factory=dict)

    def new(self, kind: str) -> str:
        """Return a secret that nobody has seen before."""
        secret = f"{MARK}{secrets.token_hex(12)}"
        self.used.setdefault(kind, []).append(secret)
        return secret

    def leaked(self, text: str, *, may_hold: str = "") -> list[str]:
        """Return what a text holds of them, as `kind secret`, but for the kinds that it may hold."""
        return [
            f"{kind} {secret}"
            for kind, found in self.used.items()
            if kind not in may_hold.split()
            for secret in found
            if secret in text
        ]


@dataclass
class Scene:
    house: House
    langfuse: LangfuseServer
    collector: Collector
    models: ModelServer
    canaries: Canaries
    internal_errors: list[str] = field(default_factory=list)
    console_errors: list[str] = field(default_factory=list)
    command_errors: list[str] = field(default_factory=list)


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """Give a house with listed keys that tells Langfuse of plans and a collector of calls, on each database."""
    with langfuse_server() as langfuse, trace_collector() as collector, model_server() as models, ExitStack() as stack:
        models.behave(lambda request: request.answer(request.body, 500))
        environment = langfuse.environment
        if request.param == "postgres":
            server_url = request.getfixturevalue("postgres_server_url")
            environment["DATABASE_URL"] = stack.enter_context(postgres_database(server_url))
        yield Scene(House(tmp_path, **environment), langfuse, collector, models, Canaries())


def use_as_agent(agent: Agent, scene: Scene) -> None:
    """Call the local tools with secrets in every place, rightly and wrongly."""
    new, house = scene.canaries.new, scene.house
    name = f"{new('name')}.txt"
    text, other = new("content"), new("replacement")
    (house.root / name).write_text(f"{text}\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_text_file", {"path": name}),
        ("read_text_file", {"path": f"{new('name')}/none"}),
        ("read_text_file", {"path": name, new("key"): new("content")}),
        ("read_files", {"files": [{"path": name, new("key"): 1}]}),
        ("grep_content", {"pattern": new("query"), "search_path": "."}),
        ("grep_content", {"pattern": f"({new('query')}", "search_path": "."}),
        ("search_files", {"path": ".", "pattern": f"*{new('query')}*", "excludePatterns": [new("query")]}),
        ("search_folders", {"query": new("query")}),
        ("query_json", {"file_path": name, "expression": f".{new('query')}"}),
        ("edit_file", {"path": name, "edits": [{"oldText": text, "newText": other}]}),
        ("edit_file", {"path": name, "edits": [{"oldText": new("replacement"), "newText": new("replacement")}]}),
        (
            "edit_files",
            {"changes": [{"path": name, "edits": [{"old_string": other, "new_string": new("replacement")}]}]},
        ),
        ("write_file", {"path": f"{new('name')}.md", "content": new("content")}),
        ("write_file", {"path": f"{new('name')}/no/such", "content": new("content") * 5_000}),
        ("append_text", {"path": name, "text": new("content")}),
        ("move_file", {"source": f"{new('name')}", "destination": new("name")}),
        (
            "file_write",
            {"project": "p", "path": f"/{new('name')}", "content": new("content"), "idempotency_key": new("key")},
        ),
        ("file_search", {"project": "p", "query": new("query")}),
        (
            "mcp_pipe",
            {"steps": [{"id": "a", "tool": "write_file", "arguments": {"path": name, "content": new("content")}}]},
        ),
        ("mcp_pipe", {"steps": [{"id": new("key"), "tool": new("key"), "arguments": {new("key"): new("key")}}]}),
        (new("key"), {"path": new("content")}),
        ("crash", {"path": new("name"), "content": new("content")}),
        ("undo_change", {"change_id": new("key")}),
    ]
    for tool, arguments in calls:
        reply = agent.call_with(tool, arguments)
        if reply.is_error and reply.code == "INTERNAL":
            scene.internal_errors.append(reply.text)


def use_as_tenant(tenant: RemoteAgent, scene: Scene) -> None:
    """Call the store's tools with secrets in every place."""
    new = scene.canaries.new
    path = f"/{new('name')}"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("file_write", {"project": "p", "path": path, "content": new("content"), "idempotency_key": new("key")}),
        ("file_write", {"project": "p", "path": path, "content": new("content"), "mode": new("key")}),
        ("file_read", {"project": "p", "path": f"/{new('name')}"}),
        ("file_search", {"project": "p", "query": new("query")}),
        ("file_rename", {"project": "p", "from_path": path, "to_path": f"/{new('name')}"}),
        ("crash", {"path": new("name"), "content": new("content")}),
    ]
    for tool, arguments in calls:
        reply = tenant.call_with(tool, arguments)
        if reply.is_error and reply.code == "INTERNAL":
            scene.internal_errors.append(reply.text)


def plan_and_review(agent: Agent, scene: Scene) -> None:
    """Make a plan, whose trace goes to Langfuse, and a proposal that is sent back with a comment."""
    new, house = scene.canaries.new, scene.house
    for number in range(8):
        (house.root / f"invoice {number} {new('name')}.txt").write_text(f"invoice {new('content')} total 12 EUR\n")
    agent.call("create_organization_plan", folder_path=".", subfolders=False)
    agent.call("create_organization_plan", folder_path=".")
    agent.call("propose_and_review", path=f"{new('name')}.md", new_string=new("replacement"))
    ran = house.run("review", "list", "--json")
    review_id = json.loads(ran.stdout)["reviews"][0]["review_id"]
    house.run("review", "revise", review_id, "-m", new("content"))


def use_as_person(page: Page, scene: Scene) -> None:
    """Call entries of the console rightly and wrongly, and commands."""
    new, house = scene.canaries.new, scene.house
    name, text = f"{new('name')}.txt", new("content")
    path = str(house.root / name)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": path, "content": text}),
        ("write_file", {"path": f"{path}/beneath", "content": new("content")}),
        ("write_file", {"path": path, "content": [new("content")]}),
        ("edit_file", {"path": path, "edits": [{"oldText": text, "newText": new("replacement")}]}),
        ("edit_file", {"path": path, "edits": new("replacement")}),
        ("read_text_file", {"path": str(house.root / new("name"))}),
        ("grep_content", {"pattern": f"({new('query')}", "search_path": str(house.root)}),
        ("search_folders", {"query": new("query") * 1_000, "path": str(house.root)}),
        ("file_search", {"project": "p", "query": new("query")}),
        ("file_write", {"project": "p", "path": f"/{new('name')}", "content": new("content"), "mode": "NONE"}),
        ("crash", {"path": new("name"), "content": new("content")}),
    ]
    for entry, arguments in calls:
        answer = page.post(entry, arguments)
        if answer.status_code != 200:
            scene.console_errors.append(answer.text)
    scene.console_errors.append(
        httpx2.post(f"{page.url}/api/write_file", content=new("content"), headers=page.headers).text
    )
    commands: list[tuple[list[str], str]] = [
        (["call", "write_file", "--dir", str(house.root), "--json", "-"], json.dumps({"content": new("content")})),
        (["call", "edit_file", "--dir", str(house.root), "--json", "-"], f"{{{new('replacement')}"),
        (["call", "crash", "--json", "-"], json.dumps({"path": new("name"), "content": new("content")})),
        (["files", "put", "-p", "p", f"/{new('name')}/"], new("content")),
        (["files", "cat", "-p", "p", f"/{new('name')}"], ""),
        (["files", "search", "-p", "p", new("query")], ""),
        (["search", new("query"), str(house.root / new("name"))], ""),
    ]
    for words, stdin in commands:
        ran = house.run_bytes(*words, stdin=stdin.encode())
        scene.command_errors.append(ran.stderr.decode())


def knock_at_the_door(house: House, canaries: Canaries) -> None:
    """Send keys that are wrong, and messages that are broken."""
    for body in (b"{", b"[]", json.dumps({canaries.new("key"): canaries.new("content")}).encode(), b"\xff" * 20):
        headers = {"authorization": f"Bearer {canaries.new('key')}", "x-model-key": canaries.new("key")}
        httpx2.post(f"{house.url}/mcp", content=body, headers=headers)
        headers = {"authorization": f"Bearer {house.token}", canaries.new("key"): canaries.new("key")}
        httpx2.post(f"{house.url}/mcp?{canaries.new('key')}=1", content=body, headers=headers)
        httpx2.get(f"{house.url}/{canaries.new('key')}")
        answer = httpx2.get(
            f"{house.url}/crash/{canaries.new('name')}", headers={"authorization": f"Bearer {house.token}"}
        )
        assert answer.status_code == 500


@pytest.mark.req("SV-31")
def test_no_secret_is_in_any_log_and_a_name_only_in_its_owners(scene: Scene, tmp_path: Path) -> None:
    house, canaries = scene.house, scene.canaries
    traces = {"endpoint": scene.collector.url}
    search = {"rerank": {"endpoint": f"{scene.models.url}/rerank"}}
    tree = {
        "auth": {"mode": "listed"},
        "review": {"wait_seconds": 0},
        "observe": {"traces": traces},
        "mcp": {"files": {"search": search}},
    }
    house.settings(json.dumps({"settings": tree}))
    printed = tmp_path / "printed"
    command = [sys.executable, "-m", "tests.helpers.crashing_server", "serve", "--port", "0", str(house.root)]
    with printed.open("wb") as output:
        server = subprocess.Popen(command, env=house.env, stdout=output, stderr=subprocess.STDOUT)
    try:
        until("the server is up", lambda: house.facts().get("pid") == server.pid)
        key = json.loads(house.run("keys", "create", "--json", "--label", "tenant").stdout)["key"]
        page, relayed = sign_in(house), tmp_path / "relayed"
        with (
            Agent([house.root], house.state, errors_to=relayed) as agent,
            RemoteAgent(house.url, key) as tenant,
            EventReader(page) as events,
        ):
            for _ in range(ROUNDS):
                use_as_agent(agent, scene)
                use_as_tenant(tenant, scene)
            plan_and_review(agent, scene)
            use_as_person(page, scene)
            told = events.collect(0.5)
        knock_at_the_door(house, canaries)
        own_log = house.run("calls", "--json", "--limit", "1000").stdout
        metrics_key = house.state / "metrics.token"
        metrics = ""
        if metrics_key.exists():
            headers = {"authorization": f"Bearer {metrics_key.read_text().strip()}"}
            metrics = httpx2.get(f"{house.url}/metrics", headers=headers).text
            assert "holdfast_calls_total" in metrics
        tenants_log = httpx2.get(
            f"{house.url}/api/logs", params={"limit": "1000"}, headers={"authorization": f"Bearer {key}"}
        ).text
        assert sum(map(len, canaries.used.values())) >= 1_000
        assert len(json.loads(own_log)["calls"]) > ROUNDS * 20
        assert len(json.loads(tenants_log)["calls"]) == ROUNDS * 6
        assert scene.internal_errors
        watched = house.run("status", "--json").stdout + house.run("index", "status").stdout
    finally:
        server.terminate()
        server.wait(20)
    assert canaries.leaked(own_log, may_hold="name") == []
    assert canaries.leaked(tenants_log, may_hold="name") == []
    assert canaries.leaked(metrics) == []
    assert canaries.leaked("\n".join(scene.internal_errors)) == []
    assert {"change.made", "plan.changed", "review.opened"} <= {event.name for event in told}
    assert canaries.leaked(str(told)) == []
    assert canaries.leaked(watched) == []
    assert len(scene.console_errors) >= 8
    assert canaries.leaked("\n".join(scene.console_errors), may_hold="name query") == []
    assert len(list(filter(None, scene.command_errors))) >= 6
    assert canaries.leaked("\n".join(scene.command_errors), may_hold="name query") == []
    assert canaries.leaked(relayed.read_text()) == []
    lines = printed.read_text(errors="replace")
    assert canaries.leaked(lines) == []
    for fault in ("in crash", "that ended crashing", "that nobody could catch", "in a request over http"):
        assert re.search(f"fault.* {fault}: RuntimeError at crashing_server.py", lines), fault
    assert any("rerank" in request.path for request in scene.models.requests)
    assert "reranker_failed" in lines
    scene.langfuse.over.wait(0)
    names = {span.name for span in scene.collector.spans}
    assert {"tools/call write_file", "tools/call (unknown)", "child process", "index words"} <= names
    assert len(scene.collector.spans) > ROUNDS * 25
    assert canaries.leaked("\n".join(body.decode("latin-1") for body in scene.collector.bodies)) == []
    assert canaries.leaked(str(scene.collector.spans)) == []
    assert hashlib.sha256(key.encode()).hexdigest() not in str(scene.collector.spans)
    assert scene.langfuse.bodies
    assert canaries.leaked("\n".join(body.decode("latin-1") for body in scene.langfuse.bodies)) == []
    rows = recorded_rows(house)
    assert len(rows) > ROUNDS * 25
    assert canaries.leaked("\n".join(rows), may_hold="name") == []
    assert canaries.used["name"][0] in "\n".join(rows)


@pytest.mark.req("SV-31")
def test_no_secret_is_in_the_log_of_a_background_server_nor_in_what_its_relay_prints(
    scene: Scene, tmp_path: Path
) -> None:
    house, canaries, relayed = scene.house, scene.canaries, tmp_path / "relayed"
    house.settings(json.dumps({"settings": {"review": {"wait_seconds": 0}, "journal": {"max_bytes": 200_000}}}))
    missing = house.root / canaries.new("name")
    with Agent([house.root, missing], house.state, env=house.environment, errors_to=relayed) as agent:
        for _ in range(3):
            use_as_agent(agent, scene)
        plan_and_review(agent, scene)
        for number in range(12):
            (house.root / f"{canaries.new('name')}.bin").write_bytes(noise(30_000, number))
        for path in house.root.glob("*.bin"):
            agent.call("delete_file", path=path.name)
        until("the log warns", lambda: "nearly full" in (house.state / "server.log").read_text())
    with house.bare_relay("/", **house.environment) as relay:
        relay.ask("init", "initialize", **{**INITIALIZE, "capabilities": {"roots": {}}})
        relay.send(method="notifications/initialized")
        relay.send(id=1, method="tools/list")
        asked = relay.read()
        while asked.get("method") != "roots/list":
            asked = relay.read()
        root = {"uri": f"file:///{canaries.new('name')}"}
        relay.send(id=asked["id"], result={"roots": [root]})
        until(
            "the roots are skipped", lambda: "roots that a client declared" in (house.state / "server.log").read_text()
        )
    assert house.run("stop").returncode == 0
    until("the server ended", lambda: not house.facts())
    log = (house.state / "server.log").read_text(errors="replace")
    assert "allowed directory 2 of 2 skipped" in log
    assert canaries.leaked(log) == []
    assert canaries.leaked(relayed.read_text()) == []


def recorded_rows(house: House) -> list[str]:
    """Return every row of every call log as text, past all walls."""
    rows: list[str] = []
    for database in (house.state / "state.db", *(house.state / "store").glob("*.db")):
        connection = sqlite3.connect(database)
        rows += [repr(row) for row in connection.execute("SELECT * FROM mcp_calls")]
        connection.close()
    if url := house.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as owner:
            rows += [repr(row) for row in owner.execute("SELECT * FROM mcp_calls")]
    return rows
