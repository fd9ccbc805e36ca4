"""The call log on SQLite: in state.db for the user of this machine, in its own store file for each tenant."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from typing import Any

from holdfast.adapters.call_rows import call_row, filter_parameters, read_call
from holdfast.adapters.sqlite.connection import enable_wal, transaction, translate_sqlite_errors
from holdfast.adapters.sqlite.store.files import TenantFiles, file_name, stored_values
from holdfast.adapters.statements import named_statements
from holdfast.clock import format_utc
from holdfast.errors import HoldfastError
from holdfast.observe.model import CallFilter, CallRecord, LoggedCall
from holdfast.observe.ports import CallsLost

STATEMENTS = named_statements(__package__, "calls.sql")

_BUSY_MS = 10_000
_WAIT_SECONDS = 10.0
_EXPIRED_AT_ONCE = 5_000
_STATE_DATABASE = "the state database (state.db)"


class LocalCalls:
    """Implements `holdfast.observe.ports.CallTable` in state.db, which the journal has made and migrated.

    A connection of its own, whose commits wait for no disk: the newest rows may be lost when the power fails.
    """

    def __init__(self, state_dir: str) -> None:
        path = os.path.join(state_dir, "state.db")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        with translate_sqlite_errors(_STATE_DATABASE):
            for pragma in (f"busy_timeout = {_BUSY_MS:d}", "synchronous = NORMAL"):
                self._connection.execute(f"PRAGMA {pragma}")
            enable_wal(self._connection)

    def save(self, records: Sequence[CallRecord]) -> None:
        """Add records."""
        rows = [call_row(record, format_utc(record.started_at)) for record in records]
        with self._transaction():
            self._connection.executemany(STATEMENTS["save_call"], rows)

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest calls that match."""
        with self._lock, translate_sqlite_errors(_STATE_DATABASE):
            return _find(self._connection, tenant, call_filter, limit, offset)

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many calls match."""
        with self._lock, translate_sqlite_errors(_STATE_DATABASE):
            return _count(self._connection, tenant, call_filter)

    def trim(self, tenants: Sequence[str], max_rows: int) -> int:
        """Remove the oldest calls beyond the number; return how many."""
        with self._transaction():
            return sum(_trim(self._connection, tenant, max_rows) for tenant in tenants)

    def expire(self, before: datetime) -> int:
        """Remove the calls that began before then; return how many."""
        removed = 0
        while True:
            with self._transaction():
                count = _expire(self._connection, before)
            removed += count
            if count < _EXPIRED_AT_ONCE:
                return removed

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, translate_sqlite_errors(_STATE_DATABASE), transaction(self._connection):
            yield


class TenantCalls:
    """Implements `holdfast.observe.ports.CallTable` in the files of the project store.

    A tenant gets a file by its first call only where `adds_tenants`; where any key is a tenant, only who stores files has one.
    """

    def __init__(self, files: TenantFiles, *, adds_tenants: bool) -> None:
        self._files = files
        self._adds_tenants = adds_tenants

    def save(self, records: Sequence[CallRecord]) -> None:
        """Add records, each to the file of its tenant."""
        known = set() if self._adds_tenants else set(self._files.names())
        lost_count, faults = 0, _FirstFault()
        for tenant, own in groupby(sorted(records, key=lambda record: record.tenant), lambda record: record.tenant):
            if not self._adds_tenants and file_name(tenant) not in known:
                continue
            rows = [call_row(record, format_utc(record.started_at)) for record in own]
            lost_count += len(rows)
            with faults, self._write(file_name(tenant)) as connection:
                connection.executemany(STATEMENTS["save_call"], rows)
                lost_count -= len(rows)
        if faults.first is not None:
            raise CallsLost(lost_count) from faults.first

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest calls of a tenant that match."""
        with self._files.snapshot(tenant) as connection:
            return _find(connection, tenant, call_filter, limit, offset)

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many calls of a tenant match."""
        with self._files.snapshot(tenant) as connection:
            return _count(connection, tenant, call_filter)

    def trim(self, tenants: Sequence[str], max_rows: int) -> int:
        """Remove the oldest calls of these tenants beyond the number; return how many."""
        removed, known, faults = 0, set(self._files.names()), _FirstFault()
        for tenant in tenants:
            if file_name(tenant) in known:
                with faults, self._write(file_name(tenant)) as connection:
                    removed += _trim(connection, tenant, max_rows)
        faults.raise_it()
        return removed

    def expire(self, before: datetime) -> int:
        """Remove the calls of every tenant that began before then; return how many."""
        removed, faults = 0, _FirstFault()
        for name in self._files.names():
            count = _EXPIRED_AT_ONCE
            while count == _EXPIRED_AT_ONCE:
                count = 0
                with faults, self._write(name) as connection:
                    count = _expire(connection, before)
                removed += count
        faults.raise_it()
        return removed

    def close(self) -> None:
        """Close nothing: the files belong to the store."""

    @contextmanager
    def _write(self, name: str) -> Iterator[sqlite3.Connection]:
        with self._files.write_transaction(name, time.monotonic() + _WAIT_SECONDS, durable=False) as connection:
            yield connection


class _FirstFault:
    """Keeps the first fault of several tenants' files, so that the work goes on with the next file."""

    def __init__(self) -> None:
        self.first: BaseException | None = None

    def __enter__(self) -> None:
        """Begin with one file."""

    def __exit__(self, _kind: object, fault: BaseException | None, _trace: object) -> bool:
        """Keep the fault of a file, and go on."""
        if not isinstance(fault, HoldfastError | sqlite3.Error | OSError):
            return False
        self.first = self.first or fault
        return True

    def raise_it(self) -> None:
        """Raise what was kept."""
        if self.first is not None:
            raise self.first


def _find(
    connection: sqlite3.Connection, tenant: str, call_filter: CallFilter, limit: int, offset: int
) -> list[LoggedCall]:
    parameters: dict[str, Any] = stored_values(filter_parameters(tenant, call_filter))
    rows = connection.execute(STATEMENTS["find_calls"], {**parameters, "limit": limit, "offset": offset})
    return [read_call(row, datetime.fromisoformat(row["started_at"])) for row in rows]


def _count(connection: sqlite3.Connection, tenant: str, call_filter: CallFilter) -> int:
    parameters: dict[str, Any] = stored_values(filter_parameters(tenant, call_filter))
    return int(connection.execute(STATEMENTS["count_calls"], parameters).fetchone()["total"])


def _trim(connection: sqlite3.Connection, tenant: str, max_rows: int) -> int:
    parameters = {"apikey_hash": tenant, "max_rows": max_rows}
    return connection.execute(STATEMENTS["trim_calls"], parameters).rowcount


def _expire(connection: sqlite3.Connection, before: datetime) -> int:
    parameters = stored_values({"before": before, "limit": _EXPIRED_AT_ONCE})
    return connection.execute(STATEMENTS["expire_calls"], parameters).rowcount
