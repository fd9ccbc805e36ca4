"""A server under a long, mixed load: does it keep its memory, its descriptors and its threads, and make no error of its own?

    python -m tests.torture.soak --calls 1000000 --seconds 1800      every group of tools, over stdio, HTTP and WebSocket
    python -m tests.torture.soak --hostile --seconds 20              quiet clients, alone and beside eight hostile ones

The first form ends after so many calls and so many seconds, whichever is later. Memory is compared between the second tenth
of the time, the first without the start, and the last. Descriptors and threads are compared while nobody is connected:
after a warm-up, and after the end. `--help` lists what can be changed. It needs Linux.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import process
from tests.helpers.agent import command
from tests.helpers.databases import postgres_database, postgres_server
from tests.helpers.doors import House, children_of, until
from tests.torture.soak_client import STEP, Config

MAX_GROWTH = 0.05
MAX_SLOWDOWN = 2.0
HOSTILES = 8
_TENTHS = 10
_ROOM = 2
"""So many descriptors or threads more at rest are no growth: a pool that has one more connection ready."""
_REST_SECONDS = 30.0
_WARM_UP = Config("", "", 0, "", lanes=12, calls=4_000, seconds=10)
_PAUSE_SECONDS = 0.05
_DOORS = ("stdio", "http", "websocket")
_HEADER = ("| tenth | calls | memory MB | descriptors | threads | children |", "|---|---|---|---|---|---|")


@dataclass(frozen=True)
class Sample:
    """What the kernel said of the server at a moment, and how many calls had been made."""

    at: float
    calls: int
    memory_mb: float
    descriptors: int
    threads: int
    children: int


@dataclass
class Outcome:
    """What a client process came to."""

    calls: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    times: dict[str, dict[str, int]] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)

    def percentile(self, door: str, share: float) -> float:
        """Return the milliseconds that this share of a door's calls did not exceed, exact to a twentieth."""
        steps = Counter({int(step): count for step, count in self.times.get(door, {}).items()})
        left = share * steps.total()
        for step in sorted(steps):
            left -= steps[step]
            if left <= 0:
                return math.pow(STEP, step) / 100
        return math.nan


class Server:
    """A server in the foreground, with what is asked of the kernel about it."""

    def __init__(self, house: House, log: Path) -> None:
        self.house = house
        self.log = log
        self.pid = int(house.facts()["pid"])
        self._key = house.token

    def config(self, **more: Any) -> Config:
        """Return what a client of this server is told."""
        port = int(self.house.facts()["port"])
        place = {"state": str(self.house.state), "root": str(self.house.root), "port": port, "key": self._key}
        return Config(**{**asdict(_WARM_UP), **more, **place})

    def sample(self, calls: int) -> Sample:
        """Look at the server."""
        return Sample(
            time.monotonic(),
            calls,
            process.rss_mb(self.pid),
            len(os.listdir(f"/proc/{self.pid}/fd")),
            len(os.listdir(f"/proc/{self.pid}/task")),
            len(children_of(self.pid)),
        )

    def open_files(self) -> Counter[str]:
        """Return how many descriptors it has open, by what they are for."""
        kinds: Counter[str] = Counter()
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                target = str(entry.readlink())
                kinds[target.partition(":")[0] if target[0] != "/" else Path(target).parent.name] += 1
        return kinds

    def rest(self) -> Sample:
        """Return the lowest figures of a while in which nobody is connected."""
        samples = []
        for _ in range(int(_REST_SECONDS)):
            time.sleep(1)
            samples.append(self.sample(0))
        least = {name: min(getattr(each, name) for each in samples) for name in asdict(samples[0])}
        return Sample(**least)


class Client:
    """A process of `tests.torture.soak_client`; a thread reads what it says."""

    def __init__(self, config: Config) -> None:
        self.outcome = Outcome()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.soak_client", json.dumps(asdict(config))],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Return whether it still makes calls."""
        return self._reader.is_alive()

    def finish(self) -> Outcome:
        """Wait for its end and return what it came to; a client that broke down is an error."""
        self._reader.join()
        if self._process.wait() != 0:
            self.outcome.errors["the client broke down"] = 1
        return self.outcome

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.outcome = Outcome(**json.loads(line))
        self._process.stdout.close()


