"""The two sets of SQL: the same names and parameters, the tenant in every one, and no condition that nobody would miss."""

import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from holdfast.adapters.postgres.store.store import STATEMENTS as POSTGRES
from holdfast.adapters.sqlite.store.files import STATEMENTS as SQLITE
from holdfast.adapters.sqlite.store.schema import migrate_store
from holdfast.store.paths import next_group_start
from tests.helpers.databases import postgres_database
from tests.helpers.mutants import Mutant, mutants, regenerated, unguarded

FOR_THE_WORKER = {
    "claim_jobs",
    "count_jobs",
    "failed_jobs",
    "list_tenants",
    "list_usages",
    "next_due",
    "purge_candidates",
    "purge_done",
    "retry_failed",
}
"""Statements that look across tenants, which row-level security grants to the worker's role alone."""

DIALECTS = {"sqlite": SQLITE, "postgres": POSTGRES}
A, B = "a" * 64, "b" * 64
PAST, NOW, LATER = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2030, 2040))
PLACES = ["/d", "/d/x", "/only-b", "/only-q", "/gone", "/none"]

Observe = Callable[[str, Mapping[str, Any]], Any]


def parameters_of(sql: str, dialect: str) -> set[str]:
    pattern = r"%\((\w+)\)s" if dialect == "postgres" else r"(?<!:):([a-z_]+)"
    return set(re.findall(pattern, sql))


def test_both_databases_have_the_same_statements_with_the_same_parameters() -> None:
    shapes = {
        dialect: {name: parameters_of(sql, dialect) for name, sql in statements.items()}
        for dialect, statements in DIALECTS.items()
    }
    assert shapes["sqlite"] == shapes["postgres"]


@pytest.mark.req("ST-36", "ST-41")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_says_whose_rows_it_means(dialect: str) -> None:
    for name, sql in DIALECTS[dialect].items():
        assert "apikey_hash" in sql, name
        if name not in FOR_THE_WORKER:
            assert unguarded(sql, dialect) == [], name


def test_a_statement_that_forgets_the_tenant_is_noticed() -> None:
    assert unguarded("SELECT path FROM mcp_files WHERE project = :project", "sqlite")
    assert unguarded("SELECT 1 WHERE EXISTS (SELECT 1 FROM mcp_files WHERE path = :path)", "sqlite")
    assert unguarded("UPDATE mcp_files SET size = 0 WHERE path = :path", "sqlite")


