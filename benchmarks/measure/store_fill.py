"""Fills a project of the store with very many files, faster than one call for each.

It runs the store's own `insert_file` and `save_project`, many files in a transaction, and leaves no index jobs.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure.store_floors import PROJECT
from holdfast.adapters.postgres.store.store import STATEMENTS as ON_POSTGRES
from holdfast.adapters.sqlite.store.files import STATEMENTS as ON_SQLITE
from holdfast.adapters.sqlite.store.files import file_name

CONTENT = b"one line of text\n"
AT_ONCE = 10_000

Batch = Callable[[list[dict[str, Any]], dict[str, Any]], None]


@contextmanager
def sqlite_batches(folder: Path, tenant: str) -> Iterator[Batch]:
    """Give what puts a batch of files into a tenant's file."""
    connection = sqlite3.connect(folder / f"{file_name(tenant)}.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")

    def put(files: list[dict[str, Any]], project: dict[str, Any]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(ON_SQLITE["insert_file"], [{**file, "at": file["at"].isoformat()} for file in files])
        connection.execute(ON_SQLITE["save_project"], {**project, "at": project["at"].isoformat()})
        connection.execute("COMMIT")

    try:
        yield put
    finally:
        connection.close()


@contextmanager
def postgres_batches(url: str, tenant: str) -> Iterator[Batch]:
    """Give what puts a batch of files into the database, as the store's role."""
    with psycopg.connect(url) as connection:

        def put(files: list[dict[str, Any]], project: dict[str, Any]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute("SELECT set_config('role', 'holdfast_app', true)")
                cursor.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [tenant])
                cursor.executemany(ON_POSTGRES["insert_file"], files)
                cursor.execute(ON_POSTGRES["save_project"], project)

        yield put


def fill(put: Batch, tenant: str, paths: list[str], version: int, most_seconds: float) -> tuple[int, float]:
    """Add small files until all are there or the time is up; return how many and how long it took."""
    started_at, done = time.perf_counter(), 0
    while done < len(paths) and time.perf_counter() - started_at < most_seconds:
        some = paths[done : done + AT_ONCE]
        done, version = done + len(some), version + 1
        scope = {"apikey_hash": tenant, "project": PROJECT, "at": datetime.now(UTC), "version": version}
        files = [{**scope, "path": path, "content": CONTENT, "size": len(CONTENT)} for path in some]
        put(files, {**scope, "file_count": version + done, "total_bytes": done * len(CONTENT)})
    return done, time.perf_counter() - started_at
