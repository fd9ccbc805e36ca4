"""A raw JSON-RPC client over a child's pipes: it times every call and counts the bytes that come back.

It does as little as a client can, so that what is measured is the server; answers are parsed after the clock stops.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_CHUNK_BYTES = 1 << 20
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "holdfast-benchmark", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Timed:
    """One answered request: seconds from the first byte written to the last byte read, and the line itself."""

    seconds: float
    raw: bytes

    @property
    def message(self) -> dict[str, Any]:
        """Return the parsed answer."""
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def size(self) -> int:
        """Return the bytes of the answer's line."""
        return len(self.raw)

    def text(self) -> str:
        """Return the text blocks of a tool's answer; fails when the call did."""
        message = self.message
        if "error" in message or message["result"].get("isError"):
            raise RuntimeError(f"the call failed: {self.raw[:400]!r}")
        return "\n".join(block.get("text", "") for block in message["result"]["content"])


class Wire:
    """A connection of newline-delimited JSON-RPC over two descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._buffer = b""
        self._number = 0
        self.answered_at = 0.0

    def open(self) -> None:
        """Do the handshake."""
        answer = self.request("initialize", _INITIALIZE)
        if "result" not in answer.message:
            raise RuntimeError(f"the server refused the handshake: {answer.raw[:1000]!r}")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Timed:
        """Call a tool."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Timed:
        """Send one request and wait for its answer; notifications that come before it are skipped."""
        self._number += 1
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": self._number, "method": method}
        if params is not None:
            body["params"] = params
        line = json.dumps(body).encode() + b"\n"
        began_at = time.perf_counter()
        os.write(self._write_fd, line) if len(line) <= 4096 else self._write_all(line)
        raw = self._answer()
        self.answered_at = time.perf_counter()
        return Timed(self.answered_at - began_at, raw)

    def call_at_once(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Send several calls in one write and return their answers in the order they came."""
        bodies = []
        for tool, arguments in calls:
            self._number += 1
            params = {"name": tool, "arguments": arguments}
            bodies.append({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params})
        self._write_all(b"".join(json.dumps(body).encode() + b"\n" for body in bodies))
        return [json.loads(self._answer()) for _ in bodies]

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message that has no answer."""
        self._write_all(json.dumps(message).encode() + b"\n")

    def _write_all(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def _answer(self) -> bytes:
        while True:
            line = self._line()
            if b'"method"' not in line[:200] or b'"result"' in line[:200]:
                return line

    def _line(self) -> bytes:
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            piece = os.read(self._read_fd, _CHUNK_BYTES)
            if not piece:
                raise RuntimeError(f"the server hung up after {b''.join(pieces)[:400]!r}")
            pieces.append(piece)
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line


class Pipe(Wire):
    """One server process spoken to over its standard input and output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self.started_at = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd=cwd,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(self._process.stdout.fileno(), self._process.stdin.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Return the process id of the child."""
        return self._process.pid

    def close(self) -> None:
        """Close the pipes and wait for the child; one that stays is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
