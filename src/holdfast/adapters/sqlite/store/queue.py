"""The jobs and the upkeep of every tenant's store file."""

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

from holdfast.adapters.queue_rows import claimed_job, failed_job, fresh_first, summed
from holdfast.adapters.sqlite.store.files import TenantFiles, file_name
from holdfast.adapters.sqlite.store.rows import run, table, time_at
from holdfast.clock import format_utc
from holdfast.store.model import Backlog, ClaimedJob, FailedJob, OpenJob, Stage

_WAIT_SECONDS = 3.0
_LOOK_SECONDS = 0.2
_LOOK_SHARE = 20
_PURGED_AT_ONCE = 5_000

Ending = tuple[ClaimedJob, str, dict[str, Any]]
Kind = tuple[Stage, bool]
"""A stage, and whether the backlog is meant."""


class SqliteQueue:
    """Visits the tenants' files in turn, each time from another one on, so that no tenant waits behind another.

    A file in which nothing was due, and which nobody has written to since, is not opened again before its time.
    """

    def __init__(self, files: TenantFiles) -> None:
        self._files = files
        self._turn = 0
        self._quiet: dict[tuple[str, Kind], tuple[tuple[int, ...], datetime | None]] = {}
        self._lock = threading.Lock()
        self._look_seconds = _LOOK_SECONDS

    @property
    def poll_seconds(self) -> float:
        """Return the seconds between two looks, so that looking takes a twentieth of the time at most."""
        return self._look_seconds

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` after each change that this process makes; other processes' are found by looking."""
        return self._files.on_change(ring)

    def claim(
        self, limit: int, lease_ms: int, now: datetime, stage: Stage = Stage.WORDS, for_backlog: int = 0
    ) -> list[ClaimedJob]:
        """Take jobs that are due, or whose lease has ended."""
        begun, until, names = time.monotonic(), now + timedelta(milliseconds=lease_ms), self._in_turn()

        def take(is_backlog: bool, most: int) -> list[ClaimedJob]:
            taken = list[ClaimedJob]()
            for name in names:
                if len(taken) < most and not self._is_quiet(name, (stage, is_backlog), now):
                    taken += self._claimed(name, most - len(taken), until, now, (stage, is_backlog))
            return taken

        claimed = fresh_first(limit, for_backlog, take)
        self._look_seconds = (
            max(_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - begun)) if not claimed else _LOOK_SECONDS
        )
        return claimed

    def is_fresh_due(self, stage: Stage, now: datetime) -> bool:
        """Return whether a job of a fresh change is due."""
        kind = (stage, False)
        due = (self._due_at(name, kind) for name in self._files.names() if not self._is_quiet(name, kind, now))
        return any(at is not None and at <= now for at in due)

    def next_due(self, stage: Stage) -> datetime | None:
        """Return when the next job of a stage will be due, as far as the last look told."""
        with self._lock:
            due = [at for (_, (of, _)), (_, at) in self._quiet.items() if of is stage and at is not None]
        return min(due, default=None)

    def renew(self, job: ClaimedJob, lease_ms: int, now: datetime) -> bool:
        """Hold a job for so long from now."""
        until = format_utc(now + timedelta(milliseconds=lease_ms))
        return self._ended([(job, "renew_job", {"until": until, "at": format_utc(now)})]) == 1

    def finish(self, job: ClaimedJob, now: datetime, further: Stage | None = None) -> bool:
        """Mark a job done, or due for a further stage; False when the claim was lost."""
        return self.finish_all([(job, further)], now) == 1

    def finish_all(self, jobs: Sequence[tuple[ClaimedJob, Stage | None]], now: datetime) -> int:
        """Finish several jobs, those of one tenant in one transaction."""
        at = format_utc(now)
        return self._ended(
            (job, "finish_job", {"status": "pending" if further else "done", "stage": further or job.stage, "at": at})
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
        with self._files.snapshot(tenant) as connection:
            rows = table(connection, "open_jobs", {"apikey_hash": tenant, "limit": limit})
        return [OpenJob(**{**row, "is_waiting": bool(row["is_waiting"])}) for row in rows]

    def rearm(self, tenant: str, project: str, job_id: int, now: datetime) -> bool:
        """Make a job that waits for its tenant's key due."""
        asked = {"apikey_hash": tenant, "project": project, "id": job_id, "at": format_utc(now)}
        with self._files.writing(file_name(tenant), _deadline(), durable=False) as connection:
            changed = run(connection, "rearm_job", asked).rowcount == 1
        self._files.changed()
        return changed

    def depth(self) -> dict[str, int]:
        """Return the number of jobs that are not done, by status."""
        counts: dict[str, int] = {}
        for line in self.backlog():
            counts[line.status] = counts.get(line.status, 0) + line.jobs
        return counts

    def backlog(self) -> list[Backlog]:
        """Return the jobs that are not done, counted by stage and status."""
        return summed(row for name in self._files.names() for row in self._table(name, "count_jobs", {}))

    def failed(self, limit: int) -> list[FailedJob]:
        """Return jobs that were given up, the latest first."""
        rows = [row for name in self._files.names() for row in self._table(name, "failed_jobs", {"limit": limit})]
        found = sorted(map(failed_job, rows), key=attrgetter("failed_at"), reverse=True)
        return found[:limit]

    def retry_failed(self, now: datetime) -> int:
        """Make every job that was given up due again, unless a later one covers its path."""
        return self._everywhere("retry_failed", {"at": format_utc(now)})

    def projects(self) -> list[tuple[str, str]]:
        """Return tenant and project of everything that could be indexed."""
        rows = [row for name in self._files.names() for row in self._table(name, "list_tenants", {})]
        return [(row["apikey_hash"], row["project"]) for row in rows]

    def requeue(self, tenant: str, project: str, stage: Stage, now: datetime) -> int:
        """Add a job for each live file of a project that has none open."""
        asked = {"apikey_hash": tenant, "project": project, "stage": stage, "at": format_utc(now)}
        with self._files.writing(file_name(tenant), _deadline()) as connection:
            added = run(connection, "requeue_files", asked).rowcount
        self._files.changed()
        return added

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove what is older, from every tenant's file; returns the rows removed."""
        before = {
            "deleted_before": format_utc(deleted_before),
            "versions_before": format_utc(versions_before),
            "others_before": format_utc(others_before),
        }
        return sum(self._purged(name, before) for name in self._files.names())

    def purge_done(self, before: datetime) -> int:
        """Remove some thousands of the jobs that were done before then."""
        return self._everywhere("purge_done", {"before": format_utc(before), "limit": _PURGED_AT_ONCE})

    def _in_turn(self) -> list[str]:
        names = self._files.names()
        with self._lock:
            self._turn += 1
            first = self._turn % len(names) if names else 0
        return names[first:] + names[:first]

    def _is_quiet(self, name: str, kind: Kind, now: datetime) -> bool:
        with self._lock:
            signature, due_at = self._quiet.get((name, kind), (None, None))
        if signature is None or (due_at is not None and due_at <= now):
            return False
        return self._files.signature(name) == signature

    def _claimed(self, name: str, limit: int, until: datetime, now: datetime, kind: Kind) -> list[ClaimedJob]:
        signature = self._files.signature(name)
        due_at = self._due_at(name, kind)
        with self._lock:
            if signature is None:
                self._quiet.pop((name, kind), None)
            else:
                self._quiet[name, kind] = (signature, due_at)
        if due_at is None or due_at > now:
            return []
        claim = secrets.token_hex(8)
        times = {"until": format_utc(until), "at": format_utc(now)}
        asked = {"limit": limit, "claim": claim, "stage": kind[0], "is_backlog": kind[1], **times}
        with self._files.writing(name, _deadline(), durable=False) as connection:
            rows = run(connection, "claim_jobs", asked).fetchall()
        return [claimed_job(row, claim, time_at(row["file_updated_at"])) for row in rows]

    def _due_at(self, name: str, kind: Kind) -> datetime | None:
        rows = self._table(name, "next_due", {"stage": kind[0], "is_backlog": kind[1]})
        return rows[0]["due_at"] if rows else None

    def _table(self, name: str, statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with self._files.snapshot_of(name) as connection:
            return table(connection, statement, parameters)

    def _everywhere(self, statement: str, parameters: dict[str, Any]) -> int:
        changed = 0
        for name in self._files.names():
            with self._files.writing(name, _deadline(), durable=False) as connection:
                changed += run(connection, statement, parameters).rowcount
        self._files.changed()
        return changed

    def _returned(
        self, job: ClaimedJob, status: str, attempts: int, error: str | None, due_at: datetime, now: datetime
    ) -> bool:
        values = {"status": status, "attempts": attempts, "error": error}
        times = {"due_at": format_utc(due_at), "at": format_utc(now)}
        return self._ended([(job, "return_job", values | times)]) == 1

    def _ended(self, endings: Iterable[Ending]) -> int:
        held = 0
        in_order = sorted(endings, key=lambda ending: ending[0].tenant)
        for tenant, of_tenant in groupby(in_order, key=lambda ending: ending[0].tenant):
            with self._files.writing(file_name(tenant), _deadline(), durable=False) as connection:
                for job, statement, parameters in of_tenant:
                    scope = {"apikey_hash": tenant, "project": job.project, "id": job.id, "claim": job.claim}
                    held += run(connection, statement, {**scope, "version": job.version, **parameters}).rowcount
        return held

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
