"""A reader of the how-to pages: runs the commands of a page in order, in a home folder of its own, as they stand there.

What stands for something else on a page (an id, a port, a key, a host) is replaced by the real one, page by page.
"""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.helpers.doors import until

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:holdfast|python|claude)\b.*)$")
_QUESTION = re.compile(rb"\[[yY]/[nN]\]:? ?$")
_LASTING = ("serve", "worker")
_COMMAND_SECONDS = 90.0


class Block(NamedTuple):
    """One fenced block of a page: its language, empty for none, and its text."""

    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a how-to page."""
    return [Block(*parts) for parts in _BLOCK.findall((HOW_TO / f"{page}.md").read_text())]


def commands_in(block: Block) -> Iterator[str]:
    """Yield the commands of a block: its lines that start one, without comments; other lines of a console are output."""
    if block.language in ("sh", "console", ""):
        text = block.text.replace("\\\n", " ")
        for line in text.splitlines():
            if match := _COMMAND.match(line.strip()):
                yield re.sub(r"\s+# .*$", "", match[1])


@dataclass
class Reader:
    """Somebody who follows a page, with a home folder that has a project and whatever the page takes for granted."""

    home: Path
    database: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def __enter__(self) -> Self:
        (self.home / "project").mkdir(parents=True)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **self.environment,
        }
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.run("holdfast stop", may_fail=True)

    def end(self) -> None:
        """End what was started, as Ctrl-C does."""
        while self.started:
            process = self.started.pop()
            process.send_signal(signal.SIGINT)
            process.wait(30)

    def run(self, command: str, *, may_fail: bool = False) -> str:
        """Run a command at a terminal, saying yes to what it asks; return what it showed. It must succeed."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.home,
            env=self.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        terminal_text = _answer_yes(ours, process)
        os.close(ours)
        assert may_fail or process.returncode == 0, f"{command}\n{terminal_text}"
        return terminal_text

    def start(self, command: str) -> None:
        """Start a command that lasts, and wait until it says that it is up; one that was started before is ended."""
        self.end()
        log = self.home / "lasting.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                shlex.split(f"env {command}"), cwd=self.home, env=self.environment, stdout=output, stderr=output
            )
        self.started.append(process)

        def is_up() -> bool:
            assert process.poll() is None, f"{command}\n{log.read_text()}"
            return "/mcp" in log.read_text() or "the worker is running" in log.read_text()

        until(f"{command} is up", is_up, 60)

    def follow(self, page: str, real: "Mapping[str, Callable[[Reader], str]]") -> str:
        """Run every command of a page in order, with real values for what stands for them; return all that was shown."""
        terminal_text = ""
        for block in blocks_of(page):
            if block.language == "python":
                (self.home / "client.py").write_text(block.text)
            for command in commands_in(block):
                actual = command
                for word, value in real.items():
                    if word in actual:
                        actual = actual.replace(word, value(self))
                if any(f"holdfast {verb}" in actual for verb in _LASTING):
                    self.start(actual)
                else:
                    terminal_text += self.run(actual)
        return terminal_text

    def state(self) -> Path:
        """Return the state folder."""
        return self.home / ".local" / "share" / "holdfast"

    def json(self, command: str) -> Any:
        """Run a command with --json and return what it printed."""
        done = subprocess.run(
            ["bash", "-c", f"{command} --json"],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout)


def _answer_yes(terminal: int, process: "subprocess.Popen[bytes]") -> str:
    terminal_text, answered, deadline = b"", 0, time.monotonic() + _COMMAND_SECONDS
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if ready:
            try:
                piece = os.read(terminal, 65_536)
            except OSError:  # the other end is closed
                piece = b""
            terminal_text += piece
            if not piece:
                break
            if len(terminal_text) > answered and _QUESTION.search(terminal_text):
                answered = len(terminal_text)
                os.write(terminal, b"y\n")
        elif process.poll() is not None:
            break
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return terminal_text.decode(errors="replace")
