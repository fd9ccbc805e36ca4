"""What a listing, a history and a lookup cost: rows and steps that are counted, never time."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.adapters.postgres.store.store import STATEMENTS, Connection, Pool, open_pool
from holdfast.adapters.sqlite.store.files import STATEMENTS as ON_SQLITE
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import AuthContext
from holdfast.clock import format_utc
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import new_caller, postgres_backend, postgres_database

MANY, FEW = 100_000, 1_000
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
PLANT_SQLITE = """
INSERT INTO mcp_files (apikey_hash, project, path, size, created_at, updated_at, version, written_version, content)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
SELECT ?, 'p', '/big/d' || (i % 3) || '/f' || i, 1, '2030-01-01T00:00:00.000000Z', '2030-01-01T00:00:00.000000Z', 1, 1, x'61' FROM n
"""
KEEP_SQLITE = """
INSERT INTO mcp_file_versions (apikey_hash, project, file_id, version, size, written_at, kept_at, content)
SELECT apikey_hash, project, id, 0, 1, created_at, ?, x'62' FROM mcp_files WHERE path LIKE '/big/%'
"""
PLANT_POSTGRES = """
INSERT INTO mcp_files (apikey_hash, project, path, size, created_at, updated_at, version, written_version, content)
SELECT %s, 'p', '/big/d' || (i %% 3) || '/f' || i, 1, now(), now(), 1, 1, 'a' FROM generate_series(0, %s - 1) AS i
"""
KEEP_POSTGRES = """
INSERT INTO mcp_file_versions (apikey_hash, project, file_id, version, size, written_at, kept_at, content)
SELECT apikey_hash, project, id, 0, 1, created_at, now(), 'b' FROM mcp_files WHERE apikey_hash = %s
"""
DIRECTORIES = ["/big/d0", "/big/d1", "/big/d2"]


def steps_of(folder: Path, files: int, ask: Callable[[Store, AuthContext], object], answer: object) -> int:
    """Return the instructions of SQLite's machine that one question takes, which must have that answer."""
    database, me = SqliteStore(str(folder)), new_caller()
    store = Store(database, StoreLimits())
    store.write(me, "p", "/other", "x")
    with database.files.write_transaction(file_name(me.apikey_hash), time.monotonic() + 10) as connection:
        connection.execute(PLANT_SQLITE, [files, me.apikey_hash])
        connection.execute(KEEP_SQLITE, [format_utc(datetime.now(UTC))])
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return 0

    with database.files.snapshot(me.apikey_hash) as connection:
        connection.set_progress_handler(counted, 1)
    assert ask(store, me) == answer
    connection.set_progress_handler(None, 1)
    database.close()
    return count


@pytest.mark.req("ST-32")
@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda store, me: [entry.path for entry in store.listing(me, "p", "/big").entries], DIRECTORIES),
        (lambda store, me: [version.version for version in store.history(me, "p", "/big/d0/f0")], [0]),
        (lambda store, me: store.history(me, "p", "/other"), []),
        (lambda store, me: store.version_text(me, "p", "/big/d0/f0", 0), "b"),
        (lambda store, me: store.version_text(me, "p", "/big/d0/f0", 1), "a"),
        (lambda store, me: store.usage(me), (1, 0)),
    ],
    ids=["listing", "history", "no-history", "old-text", "present-text", "usage"],
)
def test_on_sqlite_a_hundred_times_the_files_take_the_same_steps(
    tmp_path: Path, ask: Callable[[Store, AuthContext], object], answer: object
) -> None:
    few, many = (steps_of(tmp_path / str(files), files, ask, answer) for files in (FEW, MANY))
    assert 0 < few < 2_000
    assert many <= few * 1.1


