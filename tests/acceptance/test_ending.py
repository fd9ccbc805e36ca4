"""How a server ends that cannot end by itself: soon, for sure, with nothing lost, and never said before it is so."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.doors import House, Pipes, is_alive, until

pytestmark = pytest.mark.timeout(120)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder whose servers are ended with the test."""
    found = House(tmp_path)
    yield found
    found.end()


@contextmanager
def busy_server(house: House, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server that has the tool `spin` until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.busy", *arguments],
        env=house.env,
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until("the server is up", lambda: house.facts().get("pid") == process.pid, 30)
            yield process
        finally:
            process.kill()


def tool(relay: Pipes, number: int, name: str, **arguments: object) -> None:
    """Begin a call."""
    relay.send(id=number, method="tools/call", params={"name": name, "arguments": arguments})


def spin(house: House, relay: Pipes) -> None:
    """Make a thread of the server busy for good."""
    started = house.state / "spinning"
    tool(relay, 2, "spin", started=str(started))
    until("the thread is busy", started.exists)


@pytest.mark.req("SV-02.f", "SV-02.j")
@pytest.mark.parametrize("way", ["stop", "signal"])
def test_a_thread_that_never_ends_keeps_no_server_alive_and_nothing_acknowledged_is_lost(
    house: House, way: str
) -> None:
    with busy_server(house, "serve", "--port", "0") as server, house.relay() as relay:
        relay.initialize()
        tool(relay, 1, "write_file", path="b.txt", content="acknowledged\n")
        assert "result" in relay.answer(1)
        spin(house, relay)
        if way == "stop":
            done = house.run("stop")
            assert (done.returncode, done.stdout.strip()) == (0, f"The server (pid {server.pid}) has ended.")
            assert not is_alive(server.pid)
        else:
            server.terminate()
        assert server.wait(30) == 0
        assert relay.answer(2)["error"]["data"]["code"] == "RESOURCE_BUSY"
        relay.close_stdin()
        assert relay.process.wait(10) == 0
    assert house.run("status").returncode == 3, "no relay has started a server again"
    with house.relay() as relay:
        relay.initialize()
        tool(relay, 1, "list_changes")
        assert "b.txt" in json.dumps(relay.answer(1)["result"])


@pytest.mark.req("SV-02.j")
def test_a_thread_that_never_ends_keeps_no_server_in_a_clients_own_process_alive(house: House) -> None:
    with busy_server(house, "stdio", "--in-process", str(house.root)) as server, house.relay() as relay:
        relay.initialize()
        spin(house, relay)
        server.terminate()
        assert server.wait(30) == 0
        assert "error" in relay.answer(2)


@pytest.mark.req("SV-02.f")
def test_stop_says_plainly_that_a_server_is_still_there_and_what_ends_it(house: House) -> None:
    with house.serve() as server:
        pid = server.process.pid
        os.kill(pid, signal.SIGSTOP)
        done = house.run("stop", timeout=60)
        os.kill(pid, signal.SIGCONT)
        assert (done.returncode, done.stdout) == (75, "")
        assert f"(pid {pid}) was asked to stop and is still running" in done.stderr
        assert f"kill -9 {pid}" in done.stderr
        assert house.run("stop").returncode == 0