def cases(names: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the values that a statement is tried with: places, ids, versions and limits that make a difference."""
    fixed: dict[str, Any] = {
        "apikey_hash": A,
        "project": "p",
        "key": "k",
        "with_content": True,
        "paths": json.dumps(PLACES),
        "components": 2,
        "start": 0,
        "count": 100,
        "since": PAST,
        "at": NOW,
        "until": LATER,
        "due_at": LATER,
        "claim": "c",
        "status": "failed",
        "stage": "words",
        "is_backlog": False,
        "attempts": 1,
        "error": "e",
        "before": NOW,
        "kept": 1,
        "content": b"new",
        "tail": b"new",
        "size": 3,
        "moves": json.dumps([[place, f"/moved{place}"] for place in PLACES]),
        "jobs": json.dumps([["/new", "UPSERT"]]),
        "digest": "d" * 64,
        "answer": 1,
        "file_count": 1,
        "live_bytes": 1,
        "history_bytes": 1,
        "versions": json.dumps([[number, version] for number in range(1, 22) for version in (-1, 0, 1, 2, 7, 8)]),
        "files": json.dumps([number for number, *_ in FILES]),
        "total_bytes": 1,
        "deleted_before": NOW,
        "versions_before": NOW,
        "others_before": NOW,
    }
    varied: dict[str, list[Any]] = {
        "path": PLACES,
        "id": list(range(1, 13)),
        "version": [1, 2, 3, 4, 5, 7],
        "limit": [1, 2, 100],
    }
    axes = [[(name, value) for value in values] for name, values in varied.items() if name in names]
    if "low" in names:
        axes.append([("low", place) for place in PLACES])
    for picked in itertools.product(*axes):
        case = {**fixed, **dict(picked)}
        case.update(low=f"{case.get('low', '')}/", high=f"{case.get('low', '')}0")
        yield {name: case[name] for name in names}


FILES = [
    # id, tenant, project, path, deleted, written_version
    (1, A, "p", "/d/x", False, 1),
    (2, A, "q", "/d/x", False, 2),
    (3, B, "p", "/d/x", False, 3),
    (4, A, "p", "/d/x", True, 4),
    (5, A, "q", "/only-q/0", False, 5),
    (6, B, "p", "/only-b/0", False, 1),
    (7, A, "p", "/gone/0", True, 2),
    (8, A, "q", "/d/0", False, 3),
    (9, B, "p", "/d/00", False, 4),
    (10, A, "p", "/d/000", True, 5),
    (11, A, "q", "/only-q", False, 1),
    (12, B, "p", "/only-b", False, 2),
    (13, A, "p", "/gone", True, 3),
    (14, B, "q", "/d/x", True, 5),
    (15, A, "q", "/d/x", True, 5),
    (16, B, "p", "/d/x", True, 5),
    (17, A, "p", "/d/y", False, 1),
    (18, A, "q", "/d/x1", False, 1),
    (19, B, "p", "/d/x2", False, 1),
    (20, A, "p", "/d/x3", True, 1),
    (21, A, "r", "/live", False, 1),
    (22, A, "s", "/dead", True, 1),
    (23, B, "s", "/dead", True, 1),
]


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a small world in which every guard matters, as (table, columns)."""
    for number, tenant, project, path, deleted, version in FILES:
        yield "mcp_files", {
            "id": number, "apikey_hash": tenant, "project": project, "path": path, "content": str(number).encode(),
            "size": number, "created_at": PAST, "updated_at": PAST, "deleted": deleted, "deleted_at": PAST,
            "version": version, "written_version": version,
        }  # fmt: skip
        for older in (1, 2) if project not in "rs" else ():
            yield "mcp_file_versions", {
                "apikey_hash": tenant, "project": project, "file_id": number, "version": older, "written_at": PAST,
                "content": f"{number}.{older}".encode(), "size": number, "kept_at": PAST,
            }  # fmt: skip
    for number, (tenant, project) in enumerate([(A, "p"), (A, "q"), (B, "p"), (B, "q")], start=1):
        scope = {"apikey_hash": tenant, "project": project}
        yield "mcp_projects", {**scope, "version": 0, "file_count": number, "total_bytes": number, "updated_at": PAST}
        yield "mcp_applied", {**scope, "key": "k", "digest": str(number) * 64, "answer": number, "created_at": PAST}
        for status, offset in (("processing", 0), ("done", 4), ("waiting_credential", 8)):
            yield "mcp_file_index_jobs", {
                **scope, "id": number + offset, "file_path": f"/d/x{status[:offset]}", "operation": "UPSERT",
                "file_updated_at": PAST, "version": 1, "status": status, "retry_count": 0, "available_at": PAST,
                "claim": "c", "created_at": PAST, "updated_at": PAST,
            }  # fmt: skip
    for number, tenant in enumerate((A, B), start=1):
        yield "mcp_tenant_bytes", {"apikey_hash": tenant, "live_bytes": number, "history_bytes": number}
    for number, (tenant, project, status) in enumerate(
        [(A, "p", "failed"), (B, "p", "done"), (A, "q", "done")], start=20
    ):
        yield "mcp_file_index_jobs", {
            "apikey_hash": tenant, "project": project, "id": number, "file_path": "/failed", "operation": "UPSERT",
            "file_updated_at": PAST, "version": 1, "status": status, "retry_count": 0, "available_at": LATER,
            "created_at": PAST, "updated_at": PAST,
        }  # fmt: skip


def _add_strays(execute: Callable[[str], Any]) -> None:
    """Add versions that point at tenant A's files from elsewhere: only a join's or a query's own guard sorts them out."""
    strays = (
        (B, "p", 0, 1),
        (B, "p", 7, 1),
        (A, "q", -1, 1),
        (A, "q", 8, 1),
        (B, "s", 9, 22),
        (B, "p", 9, 4),
        (A, "q", 9, 4),
    )
    for tenant, project, version, file_id in strays:
        columns = "written_at, kept_at, size, content"
        execute(
            f"INSERT INTO mcp_file_versions (apikey_hash, project, version, file_id, {columns}) "
            f"SELECT '{tenant}', '{project}', {version}, {file_id}, {columns} FROM mcp_file_versions "
            f"WHERE file_id = 1 AND version = 1 AND apikey_hash = '{A}'"
        )


@contextmanager
def sqlite_world() -> Iterator[Observe]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("beyond", 2, next_group_start, deterministic=True)
    migrate_store(connection)
    for table, columns in rows():
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [plain(value) for value in columns.values()],
        )
    _add_strays(connection.execute)
    connection.execute("UPDATE mcp_file_versions SET file_id = 16 WHERE file_id = 20 AND version = 2")

    def observe(sql: str, values: Mapping[str, Any]) -> Any:
        connection.execute("BEGIN")
        try:
            found = connection.execute(sql, {name: plain(value) for name, value in values.items()}).fetchall()
            tables = [
                connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4").fetchall() for table in touched(sql)
            ]
            return found, tables
        except sqlite3.Error as error:
            return type(error).__name__
        finally:
            connection.execute("ROLLBACK")

    yield observe
    connection.close()


