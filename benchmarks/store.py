"""Measure the project store on both databases: beside its bare SQL, over HTTP, and with very many files.

    python benchmarks/store.py [--quick] [--million] [--json FILE]

The floor of a verb is the very SQL that it runs, in the same transactions and with the same durability, through the bare
driver. Both sides take turns in one process, so that a busy machine slows both. PostgreSQL waits for the disk (fsync on).
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import store_http
from benchmarks.measure.store_fill import Batch, fill, postgres_batches, sqlite_batches
from benchmarks.measure.store_floors import PROJECT, Floor, postgres_floor, sqlite_floor
from benchmarks.measure.table import Row, Sample, markdown, milliseconds, timed_row
from holdfast.auth.context import AuthContext
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import (
    Backend,
    new_caller,
    postgres_backend,
    postgres_database,
    postgres_server,
    sqlite_backend,
)

ROOMY = StoreLimits(max_project_bytes=10**12)
FLOOR_BAR = 2.0
LEVEL_BAR_MS = 5.0
FILL_SECONDS = 100.0

Work = Callable[[int], object]


@dataclass(frozen=True)
class Side:
    """One database, with what is needed to reach it past the store."""

    name: str
    backend: Backend
    floor: Callable[[str], AbstractContextManager[Floor]]
    batches: Callable[[str], AbstractContextManager[Batch]]
    url: str | None
    analyze: Callable[[], None]


def main() -> None:
    """Run what was asked for and print it."""
    options = _options()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        for open_side in (_on_sqlite, _on_postgres):
            with open_side(Path(name)) as side:
                rows += _beside_the_floor(side, 4 if options.quick else 30)
                rows += _over_http(side, Path(name), 0.5 if options.quick else 1.5)
                rows += _one_level(side, 1_000 if options.quick else 100_000)
                if options.million:
                    rows += _very_many(side, 10_000 if options.quick else 1_000_000)
    print(f"{_machine()}\n\n{markdown(rows)}")
    if options.json:
        facts = {"machine": _machine(), "rows": [{**asdict(row), "met": row.is_met} for row in rows]}
        Path(options.json).write_text(json.dumps(facts, indent=1))


@contextmanager
def _on_sqlite(folder: Path) -> Iterator[Side]:
    place = folder / "store"
    with sqlite_backend(place) as backend:
        yield Side(
            "SQLite",
            backend,
            lambda tenant: sqlite_floor(place, tenant),
            lambda tenant: sqlite_batches(place, tenant),
            None,
            lambda: None,
        )


@contextmanager
def _on_postgres(_folder: Path) -> Iterator[Side]:
    def analyze() -> None:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ANALYZE")

    with postgres_server(durable=True) as server, postgres_database(server) as url, postgres_backend(url) as backend:
        yield Side(
            "PostgreSQL",
            backend,
            lambda tenant: postgres_floor(url, tenant),
            lambda tenant: postgres_batches(url, tenant),
            url,
            analyze,
        )


def _beside_the_floor(side: Side, rounds: int) -> list[Row]:
    store, ours, theirs = side.backend.store(), new_caller(), new_caller()
    for tenant in (ours, theirs):
        for number in range(200):
            store.write(tenant, PROJECT, f"/d{number // 100}/f{number % 100}.txt", store_http.text(number))
    side.analyze()
    with side.floor(theirs.apikey_hash) as floor:
        return [
            _compared(f"{side.name}: {verb}", our_work, bare, rounds)
            for verb, (our_work, bare) in _verbs(store, ours, floor).items()
        ]


def _verbs(store: Store, me: AuthContext, floor: Floor) -> dict[str, tuple[Work, Work]]:
    def path(turn: int) -> str:
        return f"/d{turn % 2}/f{turn % 100}.txt"

    return {
        "file_write, replace 4 KiB": (
            lambda turn: store.write(me, PROJECT, path(turn), store_http.text(turn), mode="TRUNCATE"),
            lambda turn: floor.write(path(turn), store_http.text(turn).encode()),
        ),
        "file_read, 4 KiB": (lambda turn: store.read(me, PROJECT, path(turn)), lambda turn: floor.read(path(turn))),
        "file_stat": (lambda turn: store.stat(me, PROJECT, path(turn)), lambda turn: floor.stat(path(turn))),
        "file_list, 100 entries": (
            lambda turn: store.listing(me, PROJECT, f"/d{turn % 2}"),
            lambda turn: floor.list(f"/d{turn % 2}"),
        ),
    }


def _compared(what: str, ours: Work, floor: Work, rounds: int) -> Row:
    """Let both take turns; their CPU is that of this process, without the database's own."""
    times: tuple[list[float], list[float]] = ([], [])
    cpu = [0.0, 0.0]
    for number in range(rounds):
        for index in (0, 1) if number % 2 else (1, 0):
            work = (ours, floor)[index]
            work(0)
            before = time.process_time()
            times[index].extend(_timed(work, turn) for turn in range(number * 20, number * 20 + 20))
            cpu[index] += time.process_time() - before
    our_cpu, floor_cpu = (f", CPU {milliseconds(spent / rounds / 20)}" for spent in cpu)
    row = timed_row(what, Sample(times[0]), Sample(times[1]), FLOOR_BAR)
    return replace(row, ours=row.ours + our_cpu, theirs=f"{row.theirs}{floor_cpu}, bare SQL")


