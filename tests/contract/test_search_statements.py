"""The SQL of search: the tenant in every statement, and no condition that nobody would miss."""

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from holdfast.adapters.postgres.search.rows import STATEMENTS as POSTGRES
from holdfast.adapters.sqlite.search.rows import STATEMENTS as SQLITE
from holdfast.adapters.sqlite.store.schema import migrate_store
from tests.contract.test_store_statements import parameters_of
from tests.helpers.databases import postgres_database
from tests.helpers.mutants import Mutant, mutants, regenerated, unguarded

FOR_THE_WORKER = {"list_tenants"}
DIALECTS = {
    "sqlite": SQLITE,
    "postgres": {name: sql.replace("halfvec(1)", "halfvec(2)") for name, sql in POSTGRES.items()},
}
A, B = "a" * 64, "b" * 64
AT = datetime(2030, 1, 1, tzinfo=UTC)
PLACES = [f"/{number}" for number in range(1, 20)]
IDS = list(range(1, 16))

Observe = Callable[[str, Mapping[str, Any]], Any]


def test_statements_of_the_same_name_have_the_same_parameters() -> None:
    shared = SQLITE.keys() & POSTGRES.keys()
    assert len(shared) > 12
    for name in shared - {"insert_words", "count_vectors"}:
        assert parameters_of(SQLITE[name], "sqlite") == parameters_of(POSTGRES[name], "postgres"), name


@pytest.mark.req("SE-19.b", "ST-36")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_says_whose_rows_it_means(dialect: str) -> None:
    for name, sql in DIALECTS[dialect].items():
        if name not in FOR_THE_WORKER:
            assert unguarded(sql, dialect) == [], name


def files() -> Iterator[tuple[str, str, str, bool]]:
    """Yield tenant, project, path and whether it is deleted; all are at version 1."""
    for path in ("/1", "/5", "/6", "/7", "/9", "/10", "/15", "/16", "/17"):
        yield A, "p", path, False
    for tenant, project, path in (
        (B, "p", "/2"),
        (A, "q", "/3"),
        (A, "q", "/8"),
        (A, "q", "/11"),
        (A, "q", "/12"),
        (B, "p", "/13"),
    ):
        yield tenant, project, path, False
    for path in ("/1", "/17"):
        yield B, "p", path, False
        yield A, "q", path, False
    for path in ("/1", "/4", "/14", "/17"):
        yield A, "p", path, True


