"""The call log of tenants on PostgreSQL, behind the same row-level security as their files."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from holdfast.adapters.call_rows import call_row, filter_parameters, read_call
from holdfast.adapters.postgres.store.store import busy_on_conflict, open_pool, set_tenant
from holdfast.adapters.statements import named_statements
from holdfast.observe.model import CallFilter, CallRecord, LoggedCall

STATEMENTS = named_statements(__package__, "calls.sql")

_EXPIRED_AT_ONCE = 5_000


class PostgresCalls:
    """Implements `holdfast.observe.ports.CallTable`. A commit waits for no disk: the newest rows may be lost.

    Where any key is a tenant, only tenants that store files have a log; where keys are listed, all of them.
    """

    def __init__(self, url: str, *, adds_tenants: bool) -> None:
        self._adds_tenants = adds_tenants
        self._pool = open_pool(url, "holdfast_app", 2)
        self._upkeep = open_pool(url, "holdfast_worker", 1)

    def save(self, records: Sequence[CallRecord]) -> None:
        """Add records, those of each tenant in one transaction."""
        with busy_on_conflict("*"), self._pool.connection() as connection:
            for tenant, own in groupby(sorted(records, key=lambda record: record.tenant), lambda record: record.tenant):
                with connection.transaction(), connection.cursor() as cursor:
                    set_tenant(connection, tenant)
                    connection.execute("SELECT set_config('synchronous_commit', 'off', true)")
                    row = cursor.execute(STATEMENTS["has_files"], {"apikey_hash": tenant}).fetchone()
                    if self._adds_tenants or (row and row["has_files"]):
                        cursor.executemany(
                            STATEMENTS["save_call"], [call_row(record, record.started_at) for record in own]
                        )

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest calls of a tenant that match."""
        with busy_on_conflict("*"), self._pool.connection() as connection, connection.transaction():
            set_tenant(connection, tenant)
            parameters = {**filter_parameters(tenant, call_filter), "limit": limit, "offset": offset}
            rows = connection.execute(STATEMENTS["find_calls"], parameters).fetchall()
        return [read_call(row, row["started_at"]) for row in rows]

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many calls of a tenant match."""
        with busy_on_conflict("*"), self._pool.connection() as connection, connection.transaction():
            set_tenant(connection, tenant)
            row = connection.execute(STATEMENTS["count_calls"], filter_parameters(tenant, call_filter)).fetchone()
        return int(row["total"]) if row else 0

    def trim(self, tenants: Sequence[str], max_rows: int) -> int:
        """Remove the oldest calls of these tenants beyond the number; return how many."""
        removed = 0
        with busy_on_conflict("*"), self._pool.connection() as connection:
            for tenant in tenants:
                with connection.transaction():
                    set_tenant(connection, tenant)
                    parameters = {"apikey_hash": tenant, "max_rows": max_rows}
                    removed += connection.execute(STATEMENTS["trim_calls"], parameters).rowcount
        return removed

    def expire(self, before: datetime) -> int:
        """Remove the calls of every tenant that began before then; return how many."""
        removed, count = 0, _EXPIRED_AT_ONCE
        with busy_on_conflict("*"), self._upkeep.connection() as connection:
            while count == _EXPIRED_AT_ONCE:
                parameters = {"before": before, "limit": _EXPIRED_AT_ONCE}
                count = connection.execute(STATEMENTS["expire_calls"], parameters).rowcount
                removed += count
        return removed

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        self._upkeep.close()
