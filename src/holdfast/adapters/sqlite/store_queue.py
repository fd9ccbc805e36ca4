"""The jobs and the upkeep of every tenant's store file."""

import secrets
import time
from datetime import datetime, timedelta
from typing import Any

from holdfast.adapters.sqlite.store_files import TenantFiles, file_name
from holdfast.adapters.sqlite.store_rows import run, stored_time
from holdfast.store.model import ClaimedJob, Operation

_WAIT_SECONDS = 3.0


class SqliteQueue:
    """Visits the tenants' files in turn, each time from another one on, so that no tenant waits behind another."""

    def __init__(self, files: TenantFiles) -> None:
        self._files = files
        self._turn = 0

    def claim(self, limit: int, lease_ms: int, now: datetime) -> list[ClaimedJob]:
        """Take jobs that are due, or whose lease has ended."""
        names = self._files.names()
        self._turn += 1
        first = self._turn % len(names) if names else 0
        claimed: list[ClaimedJob] = []
        for name in names[first:] + names[:first]:
            if len(claimed) < limit:
                claimed += self._claimed(name, limit - len(claimed), now + timedelta(milliseconds=lease_ms), now)
        return claimed

    def finish(self, job: ClaimedJob, now: datetime) -> bool:
        """Mark a job done; False when the claim was lost."""
        return self._ended(job, "finish_job", at=stored_time(now))

    def retry(self, job: ClaimedJob, error: str, due_at: datetime, now: datetime) -> bool:
        """Give a job back, to be due later."""
        return self._ended(
            job, "return_job", status="pending", due_at=stored_time(due_at), error=error, at=stored_time(now)
        )

    def fail(self, job: ClaimedJob, error: str, now: datetime) -> bool:
        """Give a job up and keep the reason."""
        at = stored_time(now)
        return self._ended(job, "return_job", status="failed", due_at=at, error=error, at=at)

    def depth(self) -> dict[str, int]:
        """Return the number of jobs by status."""
        counts: dict[str, int] = {}
        for name in self._files.names():
            with self._files.snapshot_of(name) as connection:
                for row in run(connection, "count_jobs", {}):
                    counts[row["status"]] = counts.get(row["status"], 0) + row["jobs"]
        return counts

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove what is older, from every tenant's file; returns the rows removed."""
        before = {
            "deleted_before": stored_time(deleted_before),
            "versions_before": stored_time(versions_before),
            "others_before": stored_time(others_before),
        }
        return sum(self._purged(name, before) for name in self._files.names())

    def _claimed(self, name: str, limit: int, until: datetime, now: datetime) -> list[ClaimedJob]:
        claim = secrets.token_hex(8)
        asked = {"limit": limit, "until": stored_time(until), "at": stored_time(now), "claim": claim}
        with self._files.writing(name, _deadline()) as connection:
            rows = run(connection, "claim_jobs", asked).fetchall()
        return [
            ClaimedJob(
                row["apikey_hash"],
                row["project"],
                row["file_path"],
                Operation(row["operation"]),
                row["version"],
                row["retry_count"],
                row["id"],
                claim,
            )
            for row in rows
        ]

    def _ended(self, job: ClaimedJob, statement: str, **parameters: Any) -> bool:
        scope = {"apikey_hash": job.tenant, "project": job.project}
        named = {**scope, "id": job.id, "claim": job.claim, "version": job.version, **parameters}
        with self._files.writing(file_name(job.tenant), _deadline()) as connection:
            return run(connection, statement, named).rowcount == 1

    def _purged(self, name: str, before: dict[str, str]) -> int:
        with self._files.writing(name, _deadline()) as connection:
            removed = 0
            for row in run(connection, "purge_candidates", before).fetchall():
                scope = {"apikey_hash": row["apikey_hash"], "project": row["project"], **before}
                for statement in ("purge_files", "purge_versions", "purge_applied", "purge_jobs"):
                    removed += run(connection, statement, scope).rowcount
            return removed


def _deadline() -> float:
    return time.monotonic() + _WAIT_SECONDS