@contextmanager
def postgres_world(server_url: str) -> Iterator[Observe]:
    with postgres_database(server_url) as url, psycopg.connect(url) as connection:
        for table, columns in rows():
            if table == "mcp_tenant_bytes":
                columns["slot"] = 0
            names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
            overriding = "OVERRIDING SYSTEM VALUE" if "id" in columns else ""
            connection.execute(
                f"INSERT INTO {table} ({names}) {overriding} VALUES ({marks})".encode(), list(columns.values())
            )
        # A file and a job of another tenant with the number of this tenant's: only the join's own guard keeps them apart.
        for table in ("mcp_files", "mcp_file_versions", "mcp_file_index_jobs"):
            connection.execute(twin_of(connection, table, 1).encode())
        for twin in (4, 17, 22):
            connection.execute(twin_of(connection, "mcp_files", twin).encode())
        connection.execute("UPDATE mcp_files SET deleted = true WHERE id = 17 AND project = 'twin'")
        _add_strays(lambda sql: connection.execute(sql.encode()))
        connection.commit()

        def observe(sql: str, values: Mapping[str, Any]) -> Any:
            try:
                if sql.startswith("INSERT INTO mcp_file_index_jobs"):
                    connection.execute("ALTER TABLE mcp_file_index_jobs ALTER COLUMN id RESTART WITH 100")
                cursor = connection.execute(sql.encode(), values)
                found = cursor.fetchall() if cursor.description else cursor.rowcount
                tables = [
                    connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4".encode()).fetchall()
                    for table in touched(sql)
                ]
                return found, tables
            except psycopg.Error as error:
                return type(error).__name__
            finally:
                connection.rollback()

        yield observe


def twin_of(connection: "psycopg.Connection[Any]", table: str, twin: int) -> str:
    """Return a statement that gives tenant B, in a project of its own, a row numbered like one of tenant A's."""
    columns = [
        row[0]
        for row in connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
            [table],
        )
    ]
    changed = {"apikey_hash": f"'{B}'", "project": "'twin'", "available_at": f"'{LATER.isoformat()}'::timestamptz"}
    number = "file_id" if table == "mcp_file_versions" else "id"
    overriding = "" if table == "mcp_file_versions" else "OVERRIDING SYSTEM VALUE"
    values = ", ".join(changed.get(name, name) for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) {overriding} SELECT {values} FROM {table} WHERE {number} = {twin} AND apikey_hash = '{A}'"


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def touched(sql: str) -> list[str]:
    """Return the tables that a statement may change."""
    if re.match(r"\s*(?:--.*\n|/\*.*?\*/)*\s*(?:SELECT|WITH)", sql):
        return []
    return sorted(
        set(re.findall(r"mcp_\w+", sql))
        & {"mcp_files", "mcp_file_versions", "mcp_file_index_jobs", "mcp_projects", "mcp_applied", "mcp_tenant_bytes"}
    )


def is_noticed(observe: Observe, dialect: str, mutant: Mutant) -> bool:
    sql = DIALECTS[dialect][mutant.name]
    return any(observe(sql, case) != observe(mutant.sql, case) for case in cases(parameters_of(sql, dialect)))


@pytest.mark.req("ST-36", "ST-23")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_guard_of_every_statement_would_be_missed(dialect: str, request: pytest.FixtureRequest) -> None:
    opened = sqlite_world() if dialect == "sqlite" else postgres_world(request.getfixturevalue("postgres_server_url"))
    with opened as observe:
        tried, unnoticed = 0, []
        for name, sql in DIALECTS[dialect].items():
            guarded = list(mutants(name, sql, dialect))
            same = Mutant(name, "nothing", regenerated(sql, dialect))
            assert not guarded or not is_noticed(observe, dialect, same), f"{name} changes by being parsed"
            for mutant in guarded:
                tried += 1
                if not is_noticed(observe, dialect, mutant):
                    unnoticed.append((mutant.name, mutant.lacks))
        assert not unnoticed, unnoticed
        assert tried > 80
