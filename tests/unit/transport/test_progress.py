"""Progress on its way to a client: paced, rising, complete in form, and over when the call is."""

import json
import threading
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from holdfast.call import ProgressSink
from holdfast.transport.doors.streams.stream import serve_stream
from holdfast.transport.mcp.run import progress_to
from tests.protocol.fixture_table import CALLER, dispatcher

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def told(*notices: tuple[float, float | None]) -> list[float]:
    """Return which of these notices, told by a thread one right after the other, are delivered."""
    seen: list[float] = []

    def tell(sink: ProgressSink) -> None:
        for done, total in notices:
            sink(done, total, "")

    with progress_to(lambda done, _total, _message: seen.append(done)) as sink:
        await anyio.to_thread.run_sync(tell, sink)
    return seen


async def test_a_notice_right_after_another_is_dropped_unless_it_completes_the_total() -> None:
    assert await told((1, 9), (2, 9), (9, 9)) == [1, 9]


async def test_a_notice_that_is_no_more_than_the_last_is_dropped() -> None:
    assert await told((9, 9), (9, 9), (3, 3)) == [9]


async def test_what_a_thread_tells_after_the_end_of_the_call_is_not_delivered() -> None:
    seen: list[float] = []
    with progress_to(lambda done, _total, _message: seen.append(done)) as sink:
        pass
    late = threading.Thread(target=sink, args=(1.0, 1.0, ""))
    late.start()
    await anyio.to_thread.run_sync(late.join)
    await anyio.lowlevel.checkpoint()
    assert seen == []


async def test_a_total_that_nobody_knows_is_left_out_of_the_notice() -> None:
    to_server, server_reads = anyio.create_memory_object_stream[bytes](10)
    server_writes, from_server = anyio.create_memory_object_stream[bytes](100)

    async def receive() -> bytes | None:
        try:
            return await server_reads.receive()
        except anyio.EndOfStream:
            return None

    async def next_message() -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await from_server.receive())
        return message

    async def send(method: str, params: dict[str, Any], **number: int) -> None:
        await to_server.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **number}).encode())

    with server_reads, server_writes, from_server, anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_stream, dispatcher(), CALLER, receive, server_writes.send)
            client = {"name": "t", "version": "1"}
            await send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}, id=1)
            await next_message()
            call = {"name": "work_for_long", "arguments": {"label": "no total"}, "_meta": {"progressToken": 0}}
            await send("tools/call", call, id=2)
            notice = await next_message()
            await send("notifications/cancelled", {"requestId": 2})
            to_server.close()
    assert notice["params"] == {"progressToken": 0, "progress": 1.0, "message": "more"}
