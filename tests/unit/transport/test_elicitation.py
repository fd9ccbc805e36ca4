"""Questions on a connection: ids, answers, withdrawals, and what the end of the connection does to them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from holdfast.call import Question, Reply
from holdfast.transport.doors.streams.stream import serve_stream
from holdfast.transport.mcp.elicitation import OpenQuestions, takes_forms
from tests.protocol.fixture_asking import question
from tests.protocol.fixture_table import CALLER, dispatcher
from tests.unit.transport.test_stream import ENVELOPE, Line

pytestmark = pytest.mark.anyio

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MAY_IT = question("may", "May it be?", {"ok": {"type": "boolean"}})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Client:
    """What a connection's questions look like to its client."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.questions = OpenQuestions(lambda message: self.seen.append(json.loads(message)))

    async def asked(self, wanted: Question = MAY_IT) -> "asyncio.Task[Reply]":
        task = asyncio.create_task(self.questions.ask(wanted))
        await asyncio.sleep(0)
        return task

    @property
    def number(self) -> str:
        return str(self.seen[-1]["id"])


@pytest.mark.parametrize(
    ("version", "offered", "expected"),
    [
        ("2025-06-18", {}, True),
        ("2025-11-25", {"form": {}}, True),
        ("2026-07-28", {"form": {}, "url": {}}, True),
        ("2026-07-28", {"url": {}}, False),
        ("2025-11-25", {"form": None, "url": {}}, False),
        ("2025-11-25", None, False),
        ("2025-11-25", True, False),
        ("2025-03-26", {}, False),
    ],
)
async def test_which_clients_show_forms(version: str, offered: object, expected: bool) -> None:
    assert takes_forms(version, {"elicitation": offered}) == expected


@pytest.mark.parametrize("capabilities", [None, {}, [], "elicitation"])
async def test_a_client_that_says_nothing_shows_no_forms(capabilities: object) -> None:
    assert not takes_forms("2026-07-28", capabilities)


async def test_a_question_gets_its_answer_and_no_id_is_used_twice() -> None:
    client, other = Client(), Client()
    task, _unanswered = await client.asked(), await other.asked()
    assert client.number != other.number
    assert not client.questions.take_answer({"id": other.number, "result": {}})
    assert not client.questions.take_answer({"id": client.number, "method": "ping"})
    assert client.questions.take_answer({"id": client.number, "result": {"action": "accept", "content": {"ok": True}}})
    assert await task == Reply("accept", {"ok": True})
    assert not client.questions.take_answer({"id": client.number, "result": {"action": "decline"}})
    assert len(client.seen) == 1
    other.questions.close()


@pytest.mark.parametrize("answer", [{"error": {"code": 1, "message": "no"}}, {"error": None}, {"result": None}])
async def test_an_error_is_no_answer(answer: dict[str, Any]) -> None:
    client = Client()
    task = await client.asked()
    client.questions.take_answer({"id": client.number, **answer})
    assert await task == Reply("cancel")


async def test_a_question_that_is_given_up_is_withdrawn_once() -> None:
    client = Client()
    task = await client.asked()
    number = client.number
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [message["method"] for message in client.seen] == ["elicitation/create", "notifications/cancelled"]
    assert client.seen[-1]["params"]["requestId"] == number
    assert not client.questions.take_answer({"id": number, "result": {"action": "decline"}})
    client.questions.close()
    assert len(client.seen) == 2


async def test_the_end_of_a_connection_ends_its_questions_and_lets_no_more_be_asked() -> None:
    client = Client()
    tasks = [await client.asked() for _question in range(3)]
    client.questions.close()
    assert await asyncio.gather(*tasks) == [Reply("cancel")] * 3
    assert [message["method"] for message in client.seen[3:]] == ["notifications/cancelled"] * 3
    assert await client.questions.ask(MAY_IT) == Reply("cancel")
    assert len(client.seen) == 6


@asynccontextmanager
async def connected() -> AsyncIterator[Line]:
    line = Line()
    with line.to_server, line.server_reads, line.server_writes, line.from_server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_stream, dispatcher(), CALLER, line.receive, line.server_writes.send)
            yield line
            line.to_server.close()


def modern(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "arguments": {}, "_meta": {**ENVELOPE, CAPABILITIES: {"elicitation": {}}}, **more}


async def test_a_call_that_asks_may_be_the_first_message_of_a_connection() -> None:
    replies = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
    async with connected() as line:
        by_sdk = (await line.ask(1, "tools/call", modern("test_input_required_result_elicitation")))["result"]
        short = (await line.ask(2, "tools/call", modern("test_input_required_result_elicitation")))["result"]
        assert by_sdk.keys() == short.keys()
        assert by_sdk["inputRequests"] == short["inputRequests"]
        more = {"inputResponses": replies, "requestState": by_sdk["requestState"]}
        done = await line.ask(3, "tools/call", modern("test_input_required_result_elicitation", **more))
        assert done["result"]["content"][0]["text"] == "Hello, Ada!"
    async with connected() as line:
        repeated = await line.ask(1, "tools/call", modern("test_input_required_result_elicitation", **more))
        assert repeated["result"]["content"][0]["text"] == "Hello, Ada!"
    async with connected() as line:
        more["requestState"] += "x"
        refusal = await line.ask(1, "tools/call", modern("test_input_required_result_elicitation", **more))
        assert refusal["error"]["code"] == -32602


async def test_a_lone_surrogate_in_an_answer_is_refused_and_not_passed_on() -> None:
    info = {"name": "test", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
    async with connected() as line:
        await line.ask(0, "initialize", opening)
        await line.tell("notifications/initialized", {})
        asked = await line.ask(1, "tools/call", {"name": "test_input_required_result_elicitation"})
        result = {"action": "accept", "content": {"name": "\ud83c"}}
        refusal = await line.raw(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())
        assert refusal["result"]["structuredContent"]["code"] == "INVALID_ARGUMENT"


async def test_a_handshake_call_on_the_long_way_asks_nobody() -> None:
    info = {"name": "test", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
    async with connected() as line:
        await line.ask(0, "initialize", opening)
        await line.tell("notifications/initialized", {})
        params = {"name": "test_input_required_result_elicitation", "task": {"ttl": 1}}
        answer = await line.ask(1, "tools/call", params)
        assert answer["result"]["structuredContent"]["code"] == "PERMISSION_DENIED"
