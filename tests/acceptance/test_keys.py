"""Keys for tenants: minted by a command, good at once, worthless at once when revoked; and the mode without a list."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from tests.helpers.agent import LEGACY, MODERN
from tests.helpers.doors import INITIALIZE, House
from tests.helpers.remote import RemoteAgent

pytestmark = pytest.mark.timeout(60)

FOLDER_TOOLS = {"read_text_file", "write_file", "list_directory", "list_allowed_directories"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server for listed keys that also serves a folder to the local user."""
    found = House(tmp_path_factory.mktemp("keys"))
    found.settings("settings: {auth: {mode: listed}}")
    with found.serve(str(found.root)):
        yield found


def minted(house: House, *options: str) -> dict[str, Any]:
    ran = house.run("keys", "create", "--json", *options)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def status_of(house: House, key: str) -> int:
    headers = {**HEADERS, "authorization": f"Bearer {key}"}
    return httpx2.post(f"{house.url}/mcp", content=json.dumps(LIST), headers=headers).status_code


def names(agent: RemoteAgent) -> set[str]:
    return {tool.name for tool in agent.tools()}


@pytest.mark.req("SV-11.d")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_created_key_opens_the_running_server_and_has_no_folder_tools(house: House, era: str) -> None:
    key = minted(house, "--label", "build farm")["key"]
    with RemoteAgent(house.url, key, mode=era) as tenant:
        assert not names(tenant) & FOLDER_TOOLS
        assert tenant.call("read_text_file", path="a.txt").code == "NOT_FOUND"
        assert tenant.call("list_allowed_directories").code == "NOT_FOUND"
        pipe = tenant.call("mcp_pipe", steps=[{"id": "a", "tool": "read_text_file", "arguments": {"path": "a.txt"}}])
        assert pipe.code == "INVALID_ARGUMENT"
        assert pipe.error["message"].startswith("step 'a': There is no tool 'read_text_file'")
    with RemoteAgent(house.url, house.token, mode=era) as local:
        assert names(local) >= FOLDER_TOOLS
        assert local.call("read_text_file", path="a.txt").ok().text == "hello\n"


@pytest.mark.req("SV-11.d")
def test_a_revoked_key_is_unauthorized_at_once_and_others_are_not(house: House) -> None:
    gone, kept = minted(house), minted(house)
    assert status_of(house, gone["key"]) == status_of(house, kept["key"]) == 200
    assert house.run("keys", "revoke", gone["id"]).returncode == 0
    assert status_of(house, gone["key"]) == 401
    assert status_of(house, kept["key"]) == 200


@pytest.mark.req("SV-11.d")
def test_revoking_ends_sessions_and_connections_that_are_open(house: House) -> None:
    key = minted(house)
    headers = {**HEADERS, "authorization": f"Bearer {key['key']}"}
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "mcp_pipe", "arguments": {"steps": []}},
    }
    with ExitStack() as stack:
        http = stack.enter_context(httpx2.Client(base_url=house.url, headers=headers))
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        http.headers["mcp-session-id"] = http.post("/mcp", content=json.dumps(opening)).headers["mcp-session-id"]
        socket = stack.enter_context(
            connect(
                house.url.replace("http", "ws") + "/ws", additional_headers={"authorization": headers["authorization"]}
            )
        )
        socket.send(json.dumps(opening))
        socket.recv(timeout=10)
        socket.send(json.dumps(call))
        assert answer_of(socket.recv(timeout=10))["code"] == "INVALID_ARGUMENT"
        assert http.post("/mcp", content=json.dumps(LIST)).status_code == 200

        assert house.run("keys", "revoke", key["id"]).returncode == 0

        socket.send(json.dumps(call))
        assert answer_of(socket.recv(timeout=10)) == {
            "code": "PERMISSION_DENIED", "message": "This key has been revoked.", "retryable": False,
        }  # fmt: skip
        assert http.post("/mcp", content=json.dumps(LIST)).status_code == 401


def answer_of(frame: str | bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(frame)["result"]["structuredContent"]
    return found


@pytest.mark.req("SV-11.d")
def test_keys_that_were_never_minted_are_unauthorized(house: House) -> None:
    assert status_of(house, "hf_" + "a" * 52) == 401
    assert status_of(house, "any-key-of-sixteen-characters") == 401
    hashed = minted(house)
    assert status_of(house, hashed["id"]) == 401


@pytest.mark.req("SV-11.d", "SV-10")
def test_the_key_is_shown_once_and_is_nowhere_on_the_disk(house: House) -> None:
    ran = house.run("keys", "create", "--label", "once")
    key = ran.stdout.strip()
    assert re.fullmatch(r"hf_[a-z2-7]{52}", key)
    assert key not in ran.stderr
    assert status_of(house, key) == 200
    listed = house.run("keys", "list")
    assert "once" in listed.stdout
    assert key not in listed.stdout
    assert not [path for path in house.state.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


@pytest.mark.req("SV-11.d")
def test_keys_are_labelled_listed_and_limited_without_a_server(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.run("keys", "list").stdout.startswith("There are no keys.")
    first = minted(house, "--label", "über uns", "--limit", "read=600", "--limit", "search=0")
    second = minted(house)
    revoked = json.loads(house.run("keys", "revoke", second["id"], "--json").stdout)
    rows = json.loads(house.run("keys", "list", "--json").stdout)
    assert rows == [{name: value for name, value in first.items() if name != "key"}, revoked]
    assert (rows[0]["label"], rows[0]["limits"], rows[0]["revoked_at"]) == (
        "über uns",
        {"read": 600, "search": 0},
        None,
    )
    assert revoked["revoked_at"] > rows[1]["created_at"]
    shown = house.run("keys", "list").stdout.splitlines()
    assert "über uns" in shown[0] and "read 600 a minute, search unlimited" in shown[0]
    assert "revoked" in shown[1]
    assert (house.state.stat().st_mode & 0o777, (house.state / "state.db").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.req("SV-11.d")
def test_commands_that_cannot_work_say_why_and_make_no_key(tmp_path: Path) -> None:
    house = House(tmp_path)
    wrong = house.run("keys", "create", "--limit", "delete=5")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "CLASS=CALLS" in wrong.stderr and "'delete=5'" in wrong.stderr
    unknown = house.run("keys", "revoke", "nothing")
    assert unknown.returncode == 1
    assert "holdfast keys list" in unknown.stderr
    assert json.loads(house.run("keys", "list", "--json").stdout) == []
    assert "settings: {auth: {mode: listed}}" in house.run("keys", "--help").stdout


@pytest.mark.req("SV-11.d")
def test_in_open_mode_every_long_key_is_a_tenant_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings("settings: {auth: {mode: open}}")
    with house.serve(str(house.root)):
        assert status_of(house, "any-key-of-16-or") == 200
        assert status_of(house, "only-15-charact") == 401
        with RemoteAgent(house.url, "any-key-of-16-or") as tenant, RemoteAgent(house.url, house.token) as local:
            assert not names(tenant) & FOLDER_TOOLS
            assert names(local) >= FOLDER_TOOLS
