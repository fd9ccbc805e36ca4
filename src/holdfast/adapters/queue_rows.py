"""Rows of the job table as the store's own values, the same from both databases."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from holdfast.store.model import Backlog, ClaimedJob, FailedJob, Operation, Stage


def claimed_job(row: Mapping[str, Any], claim: str, written_at: datetime) -> ClaimedJob:
    """Return a job under a claim."""
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
        written_at=written_at,
        is_backlog=bool(row["is_backlog"]),
    )


def fresh_first(limit: int, for_backlog: int, take: Callable[[bool, int], list[ClaimedJob]]) -> list[ClaimedJob]:
    """Take jobs of fresh changes, then of the backlog, which has so many places to itself as long as it fills them.

    `take` is told which of the two is meant and how many at most.
    """
    fresh = take(False, limit - for_backlog)
    jobs = fresh + take(True, limit - len(fresh))
    if len(fresh) == limit - for_backlog:
        jobs += take(False, limit - len(jobs))
    return sorted(jobs, key=lambda job: (job.is_backlog, job.id))


def failed_job(row: Mapping[str, Any]) -> FailedJob:
    """Return a job that was given up."""
    return FailedJob(
        tenant=row["apikey_hash"].rstrip(),
        project=row["project"],
        path=row["file_path"],
        stage=Stage(row["stage"]),
        attempts=row["retry_count"],
        error=row["last_error"] or "",
        failed_at=row["updated_at"],
    )


def summed(rows: Iterable[Mapping[str, Any]]) -> list[Backlog]:
    """Return the jobs of all tenants by stage and status."""
    found: dict[tuple[str, str], Backlog] = {}
    for row in rows:
        key = (row["stage"], row["status"])
        before = found.get(key)
        jobs, oldest_at = row["jobs"], row["oldest_at"]
        if before is not None:
            jobs, oldest_at = jobs + before.jobs, min(oldest_at, before.oldest_at)
        found[key] = Backlog(Stage(row["stage"]), row["status"], jobs, oldest_at)
    return [found[key] for key in sorted(found)]
