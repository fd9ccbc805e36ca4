"""Raw clients at the WebSocket door: Python's websockets in both eras, and the one that Node has built in."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.protocol import node
from tests.protocol.conftest import Served

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def address(served: Served) -> str:
    """Return where the door is."""
    return f"{served.url.replace('http', 'ws', 1)}/ws"


def connect_with_key(served: Served, **headers: str) -> ClientConnection:
    """Return a connection with the server's key."""
    return connect(
        address(served),
        additional_headers={"Authorization": f"Bearer {served.key}", **headers},
        subprotocols=[Subprotocol("mcp")],
        max_size=None,
        proxy=None,
        open_timeout=20,
    )


def ask(line: ClientConnection, number: int, method: str, **params: Any) -> dict[str, Any]:
    """Send a request and return its answer, passing over whatever comes before it."""
    line.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    while True:
        message: dict[str, Any] = json.loads(line.recv(timeout=20))
        if message.get("id") == number:
            return message


@pytest.mark.req("SV-01.b", "SV-04.a")
def test_a_handshake_client_works_over_a_websocket(served: Served) -> None:
    (served.root / "frame.txt").write_text("Grüße\n")
    with connect_with_key(served) as line:
        assert line.subprotocol == "mcp"
        assert ask(line, 1, "initialize", **OPENING)["result"]["protocolVersion"] == "2025-11-25"
        line.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        assert "read_text_file" in {tool["name"] for tool in ask(line, 2, "tools/list")["result"]["tools"]}
        answer = ask(line, 3, "tools/call", name="read_text_file", arguments={"path": "frame.txt"})
        assert answer["result"]["content"] == [{"type": "text", "text": "Grüße\n"}]


@pytest.mark.req("SV-01.b", "SV-04.a", "FS-19")
def test_a_stateless_client_sees_progress_and_stops_work_over_a_websocket(conformance_build: Served) -> None:
    label = uuid4().hex
    with connect_with_key(conformance_build) as line:
        assert ask(line, 1, "server/discover", _meta=ENVELOPE)["result"]["supportedVersions"] == ["2026-07-28"]
        meta = {**ENVELOPE, "progressToken": "mine"}
        call = {"name": "work_for_long", "arguments": {"label": label}, "_meta": meta}
        line.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
        notice = json.loads(line.recv(timeout=20))
        assert (notice["method"], notice["params"]["progressToken"]) == ("notifications/progress", "mine")
        line.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        status = ask(line, 3, "tools/call", name="has_stopped", arguments={"label": label}, _meta=ENVELOPE)
        assert status["result"]["content"][0]["text"] == "stopped"
        assert status["result"]["resultType"] == "complete"


@pytest.mark.req("SV-01.b", "SV-04.a")
def test_the_websocket_of_node_reads_a_file(served: Served) -> None:
    (served.root / "node.txt").write_text("из файла\n")
    report = node.script("websocket.mjs", {"url": address(served), "key": served.key, "path": "node.txt"})
    assert (report["protocol"], report["version"], report["text"]) == ("mcp", "2025-06-18", "из файла\n")
    assert "edit_file" in report["tools"]


@pytest.mark.req("SV-05.a", "SV-05.c")
@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("127.0.0.1", {"Authorization": "Bearer wrong"}, 401),
        ("127.0.0.1", {"Origin": "https://evil.example.com"}, 403),
        ("evil.example.com", {}, 421),
    ],
)
def test_a_websocket_from_elsewhere_is_refused_before_it_opens(
    served: Served, host: str, headers: dict[str, str], status: int
) -> None:
    port = urlsplit(served.url).port
    assert port is not None
    all_headers = {"Authorization": f"Bearer {served.key}", **headers}
    wire = socket.create_connection(("127.0.0.1", port))
    with wire, pytest.raises(InvalidStatus) as refused:
        connect(f"ws://{host}:{port}/ws", sock=wire, additional_headers=all_headers)
    assert refused.value.response.status_code == status
