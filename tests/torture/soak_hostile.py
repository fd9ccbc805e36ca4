"""Eight hostile clients of the soak, each a thread that goes on until the process is ended.

`python -m tests.torture.soak_hostile CONFIG`, where CONFIG is JSON. It prints a letter for each client that is at work.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.helpers.agent import command
from tests.helpers.doors import ACCEPT, INITIALIZE
from tests.torture.soak_client import Config

_PAUSE_SECONDS = 0.02
_LARGE_BYTES = 8_000_000
_TOO_LARGE_BYTES = 20_000_000
_PIECE_BYTES = 1 << 16
_STRANGER_KEY = "a-hostile-tenant-with-a-key-of-its-own"


def slow_bodies(config: Config) -> None:
    """Send a body with a key, a byte every few milliseconds, on four connections."""
    _drip(config, _head(_STRANGER_KEY, 65_536), b"x" * 65_536)


def slow_heads(config: Config) -> None:
    """Send the head of a request without a key, a byte every few milliseconds, on four connections."""
    _drip(config, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n", b"X-Padding: " + b"y" * 60_000)


def hung_streams(config: Config) -> None:
    """Open sessions with a stream of notifications each, and never read any of it."""
    lines: list[socket.socket] = []
    while True:
        with suppress(OSError):
            line = _dial(config)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
            line.sendall(_head(_STRANGER_KEY, len(body)) + body)
            answer = line.recv(_PIECE_BYTES).lower()
            session = answer.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()
            line.sendall(
                f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {_STRANGER_KEY}\r\n"
                f"Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n".encode()
            )
            lines.append(line)
        if len(lines) > 50:
            lines.pop(0).close()
        time.sleep(_PAUSE_SECONDS)


def unread_answers(config: Config) -> None:
    """Ask for a large file again and again through a relay, and read no answer."""
    large = Path(config.root) / "large.txt"
    large.write_text("a line of text that is like all the others\n" * (_LARGE_BYTES // 43))
    while True:
        with _relay(config) as process, suppress(OSError):
            assert process.stdin is not None
            for number in range(500):
                call = {"name": "read_text_file", "arguments": {"path": str(large)}}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                time.sleep(_PAUSE_SECONDS)


def huge_lines(config: Config) -> None:
    """Send lines that are longer than any message may be, through a relay."""
    while True:
        with _relay(config) as process, suppress(OSError):
            assert process.stdin is not None
            for _ in range(_TOO_LARGE_BYTES // _PIECE_BYTES):
                process.stdin.write(b"[" * _PIECE_BYTES)
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(0.2)


def huge_bodies(config: Config) -> None:
    """Send bodies of megabytes: one with a million names, one that nests without end, one that is too large."""
    names = json.dumps({f"name{number}": number for number in range(300_000)}).encode()
    bodies = [names, b"[" * _LARGE_BYTES, b"x" * _TOO_LARGE_BYTES]
    turn = 0
    while True:
        with suppress(OSError), _dial(config) as line:
            body = bodies[turn % len(bodies)]
            line.sendall(_head(_STRANGER_KEY, len(body)) + body)
            line.recv(_PIECE_BYTES)
        turn += 1
        time.sleep(_PAUSE_SECONDS)


def huge_frames(config: Config) -> None:
    """Open WebSockets, announce a frame of gigabytes or send fragments that never end."""
    turn = 0
    while True:
        with suppress(OSError), _dial(config) as line:
            line.sendall(
                f"GET /ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {_STRANGER_KEY}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                "Sec-WebSocket-Protocol: mcp\r\n\r\n".encode()
            )
            line.recv(_PIECE_BYTES)
            if turn % 2:
                line.sendall(b"\x81\xff" + (1 << 32).to_bytes(8) + bytes(4))
                for _ in range(100):
                    line.sendall(b"x" * _PIECE_BYTES)
            else:
                line.sendall(b"\x01\x81" + bytes(4) + b"x")
                for _ in range(2_000):
                    line.sendall(b"\x00\x81" + bytes(4) + b"x")
        turn += 1
        time.sleep(_PAUSE_SECONDS)


def hang_ups(config: Config) -> None:
    """Make calls that take a while, and hang up before the answer."""
    call = {"name": "file_search", "arguments": {"project": "*", "query": "quick brown fox"}}
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": meta}}
    body = json.dumps(message).encode()
    extra = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: file_search\r\n"
    while True:
        with suppress(OSError), _dial(config) as line:
            line.sendall(_head(_STRANGER_KEY, len(body), extra) + body)
            time.sleep(0.001)
        time.sleep(_PAUSE_SECONDS)


CLIENTS: list[Callable[[Config], None]] = [
    slow_bodies,
    slow_heads,
    hung_streams,
    unread_answers,
    huge_lines,
    huge_bodies,
    huge_frames,
    hang_ups,
]


def _dial(config: Config) -> socket.socket:
    return socket.create_connection(("127.0.0.1", config.port), 20)


def _head(key: str, length: int, extra: str = "") -> bytes:
    return (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nAccept: {ACCEPT}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n{extra}\r\n"
    ).encode()


def _drip(config: Config, start: bytes, rest: bytes) -> None:
    """Keep four connections that get a byte at a time; one that the server ends is opened again."""
    lines: dict[socket.socket, Iterator[int]] = {}
    while True:
        while len(lines) < 4:
            try:
                line = _dial(config)
                line.sendall(start)
            except OSError:
                break
            lines[line] = iter(rest)
        for line, pieces in list(lines.items()):
            try:
                line.send(bytes([next(pieces)]))
            except (OSError, StopIteration):
                line.close()
                del lines[line]
        time.sleep(_PAUSE_SECONDS)


@contextmanager
def _relay(config: Config) -> "Iterator[subprocess.Popen[bytes]]":
    environment = {**os.environ, "HOLDFAST_STATE_DIR": config.state}
    argv = command("stdio", config.root)
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, cwd="/")
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        hello: dict[str, Any] = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": INITIALIZE}
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()


def main() -> None:
    """Start every client, and say so."""
    config = Config(**json.loads(sys.argv[1]))
    for client in CLIENTS:
        threading.Thread(target=client, args=(config,), daemon=True).start()
        print("h", end="", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