def _timed(work: Work, turn: int) -> float:
    started_at = time.perf_counter()
    work(turn)
    return time.perf_counter() - started_at


def _over_http(side: Side, folder: Path, seconds: float) -> list[Row]:
    rows = []
    with store_http.serving(folder / f"house-{side.name}", side.url) as house:
        for verb in store_http.VERBS:
            for connections in (1, 8, 50):
                loaded = store_http.load(house, verb, connections, seconds, most=20_000)
                if loaded.failed:
                    raise RuntimeError(f"{loaded.failed} of {len(loaded.times)} calls of {verb} failed")
                text = (
                    f"{loaded.per_second:.0f}/s, p50 {milliseconds(loaded.percentile(0.5))}, "
                    f"p99 {milliseconds(loaded.percentile(0.99))}, CPU {milliseconds(loaded.cpu_seconds / len(loaded.times))}"
                )
                rows.append(Row(f"{side.name}: {verb} over HTTP, {connections} at once", text, ""))
    return rows


def _one_level(side: Side, count: int) -> list[Row]:
    store, me = side.backend.store(ROOMY), new_caller()
    store.write(me, PROJECT, "/other", "x")
    with side.batches(me.apikey_hash) as put:
        fill(put, me.apikey_hash, [f"/big/d{number % 3}/f{number}" for number in range(count)], 1, FILL_SECONDS)
    side.analyze()
    bar = f"< {LEVEL_BAR_MS:g} ms"
    rows = []
    for what, path in (("3 directories", "/big"), ("256 of its files", "/big/d1")):
        sample = _sample(lambda _turn, path=path: store.listing(me, PROJECT, path), 100)  # type: ignore[misc]
        text = f"{side.name}: one level under {count:,} files, {what}"
        amount = sample.median * 1000
        rows.append(Row(text, _spread(sample), "", bar=LEVEL_BAR_MS, bar_text=bar, amount=amount))
    return rows


def _very_many(side: Side, count: int) -> list[Row]:
    store, me = side.backend.store(ROOMY), new_caller()
    store.write(me, PROJECT, "/first", "x")
    paths = [f"/d{number // 1000}/f{number % 1000}.txt" for number in range(count)]
    with side.batches(me.apikey_hash) as put:
        done, seconds = fill(put, me.apikey_hash, paths, 1, FILL_SECONDS)
    side.analyze()
    last = done // 1000 - 1
    verbs: dict[str, Work] = {
        "file_stat": lambda turn: store.stat(me, PROJECT, f"/d{turn % last}/f{turn}.txt"),
        "file_stat of a directory of 1,000": lambda turn: store.stat(me, PROJECT, f"/d{turn % last}"),
        "file_stat of the root": lambda _turn: store.stat(me, PROJECT, ""),
        "file_read": lambda turn: store.read(me, PROJECT, f"/d{turn % last}/f{turn}.txt"),
        "file_list, 256 directories": lambda _turn: store.listing(me, PROJECT, ""),
        "file_list, 256 files": lambda turn: store.listing(me, PROJECT, f"/d{turn % last}"),
        "file_list, recursive, 1,024 entries": lambda turn: store.listing(me, PROJECT, f"/d{turn % last}", 99, 1024),
        "file_write, a new file": lambda turn: store.write(me, PROJECT, f"/new/f{turn}", "x"),
        "file_rename of one file": lambda turn: store.rename(me, PROJECT, f"/new/f{turn}", f"/moved/f{turn}"),
    }
    begin = f"{side.name}: {done:,} files"
    rows = [Row(f"{begin}, filled in batches", f"{done / seconds:.0f} files/s", "")]
    for what, work in verbs.items():
        sample = _sample(work, 5 if what.endswith("root") else 100, warm=0 if "new" in what or "rename" in what else 3)
        rows.append(Row(f"{begin}, {what}", _spread(sample), ""))
    return rows


def _sample(work: Work, count: int, warm: int = 3) -> Sample:
    for turn in range(warm):
        work(turn)
    return Sample([_timed(work, turn) for turn in range(count)])


def _spread(sample: Sample) -> str:
    return f"{milliseconds(sample.median)} (p95 {milliseconds(sample.p95)}, mean {milliseconds(statistics.mean(sample.values))})"


def _machine() -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    databases = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous FULL; PostgreSQL 18, fsync on"
    return f"{now}; {system}; {databases}; load {os.getloadavg()[1]:.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test: few rounds, few files")
    parser.add_argument("--million", action="store_true", help="also fill a project with a million files")
    parser.add_argument("--json", metavar="FILE", help="keep the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
