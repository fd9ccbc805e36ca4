"""Child processes end with their server, whatever ended it, and cannot compute for ever."""

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.folders.children.confine import python_child, run_child
from tests.helpers.doors import House, children_of, is_alive, until

ENDLESS = "last(range(1e12))"


@pytest.mark.req("SV-13.d")
def test_children_that_compute_die_with_a_server_that_is_killed(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.root / "a.json").write_text("{}")
    with house.serve(str(house.root)) as server, house.relay() as first, house.relay() as second:
        for client in (first, second):
            client.initialize()
            for number in range(2):
                arguments = {"file_path": "a.json", "expression": ENDLESS, "timeout": 600}
                client.send(id=number, method="tools/call", params={"name": "query_json", "arguments": arguments})
        children = until("four children compute", lambda: busy_children(server.process.pid, 4))
        server.process.kill()
        server.process.wait()
        until("every child has ended", lambda: not [pid for pid in children if is_alive(pid)], 3)


@pytest.mark.req("SV-13.d")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_child_has_a_limit_of_processor_time_and_gives_way_to_the_server(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.root / "a.json").write_text("{}")
    with house.serve(str(house.root)) as server, house.relay() as client:
        client.initialize()
        arguments = {"file_path": "a.json", "expression": ENDLESS, "timeout": 60}
        client.send(id=1, method="tools/call", params={"name": "query_json", "arguments": arguments})
        (child,) = until("a child computes", lambda: busy_children(server.process.pid, 1))
        assert 60 <= resource.prlimit(child, resource.RLIMIT_CPU)[1] <= 130
        assert os.getpriority(os.PRIO_PROCESS, child) > os.getpriority(os.PRIO_PROCESS, server.process.pid)
        client.send(method="notifications/cancelled", params={"requestId": 1})
        until("the child has ended", lambda: not is_alive(child))
        os.kill(server.process.pid, signal.SIGTERM)


@pytest.mark.req("SV-13.d")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child of ours limits itself")
def test_any_program_has_a_limit_of_processor_time_from_its_first_moment() -> None:
    """ripgrep sets none itself, so the server does."""
    code = "import resource, time; time.sleep(0.3); print(*resource.getrlimit(resource.RLIMIT_CPU))"
    done = run_child(Call(Caller(LOCAL_USER), 20.0), python_child("-c", code))
    assert {int(limit) for limit in done.stdout.split()} <= {40, 41}


def busy_children(server: int, count: int) -> list[int]:
    """Return the children of a server once there are so many, each of which has its limits; nothing before."""
    children = [pid for pid in children_of(server) if is_alive(pid)]
    return children if len(children) == count and all(map(_has_started, children)) else []


def _has_started(pid: int) -> bool:
    return resource.prlimit(pid, resource.RLIMIT_CORE)[1] == 0
