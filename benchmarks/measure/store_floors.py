"""The floor of the project store: the very statements of a verb, in its transactions, through the bare driver.

Nothing here checks a name, takes a lock file, makes an object of a row or asks for a connection: what the store does
above this is its own cost. The settings of the connections, and with them the durability, are the store's.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg

from holdfast.adapters.postgres.store.store import STATEMENTS as ON_POSTGRES
from holdfast.adapters.postgres.store.store import lock_key
from holdfast.adapters.sqlite.store.files import STATEMENTS as ON_SQLITE
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.store.paths import next_group_start

PROJECT = "p"
VERSIONS_KEPT = 20
LIST_LIMIT = 257
_ALL = 2**31 - 16


class Floor(Protocol):
    """The four verbs as bare SQL, for a tenant whose files the store has made."""

    def write(self, path: str, content: bytes) -> object:
        """Replace a file that exists."""

    def read(self, path: str) -> object:
        """Fetch a whole file."""

    def stat(self, path: str) -> object:
        """Look at a file."""

    def list(self, directory: str) -> object:
        """Fetch the entries of a directory."""


@contextmanager
def sqlite_floor(folder: Path, tenant: str) -> Iterator[Floor]:
    """Open the file of a tenant as the store does."""
    path = folder / f"{file_name(tenant)}.db"
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=64)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.create_function("beyond", 2, next_group_start, deterministic=True)
    try:
        yield _SqliteFloor(connection, tenant)
    finally:
        connection.close()


@contextmanager
def postgres_floor(url: str, tenant: str) -> Iterator[Floor]:
    """Connect as the store's role, once to write and once to read."""
    with psycopg.connect(url, autocommit=True) as writer, psycopg.connect(url, autocommit=True) as reader:
        for connection in (writer, reader):
            connection.execute("SELECT set_config('role', 'holdfast_app', false), set_config('timezone', 'UTC', false)")
            connection.execute("SELECT set_config('plan_cache_mode', 'force_generic_plan', false)")
            connection.execute("SELECT set_config('enable_seqscan', 'off', false)")
        reader.execute("SELECT set_config('default_transaction_isolation', 'repeatable read', false)")
        reader.execute("SELECT set_config('default_transaction_read_only', 'on', false)")
        yield _PostgresFloor(writer, reader, tenant)


def _scope(tenant: str) -> dict[str, Any]:
    return {"apikey_hash": tenant, "project": PROJECT}


def _change(scope: dict[str, Any], path: str, content: bytes, at: object, state: Any, file_id: int) -> dict[str, Any]:
    """Return every parameter of a replacement; a driver ignores those that a statement does not name."""
    version, file_count, total_bytes = state[:3]
    return {
        **scope,
        "at": at,
        "version": version + 1,
        "id": file_id,
        "path": path,
        "content": content,
        "size": len(content),
        "kept": VERSIONS_KEPT,
        "jobs": json.dumps([[path, "UPSERT"]]),
        "file_count": file_count,
        "total_bytes": total_bytes,
    }


_CHANGES = ("keep_version", "update_file", "prune_versions", "enqueue_jobs", "save_project")


class _SqliteFloor:
    def __init__(self, connection: sqlite3.Connection, tenant: str) -> None:
        self._connection = connection
        self._scope = _scope(tenant)

    def write(self, path: str, content: bytes) -> object:
        run, scope = self._connection.execute, self._scope
        run("BEGIN")
        (state,) = run(ON_SQLITE["project_state"], scope).fetchall()
        (file,) = run(ON_SQLITE["find_file"], {**scope, "path": path, "with_content": False}).fetchall()
        above = json.dumps([path.rpartition("/")[0]])
        run(ON_SQLITE["files_among"], {**scope, "paths": above}).fetchall()
        run("ROLLBACK")
        change = _change(scope, path, content, datetime.now(UTC).isoformat(), state, file[0])
        run("BEGIN IMMEDIATE")
        for name in _CHANGES:
            run(ON_SQLITE[name], change)
        return run("COMMIT")

    def read(self, path: str) -> object:
        parameters = {"path": path, "low": path + "/", "high": path + "0", "start": 0, "count": _ALL}
        return self._rows("read_window", parameters)

    def stat(self, path: str) -> object:
        return self._rows("stat_path", {"path": path, "low": path + "/", "high": path + "0"})

    def list(self, directory: str) -> object:
        parameters = {"low": directory + "/", "high": directory + "0", "limit": LIST_LIMIT}
        return self._rows("list_heads", {**parameters, "components": directory.count("/") + 1})

    def _rows(self, name: str, parameters: Mapping[str, Any]) -> object:
        self._connection.execute("BEGIN")
        rows = self._connection.execute(ON_SQLITE[name], {**self._scope, **parameters}).fetchall()
        self._connection.execute("ROLLBACK")
        return rows


class _PostgresFloor:
    def __init__(self, writer: "psycopg.Connection[Any]", reader: "psycopg.Connection[Any]", tenant: str) -> None:
        self._writer, self._reader = writer, reader
        self._scope = _scope(tenant)
        self._tenant = tenant

    def write(self, path: str, content: bytes) -> object:
        run, scope = self._writer.execute, self._scope
        with self._writer.pipeline(), self._writer.transaction():
            run(
                "SELECT set_config('lock_timeout', %(wait)s, true), set_config('holdfast.apikey_hash', %(tenant)s, true)",
                {"wait": "3000ms", "tenant": self._tenant},
            )
            run("SELECT pg_advisory_xact_lock(%(key)s)", {"key": lock_key(self._tenant, PROJECT)})
            parameters = {**scope, "path": path, "with_content": False, "low": path + "/", "high": path + "0"}
            state = run(ON_POSTGRES["project_state"], scope)
            file = run(ON_POSTGRES["find_file"], parameters)
            run(ON_POSTGRES["files_among"], {**scope, "paths": json.dumps([path.rpartition("/")[0]])})
            run(ON_POSTGRES["any_file_in"], parameters)
            row = file.fetchone()
            assert row is not None
            change = _change(scope, path, content, datetime.now(UTC), state.fetchone(), row[0])
            for name in _CHANGES:
                run(ON_POSTGRES[name], change)
        return None

    def read(self, path: str) -> object:
        parameters = {"path": path, "low": path + "/", "high": path + "0", "start": 0, "count": _ALL}
        return self._rows("read_window", parameters)

    def stat(self, path: str) -> object:
        return self._rows("stat_path", {"path": path, "low": path + "/", "high": path + "0"})

    def list(self, directory: str) -> object:
        parameters = {"low": directory + "/", "high": directory + "0", "limit": LIST_LIMIT}
        return self._rows("list_heads", {**parameters, "components": directory.count("/") + 1})

    def _rows(self, name: str, parameters: Mapping[str, Any]) -> object:
        with self._reader.pipeline():
            self._reader.execute(
                "SELECT set_config('holdfast.apikey_hash', %(tenant)s, true)", {"tenant": self._tenant}
            )
            return self._reader.execute(ON_POSTGRES[name], {**self._scope, **parameters}).fetchall()