@pytest.mark.req("SV-14.a")
@pytest.mark.parametrize("max_bytes", [10**12, 1000], ids=["below", "evicting"])
def test_on_sqlite_a_write_and_its_evictions_cost_the_same_among_many_files(tmp_path: Path, max_bytes: int) -> None:
    counts = []
    for files in (FEW, MANY):
        database, me = SqliteStore(str(tmp_path / f"{files}")), new_caller()
        store = Store(database, StoreLimits(max_tenant_bytes=max_bytes))
        store.write(me, "p", "/other", "x")
        with database.files.write_transaction(file_name(me.apikey_hash), time.monotonic() + 10) as connection:
            connection.execute(PLANT_SQLITE, [files, me.apikey_hash])
            connection.execute(KEEP_SQLITE, [format_utc(datetime.now(UTC))])
            connection.execute("UPDATE mcp_tenant_bytes SET history_bytes = 900")
        steps = [0]

        def counted(steps: list[int] = steps) -> int:
            steps[0] += 1
            return 0

        with database.files.snapshot(me.apikey_hash) as connection:
            connection.set_progress_handler(counted, 1)
        store.write(me, "p", "/other", "y" * 200)
        connection.set_progress_handler(None, 1)
        assert store.usage(me) == (201, min(901, max_bytes - 201))
        counts.append(steps[0])
        database.close()
    assert 0 < counts[0] < (2_000 if max_bytes > 1000 else 40_000)
    assert counts[1] <= counts[0] * 1.1


def rows_read(plan: dict[str, Any]) -> Iterator[float]:
    """Yield the rows that each scan of a table read, also those that it threw away."""
    if plan.get("Relation Name", "").startswith("mcp_"):
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for inner in plan.get("Plans", []):
        yield from rows_read(inner)


@pytest.fixture(scope="module")
def crowded(postgres_server_url: str) -> Iterator[tuple[str, AuthContext]]:
    """Give a database in which a tenant has a directory of many files, and which nobody else fills meanwhile."""
    me = new_caller()
    with postgres_database(postgres_server_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(PLANT_POSTGRES, [me.apikey_hash, MANY])
        owner.execute(KEEP_POSTGRES, [me.apikey_hash])
        owner.execute("ANALYZE mcp_files, mcp_file_versions")
        yield url, me


def reading_pool(url: str) -> Pool:
    return open_pool(url, "holdfast_app", 1, steady_plans=True, in_index_order=True)


def plan_of(url: str, me: AuthContext, name: str, **parameters: Any) -> dict[str, Any]:
    """Return how PostgreSQL runs a statement on a new connection like those that read the store, and change it here."""
    with reading_pool(url) as pool, pool.connection() as connection:
        return plan_on(connection, me, STATEMENTS[name], **parameters)


def plan_on(connection: Connection, me: AuthContext, statement: str, **parameters: Any) -> dict[str, Any]:
    """Return how PostgreSQL runs a statement on a connection, and leave nothing of it."""
    explained = b"EXPLAIN (ANALYZE, FORMAT JSON) " + statement.encode()
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [me.apikey_hash])
        row = connection.execute(explained, {"apikey_hash": me.apikey_hash, "project": "p", **parameters}).fetchone()
    assert row is not None
    plan: dict[str, Any] = row["QUERY PLAN"][0]["Plan"]
    return plan


@pytest.mark.req("ST-32", "ST-41")
def test_on_postgresql_a_listing_reads_as_many_rows_as_it_answers(crowded: tuple[str, AuthContext]) -> None:
    url, me = crowded
    plan = plan_of(url, me, "list_heads", low="/big/", high="/big0", components=2, limit=257)
    assert sum(rows_read(plan)) <= 2 * len(DIRECTORIES)
    with postgres_backend(url) as backend:
        assert [entry.path for entry in backend.store().listing(me, "p", "/big").entries] == DIRECTORIES


@pytest.mark.req("ST-41")
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("any_file_in", {"low": "/big/d1/", "high": "/big/d10"}),
        ("find_file", {"path": "/big/d0/f0", "with_content": False}),
        ("read_window", {"path": "/big/d0/f0", "low": "/big/d0/f0/", "high": "/big/d0/f00", "start": 0, "count": 9}),
        ("stat_path", {"path": "/big/d0/f0", "low": "/big/d0/f0/", "high": "/big/d0/f00"}),
        ("files_among", {"paths": '["/big/d0/f0", "/big/d0", "/big"]'}),
        ("directories_among", {"paths": '["/big/d0/f0", "/big/d0", "/nothing"]'}),
        ("move_files", {"moves": '[["/big/d0/f0", "/moved"]]', "version": 2}),
        ("known_path", {"path": "/nothing"}),
        ("list_versions", {"path": "/big/d0/f0", "since": LONG_AGO, "limit": 50}),
        ("version_content", {"path": "/big/d0/f0", "since": LONG_AGO, "version": 0}),
        ("version_content", {"path": "/big/d0/f0", "since": LONG_AGO, "version": 1}),
        ("tenant_usage", {}),
        ("oldest_versions", {"limit": 9}),
        ("oldest_deleted", {"limit": 9}),
        ("evict_versions", {"versions": "[[1, 0], [2, 0]]"}),
        ("evict_files", {"files": "[1, 2]"}),
        ("delete_files", {"low": "/big/d0/f0", "high": "/big/d0/f0!", "version": 2, "at": datetime.now(UTC)}),
    ],
)
def test_on_postgresql_row_level_security_leaves_the_index_in_use(
    crowded: tuple[str, AuthContext], name: str, parameters: dict[str, Any]
) -> None:
    url, me = crowded
    assert sum(rows_read(plan_of(url, me, name, **parameters))) <= 10


