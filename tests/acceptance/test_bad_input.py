"""Bad input: each kind gets a clear error or a clean end, the server lives on, and nothing is half written."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.pipe import Pipe
from tests.helpers.trees import harvest, plant


def server_pid(state_dir: Path) -> int:
    return int(json.loads((state_dir / "server.json").read_text())["pid"])


@pytest.mark.req("SV-05", "SV-06")
@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("read_text_file", {}, "argument 'path' is missing"),
        ("read_text_file", {"path": 5}, "argument 'path'"),
        ("read_text_file", {"path": None}, "argument 'path'"),
        ("read_text_file", {"path": ["a"]}, "argument 'path'"),
        ("read_text_file", {"path": "a.txt", "head": "many"}, "argument 'head'"),
        ("read_text_file", {"path": "a.txt", "haed": 3}, "unknown argument 'haed' (did you mean 'head'?)"),
        ("write_file", {"path": "b.txt"}, "argument 'content' is missing"),
        ("write_file", {"path": "b.txt", "content": {"a": 1}}, "argument 'content'"),
        ("edit_file", {"path": "a.txt", "edits": "all"}, "argument 'edits'"),
        ("edit_file", {"path": "a.txt", "edits": [{"oldText": "a"}]}, "newText"),
        ("read_files", {"files": [{"pth": "a.txt"}]}, "path"),
        ("grep_content", {"pattern": "x", "max_results": "lots"}, "argument 'max_results'"),
    ],
)
def test_wrong_and_unknown_arguments_are_named(
    agent: Agent, root: Path, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    plant(root, {"a.txt": "a\n"})
    error = agent.call_with(tool, arguments).error
    assert error["code"] == "INVALID_ARGUMENT"
    assert sentence in error["message"]
    assert harvest(root) == {"a.txt": b"a\n"}


@pytest.mark.req("SV-06")
def test_an_unknown_tool_is_an_error_that_names_the_nearest(agent: Agent) -> None:
    error = agent.call("read_text_fil").error
    assert error["code"] == "NOT_FOUND"
    assert "read_text_file" in error["message"]


@pytest.mark.req("SV-05.b")
def test_a_message_over_the_limit_is_refused_and_the_next_one_is_served(root: Path, state_dir: Path) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        answer = pipe.ask(
            1, "tools/call", {"name": "write_file", "arguments": {"path": "big", "content": "x" * 17_000_000}}
        )
        assert "error" in answer
        assert "16777216" in answer["error"]["message"]
        assert pipe.call(2, "list_allowed_directories")["isError"] is False
    assert harvest(root) == {}


@pytest.mark.req("SV-05.b")
def test_a_large_argument_within_the_limit_is_written_whole(root: Path, state_dir: Path) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        assert pipe.call(1, "write_file", path="big", content="é" * 2_000_000)["isError"] is False
    assert harvest(root) == {"big": "é".encode() * 2_000_000}


@pytest.mark.req("SV-04")
@pytest.mark.parametrize(
    "line",
    [b"{", b"nonsense", b"[1,2", b"\xff\xfe\x00", b'{"jsonrpc":"1.0","id":3,"method":"ping"}', b"[]", b'"text"', b"{}"],
)
def test_broken_json_is_answered_and_the_session_goes_on(root: Path, state_dir: Path, line: bytes) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        pipe.send(line + b"\n")
        assert pipe.receive()["error"]["code"] in {-32700, -32600}
        assert pipe.call(2, "list_allowed_directories")["isError"] is False


@pytest.mark.req("SV-04")
def test_a_lone_surrogate_is_answered_on_the_relay(root: Path, state_dir: Path) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        body = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"a","content":"%s"}}}'
        pipe.send((body % "\\ud800").encode() + b"\n")
        answer = pipe.receive()
        assert (answer["id"], answer["result"]["structuredContent"]["code"]) == (9, "INVALID_ARGUMENT")
        body = (
            '{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"file_write","arguments":'
            '{"project":"p","path":"/a","content":"\\ud800"}}}'
        )
        pipe.send(body.encode() + b"\n")
        assert pipe.receive()["result"]["structuredContent"]["code"] == "INVALID_QUERY"
    assert harvest(root) == {}


@pytest.mark.req("SV-02")
def test_a_client_killed_in_the_middle_of_its_calls_leaves_whole_files_and_a_living_server(
    root: Path, state_dir: Path, agent: Agent
) -> None:
    before = server_pid(state_dir)
    contents = {b"a" * 300_000, b"b" * 300_000}
    for round_number in range(15):
        pipe = Pipe([root], state_dir)
        pipe.initialize()
        for number in range(6):
            arguments = {"path": f"f{number % 2}", "content": "ab"[number % 2] * 300_000}
            pipe.request(number, "tools/call", {"name": "write_file", "arguments": arguments})
        time.sleep(0.002 * round_number)
        pipe.process.send_signal(signal.SIGKILL)
        with pipe:
            pass
    assert agent.call("list_allowed_directories").ok()
    assert server_pid(state_dir) == before
    time.sleep(0.5)
    found = harvest(root)
    assert set(found.values()) <= contents
    assert set(found) <= {"f0", "f1"}


@pytest.mark.req("SV-02")
def test_a_client_that_stops_in_the_middle_of_a_message_changes_nothing(
    root: Path, state_dir: Path, agent: Agent
) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        pipe.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","argum')
        os.kill(pipe.process.pid, signal.SIGTERM)
    assert harvest(root) == {}
    assert agent.call("list_allowed_directories").ok()


@pytest.mark.req("SV-05.b")
def test_a_client_that_does_not_read_holds_up_nobody(root: Path, state_dir: Path, agent: Agent) -> None:
    plant(root, {"mid.txt": "line of text\n" * 6000})
    with Pipe([root], state_dir) as deaf:
        deaf.initialize()
        for number in range(400):
            deaf.request(number, "tools/call", {"name": "read_text_file", "arguments": {"path": "mid.txt"}})
        started = time.monotonic()
        for _ in range(5):
            agent.call("read_text_file", path="mid.txt").ok()
        assert time.monotonic() - started < 20
        deaf.process.kill()
