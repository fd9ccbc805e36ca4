"""Answers that nobody reads: they count as bytes of their caller until they are read, at every door of HTTP."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.console import Page, page_of, sign_in
from tests.helpers.doors import INITIALIZE, MODERN_META, House, post, until
from tests.helpers.raw_http import dial, status_of

pytestmark = [pytest.mark.timeout(90), pytest.mark.req("SV-13.e")]

TENANT, OTHER = "a-tenant-who-reads-nothing", "another-tenant-who-reads"
TEXT_BYTES = 6_500_000
"""More than the kernel takes for a client that does not read, so that the rest stays with the server."""
HELD_BYTES = 16_000_000
CALL = {"name": "file_read", "arguments": {"project": "p", "path": "/large.txt"}}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with room for little, a large stored file of a tenant, and a large sound in its folder."""
    served = House(tmp_path_factory.mktemp("unread"))
    files = {"max_payload_bytes": 8_000_000, "search": {"embedder": {"kind": "none"}}, "index": {"workers": 0}}
    settings = {"auth": {"mode": "open"}, "server": {"max_held_bytes": HELD_BYTES}, "mcp": {"files": files}}
    served.settings(json.dumps({"settings": settings}))
    (served.root / "noise.wav").write_bytes(b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(TEXT_BYTES))
    with served.serve(str(served.root)):
        page = page_of(served.url, {"api_key": TENANT})
        page.data("file_write", project="p", path="/large.txt", content="a" * TEXT_BYTES)
        yield served


@pytest.fixture(scope="module")
def page(house: House) -> Page:
    """Give a signed-in page of the person."""
    return sign_in(house)


def line_that_reads_nothing(house: House, stack: ExitStack) -> socket.socket:
    line = stack.enter_context(socket.socket())
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(15)
    line.connect(("127.0.0.1", house.facts()["port"]))
    return line


def held_bytes(house: House) -> float:
    status = json.loads(house.run("status", "--json").stdout)
    assert status["pid"]
    key = (house.state / "metrics.token").read_text().strip()
    with dial(house) as line:
        line.sendall(f"GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n".encode())
        text = b""
        while b"\r\n0\r\n\r\n" not in text and (piece := line.recv(65_536)):
            text += piece
            if b"content-length" in text.lower() and b"\r\n\r\n" in text:
                length = int(text.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                if len(text.partition(b"\r\n\r\n")[2]) >= length:
                    break
    rows = [row for row in text.decode().splitlines() if row.startswith("holdfast_held_bytes ")]
    return float(rows[0].split()[1])


def requests_of(house: House, page: Page) -> dict[str, bytes]:
    """Return a request for a large answer at each door."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": MODERN_META}})
    modern = {
        "host": "localhost",
        "authorization": f"Bearer {TENANT}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "file_read",
        "content-length": str(len(body)),
    }
    own = {"host": "localhost", **page.headers}
    handshake = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    session = post(house, handshake, authorization=f"Bearer {TENANT}").headers["mcp-session-id"]
    old_body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL})
    old = {
        **{name: text for name, text in modern.items() if name not in ("mcp-method", "mcp-name")},
        "mcp-protocol-version": str(INITIALIZE["protocolVersion"]),
        "mcp-session-id": session,
        "content-length": str(len(old_body)),
    }
    return {
        "mcp": _head("POST /mcp", modern) + body.encode(),
        "session": _head("POST /mcp", old) + old_body.encode(),
        "media": _head(f"GET /api/media?path={house.root}/noise.wav", own),
    }


def _head(start: str, fields: dict[str, str]) -> bytes:
    return (f"{start} HTTP/1.1\r\n" + "".join(f"{name}: {text}\r\n" for name, text in fields.items()) + "\r\n").encode()


@pytest.mark.parametrize("door", ["mcp", "session", "media"])
def test_answers_that_nobody_reads_are_bounded_by_the_bytes_of_their_caller(
    house: House, page: Page, door: str
) -> None:
    request, *unread = (requests_of(house, page)[door] for _ in range(13))
    with ExitStack() as stack:
        for each in unread:
            line_that_reads_nothing(house, stack).sendall(each)
        until("answers are held", lambda: held_bytes(house) >= TEXT_BYTES)
        until("no other is made", lambda: is_refused(house, request))
        assert held_bytes(house) <= HELD_BYTES
        assert post(house, authorization=f"Bearer {OTHER}").status_code == 200
    until("all is given back", lambda: not held_bytes(house))
    assert not is_refused(house, request)


def is_refused(house: House, request: bytes) -> bool:
    with dial(house) as line:
        line.sendall(request)
        status = status_of(line)
    assert status in (200, 503)
    return status == 503


def test_a_websocket_that_nobody_reads_holds_bytes_of_its_caller(house: House) -> None:
    head = {
        "host": "localhost",
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "authorization": f"Bearer {TENANT}",
    }
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": MODERN_META}})
    with ExitStack() as stack:
        for _ in range(2):
            line = line_that_reads_nothing(house, stack)
            line.sendall(_head("GET /ws", head))
            assert line.recv(4096).startswith(b"HTTP/1.1 101")
            line.sendall(_text_frame(message))
        until("answers are held", lambda: held_bytes(house) >= TEXT_BYTES)


def _text_frame(text: str) -> bytes:
    data = text.encode()
    return b"\x81\xfe" + len(data).to_bytes(2) + bytes(4) + data


def test_a_sound_is_answered_as_it_is(house: House, page: Page) -> None:
    answer = page.get(f"media?path={house.root}/noise.wav")
    assert answer.status_code == 200
    assert answer.content == Path(house.root / "noise.wav").read_bytes()
    assert answer.headers["content-type"] == "audio/wav"
