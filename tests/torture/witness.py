"""A second account of every mutation, written by triggers of the database inside the mutation's own transaction.

The triggers belong to the harness; the store does not know of them. They note who changed which file from what to what,
which index jobs were added, what the project's counters became, and which caller's key was remembered.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg

_POSTGRES = """
CREATE TABLE torture_log (
    seq bigint GENERATED ALWAYS AS IDENTITY, xid bigint NOT NULL DEFAULT txid_current(), tenant text NOT NULL,
    project text NOT NULL COLLATE "C", kind text NOT NULL, version bigint, a text, b text, c text
);
CREATE FUNCTION torture_note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_TABLE_NAME = 'mcp_files' THEN
        INSERT INTO torture_log (tenant, project, kind, version, a, b, c) VALUES (
            NEW.apikey_hash, NEW.project, 'file', NEW.version,
            CASE WHEN TG_OP = 'UPDATE' THEN CASE WHEN NOT OLD.deleted THEN OLD.path END END,
            CASE WHEN NOT NEW.deleted THEN NEW.path END, convert_from(NEW.content, 'utf8'));
    ELSIF TG_TABLE_NAME = 'mcp_file_index_jobs' THEN
        INSERT INTO torture_log (tenant, project, kind, version, a, b)
        VALUES (NEW.apikey_hash, NEW.project, 'job', NEW.version, NEW.file_path, NEW.operation);
    ELSIF TG_TABLE_NAME = 'mcp_projects' THEN
        INSERT INTO torture_log (tenant, project, kind, version, a, b)
        VALUES (NEW.apikey_hash, NEW.project, 'project', NEW.version, NEW.file_count, NEW.total_bytes);
    ELSE
        INSERT INTO torture_log (tenant, project, kind, a) VALUES (NEW.apikey_hash, NEW.project, 'key', NEW.key);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER torture AFTER INSERT OR UPDATE ON mcp_files FOR EACH ROW EXECUTE FUNCTION torture_note();
CREATE TRIGGER torture AFTER INSERT OR UPDATE OF version ON mcp_file_index_jobs FOR EACH ROW EXECUTE FUNCTION torture_note();
CREATE TRIGGER torture AFTER INSERT OR UPDATE ON mcp_projects FOR EACH ROW EXECUTE FUNCTION torture_note();
CREATE TRIGGER torture AFTER INSERT ON mcp_applied FOR EACH ROW EXECUTE FUNCTION torture_note();
"""

_SQLITE_TABLE = """
CREATE TABLE torture_log (
    seq INTEGER PRIMARY KEY, tenant TEXT, project TEXT, kind TEXT, version INTEGER, a TEXT, b TEXT, c TEXT
);
"""
_SQLITE_TRIGGER = """
CREATE TRIGGER torture_{name} AFTER {event} ON {table} BEGIN
    INSERT INTO torture_log (tenant, project, kind, version, a, b, c)
    VALUES (new.apikey_hash, new.project, '{kind}', {values});
END;
"""
_SQLITE_EVENTS = [
    ("made", "INSERT", "mcp_files", "file", "new.version, NULL, new.path, CAST(new.content AS TEXT)"),
    (
        "changed", "UPDATE", "mcp_files", "file",
        "new.version, CASE WHEN NOT old.deleted THEN old.path END, CASE WHEN NOT new.deleted THEN new.path END, "
        "CAST(new.content AS TEXT)",
    ),
    ("job", "INSERT", "mcp_file_index_jobs", "job", "new.version, new.file_path, new.operation, NULL"),
    ("rejob", "UPDATE OF version", "mcp_file_index_jobs", "job", "new.version, new.file_path, new.operation, NULL"),
    ("project", "INSERT", "mcp_projects", "project", "new.version, new.file_count, new.total_bytes, NULL"),
    ("reproject", "UPDATE", "mcp_projects", "project", "new.version, new.file_count, new.total_bytes, NULL"),
    ("key", "INSERT", "mcp_applied", "key", "NULL, new.key, NULL, NULL"),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """One row changed by a transaction."""

    kind: str
    version: int | None
    a: str | None
    b: str | None
    c: str | None


_USAGES = """
SELECT coalesce(counted.tenant, real.tenant), counted.live, counted.history, real.live, real.history
FROM (
    SELECT apikey_hash AS tenant, sum(live_bytes) AS live, sum(history_bytes) AS history
    FROM mcp_tenant_bytes GROUP BY apikey_hash
) AS counted
FULL JOIN (
    SELECT tenant, sum(live) AS live, sum(history) AS history FROM (
        SELECT apikey_hash AS tenant, CASE WHEN deleted THEN 0 ELSE size END AS live,
               CASE WHEN deleted THEN size ELSE 0 END AS history
        FROM mcp_files
        UNION ALL
        SELECT apikey_hash, 0, size FROM mcp_file_versions
    ) AS kept GROUP BY tenant
) AS real ON real.tenant = counted.tenant
"""

Account = tuple[tuple[str, str], list[list[Note]]]
"""A tenant and a project, and the notes of its transactions in the order of their commits."""


def watch_postgres(url: str) -> None:
    """Put the triggers into a database that has been migrated."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(_POSTGRES)


