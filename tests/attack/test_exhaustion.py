"""A server that runs out of descriptors: those who are connected are served, newcomers are told, and it recovers."""

import json
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.helpers.agent import command
from tests.helpers.doors import House, Pipes, until

pytestmark = [pytest.mark.timeout(120), pytest.mark.req("SV-13.b")]

LIMITED = 'ulimit -S -n "$0"; [ -z "$HARD" ] || ulimit -H -n "$HARD"; exec "$@"'


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.end()


@contextmanager
def served(house: House, soft: int, hard: int | None) -> Iterator[int]:
    """Run a server that may have so many files open, and give its process id."""
    words = ["sh", "-c", LIMITED, str(soft), *command("serve", "--port", "0", str(house.root))]
    environment = {**house.env, "HARD": "" if hard is None else str(hard)}
    server = subprocess.Popen(words, env=environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until("the server is up", lambda: house.facts().get("pid") == server.pid)
        yield server.pid
    finally:
        server.terminate()
        server.wait(30)


def read(client: Pipes, number: int) -> dict[str, object]:
    """Read a file through a relay."""
    arguments = {"name": "read_text_file", "arguments": {"path": "a.txt"}}
    result: dict[str, object] = client.ask(number, "tools/call", **arguments)["result"]
    return result


def test_a_crowd_at_the_socket_leaves_descriptors_for_calls(house: House) -> None:
    hello = json.dumps({"version": "0", "kind": "agent", "roots": [str(house.root)], "cwd": "/"}).encode() + b"\n"
    with served(house, 120, 120) as pid, house.relay() as client, ExitStack() as crowd:
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (120, 120)
        client.initialize()
        lines = []
        for _ in range(60):
            line = crowd.enter_context(socket.socket(socket.AF_UNIX))
            line.settimeout(20)
            line.connect(str(house.state / "server.sock"))
            line.sendall(hello)
            lines.append(line)
        welcomes = [json.loads(line.makefile().readline()) for line in lines]
        assert {welcome.get("ok", welcome.get("error", {}).get("code")) for welcome in welcomes} == {
            True,
            "RESOURCE_BUSY",
        }
        for number in range(20):
            assert not read(client, number)["isError"]
        crowd.close()
        until("the places are free again", lambda: house.run("status").returncode == 0)
        assert httpx2.get(f"{house.url}/health", headers={"authorization": f"Bearer {house.token}"}).status_code == 200
        assert not read(client, 99)["isError"]


def test_a_low_soft_limit_is_raised(house: House) -> None:
    """Some systems give a process 256 descriptors to begin with, and allow it many more."""
    with served(house, 100, None) as pid, house.relay() as client:
        client.initialize()
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert soft == min(hard if hard != resource.RLIM_INFINITY else 16_384, 16_384)
        assert not read(client, 1)["isError"]


def test_a_call_without_a_descriptor_may_be_repeated_and_leaves_no_trace(house: House) -> None:
    with served(house, 400, 400) as pid, house.relay() as client:
        client.initialize()
        assert not read(client, 1)["isError"]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 400))
        refused = read(client, 2)
        assert refused["isError"]
        assert '"code":"RESOURCE_BUSY"' in json.dumps(refused["content"]).replace("\\", "")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (400, 400))
        assert not read(client, 3)["isError"]
