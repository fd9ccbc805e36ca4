"""HTTP in raw bytes over sockets of the test's own: half-sent requests, WebSocket handshakes, what no client library sends."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.helpers.doors import ACCEPT, House


def port_of(house: House) -> int:
    """Return the port of the HTTP door."""
    return int(house.facts()["port"])


def dial(house: House) -> socket.socket:
    """Return a new connection to the HTTP door."""
    return socket.create_connection(("127.0.0.1", port_of(house)), 10)


def request_bytes(key: str, message: Any, *, version: str = "1.1", length: int | None = None, **headers: str) -> bytes:
    """Return a whole POST to /mcp; a header's name is given with `_` for `-`."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    all_headers = {
        "host": "localhost",
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "content-type": "application/json",
        "content-length": str(len(body) if length is None else length),
    } | {name.replace("_", "-"): text for name, text in headers.items()}
    head = "".join(f"{name}: {text}\r\n" for name, text in all_headers.items() if text)
    return f"POST /mcp HTTP/{version}\r\n{head}\r\n".encode() + body


def status_of(line: socket.socket) -> int:
    """Read a whole answer and return its status, 0 when the connection is closed before its end."""
    answer = b""
    while not _is_whole(answer):
        try:
            piece = line.recv(65_536)
        except ConnectionResetError:
            return 0
        if not piece:
            return 0
        answer += piece
    return int(answer.split(b" ", 2)[1])


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return bool(end) and len(body) >= int(length or 0)


@contextmanager
def websocket(house: House, key: str) -> Iterator[int]:
    """Open a WebSocket that sends nothing more; yields the status of the handshake."""
    head = (
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
        f"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {key}\r\n\r\n"
    )
    with dial(house) as line:
        line.sendall(head.encode())
        yield status_of(line)
