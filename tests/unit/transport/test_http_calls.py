"""Stateless calls over HTTP: answered as JSON, as a stream once they take long, and cancelled when nobody waits any more."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from holdfast.config.server_settings import ServerSettings
from holdfast.transport.doors import http_calls
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import CALLER
from holdfast.transport.doors.http import McpDoor
from tests.helpers import sample
from tests.helpers.doors import ACCEPT, MODERN_META

pytestmark = pytest.mark.anyio
HEADERS = {"accept": ACCEPT, "content-type": "application/json", "mcp-protocol-version": "2026-07-28"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def door() -> AsyncIterator[McpDoor]:
    opened = McpDoor(sample.dispatcher(), ServerSettings(), Connections(10))
    async with opened.run():
        yield opened


class Exchange:
    """One request, and what was sent back for it."""

    def __init__(self, tool: str, arguments: dict[str, Any], **headers: str) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": MODERN_META}
        self.body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
        named = {**HEADERS, "mcp-method": "tools/call", "mcp-name": tool, **headers}
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in named.items()],
            "query_string": b"",
            CALLER: sample.CALLER,
        }
        self.sent: list[Message] = []
        self.is_gone = asyncio.Event()
        self._was_read = False

    async def receive(self) -> Message:
        if self._was_read:
            await self.is_gone.wait()
            return {"type": "http.disconnect"}
        self._was_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def run(self, door: McpDoor) -> None:
        async with asyncio.timeout(20):
            await door(self.scope, self.receive, self.send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent[1:]).decode()


async def test_a_call_is_answered_as_json(door: McpDoor) -> None:
    exchange = Exchange("echo", {"text": "hello", "times": 2})
    await exchange.run(door)
    answer = json.loads(exchange.text)
    assert (exchange.status, answer["id"]) == (200, 7)
    assert answer["result"]["content"] == [{"type": "text", "text": "hellohello"}]


async def test_a_large_answer_is_whole(door: McpDoor) -> None:
    text = 'line "quoted" é \U0001f600\n' * 50_000
    exchange = Exchange("echo_data", {"text": text})
    await exchange.run(door)
    assert json.loads(exchange.text)["result"]["structuredContent"] == {"text": text, "times": 1}


async def test_a_call_that_takes_long_is_answered_in_a_stream_that_is_kept_alive(
    door: McpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_calls, "_PING_SECONDS", 0.05)
    exchange = Exchange("wait", {"seconds": 0.5})
    await exchange.run(door)
    assert (b"content-type", b"text/event-stream") in exchange.sent[0]["headers"]
    *pings, event = exchange.text.removesuffix("\r\n\r\n").split("\r\n\r\n")
    assert set(pings) == {": ping"}
    assert json.loads(event.removeprefix("event: message\r\ndata: "))["result"]["content"][0]["text"] == "waited"


async def test_a_call_whose_client_is_gone_is_cancelled(door: McpDoor) -> None:
    exchange = Exchange("wait", {"seconds": 15, "label": "gone"})
    running = asyncio.create_task(exchange.run(door))
    while "gone" not in sample.STARTED:
        await asyncio.sleep(0.01)
    exchange.is_gone.set()
    await running
    async with asyncio.timeout(5):
        while "gone" not in sample.STOPPED:
            await asyncio.sleep(0.01)
    assert exchange.sent == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"mcp-name": "wait"}, 400), ({"mcp-method": "tools/list"}, 400), ({"accept": "text/html"}, 406)],
)
async def test_a_request_that_contradicts_itself_is_refused(
    door: McpDoor, headers: dict[str, str], status: int
) -> None:
    exchange = Exchange("echo", {"text": "hello"}, **headers)
    await exchange.run(door)
    assert exchange.status == status


async def test_a_caller_who_reads_nothing_is_refused_more(door: McpDoor) -> None:
    held = door._dispatcher.held_bytes
    held.take(sample.CALLER.share, held.total // 2)
    exchange = Exchange("echo", {"text": "hello"})
    await exchange.run(door)
    assert exchange.status == 503
    assert "hold too much memory" in exchange.text
