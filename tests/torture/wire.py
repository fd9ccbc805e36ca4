"""A lean MCP client: JSON-RPC over one kept-alive HTTP connection, standard library only, one call at a time.

The official client spends several milliseconds of CPU on a call; this one about a twentieth, so that the clients do not
take the machine from the servers. What it sends is what the newest protocol asks for: no session, one POST a call.
"""

import json
import select
import socket
from typing import Any

_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class NotSent(Exception):
    """Nobody was listening: the call has certainly not been made."""


class Broken(Exception):
    """The connection ended before the answer: the call may or may not have been made."""


class Door:
    """One connection to one server, opened when it is needed and after every break."""

    def __init__(self, port: int, key: str, seconds: float = 30.0) -> None:
        self._port = port
        self._seconds = seconds
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: {_VERSION}\r\nMcp-Method: tools/call\r\n"
        )
        self._socket: socket.socket | None = None
        self._held = b""
        self._number = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result; NotSent or Broken when there is none."""
        self._number += 1
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        body = json.dumps(message, separators=(",", ":")).encode()
        head = f"{self._head}Mcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._connect()
        try:
            return self._exchange(head.encode() + body)
        except (OSError, ValueError, KeyError) as error:
            self.close()
            raise Broken(type(error).__name__) from error

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._held = None, b""

    def _connect(self) -> None:
        """Open a connection, or a new one where the server has hung up meanwhile."""
        if self._socket is not None and self._is_hung_up():
            self.close()
        if self._socket is not None:
            return
        try:
            self._socket = socket.create_connection(("127.0.0.1", self._port), self._seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self._socket = None
            raise NotSent(type(error).__name__) from error

    def _is_hung_up(self) -> bool:
        """Return whether something is there to read while nothing was asked, which can only be the end."""
        assert self._socket is not None
        return bool(select.select([self._socket], [], [], 0)[0])

    def _exchange(self, request: bytes) -> dict[str, Any]:
        assert self._socket is not None
        self._socket.sendall(request)
        head = self._until(b"\r\n\r\n")
        status = int(head[9:12])
        fields = head.lower()
        body = self._chunks() if b"transfer-encoding: chunked" in fields else self._exactly(_length(fields))
        if status != 200:
            raise ValueError(f"status {status}")
        if b"text/event-stream" in fields:
            body = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")][-1]
        result: dict[str, Any] = json.loads(body)["result"]
        return result

    def _more(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(262_144)
        if not data:
            raise ConnectionResetError("the server hung up")
        self._held += data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._held:
            self._more()
        found, _, self._held = self._held.partition(mark)
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self._held) < count:
            self._more()
        found, self._held = self._held[:count], self._held[count:]
        return found

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self._until(b"\r\n"), 16):
            found += self._exactly(size)
            self._exactly(2)
        self._exactly(2)
        return found


def _length(fields: bytes) -> int:
    at = fields.index(b"content-length:") + 15
    return int(fields[at:].partition(b"\r\n")[0])
