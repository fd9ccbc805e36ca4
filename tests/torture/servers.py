"""The parts that are killed: a PostgreSQL of its own, and servers that come back on the same port."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.helpers import databases
from tests.helpers.doors import free_port
from tests.torture.wire import Broken, NotSent, ask

_SETTINGS = """settings:
  auth:
    mode: open
  limits:
    tenant: {{read_per_minute: 0, write_per_minute: 0, search_per_minute: 0}}
  mcp:
    files:
      lock_timeout_ms: 3000
      max_tenant_bytes: {share}
      versions_kept: 3
      search: {{embedder: {{kind: none}}}}
"""
LOCK_SECONDS = 3.0
_OPTIONS = "-c listen_addresses='' -c fsync=off -c max_connections=100 -c unix_socket_directories={folder}"


class Cluster:
    """One PostgreSQL. A crash drops every connection and every transaction that was not committed."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-torture-", dir="/tmp"))
        self._account = databases._account()
        if self._account:
            os.chown(self._folder, self._account["user"], self._account["group"])
        self._programs = databases._programs(self._folder, self._account)
        self._data = self._folder / "data"
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"
        initdb_command = [
            self._programs / "initdb",
            "-D",
            self._data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "utf8",
            "--no-sync",
        ]
        databases._run(initdb_command, self._account)
        self.start()

    def start(self) -> None:
        """Start, or start again, and wait until it takes connections."""
        options = ["-l", self._folder / "log", "-w", "-o", _OPTIONS.format(folder=self._folder)]
        self._control(*options, "start")

    def crash(self) -> None:
        """End at once, without a checkpoint, and recover from the log."""
        self._control("-m", "immediate", "-w", "stop")
        self.start()

    def close(self) -> None:
        """End and leave nothing."""
        try:
            self._control("-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _control(self, *arguments: object) -> None:
        databases._run([self._programs / "pg_ctl", "-D", self._data, *arguments], self._account)


class Instance:
    """A server process with a state folder and a port of its own; what is killed is started again."""

    def __init__(self, state: Path, database_url: str | None, mutant: str, share: int) -> None:
        state.mkdir(mode=0o700, parents=True)
        (state / "settings.yml").write_text(_SETTINGS.format(share=share))
        self.state = state
        self.port = free_port()
        self._mutant = mutant
        self._url = {"DATABASE_URL": database_url} if database_url else {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it may take a second to listen."""
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        command = [sys.executable, "-m", "tests.torture.launch", self._mutant]
        with (self.state / "errors").open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "serve", "--port", str(self.port), "--no-ui"],
                env={**inherited, **self._url, "HOLDFAST_STATE_DIR": str(self.state)},
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def keep_up(self) -> None:
        """Start the process again when it ended by itself, as it does while its database is away."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def await_ready(self, key: str, seconds: float = 60.0) -> None:
        """Wait until calls are answered, whatever the answer is."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.keep_up()
            try:
                if not ask(self.port, key, "file_stat", {"project": "ready", "path": "/a"}).get("isError"):
                    return
            except (Broken, NotSent):
                pass
            time.sleep(0.1)
        raise AssertionError(f"a server did not come up: {self.log()[-2000:]}")

    def log(self) -> str:
        """Return what the process has said."""
        return (self.state / "errors").read_text(errors="replace")


def stop_all(instances: Sequence[Instance]) -> None:
    """End every server at once."""
    for instance in instances:
        instance.kill()