def watch_sqlite(store: Path) -> None:
    """Put the triggers into every tenant's file that there is."""
    triggers = [
        _SQLITE_TRIGGER.format(name=name, event=event, table=table, kind=kind, values=values)
        for name, event, table, kind, values in _SQLITE_EVENTS
    ]
    for path in store.glob("*.db"):
        with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as owner:
            owner.executescript("BEGIN IMMEDIATE;" + _SQLITE_TABLE + "".join(triggers) + "COMMIT;")


def postgres_accounts(url: str) -> Iterator[Account]:
    """Yield what the triggers wrote, project by project; transactions are told apart by their own numbers."""
    query = "SELECT tenant, project, xid, kind, version, a, b, c FROM torture_log ORDER BY tenant, project, seq"
    with psycopg.connect(url) as owner, owner.cursor(name="torture") as rows:
        rows.itersize = 20_000
        rows.execute(query)
        for place, notes in groupby(rows, key=lambda row: (row[0].rstrip(), row[1])):
            transactions: dict[int, list[Note]] = {}
            for row in notes:
                transactions.setdefault(row[2], []).append(Note(*row[3:]))
            yield place, _ordered(transactions.values())


def sqlite_accounts(store: Path) -> Iterator[Account]:
    """Yield the same from every tenant's file; SQLite numbers no transactions, so the project's version does."""
    query = "SELECT tenant, project, kind, version, a, b, c FROM torture_log ORDER BY tenant, project, seq"
    for path in sorted(store.glob("*.db")):
        with closing(sqlite3.connect(path)) as owner:
            for place, notes in groupby(owner.execute(query), key=lambda row: (row[0], row[1])):
                transactions: dict[int, list[Note]] = {}
                last = 0
                for row in notes:
                    last = last if row[3] is None else row[3]
                    transactions.setdefault(last, []).append(Note(row[2], row[3], *map(_text, row[4:])))
                yield place, _ordered(transactions.values())


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant holds, as live files and as history: by its counters, and by adding up its rows."""

    tenant: str
    counted: tuple[int, int]
    actual: tuple[int, int]


def postgres_usages(url: str) -> Iterator[Usage]:
    """Yield the usage of every tenant."""
    with psycopg.connect(url) as owner:
        yield from map(_usage, owner.execute(_USAGES))


def sqlite_usages(store: Path) -> Iterator[Usage]:
    """Yield the usage of every tenant."""
    for path in sorted(store.glob("*.db")):
        with closing(sqlite3.connect(path)) as owner:
            yield from map(_usage, owner.execute(_USAGES))


def _usage(row: Sequence[Any]) -> Usage:
    tenant, *numbers = row
    live, history, actual_live, actual_history = (int(number or 0) for number in numbers)
    return Usage(str(tenant).rstrip(), (live, history), (actual_live, actual_history))


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value)


def _ordered(transactions: Iterable[list[Note]]) -> list[list[Note]]:
    return sorted(transactions, key=_version)


def _version(notes: list[Note]) -> int:
    return next((note.version for note in notes if note.kind == "project" and note.version is not None), -1)
