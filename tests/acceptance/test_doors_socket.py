"""The Unix socket door: who is let in, and what a bad client cannot do."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.transport.client.dial import Client, ServerRefusal, connect, dial, prove_key, send_control
from holdfast.transport.state_folder import StateFolder
from tests.helpers.doors import INITIALIZE, House, until

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server that takes small messages and few connections."""
    found = House(tmp_path_factory.mktemp("socket"))
    found.settings("settings:\n  server:\n    max_body_bytes: 100000\n    max_connections: 12\n")
    with found.serve():
        yield found


@pytest.fixture
def folder(house: House) -> StateFolder:
    return StateFolder(str(house.state))


class Talk:
    """A connection spoken to in raw lines."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.file = line.makefile("rwb")

    def say(self, message: Any) -> None:
        self.file.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.file.flush()

    def hear(self) -> Any:
        text = self.file.readline()
        return json.loads(text) if text else None

    def ask(self, message: Any) -> Any:
        self.say(message)
        return self.hear()

    def close(self) -> None:
        self.file.close()
        self.line.close()


@pytest.fixture
def talk(folder: StateFolder) -> Iterator[Talk]:
    found = Talk(connect(folder))
    yield found
    found.close()


@pytest.mark.req("SV-02.a")
@pytest.mark.parametrize(
    "hello",
    [b"", b"\xff\xfe", b"[]", b"{}", b'{"kind":"root"}', b'{"kind":"agent","roots":"x"}', b'{"kind":"agent","roots":[1]}',
     b'{"kind":"agent","cwd":"/a\\u0000b"}', b'{"kind":"agent","cwd":"/","roots":["/a\\u0000b"]}',
     b'{"kind":"agent","roots":["/\\ud800"]}', b'{"kind":"agent","roots":["~nosuch"]}', b'{"kind":"agent","cwd":"/\\ud800"}',
     b'{"kind":"agent","cwd":"relative"}', b'{"kind":"agent","cwd":7}', b'{"kind":["agent"]}', b"[" * 100_000],
)  # fmt: skip
def test_an_opening_line_that_is_none_is_refused(talk: Talk, hello: bytes) -> None:
    assert talk.ask(hello)["error"]["code"] == "INVALID_ARGUMENT"
    assert talk.hear() is None


@pytest.mark.req("SV-02.a")
def test_an_opening_line_without_end_is_refused(talk: Talk) -> None:
    assert talk.ask(b"x" * 2_000_000)["error"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.req("SV-11.c")
@pytest.mark.parametrize("kind", ["person", "control"])
def test_a_person_and_control_must_prove_the_persons_key(talk: Talk, folder: StateFolder, kind: str) -> None:
    challenge = talk.ask({"version": "1", "kind": kind})["challenge"]
    wrong = prove_key(folder.key("agent.token"), challenge)
    assert talk.ask({"proof": wrong})["error"]["code"] == "PERMISSION_DENIED"
    assert talk.hear() is None


@pytest.mark.req("SV-11.c")
def test_a_proof_is_good_for_one_challenge_only(folder: StateFolder) -> None:
    first, second = Talk(connect(folder)), Talk(connect(folder))
    old = first.ask({"kind": "control"})["challenge"]
    assert second.ask({"kind": "control"})["challenge"] != old
    assert "error" in second.ask({"proof": prove_key(folder.key("person.key"), old)})
    first.close()
    second.close()


@pytest.mark.req("SV-11.b", "SV-11.c")
def test_a_person_gets_in_and_is_shown_none_of_the_agents_tools(folder: StateFolder) -> None:
    line, welcome = dial(folder, Client("person", [], [], "/"))
    assert welcome["ok"] is True
    person = Talk(line)
    person.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
    person.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    names = [
        tool["name"] for tool in person.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
    ]
    assert "list_allowed_directories" not in names
    person.close()


@pytest.mark.req("SV-02.f")
def test_control_answers_what_it_does_not_know(folder: StateFolder) -> None:
    with pytest.raises(ServerRefusal, match="action must be"):
        send_control(folder, "explode")
    assert send_control(folder, "status")["kind"] == "foreground"


@pytest.mark.req("SV-02", "FS-01.b")
def test_a_root_that_is_not_there_is_refused_at_the_door(folder: StateFolder, house: House) -> None:
    with pytest.raises(ServerRefusal, match="nowhere"):
        dial(folder, Client("agent", ["/nowhere/at/all"], [], "/"))
    with pytest.raises(ServerRefusal, match="state folder"):
        dial(folder, Client("agent", [str(house.state)], [], "/"))


@pytest.mark.req("SV-05.b")
def test_an_over_long_message_is_answered_and_the_connection_goes_on(folder: StateFolder, house: House) -> None:
    line, _welcome = dial(folder, Client("agent", [str(house.root)], [], "/"))
    agent = Talk(line)
    agent.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
    huge = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"x": "x" * 5_000_000}}
    answer = agent.ask(huge)
    assert answer["id"] == 7
    assert answer["error"]["data"]["code"] == "PAYLOAD_TOO_LARGE"
    assert agent.ask({"jsonrpc": "2.0", "id": 8, "method": "ping"})["id"] == 8
    agent.close()


@pytest.mark.req("SV-05.b")
def test_silent_connections_hold_nobody_up_and_are_bounded(folder: StateFolder, house: House) -> None:
    crowd = [connect(folder) for _line in range(12)]
    until("the crowd is in", lambda: _is_full(folder))
    for line in crowd:
        line.close()
    until("there is room again", lambda: not _is_full(folder))
    with house.relay() as relay:
        relay.initialize()


def _is_full(folder: StateFolder) -> bool:
    try:
        send_control(folder, "status")
    except ServerRefusal as refusal:
        assert refusal.payload["code"] == "RESOURCE_BUSY"
        return True
    return False


def connect_as_another_user(house: House) -> str:
    program = (
        "import os, socket, sys\n"
        "line = socket.socket(socket.AF_UNIX); fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.fchmod(fd, 0o711); os.chmod(sys.argv[1] + '/server.sock', 0o777)\n"
        "os.chdir(sys.argv[1]); os.setuid(65534); line.connect('server.sock')\n"
        'line.sendall(b\'{"kind":"agent"}\\n\'); print(line.makefile().readline())\n'
    )
    try:
        return subprocess.run(
            [sys.executable, "-c", program, str(house.state)], capture_output=True, text=True, check=True
        ).stdout
    finally:
        house.state.chmod(0o700)
        (house.state / "server.sock").chmod(0o600)


if os.geteuid() == 0:
    # Only root can become another user; the check itself is proven for everyone in tests/unit/transport.

    @pytest.mark.req("SV-02.g")
    def test_another_user_is_turned_away_even_with_the_socket_open(house: House) -> None:
        assert json.loads(connect_as_another_user(house))["error"]["code"] == "PERMISSION_DENIED"
