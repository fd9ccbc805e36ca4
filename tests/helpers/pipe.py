"""The relay's pipes in the hand of a test: raw lines in and out, for clients that misbehave."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.helpers.agent import command

OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Pipe:
    """One relay process. `initialize` opens the session; after that anything may be sent."""

    def __init__(
        self, roots: Sequence[str | Path], state_dir: Path, *, options: Sequence[str] = (), cwd: Path = Path("/")
    ) -> None:
        environment = {**os.environ, "HOLDFAST_STATE_DIR": str(state_dir)}
        self.process = subprocess.Popen(
            command("stdio", *options, *map(str, roots)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=cwd,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()

    def send(self, line: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Read one message; fails when the relay closed its end or wrote anything but a JSON object."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the relay closed its end"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def ask(self, number: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return the answer to it."""
        self.request(number, method, params)
        while True:
            message = self.receive()
            if message.get("id") == number:
                return message

    def request(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        """Send one request and do not wait."""
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send(json.dumps(body).encode() + b"\n")

    def initialize(self) -> dict[str, Any]:
        """Open a handshake session."""
        answer = self.ask("init", "initialize", OPENING)
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return answer

    def call(self, number: int | str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        result = self.ask(number, "tools/call", {"name": tool, "arguments": arguments})["result"]
        assert isinstance(result, dict)
        return result
