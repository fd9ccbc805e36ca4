"""Messages that are wrong in every way: each is answered under its own id, and the connection lives on."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.helpers.pipe import OPENING, Pipe
from tests.protocol.conftest import Served

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
READ = {"name": "read_text_file", "arguments": {"path": "well.txt"}}
INVALID_PARAMS = -32602
INVALID_REQUEST = -32600

NOTICES: list[tuple[str, Any]] = [
    ("notifications/cancelled", {"requestId": [1]}),
    ("notifications/cancelled", {"requestId": {"a": 1}}),
    ("notifications/cancelled", {"requestId": None}),
    ("notifications/cancelled", {"requestId": "never asked"}),
    ("notifications/cancelled", {}),
    ("notifications/cancelled", 5),
    ("notifications/nobody_knows", {"a": 1}),
]
REQUESTS: list[Any] = [
    {**READ, "_meta": 5},
    {**READ, "_meta": "text"},
    {**READ, "_meta": ["list"]},
    {**READ, "arguments": 5},
    {**READ, "name": 5},
    {"arguments": {}},
    5,
    ["list"],
    None,
    {**READ, "task": 5},
]


def request(number: int, params: Any, method: str = "tools/call") -> bytes:
    """Return a request as one line."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def still_works(pipe: Pipe, number: int, envelope: dict[str, Any]) -> bool:
    """Return whether an honest call is answered."""
    params = {**READ, "_meta": envelope} if envelope else READ
    return bool(pipe.ask(number, "tools/call", params)["result"]["content"][0]["text"] == "all is well\n")


@pytest.fixture(params=["handshake", "stateless"])
def envelope(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give what every request of an era carries."""
    return ENVELOPE if request.param == "stateless" else {}


@pytest.fixture
def pipe(served: Served, envelope: dict[str, Any]) -> Iterator[Pipe]:
    """Give an open connection through the relay."""
    (served.root / "well.txt").write_text("all is well\n")
    with Pipe([served.root], served.state) as pipe:
        if envelope:
            pipe.ask("init", "server/discover", {"_meta": envelope})
        else:
            pipe.ask("init", "initialize", OPENING)
            pipe.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        yield pipe


@pytest.mark.req("SV-04.a")
def test_a_malformed_notice_is_passed_over(pipe: Pipe, envelope: dict[str, Any]) -> None:
    for number, (method, params) in enumerate(NOTICES):
        pipe.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")
        assert still_works(pipe, number, envelope), (method, params)


@pytest.mark.req("SV-04.a")
def test_a_malformed_call_is_answered_with_an_error_under_its_own_id(pipe: Pipe, envelope: dict[str, Any]) -> None:
    for number, params in enumerate(REQUESTS, 100):
        pipe.send(request(number, params))
        answer = pipe.receive()
        assert answer["id"] == number, params
        assert answer["error"]["code"] in (INVALID_PARAMS, INVALID_REQUEST), (params, answer)
        assert still_works(pipe, -number, envelope), params


@pytest.mark.req("SV-04.a")
def test_text_that_is_no_unicode_is_answered_under_its_own_id(pipe: Pipe, envelope: dict[str, Any]) -> None:
    meta = json.dumps(envelope).encode()
    lone = b'{"name":"read_text_file","arguments":{"path":"\\ud800"},"_meta":' + meta + b"}"
    pipe.send(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + lone + b"}\n")
    answer = pipe.receive()
    assert (answer["id"], answer["result"]["structuredContent"]["code"]) == (7, "INVALID_PATH")
    assert still_works(pipe, 8, envelope)


@pytest.mark.req("SV-04.a", "SV-01.a")
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("params", REQUESTS)
def test_a_malformed_call_over_http_is_refused_and_never_a_fault(served: Served, params: Any, modern: bool) -> None:
    headers = {
        "authorization": f"Bearer {served.key}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    if modern:
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "read_text_file"}
    response = httpx2.post(f"{served.url}/mcp", content=request(1, params), headers=headers, timeout=20)
    assert response.status_code in (200, 400), response.text
    body = response.text.split("data: ", 1)[-1] if "event-stream" in response.headers["content-type"] else response.text
    assert "error" in json.loads(body), body
