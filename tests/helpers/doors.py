"""Real processes for tests of the doors: servers, relays spoken to in raw lines, and commands."""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.helpers.agent import command

ACCEPT = "application/json, text/event-stream"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def until(what: str, holds: Any, seconds: float = 15.0) -> Any:
    """Wait until `holds()` is true and return its value; fail by name when it never is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.02)
    raise AssertionError(f"never came true within {seconds} s: {what}")


def free_port() -> int:
    """Return a port below those that the kernel gives to clients: one of theirs could be taken while a server is down."""
    while True:
        port = random.randrange(18_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that ended and was not collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        if sys.platform == "linux":
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return state != "Z"


def children_of(pid: int) -> list[int]:
    """Return the processes that this one started."""
    if sys.platform != "linux":
        listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
        return [int(child) for child in listed.split()]
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                children.append(int(stat.parent.name))
    return children


class Pipes:
    """A process spoken to in lines of JSON on its stdin and stdout."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], cwd: str | Path) -> None:
        self.process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=str(cwd),
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._in, self._out, self._err = self.process.stdin, self.process.stdout, self.process.stderr
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for pipe in (self._in, self._out, self._err):
            with suppress(BrokenPipeError):
                pipe.close()

    def write(self, data: bytes) -> None:
        """Send raw bytes."""
        self._in.write(data)
        self._in.flush()

    def send(self, **message: Any) -> None:
        """Send one JSON-RPC message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def read(self, seconds: float = 45.0) -> dict[str, Any]:
        """Return the next line as an object; anything else on stdout fails here."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            wait = deadline - time.monotonic()
            assert wait > 0 and select.select([self._out], [], [], wait)[0], f"no line within {seconds} s"
            data = os.read(self._out.fileno(), 1_048_576)
            assert data, f"stdout ended; stderr: {self.errors()}"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        assert message.get("jsonrpc") == "2.0", message
        return message

    def ask(self, number: int | str, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the message that answers it."""
        self.send(id=number, method=method, params=params)
        return self.answer(number)

    def answer(self, number: int | str) -> dict[str, Any]:
        """Return the message that answers this id, skipping notifications."""
        while (message := self.read()).get("id") != number:
            assert "method" in message, message
        return message

    def initialize(self) -> dict[str, Any]:
        """Open a handshake session."""
        answer = self.ask("init", "initialize", **INITIALIZE)
        self.send(method="notifications/initialized")
        return answer

    def close_stdin(self) -> None:
        """End the client's side."""
        self._in.close()

    def rest(self) -> bytes:
        """Return what is left on stdout up to its end."""
        return self._buffer + self._out.read()

    def errors(self) -> str:
        """Return stderr after the end of the process."""
        self.process.wait(20)
        return self._err.read().decode()


class House:
    """One state folder and everything that runs in it, with what its deployment puts into the environment."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.environment = environment
        self.state = folder / "state"
        self.root = folder / "project"
        self.root.mkdir()
        (self.root / "a.txt").write_text("hello\n")
        self._served: list[Pipes] = []

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of a client on this machine."""
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**inherited, **self.environment, "HOLDFAST_STATE_DIR": str(self.state)}

    def settings(self, text: str) -> None:
        """Write the settings file that background servers read."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        (self.state / "settings.yml").write_text(text)

    def relay(self, *roots: str | Path, cwd: str | Path = "/", options: Sequence[str] = (), **env: str) -> Pipes:
        """Start `holdfast stdio` for the project, or for the roots given."""
        directories = [str(root) for root in roots] or [str(self.root)]
        return Pipes(["stdio", *options, *directories], {**self.env, **env}, cwd)

    def bare_relay(self, cwd: str | Path, **env: str) -> Pipes:
        """Start `holdfast stdio` without any directory."""
        return Pipes(["stdio"], {**self.env, **env}, cwd)

    @contextmanager
    def serve(self, *arguments: str) -> Iterator[Pipes]:
        """Run `holdfast serve` in the foreground on a free port until the block ends."""
        with Pipes(["serve", "--port", "0", *arguments], self.env, "/") as server:
            until(
                "the server is up",
                lambda: self.facts().get("pid") == server.process.pid or server.process.poll() is not None,
            )
            yield server

    def run(self, *arguments: str, timeout: float = 30.0) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            command(*arguments), env=self.env, cwd="/", capture_output=True, text=True, timeout=timeout, check=False
        )

    def run_bytes(self, *arguments: str, stdin: bytes = b"", **env: str) -> "subprocess.CompletedProcess[bytes]":
        """Run one command to its end, with bytes on its stdin."""
        environment = {**self.env, **env}
        return subprocess.run(
            command(*arguments), env=environment, cwd="/", input=stdin, capture_output=True, timeout=30, check=False
        )

    def facts(self) -> dict[str, Any]:
        """Return what server.json says, nothing when there is none."""
        try:
            facts: dict[str, Any] = json.loads((self.state / "server.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return facts

    @property
    def url(self) -> str:
        """Return the address of the HTTP door."""
        return f"http://127.0.0.1:{self.facts()['port']}"

    @property
    def token(self) -> str:
        """Return the agent's token."""
        return (self.state / "agent.token").read_text().strip()

    def end(self) -> None:
        """End whatever server is left."""
        pid = self.facts().get("pid")
        if isinstance(pid, int) and is_alive(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            with suppress(AssertionError):
                until("the server ended", lambda: not is_alive(pid), 8)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def post(house: House, message: Any = None, **headers: str) -> httpx2.Response:
    """Send one message to the agents' door, `tools/list` when nothing is said."""
    sent = {"authorization": f"Bearer {house.token}", "accept": ACCEPT, **headers}
    body = json.dumps(LIST if message is None else message)
    return httpx2.post(
        f"{house.url}/mcp",
        content=body,
        headers=[(b"content-type", b"application/json"), *_raw(sent)],
    )


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.replace("_", "-").encode(), text.strip(" ").encode("latin-1")) for name, text in headers.items()]
