"""Floods: what one bad client does to a server at the doors of agents, without end; `flooder` runs one of them."""

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.helpers.agent import command
from tests.helpers.doors import ACCEPT, INITIALIZE, MODERN_META

TENANT = "a-tenant-who-floods-the-server"
PROJECT = "flood"
START_LINE = "the flood starts"
_PIECE_BYTES = 1 << 18


@dataclass(frozen=True)
class Target:
    """The server to flood: its port, its state folder, the folder that it serves, and the key of local HTTP clients."""

    port: int
    state: str
    root: str
    token: str


Flood = Callable[[Target], None]
FLOODS: dict[str, Flood] = {}


def flood(function: Flood) -> Flood:
    """Add a flood to the table, by the name of its function."""
    FLOODS[function.__name__] = function
    return function


class Relay:
    """A relay that is sent more calls as answers come, so that a number of them is always open."""

    def __init__(self, target: Target, *, is_reading: bool = True) -> None:
        environment = {**os.environ, "HOLDFAST_STATE_DIR": target.state}
        self._process = subprocess.Popen(
            command("stdio", target.root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd="/"
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._room = threading.Semaphore(0)
        self._ids = count(1)
        self.send({"id": "init", "method": "initialize", "params": INITIALIZE})
        self._out.readline()
        self.send({"method": "notifications/initialized"})
        if is_reading:
            threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write(self, line: bytes) -> None:
        """Send one line."""
        self._in.write(line + b"\n")
        self._in.flush()

    def call(self, tool: str, arguments: dict[str, Any], **meta: Any) -> int:
        """Send a call and return its id."""
        params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        number = next(self._ids)
        self.send({"id": number, "method": "tools/call", "params": params})
        return number

    def keep_open(self, number: int, send: Callable[[], object]) -> None:
        """Keep that many requests open, for ever."""
        self._room.release(number)
        while True:
            self._room.acquire()
            send()

    def _read(self) -> None:
        for line in self._out:
            if b'"id":' in line[:40]:
                self._room.release()


def http_request(key: str, body: bytes, **headers: str) -> bytes:
    """Return a whole request; a header's name is given with `_` for `-`."""
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\naccept: {ACCEPT}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    )
    head += "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    return f"{head}\r\n".encode() + body


def stateless_request(key: str, method: str, params: dict[str, Any]) -> bytes:
    """Return a whole request of the stateless era."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN_META}}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
    if "name" in params:
        headers["mcp_name"] = params["name"]
    return http_request(key, json.dumps(body).encode(), **headers)


def exchange(line: socket.socket, request: bytes) -> bytes:
    """Send a request and read its answer to the end."""
    line.sendall(request)
    answer = bytearray()
    while True:
        piece = line.recv(_PIECE_BYTES)
        if not piece:
            raise ConnectionError("the server closed the connection")
        answer += piece
        head, end, _body = bytes(answer[:4096]).partition(b"\r\n\r\n")
        lower = head.lower()
        if not end:
            continue
        if b"transfer-encoding: chunked" in lower:
            if answer.endswith(b"0\r\n\r\n"):
                return bytes(answer)
            continue
        length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(answer) >= len(head) + 4 + length:
            return bytes(answer)


def dial(target: Target) -> socket.socket:
    """Return a connection to the HTTP door."""
    return socket.create_connection(("127.0.0.1", target.port), 60)


def keep_posting(target: Target, connections: int, request: bytes) -> None:
    """Send the same request over many connections again and again, for ever."""

    def post() -> None:
        while True:
            with suppress(OSError), dial(target) as line:
                while True:
                    exchange(line, request)
            time.sleep(0.01)

    threads = [threading.Thread(target=post, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def tenant_call(tool: str, /, **arguments: Any) -> bytes:
    """Return the request of a tenant's call in its project."""
    return stateless_request(TENANT, "tools/call", {"name": tool, "arguments": {"project": PROJECT, **arguments}})


def crowd(target: Target, number: int, sent: bytes) -> Iterator[socket.socket]:
    """Open connections that send a few bytes each; a closed one is opened again by the caller."""
    for _ in range(number):
        with suppress(OSError):
            line = dial(target)
            line.sendall(sent)
            yield line


def hold(target: Target, number: int, sent: bytes) -> None:
    """Keep that many connections open that sent a few bytes, for ever; those that are closed are opened again."""
    lines = list(crowd(target, number, sent))
    while True:
        time.sleep(0.2)
        open_lines = []
        for line in lines:
            line.setblocking(False)
            try:
                is_over = line.recv(_PIECE_BYTES) == b""
            except BlockingIOError:
                is_over = False
            except OSError:
                is_over = True
            if is_over:
                line.close()
            else:
                open_lines.append(line)
        lines = [*open_lines, *crowd(target, min(50, number - len(open_lines)), sent)]


@flood
def jq_loops(target: Target) -> None:
    """Forty jq programs that never end."""
    relay = Relay(target)
    query = {"file_path": "a.json", "expression": "last(range(1e9))", "timeout": 14}
    relay.keep_open(40, lambda: relay.call("query_json", query))


@flood
def searches(target: Target) -> None:
    """Searches of a tenant, in a project with one file of 10 MB that is not indexed."""
    keep_posting(target, 32, tenant_call("file_search", query="compute the alpha value"))


@flood
def appends(target: Target) -> None:
    """One-byte appends to a file of 8 MB."""
    keep_posting(target, 32, tenant_call("file_write", path="/appended.txt", content="x", mode="APPEND"))


@flood
def names(target: Target) -> None:
    """A request of 15 MB with 1.5 million unknown names."""
    keep_posting(target, 4, tenant_call("file_read", **{f"a{number}": 1 for number in range(1_300_000)}))


@flood
def names_local(target: Target) -> None:
    """The same over the socket."""
    relay = Relay(target)
    arguments = {f"a{number}": 1 for number in range(1_300_000)}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "read_text_file", "arguments": arguments},
    }
    line = json.dumps(message, separators=(",", ":")).encode()
    relay.keep_open(4, lambda: relay.write(line))