def test_the_live_index_serves_a_range_on_sqlite(tmp_path: Path) -> None:
    database, me = SqliteStore(str(tmp_path)), new_caller()
    Store(database, StoreLimits()).write(me, "p", "/a", "x")
    with database.files.snapshot(me.apikey_hash) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT path FROM mcp_files "
            "WHERE apikey_hash = 'a' AND project = 'p' AND path >= '/' AND path < '0' AND NOT deleted"
        ).fetchall()
        assert any("mcp_files_live" in str(tuple(row)) for row in plan)
        assert isinstance(connection, sqlite3.Connection)
    database.close()


@pytest.mark.req("ST-32", "ST-41")
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("any_file_in", {"low": "/d/", "high": "/d0"}),
        ("stat_path", {"path": "/d", "low": "/d/", "high": "/d0"}),
        ("keep_version", {"path": "/d/f", "at": datetime.now(UTC)}),
        ("list_versions", {"path": "/d/f", "since": LONG_AGO, "limit": 50}),
    ],
)
def test_on_postgresql_a_project_that_nobody_analyzed_yet_is_sought_by_path(
    postgres_server_url: str, name: str, parameters: dict[str, Any]
) -> None:
    me = new_caller()
    with postgres_database(postgres_server_url) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ALTER TABLE mcp_files SET (autovacuum_enabled = false)")
            owner.execute(PLANT_POSTGRES, [me.apikey_hash, FEW])
        assert sum(rows_read(plan_of(url, me, name, **parameters))) <= 10


@pytest.mark.req("ST-32")
@pytest.mark.parametrize("analyzed", [3, 300])
def test_on_postgresql_a_listing_does_not_depend_on_statistics(postgres_server_url: str, analyzed: int) -> None:
    me, asked = new_caller(), {"low": "/big/", "high": "/big0", "components": 2, "limit": 257}
    with postgres_database(postgres_server_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER TABLE mcp_files SET (autovacuum_enabled = false)")
        elsewhere = PLANT_POSTGRES.replace("'p'", "'q' || i %% 40").replace("'/big/d' || (i %% 3) || '/f'", "'/x/'")
        owner.execute(elsewhere, [me.apikey_hash, analyzed])
        owner.execute("ANALYZE mcp_files")
        with reading_pool(url) as pool, pool.connection() as connection:
            plan_on(connection, me, STATEMENTS["list_heads"], **asked)
            owner.execute(PLANT_POSTGRES, [me.apikey_hash, MANY])
            plans = [plan_on(connection, me, STATEMENTS["list_heads"], **asked) for _ in range(3)]
        assert [sum(rows_read(plan)) <= 2 * len(DIRECTORIES) for plan in plans] == [True] * 3


def test_on_sqlite_a_rename_seeks_each_file_by_its_path(tmp_path: Path) -> None:
    database, me = SqliteStore(str(tmp_path)), new_caller()
    Store(database, StoreLimits()).write(me, "p", "/a", "x")
    asked = {"apikey_hash": me.apikey_hash, "project": "p", "version": 2, "moves": "[]"}
    with database.files.snapshot(me.apikey_hash) as connection:
        plan = [row["detail"] for row in connection.execute("EXPLAIN QUERY PLAN " + ON_SQLITE["move_files"], asked)]
    assert any("mcp_files_live" in detail and "path=?" in detail for detail in plan)
    database.close()
