"""Measure what recording costs: calls with the call log and the metrics, and without either, over stdio and HTTP.

    python benchmarks/observe.py [--blocks 60] [--calls 300] [--json FILE]

Three servers run side by side: one with both switched on (the default), one without, and one that also sends traces to a
collector that takes them. They take turns in blocks of calls, in an order that changes with each round, so that a busy
machine slows all. The ratio is the median of those of the rounds. The CPU time of a call is that of the whole server process,
so what is written or sent later by a thread of its own is in it.
"""

import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import process
from benchmarks.measure.table import Row, markdown
from tests.helpers.doors import ACCEPT, INITIALIZE, MODERN_META, House, Pipes, until
from tests.helpers.scraper import scrape

BAR = 1.03
IN_FLIGHT = 16
_TOOL = "read_text_file"

Client = Callable[[int, int], list[float]]
"""Makes so many calls with so many in flight, and returns how long each took, in seconds."""


@dataclass
class Side:
    """One server with a client at each door, and what was measured there."""

    name: str
    pid: int
    clients: dict[str, Client]
    times: dict[str, list[float]] = field(default_factory=dict)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    per_second: dict[str, list[float]] = field(default_factory=dict)
    p50_ms: dict[str, list[float]] = field(default_factory=dict)
    p99_ms: dict[str, list[float]] = field(default_factory=dict)

    def run_block(self, door: str, calls: int) -> None:
        """Make calls one after the other, then as many with several in flight."""
        before = process.cpu_ns(self.pid)
        times = self.clients[door](calls, 1)
        began = time.perf_counter()
        self.clients[door](calls, IN_FLIGHT)
        seconds = time.perf_counter() - began
        self.cpu_ms.setdefault(door, []).append((process.cpu_ns(self.pid) - before) / 1e6 / (2 * calls))
        self.per_second.setdefault(door, []).append(calls / seconds)
        self.times.setdefault(door, []).extend(times)
        ordered = sorted(times)
        self.p50_ms.setdefault(door, []).append(1000 * ordered[len(ordered) // 2])
        self.p99_ms.setdefault(door, []).append(1000 * ordered[int(len(ordered) * 0.99)])


def main() -> None:
    """Run the servers in turns and print what each took."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name, ExitStack() as stack:
        url = stack.enter_context(_collector())
        sides = [
            stack.enter_context(_side(Path(name), "on", is_on=True)),
            stack.enter_context(_side(Path(name), "off", is_on=False)),
            stack.enter_context(_side(Path(name), "traced", is_on=True, collector=url)),
        ]
        for door in ("stdio", "http"):
            for side in sides:
                side.clients[door](options.calls, 1)
            for number in range(options.blocks):
                for side in random.Random(number).sample(sides, 3):
                    side.run_block(door, options.calls)
    rows = [row for door in ("stdio", "http") for row in _rows(door, *sides)]
    print(f"{_machine()}\n\n{markdown(rows)}")
    if options.json:
        facts = {"machine": _machine(), "rows": [{**asdict(row), "met": row.is_met} for row in rows]}
        Path(options.json).write_text(json.dumps(facts, indent=1))


@contextmanager
def _side(folder: Path, name: str, *, is_on: bool, collector: str = "") -> Iterator[Side]:
    """Run a server and connect a client to each of its doors; one that traces must have sent every span at the end."""
    (folder / name).mkdir()
    house = House(folder / name)
    unlimited = {"local": dict.fromkeys(("read_per_minute", "write_per_minute", "search_per_minute"), 0)}
    observe = {"calls": {"enabled": is_on}, "metrics": {"enabled": is_on}, "traces": {"endpoint": collector}}
    house.settings(json.dumps({"settings": {"limits": unlimited, "observe": observe}}))
    with house.serve(str(house.root)), house.relay() as relay, _http_lines(house) as lines:
        relay.initialize()
        path = str(house.root / "a.txt")
        side = Side(name, house.facts()["pid"], {"stdio": _stdio_client(relay, path), "http": lines(path)})
        yield side
        if collector:
            until(
                "every call was sent as a span", lambda: _spans(house, "sent") >= 2 * sum(map(len, side.times.values()))
            )
            assert _spans(house, "dropped") == 0


def _spans(house: House, outcome: str) -> float:
    return scrape(house).value("holdfast_spans_total", outcome=outcome)


@contextmanager
def _collector() -> Iterator[str]:
    """Run a collector in a process of its own; it reads every request and keeps nothing."""
    program = Path(__file__).parent / "measure" / "collector.py"
    running = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        yield running.stdout.readline().strip()
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


def _stdio_client(relay: Pipes, path: str) -> Client:
    def call(calls: int, in_flight: int) -> list[float]:
        sent: dict[int, float] = {}
        times: list[float] = []
        number = 0
        while len(times) < calls:
            while number < calls and len(sent) < in_flight:
                sent[number] = time.perf_counter()
                relay.send(id=number, method="tools/call", params={"name": _TOOL, "arguments": {"path": path}})
                number += 1
            answer = relay.read()
            assert not answer["result"].get("isError"), answer
            times.append(time.perf_counter() - sent.pop(answer["id"]))
        return times

    return call


@contextmanager
def _http_lines(house: House) -> Iterator[Callable[[str], Client]]:
    """Give a client with a keep-alive connection for each request in flight."""
    with ExitStack() as stack:
        address = ("127.0.0.1", int(house.facts()["port"]))
        lines = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(IN_FLIGHT)]
        for line in lines:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def client(path: str) -> Client:
            request = _request(house, path)

            def call(calls: int, in_flight: int) -> list[float]:
                times: list[float] = []
                while len(times) < calls:
                    began = time.perf_counter()
                    for line in lines[:in_flight]:
                        line.sendall(request)
                    for line in lines[:in_flight]:
                        assert b'"isError":true' not in _read_answer(line)
                        times.append(time.perf_counter() - began)
                return times

            return call

        yield client


def _request(house: House, path: str) -> bytes:
    params = {"name": _TOOL, "arguments": {"path": path}, "_meta": {**MODERN_META, "clientInfo": INITIALIZE}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {house.token}",
        f"Accept: {ACCEPT}",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {MODERN_META['io.modelcontextprotocol/protocolVersion']}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {_TOOL}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def _read_answer(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(line)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _receive(line)
    return body


def _receive(line: socket.socket) -> bytes:
    piece = line.recv(65_536)
    assert piece, "the server closed the connection"
    return piece


def _rows(door: str, on: Side, off: Side, traced: Side) -> list[Row]:
    rows = []
    for what, side, bar in (("", on, BAR), ("with traces too, ", traced, None)):
        rate = f"{door}: {what}calls a second, {IN_FLIGHT} in flight"
        rows += [
            _row(rate, off.per_second[door], side.per_second[door], "", bar, is_rate=True),
            _row(f"{door}: {what}p50 of a call", side.p50_ms[door], off.p50_ms[door], " ms", bar),
            _row(f"{door}: {what}p99 of a call", side.p99_ms[door], off.p99_ms[door], " ms", bar),
            _row(f"{door}: {what}CPU time of a call", side.cpu_ms[door], off.cpu_ms[door], " ms", bar),
        ]
    return rows


def _row(
    what: str, above: list[float], below: list[float], unit: str, bar: float | None, *, is_rate: bool = False
) -> Row:
    """Compare round by round; for a rate the sides are given the other way round, so that less is better everywhere."""
    ratio = statistics.median(first / second for first, second in zip(above, below, strict=True))
    with_both, without = (below, above) if is_rate else (above, below)
    digits = 0 if is_rate else 3
    return Row(
        what,
        f"{statistics.median(with_both):.{digits}f}{unit}",
        f"{statistics.median(without):.{digits}f}{unit} without",
        ratio=ratio,
        bar=bar,
        bar_text=f"≤ {bar}" if bar else "",
    )


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=60, help="rounds of blocks at each door")
    parser.add_argument("--calls", type=int, default=300, help="calls in a block")
    parser.add_argument("--json", help="also write the figures here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
