"""The store's verbs beside the barest SQL that could do the same, on both databases; medians of microseconds.

Bare SQL has no tenant wall, no lock, no version, no job: it is a bound that cannot be reached, not a peer.
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.helpers.databases import (
    Backend,
    new_caller,
    postgres_backend,
    postgres_database,
    postgres_server,
    sqlite_backend,
)

ROUNDS = 400
FILES = 1000
SIZE = 4096
WRITE = "write 4 KiB (replace)"
READ = "read 4 KiB"
STAT = "stat"
LIST = "list 100 entries"


def text(turn: int) -> str:
    """Return text that differs every time, because SQLite does not write what is already there."""
    return f"{turn:08}" * (SIZE // 8)


def timed(action: Callable[[int], object]) -> float:
    for turn in range(20):
        action(turn)
    taken = []
    for turn in range(ROUNDS):
        begun = time.perf_counter()
        action(turn)
        taken.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(taken)


def of_store(backend: Backend) -> dict[str, float]:
    store, me = backend.store(), new_caller()
    for number in range(FILES):
        store.write(me, "p", f"/d{number // 100}/f{number % 100}.txt", text(number))
    return {
        WRITE: timed(lambda turn: store.write(me, "p", f"/d0/f{turn % 100}.txt", text(turn), mode="TRUNCATE")),
        READ: timed(lambda turn: store.read(me, "p", f"/d1/f{turn % 100}.txt")),
        STAT: timed(lambda turn: store.stat(me, "p", f"/d2/f{turn % 100}.txt")),
        LIST: timed(lambda turn: store.listing(me, "p", f"/d{turn % 10}")),
    }


SCHEMA = "CREATE TABLE bare (path TEXT PRIMARY KEY, content {blob}, size INTEGER)"
STATEMENTS = {
    WRITE: "INSERT INTO bare VALUES ({0}, {1}, {2}) ON CONFLICT (path) DO UPDATE SET content = excluded.content",
    READ: "SELECT content FROM bare WHERE path = {0}",
    STAT: "SELECT size FROM bare WHERE path = {0}",
    LIST: "SELECT path, size FROM bare WHERE path >= {0} AND path < {1} ORDER BY path LIMIT 257",
}


def of_bare(run: Callable[[str, tuple[object, ...]], object]) -> dict[str, float]:
    for number in range(FILES):
        run(WRITE, (f"/d{number // 100}/f{number % 100}.txt", text(number).encode(), SIZE))
    return {
        WRITE: timed(lambda turn: run(WRITE, (f"/d0/f{turn % 100}.txt", text(turn).encode(), SIZE))),
        READ: timed(lambda turn: run(READ, (f"/d1/f{turn % 100}.txt",))),
        STAT: timed(lambda turn: run(STAT, (f"/d2/f{turn % 100}.txt",))),
        LIST: timed(lambda turn: run(LIST, (f"/d{turn % 10}/", f"/d{turn % 10}0"))),
    }


@contextmanager
def bare_sqlite(folder: Path) -> Iterator[Callable[[str, tuple[object, ...]], object]]:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(SCHEMA.format(blob="BLOB"))
    statements = {name: text.format("?", "?", "?") for name, text in STATEMENTS.items()}
    yield lambda name, values: connection.execute(statements[name], values).fetchall()
    connection.close()


@contextmanager
def bare_postgres(url: str) -> Iterator[Callable[[str, tuple[object, ...]], object]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA.format(blob="BYTEA").encode())
        statements = {name: text.format("%s", "%s", "%s").encode() for name, text in STATEMENTS.items()}

        def run(name: str, values: tuple[object, ...]) -> object:
            cursor = connection.execute(statements[name], values)
            return cursor.fetchall() if cursor.description else None

        yield run


def show(database: str, ours: dict[str, float], bare: dict[str, float]) -> None:
    for name, taken in ours.items():
        print(f"{database:9} {name:22} {taken:8.0f} µs   bare {bare[name]:8.0f} µs   {taken / bare[name]:5.1f} x")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with sqlite_backend(folder / "store") as backend, bare_sqlite(folder) as run:
            show("sqlite", of_store(backend), of_bare(run))
    with (
        postgres_server() as server,
        postgres_database(server) as url,
        postgres_backend(url) as backend,
        bare_postgres(url) as run,
    ):
        show("postgres", of_store(backend), of_bare(run))


if __name__ == "__main__":
    main()
