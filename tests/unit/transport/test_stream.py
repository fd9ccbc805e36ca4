"""A connection of messages: both eras, the short way and the SDK's way, and everything that is no message."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from holdfast.transport.doors.streams import stream
from holdfast.transport.doors.streams.stream import serve_stream
from tests.helpers import sample

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Line:
    """The client's end of a connection."""

    def __init__(self) -> None:
        self.to_server, self.server_reads = anyio.create_memory_object_stream[bytes](100)
        self.server_writes, self.from_server = anyio.create_memory_object_stream[bytes](1000)

    async def receive(self) -> bytes | None:
        try:
            return await self.server_reads.receive()
        except anyio.EndOfStream:
            return None

    async def raw(self, message: bytes) -> dict[str, Any]:
        await self.to_server.send(message)
        return await self.next()

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            answer = json.loads(await self.from_server.receive())
        assert isinstance(answer, dict)
        return answer

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        await self.to_server.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    async def send(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.to_server.send(json.dumps(body).encode())

    async def ask(self, number: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        await self.send(number, method, params)
        return await self.next()


@asynccontextmanager
async def connected() -> AsyncIterator[Line]:
    line = Line()
    with line.to_server, line.server_reads, line.server_writes, line.from_server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_stream, sample.dispatcher(), sample.CALLER, line.receive, line.server_writes.send)
            yield line
            line.to_server.close()


@asynccontextmanager
async def handshaken(version: str = "2025-11-25") -> AsyncIterator[Line]:
    async with connected() as line:
        info = {"name": "test", "version": "1"}
        opening = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        answer = await line.ask(0, "initialize", opening)
        assert answer["result"]["protocolVersion"] == version
        await line.tell("notifications/initialized", {})
        yield line


def modern(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "_meta": dict(ENVELOPE)}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "häi"}),
    ("echo_data", {"text": "hi", "times": 2}),
    ("picture", {"text": "bytes"}),
    ("lose", {"text": "x"}),
    ("echo", {"text": 5}),
    ("echo", {"txt": "x"}),
    ("ecko", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_the_short_way_answers_as_the_sdk_does(name: str, arguments: dict[str, Any]) -> None:
    async with connected() as line:
        by_sdk = await line.ask(1, "tools/call", modern(name, **arguments))
        short = await line.ask(2, "tools/call", modern(name, **arguments))
        assert short["result"] == by_sdk["result"]
        assert short["result"]["resultType"] == "complete"


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_short_way_answers_a_handshake_client_as_the_sdk_does(
    version: str, name: str, arguments: dict[str, Any]
) -> None:
    async with handshaken(version) as line:
        short = await line.ask(1, "tools/call", {"name": name, "arguments": arguments})
        task = {"task": {"ttl": 1}}
        by_sdk = await line.ask(2, "tools/call", {"name": name, "arguments": arguments, **task})
        assert short["result"] == by_sdk["result"]


async def test_the_tool_list_is_the_same_in_both_eras() -> None:
    async with handshaken() as line:
        old = await line.ask(1, "tools/list", {})
    async with connected() as line:
        new = await line.ask(1, "tools/list", {"_meta": dict(ENVELOPE)})
    assert [entry["name"] for entry in old["result"]["tools"]] == [entry["name"] for entry in new["result"]["tools"]]
    assert new["result"]["cacheScope"] == "private"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancelled_call_stops_and_is_never_answered(era: str) -> None:
    label = f"cancel-{era}"
    async with handshaken() if era == "legacy" else connected() as line:
        params = modern("wait", seconds=15, label=label)
        if era == "legacy":
            del params["_meta"]
        else:
            await line.ask(1, "server/discover", {"_meta": dict(ENVELOPE)})
        await line.send(5, "tools/call", params)
        while label not in sample.STARTED:
            await anyio.sleep(0.005)
        await line.tell("notifications/cancelled", {"requestId": 5})
        with anyio.fail_after(5):
            while label not in sample.STOPPED:
                await anyio.sleep(0.005)
        echo = modern("echo", text="next") if era == "modern" else {"name": "echo", "arguments": {"text": "next"}}
        assert (await line.ask(6, "tools/call", echo))["id"] == 6


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_progress_comes_before_the_answer_and_under_the_token_that_was_given(era: str) -> None:
    async with handshaken() if era == "legacy" else connected() as line:
        if era == "modern":
            await line.ask(1, "server/discover", {"_meta": dict(ENVELOPE)})
        params = modern("wait", seconds=0.3)
        params["_meta"] = {**(ENVELOPE if era == "modern" else {}), "progressToken": "tok"}
        await line.send(3, "tools/call", params)
        messages = [await line.next()]
        while "id" not in messages[-1]:
            messages.append(await line.next())
        notices = [message["params"] for message in messages[:-1]]
        assert notices
        assert all(notice["progressToken"] == "tok" for notice in notices)
        assert notices[-1] == {"progressToken": "tok", "progress": 2.0, "total": 2.0, "message": "done"}


async def test_calls_run_side_by_side_and_answers_come_as_they_are_ready() -> None:
    async with handshaken() as line:
        await line.send("slow", "tools/call", {"name": "wait", "arguments": {"seconds": 0.4}})
        await line.send("fast", "tools/call", {"name": "echo", "arguments": {"text": "x"}})
        assert [(await line.next())["id"], (await line.next())["id"]] == ["fast", "slow"]


@pytest.mark.parametrize(
    ("message", "number", "code"),
    [
        (b"{", None, -32700),
        (b"nonsense", None, -32700),
        (b"[" * 20_000, None, -32700),
        (b"[" * 100_000, None, -32600),
        (b'{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"x": [' + b"1," * 50_000 + b"1]}}", 8, -32600),
        (b'{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"x": ' + b"1" * 1_100_000 + b"}}", 8, -32600),
        (b"[]", None, -32600),
        (b"5", None, -32600),
        (b'{"id": 9}', 9, -32600),
        (b'{"jsonrpc": "2.0", "id": "a", "method": 5}', "a", -32600),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"x": NaN}}', 4, -32602),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"x": "\\ud800"}}', 4, -32602),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "no/such"}', 4, -32601),
        (b"\xff\xfe", None, -32700),
    ],
)
async def test_what_is_no_request_gets_an_error_under_its_id(
    message: bytes, number: int | str | None, code: int
) -> None:
    async with handshaken() as line:
        answer = await line.raw(message)
        assert (answer["id"], answer["error"]["code"]) == (number, code)
        assert (await line.ask(99, "ping", {}))["result"] == {}