@contextmanager
def served(engine: str) -> Iterator[Server]:
    """Run a server in a folder of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-soak-")))
        environment = {}
        if engine == "postgres":
            environment["DATABASE_URL"] = stack.enter_context(postgres_database(stack.enter_context(postgres_server())))
        house = House(folder, **environment)
        rates = dict.fromkeys(("read_per_minute", "write_per_minute", "search_per_minute"), 0)
        settings = {
            "auth": {"mode": "open"},
            "limits": {"local": rates, "tenant": rates},
            "review": {"wait_seconds": 0},
            "mcp": {"files": {"max_payload_bytes": 20_000_000}},
        }
        house.settings(json.dumps({"settings": settings}))
        log = folder / "printed"
        output = stack.enter_context(log.open("wb"))
        argv = command("serve", "--port", "0", str(house.root))
        running = subprocess.Popen(argv, env=house.env, cwd="/", stdout=output, stderr=output)
        stack.callback(running.wait)
        stack.callback(running.terminate)
        until("the server is up", lambda: house.facts().get("pid") == running.pid)
        yield Server(house, log)


def soak(engine: str, config: Config) -> list[str]:
    """Run the load, print the report and return what was wrong."""
    with served(engine) as server:
        warm = Client(server.config(seed=config.seed, lanes=2 * config.lanes, calls=min(20_000, config.calls))).finish()
        before, open_before = server.rest(), server.open_files()
        client = Client(server.config(seed=config.seed, lanes=config.lanes, calls=config.calls, seconds=config.seconds))
        samples, began = [], time.monotonic()
        while client.is_running:
            samples.append(server.sample(client.outcome.calls))
            if len(samples) % 60 == 0:
                print(f"… {samples[-1]}", file=sys.stderr, flush=True)
            time.sleep(min(5.0, max(0.2, config.seconds / 200)))
        outcome, seconds = client.finish(), time.monotonic() - began
        after, open_after = server.rest(), server.open_files()
        log = server.log.read_text(errors="replace")
    tenths = _split(samples)
    print(f"{outcome.calls} calls in {seconds:.0f} s on {engine}: {outcome.calls / seconds:.0f} a second")
    print("\n".join(_HEADER))
    for number, part in enumerate(tenths, start=1):
        print(_tenth_row(number, part))
    for door in sorted(outcome.times):
        p50, p99, worst = (outcome.percentile(door, share) for share in (0.5, 0.99, 1.0))
        print(
            f"{door}: {sum(outcome.times[door].values())} calls, p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {worst:.0f} ms"
        )
    print(f"tools: {', '.join(f'{tool} {count}' for tool, count in sorted(outcome.tools.items()))}")
    print(f"at rest before: {before.descriptors} descriptors, {before.threads} threads, {before.memory_mb:.1f} MB")
    print(f"at rest after: {after.descriptors} descriptors, {after.threads} threads, {after.memory_mb:.1f} MB")
    for name in sorted(open_before.keys() | open_after.keys()):
        if open_before[name] != open_after[name]:
            print(f"descriptors for {name}: {open_before[name]} before, {open_after[name]} after")
    logged = [f"the server logged: {line}" for line in log.splitlines() if " error " in line or "fault" in line]
    return _faults(tenths, before, after, [warm, outcome]) + logged[:20]


def _faults(tenths: list[list[Sample]], before: Sample, after: Sample, outcomes: list[Outcome]) -> list[str]:
    faults = [f"{count} times {error}" for each in outcomes for error, count in each.errors.items()]
    steady, last = (statistics.median(sample.memory_mb for sample in tenths[part]) for part in (1, -1))
    growth = last / steady - 1
    print(f"memory: {steady:.1f} MB in the second tenth, {last:.1f} MB in the last: {growth:+.1%}")
    if growth > MAX_GROWTH:
        faults.append(f"memory grew by {growth:.1%}")
    for name in ("descriptors", "threads"):
        first, then = getattr(before, name), getattr(after, name)
        if then > first + _ROOM:
            faults.append(f"{name} at rest grew from {first} to {then}")
    return faults


def _split(samples: list[Sample]) -> list[list[Sample]]:
    first, last = samples[0].at, samples[-1].at + 1e-6
    parts: list[list[Sample]] = [[] for _ in range(_TENTHS)]
    for sample in samples:
        parts[int((sample.at - first) / (last - first) * _TENTHS)].append(sample)
    return parts


def _tenth_row(number: int, part: list[Sample]) -> str:
    middle = {name: statistics.median(getattr(sample, name) for sample in part) for name in asdict(part[0])}
    return (
        f"| {number} | {part[-1].calls} | {middle['memory_mb']:.1f} | {middle['descriptors']:g} | {middle['threads']:g} "
        f"| {middle['children']:g} |"
    )


def resist(engine: str, config: Config, rounds: int) -> list[str]:
    """Run quiet clients alone and beside hostile ones in turns; print the times; return what was wrong.

    A machine that others use is faster at one moment than at another, so each part beside hostile clients is compared with
    the parts before and after it, and the ratio is the median of all rounds.
    """
    with served(engine) as server:
        Client(server.config(calls=500, seconds=5.0)).finish()
        quiet = server.config(lanes=6, calls=0, seconds=config.seconds, pause=_PAUSE_SECONDS, seed=config.seed)
        alone, beside = [Client(quiet).finish()], []
        for _ in range(rounds):
            with _hostile_clients(server):
                beside.append(Client(quiet).finish())
            alone.append(Client(quiet).finish())
    faults = [f"{count} times {error}" for each in (*alone, *beside) for error, count in each.errors.items()]
    print("| quiet clients | door | calls | p50 ms | p99 ms | worst ms |\n|---|---|---|---|---|---|")
    for name, outcomes in (("alone", alone), ("beside hostile clients", beside)):
        total = _add_up(outcomes)
        for door in _DOORS:
            p50, p99, worst = (total.percentile(door, share) for share in (0.5, 0.99, 1.0))
            print(f"| {name} | {door} | {sum(total.times[door].values())} | {p50:.2f} | {p99:.2f} | {worst:.0f} |")
    for door in _DOORS:
        times = [outcome.percentile(door, 0.99) for outcome in alone]
        slowdowns = [
            outcome.percentile(door, 0.99) / statistics.mean(times[number : number + 2])
            for number, outcome in enumerate(beside)
        ]
        slowdown = statistics.median(slowdowns)
        print(f"{door}: p99 times {slowdown:.2f} ({', '.join(f'{each:.2f}' for each in slowdowns)})")
        if slowdown > MAX_SLOWDOWN:
            faults.append(f"p99 over {door} is {slowdown:.2f} times as long beside hostile clients")
    return faults


def _add_up(outcomes: list[Outcome]) -> Outcome:
    total = Outcome()
    for outcome in outcomes:
        for door, steps in outcome.times.items():
            counts = total.times.setdefault(door, {})
            for step, count in steps.items():
                counts[step] = counts.get(step, 0) + count
    return total


@contextmanager
def _hostile_clients(server: Server) -> Iterator[None]:
    config = json.dumps(asdict(server.config()))
    with tempfile.TemporaryFile("w+") as report:
        running = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.soak_hostile", config], stdout=report, start_new_session=True
        )
        try:
            until("the hostile clients are at work", lambda: os.fstat(report.fileno()).st_size >= HOSTILES, 60)
            yield
            assert running.poll() is None, "the hostile clients gave up"
        finally:
            os.killpg(running.pid, 9)
            running.wait()


def main() -> None:
    """Run one form, and exit with 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1_800.0, help="at least so long; with --hostile each part")
    parser.add_argument("--lanes", type=int, default=12)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--rounds", type=int, default=4, help="with --hostile: parts beside hostile clients")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    config = Config("", "", 0, "", options.lanes, options.calls, options.seconds, seed=options.seed)
    faults = resist(options.engine, config, options.rounds) if options.hostile else soak(options.engine, config)
    print("\n".join(faults) or "nothing was wrong")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
