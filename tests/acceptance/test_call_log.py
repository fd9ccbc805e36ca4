"""Every call leaves one row: whatever came of it, through whichever door, and only its owner can read it."""

import hashlib
import json
import os
import signal
import socket
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.databases import postgres_backend, postgres_database, sqlite_backend
from tests.helpers.disks import small_disk
from tests.helpers.doors import ACCEPT, INITIALIZE, MODERN_META, House, Pipes, until
from tests.helpers.person import Person
from tests.helpers.remote import RemoteAgent
from tests.helpers.scraper import scrape

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose server ends with the test."""
    made = House(tmp_path)
    yield made
    made.run("stop")
    made.end()


def calls(house: House, *options: str) -> list[dict[str, Any]]:
    ran = house.run("calls", "--json", *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)["calls"]
    return found


def outcomes(listed: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(call["tool"], call["status"], call["code"]) for call in listed]


@pytest.mark.req("SV-30.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_each_call_is_one_row_with_its_client_its_outcome_and_its_parameters(house: House, mode: str) -> None:
    with Agent([house.root], house.state, mode=mode, name="desk", version="1.2") as desk:
        desk.call("read_text_file", path="a.txt").ok()
        assert desk.call("read_text_file", path="gone.txt").code == "NOT_FOUND"
        assert desk.call("read_text_file", pfad="a.txt").code == "INVALID_ARGUMENT"
        desk.call("mcp_pipe", steps=[{"id": "x", "tool": "read_text_file", "arguments": {"path": "a.txt"}}]).ok()
    listed = calls(house)
    assert outcomes(listed) == [
        ("mcp_pipe", "ok", ""),
        ("read_text_file", "ok", ""),
        ("read_text_file", "error", "INVALID_ARGUMENT"),
        ("read_text_file", "error", "NOT_FOUND"),
        ("read_text_file", "ok", ""),
    ]
    assert {(call["client"], call["client_version"], call["tenant"], call["door"]) for call in listed} == {
        ("desk", "1.2", "local", "socket")
    }
    assert all(call["duration_ms"] > 0 and call["cost"] == 0 and call["kind"] == "agent" for call in listed)
    assert listed[-1]["parameters"] == {"path": "a.txt"}
    assert len({call["id"] for call in listed}) == 5


@pytest.mark.req("SV-30.a")
def test_a_call_of_a_tool_that_is_not_there_is_recorded_without_its_name(house: House) -> None:
    with Agent([house.root], house.state) as desk:
        assert desk.call("s3cr3t_tool", path="a.txt").code == "NOT_FOUND"
    ran = house.run("calls", "--json")
    assert outcomes(json.loads(ran.stdout)["calls"]) == [("(unknown)", "error", "NOT_FOUND")]
    assert "s3cr3t_tool" not in ran.stdout


@pytest.mark.req("SV-30.b")
def test_a_cancelled_call_and_one_whose_client_was_killed_are_recorded(house: House) -> None:
    slow = {"file_path": "big.json", "expression": "last(range(1e9))", "timeout": 60}
    (house.root / "big.json").write_text("[]")
    with house.relay() as relay:
        relay.initialize()
        relay.send(id=1, method="tools/call", params={"name": "query_json", "arguments": slow})
        time.sleep(1)
        relay.send(method="notifications/cancelled", params={"requestId": 1})
        relay.ask(2, "tools/call", name="read_text_file", arguments={"path": "a.txt"})
    with house.relay() as relay:
        relay.initialize()
        waiting = {"path": "a.txt", "old_string": "hello", "new_string": "x"}
        relay.send(id=1, method="tools/call", params={"name": "propose_and_review", "arguments": waiting})
        until("the proposal waits", lambda: "a.txt" in house.run("review", "list").stdout)
        os.kill(relay.process.pid, signal.SIGKILL)
        until("the killed client's call is recorded", lambda: calls(house, "--tool", "propose_and_review"))
    listed = {call["tool"]: (call["status"], call["code"]) for call in calls(house, "--kind", "agent")}
    assert listed["query_json"] == listed["propose_and_review"] == ("cancelled", "CANCELLED")
    assert listed["read_text_file"] == ("ok", "")


@pytest.mark.req("SV-30.b")
@pytest.mark.parametrize("door", ["http", "websocket"])
def test_a_call_whose_connection_breaks_off_is_recorded(house: House, door: str) -> None:
    (house.root / "big.json").write_text("[]")
    slow = {"file_path": str(house.root / "big.json"), "expression": "last(range(1e9))", "timeout": 60}
    running = "holdfast_children_running"
    with house.serve(str(house.root)), begun_call(house, door, {"name": "query_json", "arguments": slow}) as line:
        until("the call runs", lambda: scrape(house).value(running) == 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.shutdown(socket.SHUT_RDWR)
        until("it is recorded", lambda: outcomes(calls(house)) == [("query_json", "cancelled", "CANCELLED")])
        until("its work has ended", lambda: scrape(house).value(running) == 0)


@contextmanager
def begun_call(house: House, door: str, params: dict[str, Any]) -> Iterator[socket.socket]:
    """Send a call, and give the connection that its answer would come on."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    if door == "http":
        with closing(raw_request(house, house.token, params)) as line:
            yield line
        return
    headers = {"authorization": f"Bearer {house.token}"}
    with connect(f"{house.url.replace('http', 'ws')}/ws", additional_headers=headers) as stream:
        stream.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        stream.recv()
        stream.send(json.dumps(call))
        yield stream.socket


