"""Quiet clients in a process of their own: a small call every 20 ms through each door, with the time that each took.

    python -m benchmarks.measure.quiet < target.json

A line for each answer: the door, when it was sent (monotonic), its milliseconds, and whether it was right.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from benchmarks.measure.floods import Target, dial, exchange, stateless_request
from tests.helpers.agent import command
from tests.helpers.doors import INITIALIZE

TENANT = "a-tenant-who-is-quiet-and-small"
PROJECT = "quiet"
_PERIOD_SECONDS = 0.02
_writing = threading.Lock()


def report(door: str, sent_at: float, *, is_right: bool) -> None:
    """Write one line."""
    with _writing:
        print(door, f"{sent_at:.6f}", f"{(time.monotonic() - sent_at) * 1000:.3f}", int(is_right), flush=True)


def repeat(door: str, ask: Callable[[], bool]) -> None:
    """Ask again and again; an error counts as a wrong answer."""
    while True:
        sent_at = time.monotonic()
        is_right = False
        with suppress(OSError):
            is_right = ask()
        report(door, sent_at, is_right=is_right)
        time.sleep(max(0.0, _PERIOD_SECONDS - (time.monotonic() - sent_at)))


def through_relay(target: Target) -> None:
    """Read a small file through a relay."""
    environment = {**os.environ, "HOLDFAST_STATE_DIR": target.state}
    process = subprocess.Popen(
        command("stdio", target.root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd="/"
    )
    assert process.stdin is not None
    assert process.stdout is not None
    writer, reader = process.stdin, process.stdout

    def ask(message: dict[str, Any]) -> bool:
        writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        writer.flush()
        if "id" not in message:
            return True
        answer = json.loads(reader.readline())
        return answer.get("id") == message["id"] and not answer.get("result", {"isError": True}).get("isError")

    ask({"id": 0, "method": "initialize", "params": INITIALIZE})
    ask({"method": "notifications/initialized"})
    params = {"name": "read_text_file", "arguments": {"path": "a.txt"}}
    repeat("socket", lambda: ask({"id": 1, "method": "tools/call", "params": params}))


def through_http(target: Target) -> None:
    """Ask for the status of a small stored file over HTTP, on one connection as long as it lasts."""
    request = stateless_request(
        TENANT, "tools/call", {"name": "file_stat", "arguments": {"project": PROJECT, "path": "/small.txt"}}
    )
    line = dial(target)

    def ask() -> bool:
        nonlocal line
        try:
            return b'"isError":false' in exchange(line, request)
        except OSError:
            line.close()
            line = dial(target)
            raise

    repeat("http", ask)


def main() -> None:
    """Ask through both doors until the process is ended."""
    target = Target(**json.load(sys.stdin))
    threads = [threading.Thread(target=ask, args=(target,), daemon=True) for ask in (through_relay, through_http)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
