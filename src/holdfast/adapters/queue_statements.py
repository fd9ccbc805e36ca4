"""Reads and changes index jobs with the named statements that both databases define."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from holdfast.adapters.tenant_share import RETURN_SIZES, removed_bytes
from holdfast.store.model import Backlog, ClaimedJob, FailedJob, OpenJob, Operation, Stage

PURGE_STATEMENTS = ("purge_file_versions", "purge_files", "purge_versions", "purge_applied", "purge_jobs")
"""What a purge runs for each project that `purge_candidates` finds, in this order."""

_PURGED_AT_ONCE = 5_000


class JobUpdate(NamedTuple):
    """A statement to run for one claimed job."""

    job: ClaimedJob
    statement: str
    parameters: dict[str, Any]


class StatementQueue(ABC):
    """Implements what is the same on both databases of `holdfast.store.ports.IndexQueue` and `StoreUpkeep`."""

    def find_longest_due(self, stage: Stage) -> datetime | None:
        """Return when the job became due that comes first."""
        rows = [
            row for is_backlog in (False, True) for row in self._rows("next_due", stage=stage, is_backlog=is_backlog)
        ]
        return min((row["due_at"] for row in rows), default=None)

    def renew(self, job: ClaimedJob, lease_ms: int, now: datetime) -> bool:
        """Extend a job's lease from now."""
        until = now + timedelta(milliseconds=lease_ms)
        return self._update_jobs([_job_update(job, "renew_job", until=until, at=now)]) == 1

    def finish(self, job: ClaimedJob, now: datetime, further: Stage | None = None) -> bool:
        """Mark a job done, or due for a further stage; False when the claim was lost."""
        return self.finish_all([(job, further)], now) == 1

    def finish_all(self, jobs: Sequence[tuple[ClaimedJob, Stage | None]], now: datetime) -> int:
        """Finish several jobs, those of one tenant in one transaction; returns how many claims still held."""
        updates = [
            _job_update(job, "finish_job", status="pending" if further else "done", stage=further or job.stage, at=now)
            for job, further in jobs
        ]
        # In the order of paths, in which mutations add jobs too, so that no two of them deadlock.
        updates.sort(key=lambda update: (update.job.tenant, update.job.project, update.job.path))
        return self._update_jobs(updates)

    def retry(self, job: ClaimedJob, error: str, due_at: datetime, now: datetime) -> bool:
        """Give a job back, to be due later."""
        return self._return_job(job, now, status="pending", attempts=1, error=error, due_at=due_at)

    def release(self, job: ClaimedJob, now: datetime) -> bool:
        """Give a job back untouched."""
        return self._return_job(job, now, status="pending", attempts=0, error=None, due_at=now)

    def await_key(self, job: ClaimedJob, now: datetime) -> bool:
        """Let a job wait for its tenant's key."""
        return self._return_job(job, now, status="waiting_credential", attempts=0, error=None, due_at=now)

    def fail(self, job: ClaimedJob, error: str, now: datetime) -> bool:
        """Give a job up and keep the reason."""
        return self._return_job(job, now, status="failed", attempts=1, error=error, due_at=now)

    def list_open_jobs(self, tenant: str, limit: int) -> list[OpenJob]:
        """Return a tenant's jobs that have not ended."""
        rows = self._rows("open_jobs", tenant, apikey_hash=tenant, limit=limit)
        return [OpenJob(**{**row, "is_waiting": bool(row["is_waiting"])}) for row in rows]

    def rearm(self, tenant: str, project: str, job_id: int, now: datetime) -> bool:
        """Make a job that waits for its tenant's key due."""
        return self._update("rearm_job", tenant, apikey_hash=tenant, project=project, id=job_id, at=now) == 1

    def count_open_jobs(self) -> dict[str, int]:
        """Return the number of jobs that are not done, by status."""
        counts: dict[str, int] = {}
        for group in self.list_backlog():
            counts[group.status] = counts.get(group.status, 0) + group.jobs
        return counts

    def list_backlog(self) -> list[Backlog]:
        """Return the jobs that are not done, counted by stage and status over all tenants."""
        groups: dict[tuple[str, str], Backlog] = {}
        for row in self._rows("count_jobs"):
            key = (row["stage"], row["status"])
            before, jobs, oldest_at = groups.get(key), row["jobs"], row["oldest_at"]
            if before is not None:
                jobs, oldest_at = jobs + before.jobs, min(oldest_at, before.oldest_at)
            groups[key] = Backlog(Stage(row["stage"]), row["status"], jobs, oldest_at)
        return [groups[key] for key in sorted(groups)]

    def list_failed(self, limit: int) -> list[FailedJob]:
        """Return jobs that were given up, the latest first."""
        jobs = [
            FailedJob(
                tenant=row["apikey_hash"].rstrip(),
                project=row["project"],
                path=row["file_path"],
                stage=Stage(row["stage"]),
                attempts=row["retry_count"],
                error=row["last_error"] or "",
                failed_at=row["updated_at"],
            )
            for row in self._rows("failed_jobs", limit=limit)
        ]
        return sorted(jobs, key=lambda job: job.failed_at, reverse=True)[:limit]

    def retry_failed(self, now: datetime) -> int:
        """Make every job that was given up due again, unless a later one covers its path."""
        return self._update("retry_failed", at=now)

    def list_projects(self) -> list[tuple[str, str]]:
        """Return tenant and project of every project."""
        return [(row["apikey_hash"].rstrip(), row["project"]) for row in self._rows("list_tenants")]

    def requeue(self, tenant: str, project: str, stage: Stage, now: datetime) -> int:
        """Add a job for each live file of a project that has none open."""
        return self._update("requeue_files", tenant, apikey_hash=tenant, project=project, stage=stage, at=now)

    def purge_done(self, before: datetime) -> int:
        """Remove up to a few thousand jobs that were done before then."""
        return self._update("purge_done", before=before, limit=_PURGED_AT_ONCE)

    def _return_job(self, job: ClaimedJob, now: datetime, **parameters: Any) -> bool:
        return self._update_jobs([_job_update(job, "return_job", at=now, **parameters)]) == 1

    @abstractmethod
    def _update_jobs(self, updates: Sequence[JobUpdate]) -> int:
        """Run the updates in their order, which groups them by tenant; returns how many claims still held."""

    @abstractmethod
    def _rows(self, statement: str, tenant: str = "", **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement for one tenant, or across all of them; times are datetimes."""

    @abstractmethod
    def _update(self, statement: str, tenant: str = "", **parameters: Any) -> int:
        """Run a statement for one tenant, or across all of them, and wake the workers; returns the rows changed."""


def purge_project(run: Callable[[str, Mapping[str, Any]], Any], scope: Mapping[str, Any]) -> int:
    """Run the statements of a purge for one project and count what it freed; returns the rows removed.

    `run` runs a statement and returns its cursor; `scope` has the tenant, the project and the times of the purge.
    """
    removed = freed = 0
    for statement in PURGE_STATEMENTS:
        cursor = run(statement, scope)
        if statement in RETURN_SIZES:
            rows = cursor.fetchall()
            removed, freed = removed + len(rows), freed + removed_bytes(rows)
        else:
            removed += cursor.rowcount
    if freed:
        run("count_bytes", {**scope, "live_bytes": 0, "history_bytes": -freed})
    return removed


def _job_update(job: ClaimedJob, statement: str, **parameters: Any) -> JobUpdate:
    scope = {"apikey_hash": job.tenant, "project": job.project, "id": job.id, "claim": job.claim}
    return JobUpdate(job, statement, {**scope, "version": job.version, **parameters})


def claimed_job(row: Mapping[str, Any], claim: str) -> ClaimedJob:
    """Return the job of a row that was claimed."""
    return ClaimedJob(
        tenant=row["apikey_hash"].rstrip(),
        project=row["project"],
        path=row["file_path"],
        operation=Operation(row["operation"]),
        version=row["version"],
        retry_count=row["retry_count"],
        id=row["id"],
        claim=claim,
        stage=Stage(row["stage"]),
        written_at=row["file_updated_at"],
        is_backlog=bool(row["is_backlog"]),
        traceparent=row["traceparent"],
    )


def claim_fresh_first(limit: int, for_backlog: int, claim: Callable[[bool, int], list[ClaimedJob]]) -> list[ClaimedJob]:
    """Claim jobs of fresh changes first; `for_backlog` slots are the backlog's as long as it fills them.

    `claim(is_backlog, max_jobs)` claims jobs of one of the two.
    """
    fresh = claim(False, limit - for_backlog)
    jobs = fresh + claim(True, limit - len(fresh))
    if len(fresh) == limit - for_backlog:
        jobs += claim(False, limit - len(jobs))
    return sorted(jobs, key=lambda job: (job.is_backlog, job.id))
