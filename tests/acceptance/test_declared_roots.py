"""The roots that a client declares: served where no directory was named, narrowing where some were, never more."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import anyio.from_thread
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.helpers.agent import LEGACY
from tests.helpers.doors import INITIALIZE, House, Pipes, until
from tests.helpers.trees import plant

pytestmark = [pytest.mark.req("SV-02.k"), pytest.mark.timeout(90)]

WITH_ROOTS = {**INITIALIZE, "capabilities": {"roots": {"listChanged": True}}}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    place = House(tmp_path)
    plant(tmp_path, {"one": {"a.txt": "1", "sub": {"b.txt": "2"}}, "two": {"c.txt": "3"}, "one more": {"d.txt": "4"}})
    yield place
    place.end()


class RootsClient:
    """The official Python client, with roots that a test can change."""

    def __init__(self, house: House, roots: Sequence[Path], *words: str, cwd: str | Path = "/") -> None:
        self.roots = list(roots)
        self.asked = 0
        self.notices: list[str] = []
        args = ["-m", "holdfast", "stdio", *words]
        self._server = StdioServerParameters(command=sys.executable, args=args, env=house.env, cwd=str(cwd))
        self._stack = ExitStack()
        self._client: Client

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        client = Client(
            stdio_client(self._server), mode=LEGACY, list_roots_callback=self._answer, message_handler=self._notice
        )
        self._client = self._stack.enter_context(self._portal.wrap_async_context_manager(client))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def change(self, *roots: Path) -> None:
        """Declare other roots."""
        self.roots = list(roots)
        self._portal.call(self._client.session.send_notification, types.RootsListChangedNotification())

    def call(self, tool: str, **arguments: Any) -> types.CallToolResult:
        result: types.CallToolResult = self._portal.call(self._client.call_tool, tool, arguments)
        return result

    def allowed(self) -> list[str]:
        """Return the directories that are served."""
        result = self.call("list_allowed_directories")
        assert not result.is_error, result.content
        return [line for line in str(getattr(result.content[0], "text", "")).splitlines() if line.startswith("/")]

    def tools(self) -> set[str]:
        return {tool.name for tool in self._portal.call(self._client.list_tools).tools}

    async def _answer(self, context: Any) -> types.ListRootsResult:
        self.asked += 1
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in self.roots])

    async def _notice(self, message: Any) -> None:
        self.notices.append(type(getattr(message, "root", message)).__name__)


def test_without_a_directory_the_declared_roots_are_served_and_followed(house: House, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with RootsClient(house, [one]) as client:
        assert client.allowed() == [str(one)]
        assert "edit_files" in client.tools()
        assert not client.call("read_text_file", path="a.txt").is_error
        assert client.call("read_text_file", path=str(two / "c.txt")).is_error
        client.change(two, one)
        assert client.allowed() == [str(two), str(one)]
        assert not client.call("read_text_file", path="c.txt").is_error
        assert client.asked == 2


def test_they_come_before_the_working_directory(house: House, tmp_path: Path) -> None:
    with RootsClient(house, [tmp_path / "two"], cwd=tmp_path / "one") as client:
        assert client.allowed() == [str(tmp_path / "two")]
        client.change()
        assert client.allowed() == [str(tmp_path / "one")]


def test_a_client_without_an_open_folder_is_told_so_until_it_has_one(house: House, tmp_path: Path) -> None:
    with RootsClient(house, [tmp_path / "missing", house.state]) as client:
        refused = client.call("list_allowed_directories")
        assert refused.is_error
        assert "the client declares no root" in str(refused.content)
        assert "file_read" in client.tools()
        assert "edit_files" not in client.tools()
        client.change(tmp_path / "one")
        assert client.allowed() == [str(tmp_path / "one")]
        until("the client knows of more tools", lambda: "ToolListChangedNotification" in client.notices)
        assert "edit_files" in client.tools()


def test_where_directories_are_named_the_declared_ones_only_narrow(house: House, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with RootsClient(house, [one / "sub"], str(one)) as client:
        assert client.allowed() == [str(one / "sub")]
        assert client.call("read_text_file", path=str(one / "a.txt")).is_error
        for wider in ([two], [tmp_path], [Path("/")], [tmp_path / "one more"], []):
            client.change(*wider)
            assert client.allowed() == [str(one)]
            assert client.call("read_text_file", path=str(two / "c.txt")).is_error
    (one / "out").symlink_to(two)
    with RootsClient(house, [one / "out", one / "sub" / ".." / ".."], str(one)) as client:
        assert client.allowed() == [str(one)]
    with RootsClient(house, [one / "sub"], str(one), str(two)) as client:
        assert client.allowed() == [str(one / "sub"), str(two)]


def test_directories_of_the_settings_are_named_ones(house: House, tmp_path: Path) -> None:
    house.settings(f"settings: {{folders: {{roots: [{json.dumps(str(tmp_path / 'one'))}]}}}}\n")
    with RootsClient(house, [tmp_path / "two", tmp_path / "one" / "sub"]) as client:
        assert client.allowed() == [str(tmp_path / "one" / "sub")]


def test_a_server_that_is_started_again_asks_again(house: House, tmp_path: Path) -> None:
    with RootsClient(house, [tmp_path / "one"]) as client:
        assert client.allowed() == [str(tmp_path / "one")]
        pid = house.facts()["pid"]
        client.roots = [tmp_path / "two"]
        os.kill(pid, signal.SIGKILL)
        until("another server is up", lambda: house.facts().get("pid") not in (pid, None), 30)
        assert client.allowed() == [str(tmp_path / "two")]


def test_without_a_server_of_its_own_it_is_the_same(house: House, tmp_path: Path) -> None:
    with RootsClient(house, [tmp_path / "one"], "--in-process") as client:
        assert client.allowed() == [str(tmp_path / "one")]
    with Pipes(["stdio", "--in-process"], house.env, "/") as pipes:
        error = pipes.ask(1, "initialize", **INITIALIZE)["error"]
        assert error["data"]["code"] == "INVALID_ARGUMENT"
        assert "too wide" in error["message"]
        pipes.close_stdin()
        assert pipes.process.wait(20) == 2


def open_with_roots(pipes: Pipes) -> None:
    assert "result" in pipes.ask("init", "initialize", **WITH_ROOTS)


def question(pipes: Pipes) -> str:
    """Return the id of the server's next question, which must be for the roots."""
    message = pipes.read()
    assert message["method"] == "roots/list", message
    return str(message["id"])


