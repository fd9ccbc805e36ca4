"""A command at a terminal: its output there, and its questions."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.agent import command
from tests.helpers.doors import until


def answered(state: Path, typed: bytes, *words: str, before: Callable[[], object] = lambda: None) -> tuple[int, bytes]:
    """Run a command, answer its question, and return its exit status and what it had shown until then.

    What happens `before` happens while the person thinks.
    """
    output = b""
    with _started(state, words) as (process, ours):

        def is_asked() -> bool:
            nonlocal output
            output += os.read(ours, 65_536)
            return b"[y/N]" in output

        until("the person is asked", is_asked)
        before()
        os.write(ours, typed)
        return process.wait(30), output


def output_of(state: Path, *words: str) -> bytes:
    """Run a command to its end and return what it showed."""
    output = b""
    with _started(state, words) as (_process, ours):
        while piece := _read(ours):
            output += piece
    return output


def interrupted(state: Path, when: bytes, *words: str) -> tuple[int, str]:
    """Run a command, press Ctrl-C as soon as what it has shown matches, and return its exit status and all that it showed."""
    output = b""
    with _started(state, words) as (process, ours):
        while not re.search(when, output) and (piece := _read(ours)):
            output += piece
        assert re.search(when, output), output.decode()
        process.send_signal(signal.SIGINT)
        while piece := _read(ours):
            output += piece
        return process.wait(30), output.decode()


@contextmanager
def _started(state: Path, words: tuple[str, ...]) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "HOLDFAST_STATE_DIR": str(state), "TERM": "xterm"}
    process = subprocess.Popen(command(*words), env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody has the other end open any more
        return b""
