"""Keys are exchanged while a server runs: the old one opens nothing from then on, and nobody loses a file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.helpers.console import link_of, sign_in
from tests.helpers.doors import INITIALIZE, LIST, House, post
from tests.helpers.remote import RemoteAgent

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server for listed keys, with its console and its metrics."""
    made = House(tmp_path_factory.mktemp("rotation"))
    made.settings("settings: {auth: {mode: listed}}")
    with made.serve(str(made.root)):
        yield made


def answer_of(house: House, *arguments: str) -> dict[str, Any]:
    ran = house.run(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@contextmanager
def open_socket(house: House, key: str) -> Iterator[ClientConnection]:
    headers = {"authorization": f"Bearer {key}"}
    url = house.url.replace("http", "ws") + "/ws"
    with connect(url, additional_headers=headers, open_timeout=60) as socket:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        socket.recv(timeout=60)
        yield socket


def test_a_tenant_keeps_its_files_under_its_new_key_and_the_old_one_is_refused(house: House) -> None:
    old = answer_of(house, "keys", "create", "--label", "farm")
    with RemoteAgent(house.url, old["key"]) as tenant:
        tenant.call("file_write", project="p", path="/a.md", content="mine").ok()
    with open_socket(house, old["key"]) as socket:
        new = answer_of(house, "keys", "rotate", old["id"])
        call = {"name": "file_read", "arguments": {"project": "p", "path": "/a.md"}}
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
        assert "This key has been revoked." in str(socket.recv(timeout=60))
    assert post(house, authorization=f"Bearer {old['key']}").status_code == 401
    with RemoteAgent(house.url, new["key"]) as tenant:
        assert tenant.call("file_read", project="p", path="/a.md").ok().text == "mine"
    assert (new["label"], new["tenant"], new["replaces"]) == ("farm", old["tenant"], old["id"])
    listed = {key["id"]: key for key in json.loads(house.run("keys", "list", "--json").stdout)}
    assert listed[old["id"]]["revoked_at"] and not listed[new["id"]]["revoked_at"]


def test_both_keys_of_a_tenant_are_valid_until_the_old_one_is_revoked(house: House) -> None:
    old = answer_of(house, "keys", "create", "--limit", "read=5000")
    new = answer_of(house, "keys", "rotate", old["id"], "--keep-old")
    assert new["limits"] == {"read": 5000}
    for key in (old, new):
        assert post(house, authorization=f"Bearer {key['key']}").status_code == 200
    assert house.run("keys", "revoke", old["id"]).returncode == 0
    assert post(house, authorization=f"Bearer {old['key']}").status_code == 401
    assert post(house, authorization=f"Bearer {new['key']}").status_code == 200


def test_a_new_agent_token_ends_what_the_old_one_opened(house: House) -> None:
    old = house.token
    with open_socket(house, old) as socket:
        assert answer_of(house, "keys", "rotate", "agent.token")["server"] == house.facts()["pid"]
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=60)
    assert house.token != old
    assert (house.state / "agent.token").stat().st_mode & 0o777 == 0o600
    assert post(house, authorization=f"Bearer {old}").status_code == 401
    assert post(house).status_code == 200


def test_a_new_person_key_signs_browsers_out_and_ends_links(house: House) -> None:
    page, unused = sign_in(house), link_of(house)
    assert page.get("session").status_code == 200
    answer_of(house, "keys", "rotate", "person.key")
    assert page.get("session").status_code == 401
    token = unused.partition("/open#")[2]
    answer = httpx2.post(f"{house.url}/api/session", json={"link": token}, headers={"sec-fetch-site": "same-origin"})
    assert answer.status_code in (401, 403), answer.text
    assert house.run("status").returncode == 0, "commands prove the new key"
    assert sign_in(house).get("session").status_code == 200
    assert json.loads((house.state / "browser.sessions").read_text())["sessions"]


def test_a_new_metrics_token_is_the_only_one_that_opens_metrics(house: House) -> None:
    old = (house.state / "metrics.token").read_text().strip()
    answer_of(house, "keys", "rotate", "metrics.token")
    new = (house.state / "metrics.token").read_text().strip()
    answers = [
        httpx2.get(f"{house.url}/metrics", headers={"authorization": f"Bearer {key}"}).status_code for key in (old, new)
    ]
    assert answers == [401, 200]


def test_keys_are_exchanged_while_no_server_runs(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve(str(house.root)):
        sign_in(house)
        keys = {name: (house.state / name).read_text() for name in ("agent.token", "person.key", "metrics.token")}
    for name, key in keys.items():
        ran = house.run("keys", "rotate", name)
        assert ran.returncode == 0 and "No server is running." in ran.stdout
        assert (house.state / name).read_text() != key
        assert key.strip() not in ran.stdout
    assert not (house.state / "browser.sessions").exists()
    refused = house.run("keys", "rotate", "agent.token", "--keep-old")
    assert refused.returncode == 2 and "one agent.token at a time" in refused.stderr
    with house.serve(str(house.root)):
        assert post(house, LIST).status_code == 200
