"""The jobs and the upkeep of every tenant, as the worker's role."""

import secrets
from datetime import datetime, timedelta
from typing import Any

from holdfast.adapters.postgres.store import answering, open_pool
from holdfast.adapters.postgres.store_rows import Connection, run
from holdfast.store.model import ClaimedJob, Operation


class PostgresQueue:
    """Sees jobs across tenants; everything else is done with the tenant set."""

    def __init__(self, url: str, pool_size: int = 4) -> None:
        self._pool = open_pool(url, "holdfast_worker", pool_size)

    def claim(self, limit: int, lease_ms: int, now: datetime) -> list[ClaimedJob]:
        """Take jobs that are due, or whose lease has ended; workers pass over what another one is taking."""
        claim = secrets.token_hex(8)
        asked = {"limit": limit, "until": now + timedelta(milliseconds=lease_ms), "at": now, "claim": claim}
        with answering("*"), self._pool.connection() as connection:
            rows = run(connection, "claim_jobs", asked).fetchall()
        return [
            ClaimedJob(
                row["apikey_hash"].rstrip(),
                row["project"],
                row["file_path"],
                Operation(row["operation"]),
                row["version"],
                row["retry_count"],
                row["id"],
                claim,
            )
            for row in sorted(rows, key=lambda row: row["id"])
        ]

    def finish(self, job: ClaimedJob, now: datetime) -> bool:
        """Mark a job done; False when the claim was lost."""
        return self._ended(job, "finish_job", at=now)

    def retry(self, job: ClaimedJob, error: str, due_at: datetime, now: datetime) -> bool:
        """Give a job back, to be due later."""
        return self._ended(job, "return_job", status="pending", due_at=due_at, error=error, at=now)

    def fail(self, job: ClaimedJob, error: str, now: datetime) -> bool:
        """Give a job up and keep the reason."""
        return self._ended(job, "return_job", status="failed", due_at=now, error=error, at=now)

    def depth(self) -> dict[str, int]:
        """Return the number of jobs by status."""
        counts: dict[str, int] = {}
        with answering("*"), self._pool.connection() as connection:
            for row in run(connection, "count_jobs", {}):
                counts[row["status"]] = counts.get(row["status"], 0) + row["jobs"]
        return counts

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove what is older, one project after another; returns the rows removed."""
        before = {
            "deleted_before": deleted_before,
            "versions_before": versions_before,
            "others_before": others_before,
        }
        with answering("*"), self._pool.connection() as connection:
            found = run(connection, "purge_candidates", before).fetchall()
            return sum(_purged(connection, row["apikey_hash"].rstrip(), row["project"], before) for row in found)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _ended(self, job: ClaimedJob, statement: str, **parameters: Any) -> bool:
        scope = {"apikey_hash": job.tenant, "project": job.project}
        named = {**scope, "id": job.id, "claim": job.claim, "version": job.version, **parameters}
        with answering(job.project), self._pool.connection() as connection, connection.transaction():
            act_for(connection, job.tenant)
            return run(connection, statement, named).rowcount == 1


def act_for(connection: Connection, tenant: str) -> None:
    """Set the tenant until the transaction ends."""
    connection.execute("SELECT set_config('holdfast.apikey_hash', %(tenant)s, true)", {"tenant": tenant})


def _purged(connection: Connection, tenant: str, project: str, before: dict[str, datetime]) -> int:
    scope = {"apikey_hash": tenant, "project": project, **before}
    removed = 0
    with connection.transaction():
        act_for(connection, tenant)
        for statement in ("purge_files", "purge_versions", "purge_applied", "purge_jobs"):
            removed += run(connection, statement, scope).rowcount
    return removed
