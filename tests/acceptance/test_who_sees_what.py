"""Connections beside one another: each sees its own roots and changes, and no key is ever shown."""

import os
import re
import socket
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.helpers.agent import Agent, command
from tests.helpers.doors import House, until
from tests.helpers.trees import harvest, plant


@pytest.mark.req("SV-02.b")
def test_a_connection_sees_and_undoes_only_changes_beneath_its_own_roots(state_dir: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"mine": {"a.txt": "a"}, "yours": {"b.txt": "b"}})
    with Agent([tmp_path / "mine"], state_dir) as me, Agent([tmp_path / "yours"], state_dir) as you:
        me.call("write_file", path="a.txt", content="changed by me").ok()
        (change,) = me.call("list_changes").ok().data["changes"]
        assert you.call("list_changes").ok().data["changes"] == []
        assert you.call("undo_change", change_id=change["change_id"]).code == "NOT_FOUND"
        assert you.call("read_text_file", path=str(tmp_path / "mine" / "a.txt")).code == "ACCESS_DENIED"
        with Agent([tmp_path], state_dir) as above:
            assert [one["change_id"] for one in above.call("list_changes").ok().data["changes"]] == [
                change["change_id"]
            ]
        me.call("undo_change", change_id=change["change_id"]).ok()
    assert harvest(tmp_path / "mine") == {"a.txt": b"a"}


@pytest.mark.req("SV-10")
def test_no_key_that_was_tried_or_accepted_is_in_any_file_of_the_state_folder(tmp_path: Path) -> None:
    house = House(tmp_path)
    wrong = "CANARY-KEY-5d1f-0123456789abcdef"
    with house.serve(str(house.root)) as server:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        for key, status in ((wrong, 401), (house.token, 200)):
            headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
            answer = httpx2.post(f"{house.url}/mcp", json=ask, headers=headers)
            assert answer.status_code == status
            assert key not in answer.text
        token = house.token
        server.process.terminate()
        said = server.errors()
    assert wrong not in said
    assert token not in said
    for path, content in harvest(house.state).items():
        assert wrong.encode() not in content, path
        assert path == "agent.token" or token.encode() not in content, path


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@pytest.mark.req("SV-03.b")
def test_hosts_and_ports_of_the_earlier_design_still_select(tmp_path: Path) -> None:
    house = House(tmp_path)
    first, second = free_port("127.0.0.1"), free_port("127.0.0.2")
    flags = ["--host", "127.0.0.1", "--port", str(first), "--http-host", "127.0.0.2", "--http-port", str(second)]
    process = subprocess.Popen(command("serve", *flags), env=house.env, cwd="/", stderr=subprocess.PIPE)
    try:
        until("the server is up", lambda: house.facts().get("pid") == process.pid)
        for address in (f"127.0.0.1:{first}", f"127.0.0.2:{second}"):
            assert httpx2.get(f"http://{address}/health").status_code == 200
    finally:
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert re.search(rb"127\.0\.0\.1:\d+", said)
    assert process.returncode in (0, -15, 143), (process.returncode, os.fsdecode(said))
