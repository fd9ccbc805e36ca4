"""What ends a thread, or cannot be caught, is one line without the message of the exception, which may hold content."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys, threading
from holdfast.cli.startup import log_to_stderr
log_to_stderr()
def fail():
    raise ValueError("s3cr3t")
class FailsAtItsEnd:
    def __del__(self):
        raise ValueError("s3cr3t")
def leave():
    raise SystemExit("s3cr3t")
"""


def _lines_of(program: str, status: int = 0, **environment: str) -> str:
    argv, env = [sys.executable, "-c", _PROGRAM + program], {**os.environ, **environment}
    nothing = subprocess.DEVNULL
    ran = subprocess.run(argv, stdin=nothing, capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == status
    assert "s3cr3t" not in ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stderr


@pytest.mark.req("SV-31")
def test_a_thread_that_an_exception_ends_is_named_with_the_place() -> None:
    lines = _lines_of("thread = threading.Thread(target=fail, name='lane'); thread.start(); thread.join()")
    assert "fault that ended lane: ValueError at <string>:6 < " in lines


@pytest.mark.req("SV-31")
def test_an_exception_that_nobody_can_catch_is_named_with_the_place() -> None:
    assert "fault that nobody could catch: ValueError at <string>:9" in _lines_of("FailsAtItsEnd()")


def test_a_thread_that_leaves_is_no_fault() -> None:
    assert _lines_of("thread = threading.Thread(target=leave); thread.start(); thread.join()") == ""


@pytest.mark.req("SV-31")
def test_a_relay_that_breaks_down_says_where_and_not_on_what(tmp_path: Path) -> None:
    program = (
        "from holdfast.transport.client import relay\n"
        "relay.Relay.run = lambda _self: fail()\n"
        "sys.argv = ['holdfast', 'stdio', '/tmp']\n"
        "from holdfast.__main__ import main\n"
        "main()\n"
    )
    assert "An internal error: ValueError at <string>:6. Please report it." in _lines_of(
        program, 1, HOLDFAST_STATE_DIR=str(tmp_path)
    )
