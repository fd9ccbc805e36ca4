"""The index jobs and the upkeep of every tenant, as the worker's role."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast.adapters.postgres.store.notify import CHANNEL, listen
from holdfast.adapters.postgres.store.store import busy_on_conflict, open_pool, run, set_tenant
from holdfast.adapters.queue_statements import (
    JobUpdate,
    StatementQueue,
    claim_fresh_first,
    claimed_job,
    purge_project,
)
from holdfast.store.model import ClaimedJob, Stage
from holdfast.store.tenant_share import TenantUsage


def read_usages(url: str) -> list[TenantUsage]:
    """Return what each tenant of a migrated database holds."""
    pool = open_pool(url, "holdfast_worker", 1)
    try:
        with busy_on_conflict("*"), pool.connection() as connection:
            return [TenantUsage(**row) for row in run(connection, "list_usages", {})]
    finally:
        pool.close()


class PostgresQueue(StatementQueue):
    """Sees jobs across tenants; everything else is done with the tenant set."""

    poll_seconds = 2.0

    def __init__(self, url: str, pool_size: int = 4) -> None:
        self._url = url
        self._pool = open_pool(url, "holdfast_worker", pool_size)

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back soon after any process added jobs."""
        return listen(self._url, callback)

    def claim(
        self, limit: int, lease_ms: int, now: datetime, stage: Stage = Stage.WORDS, for_backlog: int = 0
    ) -> list[ClaimedJob]:
        """Lease jobs that are due, or whose lease has ended; workers skip what another one is claiming."""
        claim = secrets.token_hex(8)
        until = now + timedelta(milliseconds=lease_ms)
        parameters: dict[str, Any] = {"until": until, "at": now, "claim": claim, "stage": stage}

        def claim_some(is_backlog: bool, max_jobs: int) -> list[ClaimedJob]:
            if not max_jobs:
                return []
            rows = self._rows("claim_jobs", is_backlog=is_backlog, limit=max_jobs, **parameters)
            return [claimed_job(row, claim) for row in rows]

        return claim_fresh_first(limit, for_backlog, claim_some)

    def is_fresh_due(self, stage: Stage, now: datetime) -> bool:
        """Return whether a job of a fresh change is due."""
        return any(row["due_at"] <= now for row in self._rows("next_due", stage=stage, is_backlog=False))

    def find_next_due(self, stage: Stage) -> datetime | None:
        """Return when the next job of a stage will be due."""
        return self.find_longest_due(stage)

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove what is older, each project in a transaction of its own; returns the rows removed."""
        before = {
            "deleted_before": deleted_before,
            "versions_before": versions_before,
            "others_before": others_before,
        }
        removed = 0
        with busy_on_conflict("*"), self._pool.connection() as connection:
            for row in run(connection, "purge_candidates", before).fetchall():
                tenant = row["apikey_hash"].rstrip()
                scope = {"apikey_hash": tenant, "project": row["project"], **before}
                with connection.transaction():
                    set_tenant(connection, tenant)
                    removed += purge_project(partial(run, connection), scope)
        return removed

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _update_jobs(self, updates: Sequence[JobUpdate]) -> int:
        """Run the updates in one transaction and one round trip."""
        cursors = []
        with (
            busy_on_conflict("*"),
            self._pool.connection() as connection,
            connection.pipeline(),
            connection.transaction(),
        ):
            for update in updates:
                set_tenant(connection, update.job.tenant)
                cursors.append(run(connection, update.statement, update.parameters))
        return sum(cursor.rowcount for cursor in cursors)

    def _rows(self, statement: str, tenant: str = "", **parameters: Any) -> list[dict[str, Any]]:
        with busy_on_conflict("*"), self._pool.connection() as connection, connection.transaction():
            set_tenant(connection, tenant)
            return run(connection, statement, parameters).fetchall()

    def _update(self, statement: str, tenant: str = "", **parameters: Any) -> int:
        with busy_on_conflict("*"), self._pool.connection() as connection, connection.transaction():
            set_tenant(connection, tenant)
            changed = run(connection, statement, parameters).rowcount
            connection.execute(f"NOTIFY {CHANNEL}")
            return changed
