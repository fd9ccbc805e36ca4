"""What the client of one connection gives up: read-only, and groups of tools; through every door, and nobody else's."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import websockets.exceptions
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from holdfast.auth.context import CallerKind
from holdfast.tools.registry import SELECTABLE_GROUPS
from holdfast.tools.table import TOOLS
from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.doors import ACCEPT, LIST, MODERN_META, House, until

pytestmark = pytest.mark.timeout(90)
each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])
CHANGING = {tool.name for tool in TOOLS if tool.mutates and tool.audience is CallerKind.AGENT} - {"mcp_pipe"}
WRITE = {"path": "new.txt", "content": "x"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with one root."""
    found = House(tmp_path_factory.mktemp("restricted"))
    with found.serve(str(found.root)):
        yield found


@pytest.mark.req("FS-05.c")
@each_era
@pytest.mark.parametrize("options", [["--read-only"], ["--in-process", "--read-only"]])
def test_a_read_only_client_has_no_tool_that_changes_anything(
    root: Path, ended_state: Path, era: str, options: list[str]
) -> None:
    (root / "a.txt").write_text("a")
    with Agent([root], ended_state, mode=era, options=options) as client:
        names = {tool.name for tool in client.tools()}
        assert "read_text_file" in names
        assert not names & CHANGING
        for name in sorted(CHANGING):
            reply = client.call(name)
            assert (reply.is_error, reply.code) == (True, "PERMISSION_DENIED"), name
            assert "read-only" in reply.text
        client.call("read_text_file", path="a.txt").ok()
        steps = [{"id": "s", "tool": "write_file", "arguments": WRITE}]
        assert "read-only" in client.call("mcp_pipe", steps=steps).text
    assert os.listdir(root) == ["a.txt"]


@pytest.mark.req("FS-05.c")
def test_the_restrictions_of_one_client_are_nobody_elses(root: Path, state_dir: Path) -> None:
    with Agent([root], state_dir, options=["--read-only"]) as reader, Agent([root], state_dir) as writer:
        assert reader.call("write_file", **WRITE).code == "PERMISSION_DENIED"
        writer.call("write_file", **WRITE).ok()
        assert reader.call("read_text_file", path="new.txt").ok().text.startswith("x")


@pytest.mark.req("SV-06.e")
@each_era
@pytest.mark.parametrize("options", [["--tools", "search,review"], ["--tools=search,review", "--in-process"]])
def test_a_client_that_chooses_groups_has_those_alone(
    root: Path, ended_state: Path, era: str, options: list[str]
) -> None:
    with Agent([root], ended_state, mode=era, options=options) as client:
        names = {tool.name for tool in client.tools()}
        groups = {
            entry.group for name in names - {"mcp_pipe", "list_allowed_directories"} if (entry := TOOLS.get(name))
        }
        assert groups == {"search", "review"}
        assert {"mcp_pipe", "list_allowed_directories"} <= names
        client.call("list_allowed_directories").ok()
        reply = client.call("read_text_file", path="a.txt")
        assert reply.code == "PERMISSION_DENIED"
        assert "review, search" in reply.text
        steps = [{"id": "s", "tool": "write_file", "arguments": WRITE}]
        assert "PERMISSION_DENIED" in client.call("mcp_pipe", steps=steps).text
        assert "read_text_file" not in client.call("read_text_fil").text
    assert not (root / "new.txt").exists()


@pytest.mark.req("SV-06.e")
@pytest.mark.parametrize("options", [["--tools", "files,nonsense"], ["--in-process", "--tools=nonsense"], ["--tools="]])
def test_a_group_that_does_not_exist_is_refused_at_once(tmp_path: Path, options: list[str]) -> None:
    house = House(tmp_path)
    try:
        done = house.run("stdio", *options, str(house.root))
    finally:
        house.end()
    assert done.returncode == 2
    assert done.stdout == ""
    assert ("nonsense" in done.stderr and all(group in done.stderr for group in SELECTABLE_GROUPS)) or (
        options == ["--tools="] and "--tools needs groups" in done.stderr
    )


@pytest.mark.req("SV-02.a")
def test_an_option_of_stdio_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = House(tmp_path).run("stdio", "--readonly", str(tmp_path))
    assert done.returncode == 2
    assert "unknown option '--readonly'" in done.stderr
    assert "--read-only" in done.stderr


@pytest.mark.req("FS-05.c")
def test_restrictions_hold_on_the_server_that_follows_one_that_was_killed(tmp_path: Path) -> None:
    house = House(tmp_path)
    call = {"name": "write_file", "arguments": {"path": str(house.root / "b.txt"), "content": "b"}}
    try:
        with house.relay(options=["--read-only", "--tools", "files"]) as relay:
            relay.initialize()
            assert "PERMISSION_DENIED" in json.dumps(relay.ask(1, "tools/call", **call))
            first = house.facts()["pid"]
            os.kill(first, signal.SIGKILL)
            until("another server is up", lambda: house.facts().get("pid") not in (None, first))
            assert "PERMISSION_DENIED" in json.dumps(relay.ask(2, "tools/call", **call))
            listed = {tool["name"] for tool in relay.ask(3, "tools/list")["result"]["tools"]}
            assert not listed & CHANGING
    finally:
        house.end()
    assert not (house.root / "b.txt").exists()


@pytest.mark.req("SV-06.e", "FS-05.c")
@each_era
def test_the_address_of_the_http_door_restricts_its_client(house: House, era: str) -> None:
    async def visit() -> tuple[set[str], list[Any]]:
        headers = {"authorization": f"Bearer {house.token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            streams = streamable_http_client(f"{house.url}/mcp?tools=files,search&read_only=1", http_client=http)
            async with Client(streams, mode=era, cache=None) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                calls: list[tuple[str, dict[str, Any]]] = [("write_file", WRITE), ("list_reviews", {})]
                return names, [(await client.call_tool(*call)).structured_content for call in calls]

    names, refused = anyio.run(visit)
    assert {"read_text_file", "search_folders", "mcp_pipe"} <= names
    assert not names & (CHANGING | {"list_reviews", "file_read"})
    assert [answer["code"] for answer in refused] == ["PERMISSION_DENIED"] * 2
    assert not (house.root / "new.txt").exists()


@pytest.mark.req("SV-06.e", "FS-05.c")
def test_the_address_of_the_websocket_door_restricts_its_client(house: House) -> None:
    key = {"authorization": f"Bearer {house.token}"}
    address = house.url.replace("http", "ws") + "/ws"
    with connect(f"{address}?tools=files&read_only=1", additional_headers=key) as socket:
        socket.send(json.dumps(LIST | {"params": {"_meta": MODERN_META}}))
        names = {tool["name"] for tool in json.loads(socket.recv(20))["result"]["tools"]}
    assert "read_text_file" in names
    assert not names & (CHANGING | {"list_reviews"})
    with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
        connect(f"{address}?tools=nonsense", additional_headers=key)
    assert refused.value.response.status_code == 400


@pytest.mark.req("SV-06.e", "FS-05.c")
@pytest.mark.parametrize(
    "query",
    [
        "tools=nonsense",
        "tools=",
        "tools",
        "read-only=1",
        "read_only=yes",
        "tools=files&tools=store",
        "tools=core",
        "a=1&b",
    ],
)
def test_a_query_that_is_not_understood_is_refused_and_widens_nothing(house: House, query: str) -> None:
    headers = {"authorization": f"Bearer {house.token}", "accept": ACCEPT}
    refused = httpx2.post(f"{house.url}/mcp?{query}", json=LIST, headers=headers)
    assert refused.status_code == 400
    assert refused.text.strip().endswith(".")