CHUNKS = [
    # id, tenant, project, path
    (1, A, "p", "/1"),
    (2, A, "p", "/2"),
    (3, A, "p", "/3"),
    (4, A, "p", "/4"),
    (5, A, "p", "/5"),
    (6, A, "p", "/6"),
    (7, B, "p", "/7"),
    (8, A, "q", "/8"),
    (9, A, "p", "/9"),
    (10, B, "p", "/1"),
    (11, A, "q", "/1"),
    (12, A, "p", "/1"),
    (13, B, "p", "/7"),
    (14, A, "q", "/8"),
    (15, A, "p", "/4"),
]
STATES = [
    *[(A, "p", path) for path in ("/1", "/2", "/3", "/4", "/7", "/9")],
    *[(B, "p", path) for path in ("/5", "/15", "/1")],
    *[(A, "q", path) for path in ("/6", "/8", "/16", "/1")],
]
JOBS = [(B, "p", "/10"), (A, "q", "/11"), *[(A, "p", path) for path in ("/12", "/13", "/14", "/15", "/16", "/17")]]
OWNERS = {number: tenant for number, tenant, _, _ in CHUNKS} | {7: A, 9: B}
"""Whose the words and the vector of a chunk are; for 7 and 9 another tenant than the chunk says."""


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a small world in which every guard matters, as (table, columns)."""
    times = {"created_at": AT, "updated_at": AT}
    for number, (tenant, project, path, deleted) in enumerate(files(), start=1):
        yield "mcp_files", {
            "id": number, "apikey_hash": tenant, "project": project, "path": path, "content": str(number).encode(),
            "size": number, **times, "deleted": deleted, "version": 1, "written_version": 1,
        }  # fmt: skip
    for number, tenant, project, path in CHUNKS:
        yield "mcp_file_chunks", {
            "id": number, "apikey_hash": tenant, "project": project, "file_path": path, "chunk_index": -number,
            "start_byte": 0, "end_byte": number, "chunk_content": f"text {number}", "content_hash": "h" * 64,
            "version": 1, **times,
        }  # fmt: skip
    for tenant, project, path in STATES:
        yield "mcp_file_chunk_states", {
            "apikey_hash": tenant, "project": project, "file_path": path, "version": 1, "updated_at": AT,
        }  # fmt: skip
    for number, (tenant, project, path) in enumerate(JOBS, start=1):
        yield "mcp_file_index_jobs", {
            "id": number, "apikey_hash": tenant, "project": project, "file_path": path, "operation": "UPSERT",
            "file_updated_at": AT, "version": 1, "status": "pending", "retry_count": 0, "available_at": AT, **times,
        }  # fmt: skip


def cases(sql: str, dialect: str) -> Iterator[dict[str, Any]]:
    """Yield the values that a statement is tried with."""
    names = parameters_of(sql, dialect)
    fixed: dict[str, Any] = {
        "apikey_hash": A, "at": AT, "tokenizer": "t", "version": 1, "low": "/", "high": "0", "model": "m", "most": 99,
        "limit": 99, "max_bytes": 10**6, "after": 0, "query": "flow", "terms": json.dumps(["flow"]), "position": 70,
        "start": 0, "end": 9, "count": 9, "text": "x", "content_hash": "h" * 64, "scope": "s", "tokens": "flow",
        "token_count": 1, "chunks": 1, "embedding": b"\0" * 8, "vector": "[1,0]", "words": "[]", "names": "[]",
        "lengths": b"\0\0", "projects": b"\0\0", "ids": json.dumps(IDS),
        "before": AT + timedelta(days=1),
        "files": json.dumps([[project, path] for project in "pq" for path in PLACES]),
        "slots": json.dumps([[block, slot] for block in range(3) for slot in range(16)]),
        "vectors": json.dumps([{"id": number, "content_hash": "h" * 64, "embedding": "[1,0]"} for number in IDS]),
    }  # fmt: skip
    varied: dict[str, list[Any]] = {
        "path": PLACES,
        "id": IDS,
        "block": [0, 1, 2],
        "project": ["p", None] if "low" in names or "most" in names or "limit" in names else ["p"],
        "most": [0, 2, 99] if "most" in names and "vector" not in names and "query" not in names else [99],
        "model": ["m", "n"],
        "outdated": ["m", "n", "o"],
        "after_model": ["", "m", "n"],
    }
    axes = [[(name, value) for value in values] for name, values in varied.items() if name in names]
    for picked in itertools.product(*axes):
        yield {name: shaped(name, {**fixed, **dict(picked)}[name], sql) for name in names}


@contextmanager
def sqlite_world() -> Iterator[Observe]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_store(connection)

    def add(table: str, columns: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(columns))
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", [plain(value) for value in columns.values()]
        )

    for table, columns in rows():
        add(table, columns)
    times = {"created_at": AT, "updated_at": AT}
    for number, _, project, _ in CHUNKS:
        owner = OWNERS[number]
        words = {"scope": "s", "tokens": "flow " * number}
        add(
            "mcp_file_chunk_bm25",
            {"chunk_id": number, "apikey_hash": owner, **words, "token_count": number, "tokenizer": "t", **times},
        )
        add("chunk_words", {"rowid": number, **words})
        if number not in (5, 12, 13, 14):
            vector = {"project": project, "chunk_id": number, "embedding": bytes([number] * 8), **times}
            add("mcp_file_chunk_embeddings", {"apikey_hash": owner, "model": "m", **vector})
        if number in (9, 10):
            add(
                "mcp_file_chunk_embeddings",
                {"apikey_hash": A if number == 10 else B, "model": "n" if number == 10 else "o", **vector},
            )
    for tenant in (A, B):
        add("mcp_file_chunk_totals", {"apikey_hash": tenant, "chunks": ord(tenant[0]), "tokens": 9})

    def observe(sql: str, values: Mapping[str, Any]) -> Any:
        connection.execute("BEGIN")
        try:
            found = connection.execute(sql, {name: plain(value) for name, value in values.items()}).fetchall()
            return found, [
                connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4").fetchall() for table in touched(sql)
            ]
        except sqlite3.Error as error:
            return type(error).__name__
        finally:
            connection.execute("ROLLBACK")

    yield observe
    connection.close()


@contextmanager
def postgres_world(server_url: str) -> Iterator[Observe]:
    with postgres_database(server_url) as url, psycopg.connect(url) as connection:

        def add(table: str, columns: dict[str, Any]) -> None:
            names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
            overriding = "OVERRIDING SYSTEM VALUE" if "id" in columns else ""
            connection.execute(
                f"INSERT INTO {table} ({names}) {overriding} VALUES ({marks})".encode(), list(columns.values())
            )

        connection.execute("SET session_replication_role = replica")
        for table, columns in rows():
            add(table, columns)
        for table, key in _postgres_rows():
            add(table, key)
        connection.commit()

        def observe(sql: str, values: Mapping[str, Any]) -> Any:
            try:
                cursor = connection.execute(sql.encode(), values)
                found = cursor.fetchall() if cursor.description else cursor.rowcount
                asked = [f"SELECT md5(t::text) FROM {table} AS t ORDER BY 1" for table in touched(sql)]
                return found, [connection.execute(query.encode()).fetchall() for query in asked]
            except psycopg.Error as error:
                return type(error).__name__
            finally:
                connection.rollback()

        yield observe


def _postgres_rows() -> Iterator[tuple[str, dict[str, Any]]]:
    times = {"created_at": AT, "updated_at": AT}
    for number, tenant, project, path in CHUNKS:
        owner = OWNERS[number]
        block, slot = (None, None) if number in (4, 10, 11) else (number % 2, number)
        yield "mcp_file_chunk_bm25", {
            "apikey_hash": owner, "project": project, "chunk_id": number, "tokens": json.dumps({"flow": number}),
            "token_count": number, "tokenizer": "t", "block": block, "slot": slot, **times,
        }  # fmt: skip
        vector = {"project": project, "chunk_id": number, "embedding": f"[{number},1]", **times}
        if number not in (5, 12, 13, 14):
            yield "mcp_file_chunk_embeddings", {"apikey_hash": owner, "model": "m", **vector}
        if number in (9, 10):
            yield (
                "mcp_file_chunk_embeddings",
                {"apikey_hash": A if number == 10 else B, "model": "n" if number == 10 else "o", **vector},
            )
        # Another tenant's chunk with the number of ours, at a place where ours is live.
        if tenant == A:
            yield "mcp_file_chunks", {
                "id": number, "apikey_hash": B, "project": project, "file_path": "/1" if number != 1 else path,
                "chunk_index": -100 - number, "start_byte": 0, "end_byte": number, "chunk_content": "theirs",
                "content_hash": "h" * 64, "version": 1, **times,
            }  # fmt: skip
            if number != 9:
                yield "mcp_file_chunk_bm25", {
                    "apikey_hash": B, "project": project, "chunk_id": number, "tokens": json.dumps({"flow": 9}),
                    "token_count": 9, "tokenizer": "t", "block": block, "slot": slot, **times,
                }  # fmt: skip
    for tenant in (A, B):
        for block in (0, 1) if tenant == A else (0, 1, 2):
            yield "mcp_file_chunk_blocks", {
                "apikey_hash": tenant, "block": block, "chunks": 9, "tokens": 9, "dead": 6 if tenant == B else 5 * block,
                "names": "[]", "lengths": tenant.encode(), "projects": b"",
            }  # fmt: skip
            yield "mcp_file_chunk_words", {
                "apikey_hash": tenant, "term": "flow", "block": block, "chunks": 1, "slots": tenant.encode(), "counts": b"",
            }  # fmt: skip


def shaped(name: str, value: Any, sql: str) -> Any:
    """Return a parameter as the statement wants it: some are arrays in one and JSON in another."""
    if f"%({name})s::" in sql and "[]" in sql.partition(f"%({name})s::")[2][:10]:
        return {"ids": IDS, "slots": IDS, "terms": ["flow"], "chunks": [1], "counts": [b"1"]}[name]
    if name == "chunks" and "%(chunks)s::json" in sql:
        return json.dumps([{"id": number, "position": number, "low": 0, "high": 1} for number in IDS])
    return value


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def touched(sql: str) -> list[str]:
    """Return the tables that a statement may change."""
    bare = sql.partition("*/")[2] or sql
    if not any(verb in bare for verb in ("INSERT", "UPDATE", "DELETE")):
        return []
    tables = [
        f"mcp_file_chunk{rest}" for rest in ("s", "_bm25", "_embeddings", "_blocks", "_words", "_states", "_totals")
    ]
    found = [table for table in tables if table in bare]
    return [*found, "chunk_terms"] if " chunk_words" in bare else found


def is_noticed(observe: Observe, dialect: str, mutant: Mutant) -> bool:
    sql = DIALECTS[dialect][mutant.name]
    return any(observe(sql, case) != observe(mutant.sql, case) for case in cases(sql, dialect))


@pytest.mark.req("SE-19.b", "ST-36")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_guard_of_every_statement_would_be_missed(dialect: str, request: pytest.FixtureRequest) -> None:
    opened = sqlite_world() if dialect == "sqlite" else postgres_world(request.getfixturevalue("postgres_server_url"))
    with opened as observe:
        tried, unnoticed = 0, []
        for name, sql in DIALECTS[dialect].items():
            guarded = list(mutants(name, sql, dialect))
            same = Mutant(name, "nothing", regenerated(sql, dialect))
            assert not guarded or not is_noticed(observe, dialect, same), f"{name} changes by being parsed"
            assert not guarded or not all(isinstance(observe(sql, case), str) for case in cases(sql, dialect)), (
                f"{name} never runs"
            )
            for mutant in guarded:
                tried += 1
                if not is_noticed(observe, dialect, mutant):
                    unnoticed.append((mutant.name, mutant.lacks))
        assert not unnoticed, unnoticed
        assert tried > 50