def raw_request(house: House, key: str, params: dict[str, Any]) -> socket.socket:
    """Send a stateless call over HTTP and return its connection."""
    line = socket.create_connection(("127.0.0.1", int(house.facts()["port"])), 10)
    params = {**params, "_meta": MODERN_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    fields = {"host": "localhost", "authorization": f"Bearer {key}", "accept": ACCEPT, "mcp-method": "tools/call"}
    fields |= {"mcp-protocol-version": "2026-07-28", "mcp-name": params["name"]}
    fields |= {"content-type": "application/json", "content-length": str(len(body))}
    head = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
    line.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n{body}".encode())
    return line


@pytest.mark.req("SV-30.b")
def test_no_call_waits_for_a_log_that_is_locked_or_fails_by_it(house: House) -> None:
    with house.serve(str(house.root)), Agent([house.root], house.state) as desk:
        desk.call("read_text_file", path="a.txt").ok()
        beside = sqlite3.connect(house.state / "state.db", isolation_level=None)
        beside.execute("BEGIN IMMEDIATE")
        slowest = 0.0
        for _ in range(30):
            began = time.monotonic()
            desk.call("read_text_file", path="a.txt").ok()
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.05)
        assert slowest < 1.0
        beside.execute("ROLLBACK")
        beside.close()
        assert outcomes(calls(house, "--limit", "100")) == [("read_text_file", "ok", "")] * 31


@pytest.mark.req("SV-30.b")
def test_a_log_that_cannot_be_written_fails_no_call_and_says_how_many_are_missing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 12_000) as disk:
        (disk.folder / "house").mkdir()
        house = House(disk.folder / "house")
        path, missing = str(house.root / "a.txt"), "holdfast_call_log_dropped_total"
        many = [{"path": path}, *({"path": f"{number}/" * 300} for number in range(11))]
        with house.serve(str(house.root)), Agent([house.root], house.state) as desk:
            desk.call("read_text_file", path=path).ok()
            with disk.filled():
                began = time.monotonic()
                while not scrape(house).value(missing):
                    replies = [desk.call("read_files", files=many) for _ in range(20)]
                    assert all("hello" in reply.text for reply in replies)
                    assert time.monotonic() - began < 60, "no row was dropped"
            recorded = calls(house, "--limit", "1")[0]["position"]
            desk.call("get_file_info", path=path).ok()
            assert calls(house, "--limit", "1")[0]["tool"] == "get_file_info"
            assert calls(house, "--limit", "1")[0]["position"] > recorded


@pytest.mark.req("SV-30.c")
def test_filters_and_pages_and_rows_that_outlive_the_server(house: House) -> None:
    with Agent([house.root], house.state, name="desk", version="1") as desk:
        for number in range(25):
            desk.call("read_text_file", path="a.txt" if number % 5 else "gone.txt")
    house.run("stop")
    assert len(calls(house, "--limit", "100")) == 25
    assert len(calls(house, "--status", "error")) == len(calls(house, "--code", "NOT_FOUND")) == 5
    assert len(calls(house, "--client", "desk", "--tool", "read_text_file")) == 25
    assert calls(house, "--client", "other") == calls(house, "--since", "2040-01-01") == []
    assert len(calls(house, "--since", "1h", "--kind", "agent")) == 25
    positions: list[int] = []
    cursor: list[str] = []
    while True:
        page = json.loads(house.run("calls", "--json", "--limit", "10", *cursor).stdout)
        positions += [call["position"] for call in page["calls"]]
        if "cursor" not in page:
            break
        cursor = ["--cursor", page["cursor"]]
    assert len(positions) == 25
    assert positions == sorted(positions, reverse=True)
    person = Person(house.state)
    with Agent([house.root], house.state) as other:
        other.call("read_text_file", path="a.txt").ok()
        first = person.call("list_calls", kind="agent", limit=5, with_total=True)
        assert [call["position"] for call in first["calls"][1:]] == positions[:4]
        assert first["total"] == 26
        other.call("read_text_file", path="a.txt").ok()
        later = person.call("list_calls", kind="agent", cursor=first["start"], offset=20, with_total=True)
        assert [call["position"] for call in later["calls"]] == positions[19:]
        assert later["total"] == 26, "a later call moves no page"
        assert person.call("list_calls", kind="agent", limit=1, with_total=True)["total"] == 27
    assert "cursor" in house.run("calls", "--cursor", "nonsense").stderr


