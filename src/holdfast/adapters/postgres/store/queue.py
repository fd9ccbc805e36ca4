"""The jobs and the upkeep of every tenant, as the worker's role."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.adapters.postgres.store.notify import CHANNEL, listen
from holdfast.adapters.postgres.store.rows import Connection, run
from holdfast.adapters.postgres.store.store import answering, open_pool
from holdfast.adapters.queue_rows import claimed_job, failed_job, fresh_first, summed
from holdfast.store.model import Backlog, ClaimedJob, FailedJob, OpenJob, Stage

_PURGED_AT_ONCE = 5_000


class PostgresQueue:
    """Sees jobs across tenants; everything else is done with the tenant set."""

    poll_seconds = 2.0

    def __init__(self, url: str, pool_size: int = 4) -> None:
        self._url = url
        self._pool = open_pool(url, "holdfast_worker", pool_size)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` soon after any process added jobs."""
        return listen(self._url, ring)

    def claim(
        self, limit: int, lease_ms: int, now: datetime, stage: Stage = Stage.WORDS, for_backlog: int = 0
    ) -> list[ClaimedJob]:
        """Take jobs that are due, or whose lease has ended; workers pass over what another one is taking."""
        claim = secrets.token_hex(8)
        until = now + timedelta(milliseconds=lease_ms)
        asked: dict[str, Any] = {"until": until, "at": now, "claim": claim, "stage": stage}

        def take(is_backlog: bool, most: int) -> list[ClaimedJob]:
            rows = self._rows("claim_jobs", is_backlog=is_backlog, limit=most, **asked) if most else []
            return [claimed_job(row, claim, row["file_updated_at"]) for row in rows]

        return fresh_first(limit, for_backlog, take)

    def is_fresh_due(self, stage: Stage, now: datetime) -> bool:
        """Return whether a job of a fresh change is due."""
        return any(row["due_at"] <= now for row in self._rows("next_due", stage=stage, is_backlog=False))

    def next_due(self, stage: Stage) -> datetime | None:
        """Return when the next job of a stage will be due."""
        rows = [row for kind in (False, True) for row in self._rows("next_due", stage=stage, is_backlog=kind)]
        return min((row["due_at"] for row in rows), default=None)

    def renew(self, job: ClaimedJob, lease_ms: int, now: datetime) -> bool:
        """Hold a job for so long from now."""
        return self._ended([(job, "renew_job", {"until": now + timedelta(milliseconds=lease_ms), "at": now})]) == 1

    def finish(self, job: ClaimedJob, now: datetime, further: Stage | None = None) -> bool:
        """Mark a job done, or due for a further stage; False when the claim was lost."""
        return self.finish_all([(job, further)], now) == 1

    def finish_all(self, jobs: Sequence[tuple[ClaimedJob, Stage | None]], now: datetime) -> int:
        """Finish several jobs in one transaction."""
        return self._ended(
            (job, "finish_job", {"status": "pending" if further else "done", "stage": further or job.stage, "at": now})
            for job, further in jobs
        )

    def retry(self, job: ClaimedJob, error: str, due_at: datetime, now: datetime) -> bool:
        """Give a job back, to be due later."""
        return self._returned(job, "pending", 1, error, due_at, now)

    def release(self, job: ClaimedJob, now: datetime) -> bool:
        """Give a job back untouched."""
        return self._returned(job, "pending", 0, None, now, now)

    def await_key(self, job: ClaimedJob, now: datetime) -> bool:
        """Let a job wait for its tenant's key."""
        return self._returned(job, "waiting_credential", 0, None, now, now)

    def fail(self, job: ClaimedJob, error: str, now: datetime) -> bool:
        """Give a job up and keep the reason."""
        return self._returned(job, "failed", 1, error, now, now)

    def open_jobs(self, tenant: str, limit: int) -> list[OpenJob]:
        """Return a tenant's jobs that have not ended."""
        return [OpenJob(**row) for row in self._rows("open_jobs", tenant, apikey_hash=tenant, limit=limit)]

    def rearm(self, tenant: str, project: str, job_id: int, now: datetime) -> bool:
        """Make a job that waits for its tenant's key due."""
        asked = {"apikey_hash": tenant, "project": project, "id": job_id, "at": now}
        return self._changed("rearm_job", asked, tenant) == 1

    def depth(self) -> dict[str, int]:
        """Return the number of jobs that are not done, by status."""
        counts: dict[str, int] = {}
        for line in self.backlog():
            counts[line.status] = counts.get(line.status, 0) + line.jobs
        return counts

    def backlog(self) -> list[Backlog]:
        """Return the jobs that are not done, counted by stage and status."""
        return summed(self._rows("count_jobs"))

    def failed(self, limit: int) -> list[FailedJob]:
        """Return jobs that were given up, the latest first."""
        return list(map(failed_job, self._rows("failed_jobs", limit=limit)))

    def retry_failed(self, now: datetime) -> int:
        """Make every job that was given up due again, unless a later one covers its path."""
        return self._changed("retry_failed", {"at": now})

    def projects(self) -> list[tuple[str, str]]:
        """Return tenant and project of everything that could be indexed."""
        return [(row["apikey_hash"].rstrip(), row["project"]) for row in self._rows("list_tenants")]

    def requeue(self, tenant: str, project: str, stage: Stage, now: datetime) -> int:
        """Add a job for each live file of a project that has none open."""
        asked = {"apikey_hash": tenant, "project": project, "stage": stage, "at": now}
        return self._changed("requeue_files", asked, tenant)

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

    def purge_done(self, before: datetime) -> int:
        """Remove some thousands of the jobs that were done before then."""
        return self._changed("purge_done", {"before": before, "limit": _PURGED_AT_ONCE})

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _rows(self, statement: str, tenant: str = "", **parameters: Any) -> list[dict[str, Any]]:
        with answering("*"), self._pool.connection() as connection, connection.transaction():
            act_for(connection, tenant)
            return run(connection, statement, parameters).fetchall()

    def _changed(self, statement: str, parameters: Mapping[str, Any], tenant: str = "") -> int:
        """Run a statement for a tenant, or across all of them, and tell the workers."""
        with answering("*"), self._pool.connection() as connection, connection.transaction():
            act_for(connection, tenant)
            changed = run(connection, statement, parameters).rowcount
            connection.execute(f"NOTIFY {CHANNEL}")
            return changed

    def _returned(
        self, job: ClaimedJob, status: str, attempts: int, error: str | None, due_at: datetime, now: datetime
    ) -> bool:
        values = {"status": status, "attempts": attempts, "error": error, "due_at": due_at, "at": now}
        return self._ended([(job, "return_job", values)]) == 1

    def _ended(self, endings: Iterable[tuple[ClaimedJob, str, dict[str, Any]]]) -> int:
        """Run a statement for each job in one transaction and one round trip; returns how many claims still held."""
        cursors = []
        with answering("*"), self._pool.connection() as connection, connection.pipeline(), connection.transaction():
            # In the order of paths, as changes of files add jobs, so that no two of them wait for each other.
            for job, statement, parameters in sorted(endings, key=lambda one: _place(one[0])):
                act_for(connection, job.tenant)
                scope = {"apikey_hash": job.tenant, "project": job.project, "id": job.id, "claim": job.claim}
                cursors.append(run(connection, statement, {**scope, "version": job.version, **parameters}))
        return sum(cursor.rowcount for cursor in cursors)


def _place(job: ClaimedJob) -> tuple[str, str, str]:
    return (job.tenant, job.project, job.path)


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
