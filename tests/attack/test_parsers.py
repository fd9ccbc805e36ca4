"""What costs a parser much more than its bytes is refused, and what is honest but large passes, however it is cut up."""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.helpers.doors import LIST, MODERN_META, House
from tests.helpers.raw_http import dial, request_bytes, status_of

pytestmark = [pytest.mark.timeout(90), pytest.mark.req("SV-13.c")]

KEY = "a-tenant-who-sends-oddly"
SETTINGS = {"auth": {"mode": "open"}, "server": {"max_held_bytes": 24_000_000, "max_body_bytes": 16_000_000}}
CALL_META: dict[str, Any] = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "file_write"}
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server where every long key is a tenant."""
    made = House(tmp_path_factory.mktemp("parsers"))
    made.settings(json.dumps({"settings": SETTINGS}))
    with made.serve(str(made.root)):
        yield made


def chunked(key: str) -> bytes:
    """Return the head of a request whose body comes in chunks."""
    head = request_bytes(key, b"", transfer_encoding="chunked", content_length="")
    return head if key else head.replace(b"authorization: Bearer \r\n", b"")


def frame(kind: int, payload: bytes, *, is_last: bool = True) -> bytes:
    """Return a frame as a client sends it."""
    first = bytes([kind | (0x80 if is_last else 0)])
    if len(payload) < 126:
        return first + bytes([0x80 | len(payload)]) + bytes(4) + payload
    if len(payload) < 65_536:
        return first + bytes([0x80 | 126]) + struct.pack("!H", len(payload)) + bytes(4) + payload
    return first + bytes([0x80 | 127]) + struct.pack("!Q", len(payload)) + bytes(4) + payload


def open_websocket(house: House, key: str = KEY) -> socket.socket:
    line = dial(house)
    head = (
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
        f"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {key}\r\n\r\n"
    )
    line.sendall(head.encode())
    assert status_of(line) == 101
    return line


def send_all(line: socket.socket, data: bytes) -> None:
    """Send what the server takes before it closes the connection."""
    with suppress(OSError):
        line.sendall(data)


def close_code(line: socket.socket) -> int:
    """Read frames up to the server's close and return its code; 0 when the connection ended without one."""
    data = b""
    with suppress(ConnectionError):
        while piece := line.recv(65_536):
            data += piece
    while len(data) >= 2:
        kind, size, start = data[0] & 15, data[1] & 127, 2
        if size == 126:
            size, start = struct.unpack("!H", data[2:4])[0], 4
        if kind == CLOSE:
            return int(struct.unpack("!H", data[start : start + 2])[0])
        data = data[start + size :]
    return 0


