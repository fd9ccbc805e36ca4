"""The index jobs and the upkeep of every tenant's store file."""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

from holdfast.adapters.queue_statements import (
    JobUpdate,
    StatementQueue,
    claim_fresh_first,
    claimed_job,
    purge_project,
)
from holdfast.adapters.sqlite.store.files import TenantFiles, fetch_rows, file_name, run, stored_values
from holdfast.store.model import ClaimedJob, Stage

_WAIT_SECONDS = 3.0
_POLL_SECONDS = 0.2
_POLL_SHARE = 20
_DURABLE_UPDATES = frozenset({"requeue_files"})
"""A lost retry or purge is made again by the next one; a lost job of a file to be indexed again would be missed."""

JobClass = tuple[Stage, bool]
"""A stage, and whether the backlog is meant."""


class SqliteQueue(StatementQueue):
    """Visits the tenants' files in rotation, so that no tenant always waits behind another.

    A file in which nothing was due, and which nobody has written to since, is not opened again before its next job is due.
    """

    def __init__(self, files: TenantFiles) -> None:
        self._files = files
        self._rotation = 0
        self._quiet: dict[tuple[str, JobClass], tuple[tuple[int, ...], datetime | None]] = {}
        self._lock = threading.Lock()
        self._poll_seconds = _POLL_SECONDS

    @property
    def poll_seconds(self) -> float:
        """Return the seconds between two polls, so that polling takes a twentieth of the time at most."""
        return self._poll_seconds

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each change that this process makes; those of other processes are found by polling."""
        return self._files.on_change(callback)

    def claim(
        self, limit: int, lease_ms: int, now: datetime, stage: Stage = Stage.WORDS, for_backlog: int = 0
    ) -> list[ClaimedJob]:
        """Lease jobs that are due, or whose lease has ended."""
        started = time.monotonic()
        until = now + timedelta(milliseconds=lease_ms)
        names = self._files.names()
        with self._lock:
            self._rotation += 1
            first = self._rotation % len(names) if names else 0
        names = names[first:] + names[:first]

        def claim_some(is_backlog: bool, max_jobs: int) -> list[ClaimedJob]:
            jobs = list[ClaimedJob]()
            for name in names:
                if len(jobs) < max_jobs and not self._is_quiet(name, (stage, is_backlog), now):
                    jobs += self._claim_in_file(name, max_jobs - len(jobs), until, now, (stage, is_backlog))
            return jobs

        claimed = claim_fresh_first(limit, for_backlog, claim_some)
        self._poll_seconds = (
            max(_POLL_SECONDS, _POLL_SHARE * (time.monotonic() - started)) if not claimed else _POLL_SECONDS
        )
        return claimed

    def is_fresh_due(self, stage: Stage, now: datetime) -> bool:
        """Return whether a job of a fresh change is due."""
        fresh = (stage, False)
        due = (self._due_at(name, fresh) for name in self._files.names() if not self._is_quiet(name, fresh, now))
        return any(at is not None and at <= now for at in due)

    def find_next_due(self, stage: Stage) -> datetime | None:
        """Return when the next job of a stage will be due, as of the last claim."""
        with self._lock:
            due = [at for (_, (of, _)), (_, at) in self._quiet.items() if of is stage and at is not None]
        return min(due, default=None)

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove what is older, from every tenant's file; returns the rows removed."""
        before = stored_values(
            {"deleted_before": deleted_before, "versions_before": versions_before, "others_before": others_before}
        )
        removed = 0
        for name in self._files.names():
            with self._files.write_transaction(name, _deadline()) as connection:
                for row in run(connection, "purge_candidates", before).fetchall():
                    scope = {"apikey_hash": row["apikey_hash"], "project": row["project"], **before}
                    removed += purge_project(partial(run, connection), scope)
        return removed

    def _is_quiet(self, name: str, job_class: JobClass, now: datetime) -> bool:
        with self._lock:
            signature, due_at = self._quiet.get((name, job_class), (None, None))
        if signature is None or (due_at is not None and due_at <= now):
            return False
        return self._files.signature(name) == signature

    def _claim_in_file(
        self, name: str, limit: int, until: datetime, now: datetime, job_class: JobClass
    ) -> list[ClaimedJob]:
        signature = self._files.signature(name)
        due_at = self._due_at(name, job_class)
        with self._lock:
            if signature is None:
                self._quiet.pop((name, job_class), None)
            else:
                self._quiet[name, job_class] = (signature, due_at)
        if due_at is None or due_at > now:
            return []
        claim = secrets.token_hex(8)
        parameters = stored_values({"until": until, "at": now, "limit": limit, "claim": claim})
        with self._files.write_transaction(name, _deadline(), durable=False) as connection:
            rows = fetch_rows(
                connection, "claim_jobs", {**parameters, "stage": job_class[0], "is_backlog": job_class[1]}
            )
        return [claimed_job(row, claim) for row in rows]

    def _due_at(self, name: str, job_class: JobClass) -> datetime | None:
        with self._files.snapshot_of(name) as connection:
            rows = fetch_rows(connection, "next_due", {"stage": job_class[0], "is_backlog": job_class[1]})
        return rows[0]["due_at"] if rows else None

    def _update_jobs(self, updates: Sequence[JobUpdate]) -> int:
        updated = 0
        for tenant, of_tenant in groupby(updates, key=lambda update: update.job.tenant):
            with self._files.write_transaction(file_name(tenant), _deadline(), durable=False) as connection:
                for update in of_tenant:
                    updated += run(connection, update.statement, stored_values(update.parameters)).rowcount
        return updated

    def _rows(self, statement: str, tenant: str = "", **parameters: Any) -> list[dict[str, Any]]:
        rows = list[dict[str, Any]]()
        for name in [file_name(tenant)] if tenant else self._files.names():
            with self._files.snapshot_of(name) as connection:
                rows += fetch_rows(connection, statement, parameters)
        return rows

    def _update(self, statement: str, tenant: str = "", **parameters: Any) -> int:
        changed, durable = 0, statement in _DURABLE_UPDATES
        for name in [file_name(tenant)] if tenant else self._files.names():
            with self._files.write_transaction(name, _deadline(), durable=durable) as connection:
                changed += run(connection, statement, stored_values(parameters)).rowcount
        self._files.notify_change()
        return changed


def _deadline() -> float:
    return time.monotonic() + _WAIT_SECONDS
