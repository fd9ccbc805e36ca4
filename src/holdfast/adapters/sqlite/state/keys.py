"""The API keys in state.db, on a connection of their own: a lookup never waits for a change being journalled.

A command opens the same file beside a running server. That is what a write-ahead log permits: each change is one
short transaction on a table that nobody else writes, and the server's next lookup sees it.
"""

import json
import sqlite3
import threading
import time
from typing import Any

from holdfast.adapters.sqlite.connection import create_private_file, enable_wal
from holdfast.adapters.sqlite.state.database import state_errors
from holdfast.adapters.sqlite.state.lost import refuse_lost_state
from holdfast.adapters.sqlite.state.migrations import API_KEYS_VERSION, migrate, refuse_newer_state
from holdfast.adapters.statements import named_statements
from holdfast.auth.keys import Key
from holdfast.auth.rates import Rate
from holdfast.errors import ResourceBusy

_BUSY_MS = 10_000
_MIGRATION_SECONDS = 3.0
_POLL_SECONDS = 0.05


class SqliteKeys:
    """Implements `holdfast.auth.keys.KeyTable`. In a server it is opened after the journal, which makes the file.

    Only a process `is_alone`, which holds the server's lock, migrates; any other one waits for the server to have done it.
    ResourceBusy when that is one of an earlier release.
    """

    def __init__(self, path: str, *, is_alone: bool = True) -> None:
        refuse_lost_state(path)
        create_private_file(path)
        self._statements = named_statements(__package__, "keys.sql")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        with state_errors():
            for pragma in (f"busy_timeout = {_BUSY_MS:d}", "synchronous = FULL"):
                self._connection.execute(f"PRAGMA {pragma}")
            enable_wal(self._connection)
            try:
                if is_alone:
                    migrate(self._connection)
                else:
                    _wait_for_migration(self._connection)
            except BaseException:
                self._connection.close()
                raise

    def add(self, key: Key) -> None:
        """Store a new key."""
        row: dict[str, Any] = {
            "id": key.id,
            "apikey_hash": key.apikey_hash,
            "label": key.label,
            "created_at": key.created_at,
        }
        row |= {"tenant": key.tenant or None}
        self._change("insert_key", {**row, "per_minute": json.dumps(dict(key.per_minute))})

    def find(self, apikey_hash: str) -> Key | None:
        """Return the key of a hash, revoked or not."""
        rows = self._fetch("find_key", {"apikey_hash": apikey_hash})
        return _read_key(rows[0]) if rows else None

    def all(self) -> list[Key]:
        """Return every key, the oldest first."""
        return [_read_key(row) for row in self._fetch("list_keys", {})]

    def revoke(self, key_id: str, at: str) -> None:
        """Mark a key as revoked; one that was revoked before keeps its time."""
        self._change("revoke_key", {"id": key_id, "revoked_at": at})

    def erase(self, tenant: str) -> int:
        """Remove every key of a tenant, overwrite what held them, and give the log back when nobody is reading it."""
        with self._lock, state_errors():
            self._connection.execute("PRAGMA secure_delete = ON")
            count = self._connection.execute(self._statements["erase_keys"], {"tenant": tenant}).rowcount
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return count

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _fetch(self, name: str, parameters: dict[str, Any]) -> list[sqlite3.Row]:
        with self._lock, state_errors():
            return self._connection.execute(self._statements[name], parameters).fetchall()

    def _change(self, name: str, parameters: dict[str, Any]) -> None:
        """Run one statement, which is one transaction, on the disk when it returns."""
        with self._lock, state_errors():
            self._connection.execute(self._statements[name], parameters)


def _wait_for_migration(connection: sqlite3.Connection) -> None:
    """Wait until the server that is running or starting has made the table of keys as it is here."""
    refuse_newer_state(connection)
    deadline = time.monotonic() + _MIGRATION_SECONDS
    while connection.execute("PRAGMA user_version").fetchone()[0] < API_KEYS_VERSION:
        if time.monotonic() > deadline:
            raise ResourceBusy("The running server is of an earlier release: restart it, then repeat the command.")
        time.sleep(_POLL_SECONDS)


def _read_key(row: sqlite3.Row) -> Key:
    per_minute = {Rate(name): int(limit) for name, limit in json.loads(row["per_minute"]).items()}
    return Key(
        row["id"],
        row["apikey_hash"],
        row["label"],
        row["created_at"],
        row["revoked_at"],
        per_minute,
        row["tenant"] or "",
    )
