"""Kills by a seeded schedule: clients, servers, the database; whatever died comes back."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.torture.client import Config
from tests.torture.history import NOT_MADE
from tests.torture.servers import Cluster, Instance

_NOT_MADE = f',"{NOT_MADE}",'.encode()

CLIENT, SERVER, DATABASE = "client", "server", "database"


@dataclass(frozen=True)
class Kills:
    """How many of each."""

    clients: int = 0
    servers: int = 0
    crashes: int = 0

    def schedule(self, choose: random.Random) -> list[tuple[float, str]]:
        """Return at which share of the run what dies: evenly spread over its middle, each a little off its place."""
        strikes = []
        for kind, count in ((CLIENT, self.clients), (SERVER, self.servers), (DATABASE, self.crashes)):
            gap = 0.9 / max(1, count)
            strikes += [(0.05 + gap * (number + choose.random()), kind) for number in range(count)]
        return sorted(strikes)


NO_KILLS = Kills()


class Crowd:
    """The client processes. One that is killed is replaced by one of another name."""

    def __init__(self, config: Config, count: int) -> None:
        self._config = config
        self._count = 0
        self._processes = [self._started() for _ in range(count)]

    def kill_one(self, choose: random.Random) -> None:
        """End a client in the middle of whatever it does."""
        at = choose.randrange(len(self._processes))
        _end(self._processes[at])
        self._processes[at] = self._started()

    def end(self) -> None:
        """End them all."""
        for process in self._processes:
            _end(process)

    def _started(self) -> "subprocess.Popen[bytes]":
        self._count += 1
        config = replace(self._config, name=f"c{self._count}")
        command = [sys.executable, "-m", "tests.torture.client", json.dumps(vars(config))]
        return subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(20)


@dataclass
class Chaos:
    """What may be killed, and how often it was."""

    crowd: Crowd
    instances: Sequence[Instance]
    cluster: Cluster | None
    choose: random.Random

    def happen(self, kind: str) -> None:
        """Kill one, and see that it comes back."""
        if kind == CLIENT:
            self.crowd.kill_one(self.choose)
        elif kind == SERVER:
            victim = self.choose.choice(self.instances)
            victim.kill()
            victim.start()
        elif self.cluster is not None:
            self.cluster.crash()

    def run(self, schedule: list[tuple[float, str]], progress: "Progress") -> dict[str, int]:
        """Follow the schedule to the end of the run; returns the kills made."""
        done, waiting = {CLIENT: 0, SERVER: 0, DATABASE: 0}, list(schedule)
        while (share := progress.share()) < 1 or waiting:
            while waiting and waiting[0][0] <= share:
                kind = waiting.pop(0)[1]
                self.happen(kind)
                done[kind] += 1
            for instance in self.instances:
                instance.keep_up()
            time.sleep(0.05)
        return done


class Progress:
    """How far a run is: by its time, or, when a number of calls is wanted, by the answers in the clients' files."""

    def __init__(self, folder: Path, seconds: float, operations: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._operations = operations
        self._started_at = time.monotonic()
        self._looked_at = self._started_at
        self._sizes: dict[str, int] = {}
        self._lines = 0

    def share(self) -> float:
        """Return 0 at the beginning and 1 at the end."""
        by_time = (time.monotonic() - self._started_at) / self._seconds
        if not self._operations or by_time >= 1:
            return by_time
        if time.monotonic() - self._looked_at > 1:
            self._look()
        return self._lines / 2 / self._operations

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for entry in os.scandir(self._folder):
            before = self._sizes.get(entry.name, 0)
            if entry.stat().st_size > before:
                with Path(entry.path).open("rb") as log:
                    log.seek(before)
                    data = log.read()
                self._lines += data.count(b"\n") - 2 * data.count(_NOT_MADE)
                self._sizes[entry.name] = before + len(data)
