"""The store's verbs over HTTP: a real server with one process, and a load generator beside it."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import process
from benchmarks.measure.servers import TOP
from holdfast.adapters.open_store import open_store
from holdfast.auth.context import AuthContext
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.doors import MODERN_META, House

KEY = "a-tenant-of-the-benchmark"
SETTINGS = {"auth": {"mode": "open"}, "limits": {"tenant": dict.fromkeys(("read_per_minute", "write_per_minute"), 0)}}
FILES = 100
VERBS = ("file_stat", "file_read", "file_list", "file_write")


@dataclass(frozen=True)
class Loaded:
    """What one verb did at one number of connections."""

    verb: str
    connections: int
    times: list[float]
    seconds: float
    cpu_seconds: float
    failed: int
    bytes: int

    @property
    def per_second(self) -> float:
        """Return the answers in a second."""
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the time that this share of the answers did not exceed."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextmanager
def serving(folder: Path, database_url: str | None) -> Iterator[House]:
    """Run `holdfast serve` on a database in which the tenant has files."""
    folder.mkdir()
    house = House(folder, **({"DATABASE_URL": database_url} if database_url else {}))
    house.settings(json.dumps({"settings": SETTINGS}))
    tenant = AuthContext(hashlib.sha256(KEY.encode()).hexdigest(), "benchmark")
    opened_store = open_store(str(house.state), database_url)
    store = Store(opened_store.database, StoreLimits())
    for number in range(FILES):
        store.write(tenant, "p", f"/d/f{number}.txt", text(number))
    opened_store.close()
    with house.serve():
        yield house


def text(turn: int, size: int = 4096) -> str:
    """Return text of one size that differs every time."""
    return f"{turn:08}" * (size // 8)


def load(house: House, verb: str, connections: int, seconds: float, most: int) -> Loaded:
    """Warm a verb up, then load it for so long."""
    facts = house.facts()
    plan = {"port": facts["port"], "requests": _requests(verb, facts["port"])}
    _generated({**plan, "connections": connections, "seconds": 0.3, "most": 200})
    before = process.cpu_ns(facts["pid"])
    loaded = _generated({**plan, "connections": connections, "seconds": seconds, "most": most})
    spent = (process.cpu_ns(facts["pid"]) - before) / 1e9
    time.sleep(0.05)
    return Loaded(
        verb,
        connections,
        loaded["times"],
        loaded["seconds"],
        spent,
        loaded["failed"],
        loaded["bytes"] // len(loaded["times"]),
    )


def _generated(plan: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.measure.load"]
    done = subprocess.run(
        command, input=json.dumps(plan).encode(), capture_output=True, check=True, cwd=TOP, timeout=120
    )
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def _requests(verb: str, port: int) -> list[str]:
    return [_request(verb, _arguments(verb, number), port) for number in range(FILES)]


def _arguments(verb: str, number: int) -> dict[str, Any]:
    if verb == "file_list":
        return {"project": "p", "path": "/d"}
    path = {"project": "p", "path": f"/d/f{number}.txt"}
    return {**path, "content": text(number + 1000), "mode": "TRUNCATE"} if verb == "file_write" else path


def _request(verb: str, arguments: dict[str, Any], port: int) -> str:
    params = {"name": verb, "arguments": arguments, "_meta": MODERN_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {KEY}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {MODERN_META['io.modelcontextprotocol/protocolVersion']}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {verb}",
        f"Content-Length: {len(body.encode())}",
    ]
    return "\r\n".join(head) + "\r\n\r\n" + body