@pytest.mark.parametrize("key", [KEY, ""])
@pytest.mark.parametrize("unit", [b"1\r\nx\r\n", b"8\r\nxxxxxxxx\r\n"])
def test_a_body_in_tiny_chunks_is_refused(house: House, key: str, unit: bytes) -> None:
    with dial(house) as line:
        line.sendall(chunked(key))
        send_all(line, unit * (2_000_000 // len(unit)))
        assert status_of(line) in (400, 401, 0)
    assert_served(house)


def test_a_trailer_of_very_many_fields_is_refused(house: House) -> None:
    with dial(house) as line:
        line.sendall(chunked(KEY) + b"2\r\n{}\r\n0\r\n" + b"a:b\r\n" * 1000)
        assert status_of(line) == 431


@pytest.mark.parametrize("fields", [201, 12_000])
def test_a_head_of_very_many_fields_is_refused(house: House, fields: int) -> None:
    with dial(house) as line:
        send_all(line, b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"a:b\r\n" * fields + b"\r\n")
        assert status_of(line) in (431, 0)
    with dial(house) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"a:b\r\n" * 190 + b"\r\n")
        assert status_of(line) == 200


@pytest.mark.parametrize("kind", [PING, PONG])
@pytest.mark.parametrize("payload", [b"", b"x" * 125])
def test_a_client_that_does_nothing_but_ping_is_cut_off(house: House, kind: int, payload: bytes) -> None:
    with open_websocket(house) as line:
        send_all(line, frame(kind, payload) * 5000)
        assert close_code(line) in (1008, 0)
    with open_websocket(house) as line:
        line.sendall(frame(PING, b"still here?") * 50)
        assert line.recv(2) == bytes([0x80 | PONG, 11])


@pytest.mark.parametrize("payload", [b"", b"x"])
def test_a_message_in_tiny_fragments_is_cut_off(house: House, payload: bytes) -> None:
    with open_websocket(house) as line:
        send_all(line, frame(TEXT, b"{", is_last=False) + frame(0, payload, is_last=False) * 5000)
        assert close_code(line) in (1008, 0)


def test_unfinished_messages_count_as_memory_of_their_caller(house: House) -> None:
    """Twelve million bytes are one caller's part here, and the one more piece that goes beyond it."""
    begun = frame(TEXT, bytes(15_000_000))[:14_000_000]
    lines = [open_websocket(house) for _ in range(3)]
    other = open_websocket(house, "another-tenant-of-this-server")
    try:
        for line in lines:
            send_all(line, begun)
        deadline = time.monotonic() + 20
        codes: list[int] = []
        for line in lines:
            line.settimeout(max(0.1, deadline - time.monotonic()) if not codes else 2)
            codes.append(close_code(line))
        assert codes.count(1013) >= 2, codes
        other.sendall(frame(TEXT, json.dumps(LIST | {"params": {"_meta": MODERN_META}}).encode()))
        assert b'"tools"' in read_message(other)
    finally:
        for line in [*lines, other]:
            line.close()
    assert_served(house)


def read_message(line: socket.socket) -> bytes:
    """Read frames until one ends a message; returns it with its frames' heads."""
    data = b""
    while b'"jsonrpc"' not in data[-200:] and not data.endswith(b"}"):
        piece = line.recv(1_000_000)
        assert piece, "the server closed the connection"
        data += piece
    return data


def write_call(content: str) -> bytes:
    params = {
        "name": "file_write",
        "arguments": {"project": "p", "path": "/a.txt", "content": content, "mode": "TRUNCATE"},
        "_meta": MODERN_META,
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


@pytest.mark.parametrize("size", [100, 3000, 65_536])
def test_a_large_body_in_honest_chunks_is_served(house: House, size: int) -> None:
    body = write_call("a line of text\n" * 30_000)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = request_bytes(KEY, b"", transfer_encoding="chunked", content_length="", **CALL_META)
    with dial(house) as line:
        line.sendall(head + sent)
        assert status_of(line) == 200


def test_large_bodies_one_after_the_other_are_served_while_others_are_answered(house: House) -> None:
    body = write_call("a line of text\n" * 60_000)
    waits: list[float] = []
    is_over = threading.Event()

    def ask() -> None:
        with dial(house) as line:
            while not is_over.is_set():
                begun_at = time.monotonic()
                line.sendall(request_bytes("a-quiet-tenant-of-this-server", LIST))
                assert status_of(line) == 200
                waits.append(time.monotonic() - begun_at)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        with dial(house) as line:
            for _ in range(5):
                line.sendall(request_bytes(KEY, body, **CALL_META))
                assert status_of(line) == 200
    finally:
        is_over.set()
        asking.join()
    assert waits
    assert max(waits) < 5


def test_a_message_in_honest_fragments_with_pings_between_is_served(house: House) -> None:
    body = write_call("a line of text\n" * 30_000)
    pieces = [body[start : start + 4000] for start in range(0, len(body), 4000)]
    with open_websocket(house) as line:
        for number, piece in enumerate(pieces):
            line.sendall(frame(TEXT if number == 0 else 0, piece, is_last=number == len(pieces) - 1))
            if number % 20 == 10:
                line.sendall(frame(PING, b""))
        data = b""
        while b'"jsonrpc"' not in data:
            data += line.recv(65_536)
        assert b'"isError":false' in data


def test_requests_that_are_sent_ahead_are_all_answered_in_order(house: House) -> None:
    requests = [request_bytes(KEY, LIST | {"id": f"request-{number}"}) for number in range(40)]
    with dial(house) as line:
        line.sendall(b"".join(requests))
        line.settimeout(30)
        data = b""
        while data.count(b'"id":"request-') < 40:
            piece = line.recv(1_000_000)
            assert piece, "the server closed the connection"
            data += piece
    places = [data.index(f'"id":"request-{number}"'.encode()) for number in range(40)]
    assert places == sorted(places)


def test_bytes_that_come_one_by_one_are_a_request_all_the_same(house: House) -> None:
    with dial(house) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request_bytes(KEY, LIST):
            line.sendall(bytes([byte]))
        assert status_of(line) == 200


def test_random_bytes_are_refused_and_everybody_else_is_served(house: House) -> None:
    for size in (1, 2047, 2048, 2049, 100_000):
        with dial(house) as line:
            send_all(line, os.urandom(size) + b"\r\n\r\n")
            assert status_of(line) in (400, 431, 0)
        with open_websocket(house) as line:
            send_all(line, b"\xff" + os.urandom(size))
            assert close_code(line) in (1002, 1007, 0)
    assert_served(house)


def assert_served(house: House) -> None:
    """Assert that another tenant is answered."""
    with dial(house) as line:
        line.sendall(request_bytes("another-tenant-of-this-server", LIST))
        assert status_of(line) == 200