@pytest.mark.req("SV-30.c")
def test_the_persons_list_reads_like_a_sentence_and_follows(house: House) -> None:
    assert house.run("calls").stdout == "No call was recorded yet.\n"
    with Agent([house.root], house.state, name="desk\x1b[31m", version="1") as desk:
        desk.call("read_text_file", path="a.txt").ok()
        text = house.run("calls").stdout
        assert "read_text_file" in text and "desk[31m 1" in text and "a.txt" in text and "\x1b[31m1" not in text
        with Pipes(["calls", "--follow", "--json"], house.env, "/") as following:
            assert following.process.stdout is not None
            assert json.loads(following.process.stdout.readline())["tool"] == "read_text_file"
            desk.call("get_file_info", path="a.txt").ok()
            assert json.loads(following.process.stdout.readline())["tool"] == "get_file_info"
            following.process.send_signal(signal.SIGINT)
            assert "Traceback" not in following.errors()
    assert "No call matches." in house.run("calls", "--tool", "nosuch").stdout
    assert house.run("calls", "--since", "yesterdayish").returncode == 2


@pytest.mark.req("SV-30.c")
def test_switched_off_nothing_is_recorded_and_the_list_says_so(house: House) -> None:
    house.settings("settings: {observe: {calls: {enabled: false}}}")
    with Agent([house.root], house.state) as desk:
        desk.call("read_text_file", path="a.txt").ok()
    assert "not recorded: settings.observe.calls.enabled is false" in house.run("calls").stdout


@pytest.mark.req("SV-30.c")
def test_old_rows_and_rows_beyond_the_number_are_removed(house: House) -> None:
    house.settings("settings: {observe: {calls: {keep_days: 0.00001}}}")
    with Agent([house.root], house.state) as desk:
        desk.call("read_text_file", path="a.txt").ok()
    house.run("stop")
    time.sleep(1)
    with Agent([house.root], house.state) as desk:
        desk.call("get_file_info", path="a.txt").ok()
        until("the old row is gone", lambda: [call["tool"] for call in calls(house)] in (["get_file_info"], []))


@pytest.mark.req("SV-30.d")
def test_no_agent_can_list_or_call_it_and_the_local_token_opens_no_log(house: House) -> None:
    with house.serve(str(house.root)):
        with RemoteAgent(house.url, house.token) as agent:
            assert "list_calls" not in {tool.name for tool in agent.tools()}
            assert agent.call("list_calls").code == "NOT_FOUND"
            pipe = agent.call("mcp_pipe", steps=[{"id": "a", "tool": "list_calls", "arguments": {}}])
            assert pipe.code == "INVALID_ARGUMENT"
        refused = logs(house, house.token)
        assert refused.status_code == 403
        assert "holdfast calls" in refused.json()["error"]["message"]
        assert logs(house, "nobody").status_code == 401


def logs(house: House, key: str, **query: str) -> httpx2.Response:
    return httpx2.get(f"{house.url}/api/logs", params=query, headers={"authorization": f"Bearer {key}"})