def test_calls_wait_for_the_roots_and_an_error_declares_none(house: House, tmp_path: Path) -> None:
    with house.bare_relay(tmp_path / "one") as relay:
        open_with_roots(relay)
        relay.send(method="notifications/initialized")
        asked = question(relay)
        relay.send(id=2, method="tools/call", params={"name": "list_allowed_directories", "arguments": {}})
        relay.send(id=3, method="tools/list", params={})
        assert relay.ask(4, "ping")["result"] == {}
        relay.send(id=asked, error={"code": -32601, "message": "Method not found"})
        answers = {message["id"]: message for message in (relay.read(), relay.read())}
        assert str(tmp_path / "one") in json.dumps(answers[2])
        assert answers[3]["result"]["tools"]


def test_a_client_that_never_answers_keeps_nobody_waiting_for_long(house: House, tmp_path: Path) -> None:
    with house.bare_relay(tmp_path / "one") as relay:
        open_with_roots(relay)
        relay.send(id=2, method="tools/call", params={"name": "list_allowed_directories", "arguments": {}})
        asked = question(relay)
        withdrawn = relay.read(20)
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", asked)
        assert str(tmp_path / "one") in json.dumps(relay.answer(2))
        relay.send(id=asked, result={"roots": [{"uri": (tmp_path / "two").as_uri()}]})
        assert str(tmp_path / "two") not in json.dumps(
            relay.ask(3, "tools/call", name="list_allowed_directories", arguments={})
        )


def test_a_flood_of_changes_is_one_question_at_a_time(house: House, tmp_path: Path) -> None:
    with house.bare_relay("/") as relay:
        open_with_roots(relay)
        relay.write(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n' * 5_000)
        relay.send(id=2, method="tools/call", params={"name": "list_allowed_directories", "arguments": {}})
        questions = 0
        while (message := relay.read()).get("id") != 2:
            if message.get("method") == "roots/list":
                questions += 1
                relay.send(id=message["id"], result={"roots": [{"uri": (tmp_path / "one").as_uri()}]})
        assert str(tmp_path / "one") in json.dumps(message)
        assert questions < 10