@flood
def initializes(target: Target) -> None:
    """Sessions without end."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
    keep_posting(target, 8, http_request(TENANT, body))


@flood
def websockets(target: Target) -> None:
    """192 WebSockets that say nothing."""
    hold(target, 192, _websocket_head())


@flood
def half_sent(target: Target) -> None:
    """260 requests that are never finished, without a key."""
    hold(target, 260, b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n")


@flood
def half_sent_bodies(target: Target) -> None:
    """260 requests whose bodies are never finished, with a key."""
    hold(target, 260, tenant_call("file_stat", path="/a")[:-1])


@flood
def greps(target: Target) -> None:
    """Content searches of a tree, 64 at once."""
    relay = Relay(target)
    relay.keep_open(64, lambda: relay.call("grep_content", {"path": "tree", "pattern": "zz+y*[a-f]q"}))


@flood
def trees(target: Target) -> None:
    """Whole trees and name searches, 64 at once."""
    relay = Relay(target)
    turn = count()
    calls = (("directory_tree", {"path": "."}), ("search_files", {"path": ".", "pattern": "**/*nothing*"}))
    relay.keep_open(64, lambda: relay.call(*calls[next(turn) % 2]))


@flood
def pipes(target: Target) -> None:
    """Pipes of fifty steps, sixteen at once."""
    relay = Relay(target)
    steps = [{"id": f"s{step}", "tool": "read_text_file", "arguments": {"path": "large.txt"}} for step in range(50)]
    relay.keep_open(16, lambda: relay.call("mcp_pipe", {"steps": steps}))


@flood
def documents(target: Target) -> None:
    """A PDF read again and again, 64 at once."""
    relay = Relay(target)
    relay.keep_open(64, lambda: relay.call("read_text_file", {"path": "document.pdf"}))


@flood
def descriptions(target: Target) -> None:
    """Descriptions of a CSV file of 50 MB, 64 at once."""
    relay = Relay(target)
    relay.keep_open(64, lambda: relay.call("get_file_info", {"path": "large.csv"}))


@flood
def edits(target: Target) -> None:
    """Edits of a file of 5 MB that find nothing, 64 at once."""
    relay = Relay(target)
    change = {"oldText": "not in the file at all", "newText": "x"}
    relay.keep_open(64, lambda: relay.call("edit_file", {"path": "medium.txt", "edits": [change], "dryRun": True}))


@flood
def proposals(target: Target) -> None:
    """Proposals that wait for a person, 300 at once."""
    relay = Relay(target)
    turn = count()

    def propose() -> None:
        path = f"proposal_{next(turn) % 300}.txt"
        relay.call("propose_and_review", {"path": path, "new_string": "proposed\n"})

    relay.keep_open(300, propose)


@flood
def slices(target: Target) -> None:
    """Stored files read whole, 8 MB each."""
    keep_posting(target, 16, tenant_call("file_read", path="/large.txt"))


@flood
def slow_readers(target: Target) -> None:
    """Answers of 8 MB that nobody reads."""
    request = tenant_call("file_read", path="/large.txt")
    hold_lines = list(crowd(target, 100, request))
    relay = Relay(target, is_reading=False)
    for _ in range(900):
        relay.call("read_text_file", {"path": "large.txt"})
    while True:
        time.sleep(1)
        hold_lines += list(crowd(target, 5, request))


@flood
def progress(target: Target) -> None:
    """Calls that report their progress, 32 at once."""
    relay = Relay(target)
    turn = count()
    arguments = {"path": "tree", "pattern": "zz+y*[a-f]q"}
    relay.keep_open(32, lambda: relay.call("grep_content", arguments, progressToken=next(turn)))


@flood
def cancels(target: Target) -> None:
    """Calls that are given up at once."""
    relay = Relay(target)

    def call_and_cancel() -> None:
        number = relay.call("grep_content", {"path": "tree", "pattern": "zz+y*[a-f]q"})
        relay.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    while True:
        call_and_cancel()
        time.sleep(0.001)


@flood
def tool_lists(target: Target) -> None:
    """The list of tools, asked for without a pause."""
    relay = Relay(target)
    relay.keep_open(60, lambda: relay.send({"id": 1, "method": "tools/list", "params": {}}))


@flood
def tool_lists_over_http(target: Target) -> None:
    """The same over HTTP."""
    keep_posting(target, 32, stateless_request(TENANT, "tools/list", {}))


@flood
def deep_json(target: Target) -> None:
    """15 MB of opening brackets."""
    keep_posting(target, 4, http_request(TENANT, b"[" * 15_000_000))


@flood
def escaped_text(target: Target) -> None:
    """A file of 5 million quotes and line ends, written again and again."""
    keep_posting(target, 4, tenant_call("file_write", path="/escaped.txt", content='"\n' * 3_000_000, mode="TRUNCATE"))


@flood
def small_connections(target: Target) -> None:
    """A new connection for each small request."""
    request = tenant_call("file_stat", path="/large.txt")

    def post() -> None:
        while True:
            with suppress(OSError), dial(target) as line:
                exchange(line, request)

    threads = [threading.Thread(target=post, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@flood
def small_calls(target: Target) -> None:
    """Small calls without a pause, 1,000 at once."""
    relay = Relay(target)
    relay.keep_open(1000, lambda: relay.call("read_text_file", {"path": "a.txt"}))


@flood
def tiny_chunks(target: Target) -> None:
    """Bodies in chunks of a byte."""
    _keep_sending(target, 4, http_request(TENANT, b"").replace(b"content-length: 0", _CHUNKED), b"1\r\nx\r\n")


@flood
def tiny_chunks_without_key(target: Target) -> None:
    """The same by a stranger."""
    _keep_sending(target, 4, b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n%b\r\n\r\n" % _CHUNKED, b"1\r\nx\r\n")


@flood
def many_fields(target: Target) -> None:
    """Heads of 12,000 fields, without a key."""
    head = b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"a:b\r\n" * 12_000 + b"\r\n"
    _keep_sending(target, 4, b"", head)


@flood
def websocket_pings(target: Target) -> None:
    """WebSockets that ping and do not read what answers them."""
    _keep_sending(target, 8, _websocket_head(), b"\x89\x80" + bytes(4))


@flood
def websocket_fragments(target: Target) -> None:
    """Messages in fragments of a byte."""
    _keep_sending(target, 8, _websocket_head() + b"\x01\x81" + bytes(4) + b"{", b"\x00\x81" + bytes(4) + b"x")


@flood
def half_sent_messages(target: Target) -> None:
    """WebSocket messages of 15 MB that are never finished."""
    message = b"\x81\xff" + (15_000_000).to_bytes(8) + bytes(4)
    hold_lines = list(crowd(target, 100, _websocket_head()))
    for line in hold_lines:
        threading.Thread(target=_send_slowly, args=(line, message + bytes(14_000_000)), daemon=True).start()
    while True:
        time.sleep(1)


@flood
def local_writes(target: Target) -> None:
    """Files of 2 MB written anew, 32 at once."""
    relay = Relay(target)
    turn = count()
    text = "a line of text that is like the others\n" * 50_000

    def write() -> None:
        number = next(turn)
        relay.call("write_file", {"path": f"written_{number % 20}.txt", "content": f"{number}\n{text}"})

    relay.keep_open(32, write)


@flood
def folder_searches(target: Target) -> None:
    """Searches of the folder, 64 at once."""
    relay = Relay(target)
    turn = count()
    relay.keep_open(64, lambda: relay.call("search_folders", {"query": f"alpha value of line {next(turn)}"}))


@flood
def plans(target: Target) -> None:
    """Plans to organise the tree, 16 at once."""
    relay = Relay(target)
    relay.keep_open(16, lambda: relay.call("create_organization_plan", {"folder_path": "."}))


@flood
def event_streams(target: Target) -> None:
    """Streams of notifications of sessions, 100 of them."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
    while True:
        lines = []
        for _ in range(100):
            with suppress(OSError, IndexError), dial(target) as line:
                answer = exchange(line, http_request(TENANT, body))
                session = answer.lower().split(b"mcp-session-id: ")[1].split(b"\r\n")[0].decode()
                head = (
                    f"GET /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TENANT}\r\n"
                    f"accept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
                )
                lines += list(crowd(target, 1, head.encode()))
        time.sleep(0.5)
        for line in lines:
            line.close()


@flood
def small_writes(target: Target) -> None:
    """Small files written by a tenant, 32 at once."""
    keep_posting(target, 32, tenant_call("file_write", path="/small.txt", content="a few words", mode="TRUNCATE"))


_CHUNKED = b"transfer-encoding: chunked"


def _websocket_head() -> bytes:
    return (
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
        f"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {TENANT}\r\n\r\n"
    ).encode()


def _keep_sending(target: Target, connections: int, head: bytes, unit: bytes) -> None:
    """Send a head and then the same bytes without end, over connections that are opened again when they are closed."""
    block = unit * max(1, _PIECE_BYTES // len(unit))

    def send() -> None:
        while True:
            with suppress(OSError), dial(target) as line:
                line.sendall(head)
                if b"websocket" in head:
                    line.recv(1024)
                while True:
                    line.sendall(block)
            time.sleep(0.01)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_slowly(line: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        line.recv(1024)
        line.sendall(data)
