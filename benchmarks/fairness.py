"""What a flood by one client costs the others: a quiet client's times before, during and after, and the server's memory.

    python benchmarks/fairness.py [--engine sqlite|postgres|two-servers …] [--seconds 5] [--only NAME …] [--part 1/3]

A row for each flood and door. `two-servers` is two servers on one PostgreSQL and one Valkey, flooded at once by the same
client, with a quiet client at each. The bar: the quiet client's p99 within twice what it was before or 50 ms, whichever is
more, no answer over a second, and none wrong. Floods and quiet clients are processes of their own; floods run with a
nice value, since they are elsewhere in life.
"""

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import benchmarks.measure.page_floods  # noqa: F401 - adds its floods to the table
from benchmarks.measure import files, process
from benchmarks.measure.floods import FLOODS, PROJECT, START_LINE, TENANT, Target
from benchmarks.measure.quiet import PROJECT as QUIET_PROJECT
from benchmarks.measure.quiet import TENANT as QUIET_TENANT
from holdfast.adapters.open_store import open_store
from holdfast.auth.context import AuthContext
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import postgres_database, postgres_server
from tests.helpers.documents import pdf
from tests.helpers.doors import House, until
from tests.helpers.valkey import valkey_server

TOP = Path(__file__).parents[1]
DOORS = ("socket", "http")
SETTINGS = {
    "auth": {"mode": "open"},
    "limits": {"tenant": dict.fromkeys(("read_per_minute", "write_per_minute", "search_per_minute"), 0)},
    "mcp": {
        "files": {
            "search": {"embedder": {"kind": "none"}},
            "index": {"workers": 0},
            "max_payload_bytes": 20_000_000,
            "max_tenant_bytes": 100_000_000,
        }
    },
}
_BAR_MS = 50.0
_WORST_MS = 1000.0
ENGINES = ("sqlite", "postgres", "two-servers")
_HEADER = (
    "| server | flood | door | before p50/p99/worst ms | during | after | answers | server MB before/peak/after | bar |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Answers:
    """The quiet client's times through one door, in one part of a run."""

    milliseconds: list[float]
    wrong: int

    def percentile(self, share: float) -> float:
        """Return the time that this share of the answers did not exceed."""
        ordered = sorted(self.milliseconds) or [float("inf")]
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def __str__(self) -> str:
        return " / ".join(f"{value:.1f}" for value in (self.percentile(0.5), self.percentile(0.99), self.percentile(1)))


@dataclass(frozen=True)
class FloodResult:
    """One flood as the quiet client and the server's memory saw it."""

    name: str
    parts: dict[tuple[str, str], Answers]
    memory: tuple[float, float, float]

    def row(self, engine: str, door: str) -> str:
        """Return one line of the table."""
        before, during, after = (self.parts[door, part] for part in ("before", "during", "after"))
        memory = " / ".join(f"{value:.0f}" for value in self.memory)
        count = f"{len(during.milliseconds)}" + (f", {during.wrong} wrong" if during.wrong else "")
        verdict = "met" if self.is_met(door) else "**missed**"
        return f"| {engine} | {self.name} | {door} | {before} | {during} | {after} | {count} | {memory} | {verdict} |"

    def is_met(self, door: str) -> bool:
        """Return whether the bar was met at a door."""
        before, during = self.parts[door, "before"], self.parts[door, "during"]
        allowed = max(2 * before.percentile(0.99), _BAR_MS)
        return during.percentile(0.99) <= allowed and during.percentile(1) <= _WORST_MS and not during.wrong


def prepare(
    folder: Path,
    environment: dict[str, str],
    *,
    directories: int = 200,
    csv_rows: int = 1_500_000,
    is_store_filled: bool = False,
) -> House:
    """Return a house with the folders and stored files that the floods use."""
    folder.mkdir()
    house = House(folder, **environment)
    house.settings(json.dumps({"settings": SETTINGS}))
    _fill_folder(house.root, directories, csv_rows)
    if not is_store_filled:
        _fill_store(house, environment.get("DATABASE_URL"))
    return house


def _fill_folder(root: Path, directories: int, csv_rows: int) -> None:
    files.grow(root, directories, 50, ())
    (root / "a.json").write_text("{}")
    (root / "document.pdf").write_bytes(pdf("some words " * 2000))
    (root / "medium.txt").write_text("a line of text that is like the others\n" * 130_000)
    with (root / "large.csv").open("w") as csv:
        csv.writelines(f'{number},"name {number}",{number * 7 % 1000},text\n' for number in range(csv_rows))


def _fill_store(house: House, database_url: str | None) -> None:
    opened_store = open_store(str(house.state), database_url)
    store = Store(opened_store.database, StoreLimits(max_payload_bytes=20_000_000))
    flooder, quiet = (AuthContext(hashlib.sha256(key.encode()).hexdigest(), "x") for key in (TENANT, QUIET_TENANT))
    words = "compute the alpha value of every line and write it down, delta by delta\n"
    store.write(flooder, PROJECT, "/large.txt", words * (8_000_000 // len(words)))
    store.write(flooder, PROJECT, "/appended.txt", "x" * 8_000_000)
    store.write(flooder, PROJECT, "/searched.txt", words * (10_000_000 // len(words)))
    store.write(quiet, QUIET_PROJECT, "/small.txt", "small\n")
    opened_store.close()


def run_flood(name: str, servers: dict[int, Target], seconds: float, folder: Path) -> list[FloodResult]:
    """Flood all servers, given by process id, beside quiet clients of each; returns what was seen at each of them."""
    logs = {pid: folder / f"quiet-{name}-{pid}.log" for pid in servers}
    with contextlib.ExitStack() as stack:
        for pid, target in servers.items():
            out = stack.enter_context(logs[pid].open("w"))
            stack.enter_context(_run_module("quiet", target, [], out.fileno()))
        for log in logs.values():
            until("the quiet clients are served", lambda log=log: all(door in log.read_text() for door in DOORS), 30)
        time.sleep(0.5)
        times, memory = [time.monotonic()], {pid: [process.rss_mb(pid)] for pid in servers}
        time.sleep(seconds)
        times.append(time.monotonic())
        peaks = {pid: memory[pid][0] for pid in servers}
        with contextlib.ExitStack() as floods:
            flood_log = folder / f"flood-{name}.log"
            with flood_log.open("w") as out:
                for target in servers.values():
                    floods.enter_context(_run_module("flooder", target, [name], out.fileno()))
            until("the floods have begun", lambda: flood_log.read_text().count(START_LINE) == len(servers), 30)
            times[1] = time.monotonic()
            while time.monotonic() < times[1] + 2 * seconds:
                time.sleep(0.1)
                peaks = {pid: max(peak, process.rss_mb(pid)) for pid, peak in peaks.items()}
        times.append(time.monotonic())
        time.sleep(seconds)
        after = {pid: process.rss_mb(pid) for pid in servers}
        times.append(time.monotonic())
    return [
        FloodResult(name, _sort_answers(logs[pid].read_text(), times), (memory[pid][0], peaks[pid], after[pid]))
        for pid in servers
    ]


@contextlib.contextmanager
def _run_module(module: str, target: Target, arguments: list[str], out: int) -> Iterator[None]:
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    running = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.measure.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    assert running.stdin is not None
    running.stdin.write(json.dumps(asdict(target)).encode())
    running.stdin.close()
    try:
        yield
    finally:
        os.killpg(running.pid, 9)
        running.wait()


def _sort_answers(log: str, times: list[float]) -> dict[tuple[str, str], Answers]:
    parts: dict[tuple[str, str], Answers] = {}
    rows = [line.split() for line in log.splitlines() if line.count(" ") == 3]
    for door in DOORS:
        for part, start, end in zip(("before", "during", "after"), times, times[1:], strict=False):
            matching_rows = [row for row in rows if row[0] == door and start <= float(row[1]) < end]
            parts[door, part] = Answers(
                [float(row[2]) for row in matching_rows], sum(row[3] == "0" for row in matching_rows)
            )
    return parts


def measure(engine: str, names: list[str], seconds: float, folder: Path) -> bool:
    """Print the rows of every flood on one database, each on new servers; returns whether every bar was met."""
    is_met = True
    with contextlib.ExitStack() as stack:
        houses = _build(engine, folder, stack)
        for name in names:
            with contextlib.ExitStack() as running:
                for house in houses:
                    running.enter_context(house.serve(str(house.root)))
                servers = {
                    int(house.facts()["pid"]): Target(
                        int(house.facts()["port"]), str(house.state), str(house.root), house.token
                    )
                    for house in houses
                }
                results = run_flood(name, servers, seconds, folder)
            for number, result in enumerate(results, start=1):
                for door in DOORS:
                    print(result.row(engine if len(results) == 1 else f"{number} of {len(results)}", door), flush=True)
                    is_met &= result.is_met(door)
    return is_met


def _build(engine: str, folder: Path, stack: contextlib.ExitStack) -> list[House]:
    """Return the servers of an engine, with what they need running until the stack ends."""
    if engine == "sqlite":
        return [prepare(folder / engine, {})]
    url = stack.enter_context(postgres_database(stack.enter_context(postgres_server(durable=True))))
    if engine == "postgres":
        return [prepare(folder / engine, {"DATABASE_URL": url})]
    shared = {"DATABASE_URL": url, "REDIS_URL": stack.enter_context(valkey_server()).url}
    return [prepare(folder / "first", shared), prepare(folder / "second", shared, is_store_filled=True)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="the quiet time before and after; a flood lasts twice that"
    )
    parser.add_argument("--only", nargs="+", choices=sorted(FLOODS), default=list(FLOODS))
    parser.add_argument("--part", metavar="N/M", default="1/1", help="only the Nth of M parts of the floods")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    names = options.only[part - 1 :: parts]
    print("\n".join(_HEADER))
    with tempfile.TemporaryDirectory(prefix="holdfast-fairness-") as folder:
        is_met = [measure(engine, names, options.seconds, Path(folder)) for engine in options.engine]
    sys.exit(0 if all(is_met) else 1)


if __name__ == "__main__":
    main()
