"""Measure how soon a write is found: words and meaning, on both databases, at 50 writes a second.

    python benchmarks/search_freshness.py [--quick] [--rate N] [--json FILE]

The lanes are those of a server and share its process with the writer, which writes by the clock, whether or not the last
write is done. A lag runs from the moment a write is stamped, before its commit, until its words or vectors are committed.
PostgreSQL waits for the disk (fsync on).
"""

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast.adapters.models.minilm import OnnxEmbedder
from holdfast.adapters.open_store import open_store
from holdfast.auth.context import LOCAL_USER
from holdfast.search.index import Indexer
from holdfast.search.ports import Embedder
from holdfast.store.model import Stage, StoreLimits
from holdfast.store.service import Store
from holdfast.worker.indexing_stats import IndexingStats, TimedEmbedder
from holdfast.worker.loop import JobPolicy, Loop
from holdfast.worker.model_keys import NoKeys
from holdfast.worker.purge import Purge
from holdfast.worker.service import Workers
from tests.helpers.databases import postgres_database, postgres_server

BAR_MS = 1000.0
PATHS = 2_000
WORDS = ["harbour", "winter", "ledger", "copper", "station", "garden", "signal", "river", "museum", "engine", "orchard"]


@dataclass(frozen=True)
class Row:
    """One run."""

    database: str
    model: str
    writes: int
    words_p50_ms: float
    words_p95_ms: float
    meaning_p50_ms: float
    meaning_p95_ms: float
    texts_per_second: float
    backlog: int

    def line(self) -> str:
        """Return a line of the table."""
        meaning = f"{self.meaning_p50_ms:.0f} / {self.meaning_p95_ms:.0f} ms" if self.model != "none" else ""
        speed = f"{self.texts_per_second:.1f}" if self.model != "none" else ""
        verdict = "met" if self.words_p95_ms < BAR_MS else "missed"
        return (
            f"| {self.database} | {self.model} | {self.writes} | {self.words_p50_ms:.0f} / {self.words_p95_ms:.0f} ms "
            f"| < {BAR_MS:.0f} ms | {verdict} | {meaning} | {speed} | {self.backlog} |"
        )


@contextmanager
def database_of(name: str) -> Iterator[str | None]:
    """Give the address of a database, None for SQLite."""
    if name == "SQLite":
        yield None
        return
    with postgres_server(durable=True) as server, postgres_database(server, migrated=False) as url:
        yield url


def measured(name: str, embedder: Embedder | None, seconds: float, rate: float) -> Row:
    with ExitStack() as stack:
        url = stack.enter_context(database_of(name))
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
        opened_store = open_store(folder, url)
        stack.callback(opened_store.close)
        store = Store(opened_store.database, StoreLimits())
        stats = IndexingStats(window_seconds=10_000)
        timed = TimedEmbedder(embedder, stats) if embedder else None
        loop = Loop(opened_store.queue, Indexer(opened_store.index, timed), NoKeys(), policy=JobPolicy(), stats=stats)
        workers = Workers(loop, opened_store.index, Purge(store, opened_store.upkeep), timed, 2)
        workers.start()
        written = write_by_the_clock(store, seconds, rate)
        backlog = sum(entry.jobs for entry in opened_store.queue.list_backlog() if entry.stage is Stage.MEANING)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and any(
            entry.stage is Stage.WORDS for entry in opened_store.queue.list_backlog()
        ):
            time.sleep(0.1)
        words, meaning = stats.lag(Stage.WORDS), stats.lag(Stage.MEANING)
        workers.stop(20)
        model = embedder.model if embedder else "none"
        speed = stats.speed().per_second * (2 if embedder else 0)
        return Row(
            name, model, written, words.p50_ms, words.p95_ms, meaning.p50_ms, meaning.p95_ms, round(speed, 1), backlog
        )


def write_by_the_clock(store: Store, seconds: float, rate: float) -> int:
    """Write at a rate from four threads; returns how many writes there were."""
    count = int(seconds * rate)
    started_at = time.monotonic()
    turns = iter(range(count))
    lock = threading.Lock()

    def lane(seed: int) -> None:
        choose = random.Random(seed)
        while True:
            with lock:
                turn = next(turns, None)
            if turn is None:
                return
            time.sleep(max(0.0, started_at + turn / rate - time.monotonic()))
            text = " ".join(choose.choice(WORDS) for _ in range(110)) + f" number {turn}.\n"
            store.write(
                LOCAL_USER, f"p{turn % 4}", f"/d{turn % 20}/{choose.randrange(PATHS)}.md", text, mode="TRUNCATE"
            )

    threads = [threading.Thread(target=lane, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test of some seconds")
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    seconds = 3.0 if options.quick else 30.0
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    machine += f"; load {os.getloadavg()[0]:.1f} at the start; {options.rate:g} writes a second for {seconds:g} s"
    print(f"{machine}\n")
    print("| database | model | writes | words P50 / P95 | bar |  | meaning P50 / P95 | texts/s | meaning left |")
    print("|---|---|---|---|---|---|---|---|---|")
    embedder = OnnxEmbedder()
    embedder.embed(["warm"], None, lambda: None)
    rows = []
    for name in ("SQLite", "PostgreSQL"):
        for model in (None, embedder):
            row = measured(name, model, seconds, options.rate)
            rows.append(row)
            print(row.line(), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
