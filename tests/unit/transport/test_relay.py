"""The relay against a server that misbehaves on cue."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import __version__
from holdfast.transport.client import relay as relay_module
from holdfast.transport.client.dial import Client
from holdfast.transport.client.frames import STOP_NOTICE
from holdfast.transport.client.relay import Relay
from holdfast.transport.state_folder import StateFolder

pytestmark = pytest.mark.timeout(30)

Line = dict[str, Any]
INITIALIZE: Line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
INITIALIZED: Line = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int | str) -> Line:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {}}


class Visit:
    """One connection of the relay, seen from the server."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.file = connection.makefile("rwb")
        self.hello = self.read()

    def read(self) -> Line:
        line = self.file.readline()
        found: Line = json.loads(line) if line else {}
        return found

    def say(self, *messages: Line | bytes) -> None:
        for message in messages:
            self.file.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.file.flush()

    def welcome(self) -> "Visit":
        self.say({"ok": True, "version": __version__, "pid": 1, "kind": "background", "max_message_bytes": 100_000})
        return self

    def hang_up(self) -> None:
        with suppress(BrokenPipeError):
            self.file.close()
        self.connection.close()


class Stage:
    """A relay in a thread, its client's ends of the pipes, and the socket it connects to."""

    def __init__(self, folder: Path) -> None:
        self.folder = StateFolder(str(folder))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(10)
        with self.folder.socket_address() as address:
            self.listener.bind(address)
        self.listener.listen()
        stdin, self._to_relay = os.pipe()
        self._from_relay, stdout = os.pipe()
        self._fds = [stdin, stdout, self._from_relay]
        self.out = os.fdopen(os.dup(self._from_relay), "rb")
        self.status: int | None = None
        self.visits: list[Visit] = []
        self.relay = Relay(self.folder, Client("agent", ["/r"], [], "/c"), stdin, stdout)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.status = self.relay.run()

    def visit(self) -> Visit:
        self.visits.append(Visit(self.listener.accept()[0]))
        return self.visits[-1]

    def send(self, *messages: Line) -> None:
        os.write(self._to_relay, b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def read(self) -> Line:
        found: Line = json.loads(self.out.readline())
        return found

    def close_input(self) -> None:
        if self._to_relay >= 0:
            os.close(self._to_relay)
        self._to_relay = -1

    def end_client(self) -> int | None:
        self.close_input()
        self.thread.join(10)
        return self.status

    def close(self) -> None:
        self.close_input()
        self.thread.join(10)
        for visit in self.visits:
            visit.hang_up()
        self.listener.close()
        self.out.close()
        for fd in self._fds:
            os.close(fd)
        assert not self.thread.is_alive()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = Stage(tmp_path)
    yield found
    found.close()


def result(number: int | str) -> Line:
    return {"jsonrpc": "2.0", "id": number, "result": {}}


def test_the_opening_line_says_who_it_is(stage: Stage) -> None:
    visit = stage.visit()
    assert visit.hello == {"version": __version__, "kind": "agent", "roots": ["/r"], "spare_roots": [], "cwd": "/c"}
    visit.welcome()
    assert stage.end_client() == 0


def test_after_a_loss_the_session_is_opened_again_and_only_lost_requests_are_refused(stage: Stage) -> None:
    first = stage.visit().welcome()
    stage.send(INITIALIZE)
    assert first.read() == INITIALIZE
    first.say(result(1))
    stage.send(INITIALIZED, call(2), call("three"), call(4))
    assert [first.read().get("id") for _line in range(4)] == [None, 2, "three", 4]
    first.say(result("three"))
    assert [stage.read()["id"] for _line in range(2)] == [1, "three"]
    first.hang_up()
    second = stage.visit().welcome()
    assert second.read() == INITIALIZE
    second.say({"jsonrpc": "2.0", "method": "notifications/noise"}, result(1))
    assert second.read() == INITIALIZED
    refused = [stage.read() for _line in range(2)]
    assert [line["id"] for line in refused] == [2, 4]
    assert all(line["error"]["data"]["retryable"] for line in refused)
    stage.send(call(5))
    assert second.read() == call(5)
    second.say(result(5))
    assert stage.read()["id"] == 5
    assert stage.end_client() == 0


def test_an_initialize_that_was_lost_is_sent_again_and_answered_once(stage: Stage) -> None:
    first = stage.visit().welcome()
    stage.send(INITIALIZE)
    assert first.read() == INITIALIZE
    first.hang_up()
    second = stage.visit().welcome()
    assert second.read() == INITIALIZE
    second.say(result(1))
    assert stage.read() == result(1)
    assert stage.end_client() == 0


def asking(name: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":"ask-{name}","method":"elicitation/create","params":{{}}}}'.encode()


def withdrawing(name: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"ask-%s"}}' % name.encode()


def test_questions_of_a_lost_server_are_withdrawn_and_their_late_answers_wake_no_server(stage: Stage) -> None:
    first = stage.visit().welcome()
    stage.send(call(1))
    assert first.read() == call(1)
    first.say(asking("a"), asking("b"), asking("c"), withdrawing("c"), result(1))
    assert [stage.read().get("id") for _line in range(5)] == ["ask-a", "ask-b", "ask-c", None, 1]
    stage.send(result("ask-a"))
    assert first.read() == result("ask-a")
    first.say(STOP_NOTICE)
    withdrawn = stage.read()
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", "ask-b")
    stage.listener.settimeout(0.3)
    stage.send(result("ask-b"))
    with pytest.raises(TimeoutError):
        stage.visit()
    stage.listener.settimeout(10)
    stage.send(call(2))
    second = stage.visit().welcome()
    assert second.read() == call(2)
    second.say(result(2))
    assert stage.read() == result(2)
    assert stage.end_client() == 0


def test_questions_that_a_client_leaves_open_are_answered_with_an_error(stage: Stage) -> None:
    visit = stage.visit().welcome()
    stage.send(call(1))
    visit.read()
    visit.say(asking("a"))
    assert stage.read()["id"] == "ask-a"
    stage.close_input()
    assert (failed := visit.read())["id"] == "ask-a"
    assert failed["error"]["message"] == "The client has closed its end."
    visit.say(asking("b"))
    assert visit.read()["id"] == "ask-b"
    visit.say(result(1))
    assert [stage.read()["id"] for _line in range(2)] == ["ask-b", 1]
    assert stage.end_client() == 0


def test_half_an_answer_is_never_delivered(stage: Stage) -> None:
    first = stage.visit().welcome()
    stage.send(call(1))
    first.read()
    first.file.write(b'{"jsonrpc":"2.0","id":1,"result":{"conte')
    first.file.flush()
    first.hang_up()
    assert stage.read()["error"]["code"] == -32000
    stage.visit().welcome()
    assert stage.end_client() == 0


def test_a_server_that_was_stopped_is_called_again_only_when_needed(stage: Stage) -> None:
    first = stage.visit().welcome()
    stage.send(INITIALIZE)
    first.read()
    first.say(result(1), STOP_NOTICE)
    assert stage.read() == result(1)
    stage.listener.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stage.visit()
    stage.listener.settimeout(10)
    stage.send(call(2))
    second = stage.visit().welcome()
    assert second.read() == INITIALIZE
    second.say(result(1))
    assert second.read()["method"] in ("notifications/initialized", "tools/call")
    second.say(result(2))
    assert stage.read() == result(2)
    assert stage.end_client() == 0


def test_a_server_lost_again_and_again_is_given_up_with_a_clear_error(stage: Stage) -> None:
    for _loss in range(6):
        stage.visit().welcome().hang_up()
    stage.send(call(1))
    if "before it answered" in stage.read()["error"]["message"]:
        stage.send(call(2))
        assert "lost 5 times" in stage.read()["error"]["message"]
    assert stage.end_client() == 70


def test_a_refusal_at_the_door_is_the_answer_to_every_request_until_the_client_leaves(stage: Stage) -> None:
    visit = stage.visit()
    visit.say({"error": {"code": "INVALID_ARGUMENT", "message": "no such root", "retryable": False}})
    stage.send(call(1), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call("b"))
    for number in (1, "b"):
        answer = stage.read()
        assert answer["id"] == number
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"]["code"] == "INVALID_ARGUMENT"
    assert stage.end_client() == 2


def test_a_cancelled_request_is_not_waited_for_at_the_end(stage: Stage) -> None:
    visit = stage.visit().welcome()
    stage.send(call(1), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert visit.read() == call(1)
    assert visit.read()["method"] == "notifications/cancelled"
    began = time.monotonic()
    assert stage.end_client() == 0
    assert time.monotonic() - began < 5


def test_an_answer_that_never_comes_is_waited_for_within_bounds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "_LAST_ANSWERS_SECONDS", 0.2)
    visit = stage.visit().welcome()
    stage.send(call(1))
    assert visit.read() == call(1)
    assert stage.end_client() == 0


@pytest.mark.parametrize("make", [lambda size: {"text": "x" * size}, lambda size: {"list": list(range(size // 7))}])
def test_large_messages_pass_both_ways(stage: Stage, make: Callable[[int], Line]) -> None:
    visit = stage.visit().welcome()
    stage.send({**call(1), "params": make(60_000)})
    assert visit.read()["params"] == make(60_000)
    answer = {"jsonrpc": "2.0", "id": 1, "result": make(5_000_000)}
    writing = threading.Thread(target=visit.say, args=[answer])
    writing.start()
    assert stage.read() == answer
    writing.join()
    assert stage.end_client() == 0