async def test_a_lone_surrogate_in_an_argument_is_the_tools_to_refuse() -> None:
    async with handshaken() as line:
        text = (
            b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"measure","arguments":{"text":"\\ud800"}}}'
        )
        answer = await line.raw(text)
        assert answer["id"] == 4
        assert answer["result"]["structuredContent"]["code"] == "INVALID_ARGUMENT"
        assert "lone surrogate" in answer["result"]["structuredContent"]["message"]


async def test_a_lone_surrogate_in_an_id_does_not_end_the_connection() -> None:
    async with handshaken() as line:
        answer = await line.raw(b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"echo"}}')
        assert (answer["id"], answer["error"]["code"]) == (None, -32602)
        assert (await line.ask(99, "ping", {}))["result"] == {}


async def test_a_fault_is_answered_without_its_message() -> None:
    async with handshaken() as line:
        answer = await line.ask(1, "tools/call", {"name": "crash", "arguments": {"text": "CANARY-7f3"}})
        assert answer["result"]["structuredContent"]["code"] == "INTERNAL"
        assert "CANARY" not in json.dumps(answer)


async def test_a_request_pending_when_the_client_closes_is_still_answered() -> None:
    async with connected() as line:
        await line.send(1, "tools/call", modern("wait", seconds=0.1))
        await line.send(2, "tools/call", modern("wait", seconds=0.1))
        line.to_server.close()
        assert {(await line.next())["id"], (await line.next())["id"]} == {1, 2}


async def test_an_answer_that_goes_out_slowly_is_still_delivered_when_the_client_has_closed() -> None:
    line = Line()

    async def slowly(message: bytes) -> None:
        await anyio.sleep(0.2)
        await line.server_writes.send(message)

    with line.to_server, line.server_reads, line.server_writes, line.from_server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_stream, sample.dispatcher(), sample.CALLER, line.receive, slowly)
            await line.send(1, "tools/call", modern("wait", seconds=0.0))
            line.to_server.close()
            assert (await line.next())["id"] == 1


async def test_a_client_that_reads_nothing_has_few_calls_made_and_the_others_wait() -> None:
    line, unread = Line(), anyio.Event()

    async def send(message: bytes) -> None:
        if b'"waited"' in message:
            await unread.wait()
        await line.server_writes.send(message)

    sample.STOPPED.clear()
    with line.to_server, line.server_reads, line.server_writes, line.from_server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_stream, sample.dispatcher(), sample.CALLER, line.receive, send)
            await line.ask(0, "tools/call", modern("echo", text="hi"))
            for number in range(1, 91):
                await line.send(number, "tools/call", modern("wait", seconds=0))
            while len(sample.STOPPED) < stream._MAX_AT_ONCE:
                await anyio.sleep(0.01)
            await anyio.sleep(0.2)
            assert len(sample.STOPPED) == stream._MAX_AT_ONCE
            unread.set()
            assert {(await line.next())["id"] for _ in range(90)} == set(range(1, 91))
            line.to_server.close()
