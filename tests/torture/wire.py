"""A lean MCP client: JSON-RPC over one kept-alive connection, HTTP or WebSocket, standard library only, one call at a time.

The official client spends several milliseconds of CPU on a call; this one about a twentieth, so that the clients do not
take the machine from the servers. What it sends is what the newest protocol asks for: no session, one POST or frame a
call. The server's own cost of a call is about four times as high over HTTP, so most lanes use WebSocket.
"""

import json
import select
import socket
from abc import ABC, abstractmethod
from contextlib import closing
from typing import Any

_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class NotSent(Exception):
    """Nobody was listening: the call has certainly not been made."""


class Broken(Exception):
    """The connection ended before the answer: the call may or may not have been made."""


class Line(ABC):
    """One connection to one server, opened when it is needed and after every break."""

    def __init__(self, port: int, key: str, seconds: float = 30.0) -> None:
        self._port = port
        self._key = key
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._number = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result; NotSent or Broken when there is none."""
        self._number += 1
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        body = json.dumps(message, separators=(",", ":")).encode()
        self._connect()
        try:
            result: dict[str, Any] = json.loads(self._exchange(tool, body))["result"]
        except (OSError, ValueError, KeyError) as error:
            self.close()
            raise Broken(type(error).__name__) from error
        return result

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    @abstractmethod
    def _exchange(self, tool: str, body: bytes) -> bytes:
        """Send a message and return the one that answers it."""

    @abstractmethod
    def _greet(self) -> None:
        """Do what a new connection begins with."""

    def _connect(self) -> None:
        """Open a connection, or a new one where the server has hung up meanwhile."""
        if self._socket is not None and self._is_hung_up():
            self.close()
        if self._socket is not None:
            return
        try:
            self._socket = socket.create_connection(("127.0.0.1", self._port), self._seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._greet()
        except (OSError, ValueError) as error:
            self.close()
            raise NotSent(type(error).__name__) from error

    def _is_hung_up(self) -> bool:
        """Return whether something is there to read while nothing was asked, which is the end or about to be."""
        assert self._socket is not None
        return bool(self._buffer) or bool(select.select([self._socket], [], [], 0)[0])

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(data)

    def _more(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(262_144)
        if not data:
            raise ConnectionResetError("the server hung up")
        self._buffer += data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._more()
        piece, _, self._buffer = self._buffer.partition(mark)
        return piece

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._more()
        piece, self._buffer = self._buffer[:count], self._buffer[count:]
        return piece


class Door(Line):
    """MCP over HTTP: one POST a call."""

    def _greet(self) -> None:
        """Begin with nothing."""

    def _exchange(self, tool: str, body: bytes) -> bytes:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: {_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._send(head.encode() + body)
        fields = self._until(b"\r\n\r\n").lower()
        answer = self._chunks() if b"transfer-encoding: chunked" in fields else self._exactly(_length(fields))
        if fields[9:12] != b"200":
            raise ValueError(f"status {fields[9:12]!r}")
        if b"text/event-stream" in fields:
            return [line[6:] for line in answer.splitlines() if line.startswith(b"data: {")][-1]
        return answer

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._exactly(size)
            self._exactly(2)
        self._exactly(2)
        return body


class Stream(Line):
    """MCP over WebSocket: one text frame a message."""

    def _greet(self) -> None:
        self._send(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._key}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n".encode()
        )
        if self._until(b"\r\n\r\n")[9:12] != b"101":
            raise ValueError("no WebSocket")

    def _exchange(self, tool: str, body: bytes) -> bytes:
        self._send(_frame(_TEXT, body))
        while True:
            kind, data = self._frame()
            if kind == _TEXT:
                return data
            if kind == _PING:
                self._send(_frame(_PONG, data))
            elif kind == _CLOSE:
                raise ConnectionResetError("the server hung up")

    def _frame(self) -> tuple[int, bytes]:
        kind, size = self._exactly(2)
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8))
        return kind & 0x0F, self._exactly(size)


def _frame(kind: int, data: bytes) -> bytes:
    """Return a frame as a client sends it, masked by zeros, which leave it as it is."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    return bytes([0x80 | kind]) + length + bytes(4) + data


def _length(fields: bytes) -> int:
    at = fields.index(b"content-length:") + 15
    return int(fields[at:].partition(b"\r\n")[0])


def ask(port: int, key: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make one call on a connection of its own."""
    with closing(Door(port, key, 15)) as door:
        return door.call(tool, arguments)