@pytest.mark.req("SV-30.d")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_tenant_reads_its_own_calls_by_its_key_and_nobody_elses(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "postgres":
        with postgres_database(request.getfixturevalue("postgres_server_url")) as url:
            read_own_calls(House(tmp_path, DATABASE_URL=url))
    else:
        read_own_calls(House(tmp_path))


def read_own_calls(house: House) -> None:
    house.settings("settings: {auth: {mode: listed}, limits: {tenant: {read_per_minute: 60}}}")
    with house.serve(str(house.root)):
        one, other = (json.loads(house.run("keys", "create", "--json", "--label", name).stdout)["key"] for name in "ab")
        with RemoteAgent(house.url, one) as tenant:
            tenant.call("file_write", project="p", path="/own.txt", content="x").ok()
            assert tenant.call("file_read", project="p", path="/gone.txt").code == "NOT_FOUND"
        with RemoteAgent(house.url, other) as tenant:
            tenant.call("file_stat", project="p", path="/theirs.txt").ok()
        mine = logs(house, one).json()
        assert outcomes(mine["calls"]) == [("file_read", "error", "NOT_FOUND"), ("file_write", "ok", "")]
        assert mine["calls"][1]["parameters"]["path"] == "/own.txt"
        assert {call["identity"] for call in mine["calls"]} == {"a"}
        assert outcomes(logs(house, other).json()["calls"]) == [("file_stat", "ok", "")]
        assert outcomes(logs(house, one, status="error", limit="5").json()["calls"]) == [
            ("file_read", "error", "NOT_FOUND")
        ]
        page = logs(house, one, limit="1").json()
        assert outcomes(logs(house, one, cursor=page["cursor"]).json()["calls"]) == [("file_write", "ok", "")]
        for query in ({"limit": "0"}, {"limit": "9" * 5000}, {"since": "now"}, {"nosuch": "1"}, {"status": "s3cr3t"}):
            answer = logs(house, one, **query)
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["code"] == "INVALID_ARGUMENT"
        assert [call for call in calls(house) if call["tenant"] != "local"] == []
        limited = [logs(house, one).status_code for _ in range(60)]
        assert 429 in limited and set(limited) == {200, 429}


@pytest.mark.req("SV-30.b")
def test_a_tenants_call_whose_client_hangs_up_is_in_its_log(tenants_house: House) -> None:
    house = tenants_house
    with house.serve(str(house.root)):
        key = new_key(house, "a")
        with RemoteAgent(house.url, key) as tenant:
            tenant.call("file_write", project="p", path="/a.txt", content="x").ok()
        arguments = {"project": "p", "path": "/a.txt", "content": "y", "mode": "TRUNCATE"}
        with held_project(house, key, "p"):
            line = raw_request(house, key, {"name": "file_write", "arguments": arguments})
            until("the call runs", lambda: scrape(house).value("holdfast_calls_in_progress") == 1)
            line.close()
            until("it was given up", lambda: scrape(house).value("holdfast_calls_in_progress") == 0)
        until("it is recorded", lambda: len(logs(house, key).json()["calls"]) == 2)
        assert outcomes(logs(house, key).json()["calls"])[0] == ("file_write", "cancelled", "CANCELLED")


@pytest.mark.req("SV-30.c")
def test_old_rows_of_a_tenant_are_removed(tenants_house: House) -> None:
    house = tenants_house
    house.settings("settings: {auth: {mode: listed}, observe: {calls: {keep_days: 0.00001}}}")
    with house.serve(str(house.root)):
        key = new_key(house, "a")
        with RemoteAgent(house.url, key) as tenant:
            tenant.call("file_write", project="p", path="/a.txt", content="x").ok()
            assert logs(house, key).json()["calls"]
    time.sleep(1)
    with house.serve(str(house.root)), RemoteAgent(house.url, key) as tenant:
        tenant.call("file_stat", project="p", path="/a.txt").ok()
        until(
            "the old row is gone",
            lambda: [call["tool"] for call in logs(house, key).json()["calls"]] in (["file_stat"], []),
        )


@pytest.fixture(params=["sqlite", "postgres"])
def tenants_house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """Give a house with listed keys, on each database."""
    with ExitStack() as stack:
        environment = {}
        if request.param == "postgres":
            server_url = request.getfixturevalue("postgres_server_url")
            environment["DATABASE_URL"] = stack.enter_context(postgres_database(server_url))
        made = House(tmp_path, **environment)
        made.settings("settings: {auth: {mode: listed}, mcp: {files: {lock_timeout_ms: 30000}}}")
        yield made


def new_key(house: House, label: str) -> str:
    return str(json.loads(house.run("keys", "create", "--json", "--label", label).stdout)["key"])


@contextmanager
def held_project(house: House, key: str, project: str) -> Iterator[None]:
    """Hold the lock of a tenant's project, as another server would."""
    url = house.environment.get("DATABASE_URL")
    tenant = hashlib.sha256(key.encode()).hexdigest()
    beside = postgres_backend(url) if url else sqlite_backend(house.state / "store")
    with beside as backend, backend.database().mutation(tenant, project, 3_000) as mutation:
        assert mutation.state is not None, "asking for it waits until the lock is there"
        yield


@pytest.mark.req("SV-30.a")
def test_the_opening_of_a_session_is_no_call(house: House) -> None:
    with house.relay() as relay:
        assert relay.ask(1, "initialize", **INITIALIZE)["result"]
        relay.ask(2, "tools/list")
    assert calls(house) == []
