"""What the store needs from a database: mutations under a project's lock, snapshots to read, a queue of index jobs.

Every method of a mutation that reads must be called before any that writes: writes are sent together at the end.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from holdfast.store.model import (
    AppliedRequest,
    Backlog,
    ClaimedJob,
    FailedJob,
    FileSummary,
    IndexJob,
    OpenJob,
    PathLookup,
    ProjectState,
    ProjectSummary,
    Stage,
    Stamp,
    Stat,
    StoredFile,
    Version,
    Window,
)
from holdfast.store.paths import Move, PathRange
from holdfast.store.tenant_share import NO_LIMIT, Growth, TenantShare, TenantUsage


class Mutation(Protocol):
    """One change of one project, alone under the project's lock; all of it happens when the block ends, or nothing."""

    @property
    def state(self) -> ProjectState:
        """The project's counters as the lock found them."""

    def find_applied(self, key: str) -> AppliedRequest | None:
        """Return the request that was applied under an idempotency key, None when there was none."""

    def look_up(self, path: str, above: Sequence[str], below: PathRange, *, with_content: bool) -> PathLookup:
        """Return what is at a path, below it, and above it."""

    def list_files_in(self, span: PathRange) -> list[FileSummary]:
        """Return the live files of a span in byte order."""

    def find_files_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that are live files, in byte order."""

    def find_directories_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""

    def load_version(self, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""

    def create(self, path: str, content: bytes, stamp: Stamp) -> None:
        """Add a file."""

    def replace(self, file: StoredFile, content: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Give a file new bytes and keep the ones before as a version; versions beyond the newest few go."""

    def append(self, file: StoredFile, tail: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Add bytes to the end of a file, which need not be read for that, and keep the ones before as a version."""

    def delete(self, span: PathRange, stamp: Stamp) -> None:
        """Mark the live files of a span as deleted."""

    def move(self, moves: Sequence[Move], stamp: Stamp) -> None:
        """Give live files other paths; their versions go with them."""

    def enqueue(self, jobs: Sequence[IndexJob], stamp: Stamp) -> None:
        """Add index jobs; a job for a path that already has one waiting takes its place."""

    def settle(self, state: ProjectState, stamp: Stamp, applied: AppliedRequest | None, growth: Growth) -> None:
        """Write the project's counters and the tenant's, and what was answered when the caller may ask again.

        Over the tenant's share the oldest history of all its projects goes; QuotaExceeded, here or when the block ends,
        when that is not enough.
        """


class StoreSnapshot(Protocol):
    """Reads one consistent state of a tenant's files."""

    def stat(self, project: str, path: str, below: PathRange) -> Stat:
        """Return what is at a path."""

    def read_window(self, project: str, path: str, below: PathRange, start: int, count: int) -> Window | Stat:
        """Return bytes of a file, or what else is at the path."""

    def list_heads(self, project: str, span: PathRange, components: int, limit: int) -> list[FileSummary]:
        """Return the first file of each group that shares its first components, in byte order of the files.

        The cost grows with the number returned, not with the files that are passed over.
        """

    def find_directories_among(self, project: str, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""

    def knows(self, project: str, path: str) -> bool:
        """Return whether a path is a live file or one that was deleted and not yet purged."""

    def list_versions(self, project: str, path: str, since: datetime, limit: int) -> list[Version]:
        """Return the versions of a path replaced since then, newest first."""

    def load_version(self, project: str, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""

    def list_projects(self) -> list[ProjectSummary]:
        """Return the tenant's projects that hold a live file, by name."""

    def usage(self) -> TenantUsage:
        """Return what the tenant holds in all its projects."""


class StoreDatabase(Protocol):
    """The store of every tenant. Safe to use from any thread."""

    def mutation(
        self, tenant: str, project: str, lock_timeout_ms: int, share: TenantShare = NO_LIMIT
    ) -> AbstractContextManager[Mutation]:
        """Hold a project's lock and change it within the tenant's share; ResourceBusy when the lock is not free in time."""

    def snapshot(self, tenant: str) -> AbstractContextManager[StoreSnapshot]:
        """Read one consistent state of a tenant's files; takes no lock."""

    def close(self) -> None:
        """Close every connection."""


class IndexQueue(Protocol):
    """The jobs that mutations left, for workers of any number of processes.

    `listen` does not hear of every job, so a worker also polls, every `poll_seconds`.
    """

    @property
    def poll_seconds(self) -> float:
        """Return the seconds between two polls of an idle worker."""

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, soon after jobs were added; returns a function that ends it."""

    def claim(
        self, limit: int, lease_ms: int, now: datetime, stage: Stage = Stage.WORDS, for_backlog: int = 0
    ) -> list[ClaimedJob]:
        """Lease jobs of a stage that are due, or whose lease has ended; no other worker gets them until the lease ends.

        Fresh changes of every tenant come before anybody's backlog, except in the `for_backlog` slots.
        """

    def is_fresh_due(self, stage: Stage, now: datetime) -> bool:
        """Return whether a job of a fresh change is due."""

    def find_next_due(self, stage: Stage) -> datetime | None:
        """Return when the next job of a stage will be due, None when there is none."""

    def find_longest_due(self, stage: Stage) -> datetime | None:
        """Return when the job became due that comes first of those that no worker holds, None when there is none.

        It asks the database, and may be in the future.
        """

    def renew(self, job: ClaimedJob, lease_ms: int, now: datetime) -> bool:
        """Extend a job's lease from now; False when the claim was lost or the job is older than its file."""

    def finish(self, job: ClaimedJob, now: datetime, further: Stage | None = None) -> bool:
        """Mark a job done, or due for a further stage; False when the claim was lost.

        A job whose file changed meanwhile is due again, from its first stage on.
        """

    def finish_all(self, jobs: Sequence[tuple[ClaimedJob, Stage | None]], now: datetime) -> int:
        """Finish several jobs together; returns how many claims still held."""

    def retry(self, job: ClaimedJob, error: str, due_at: datetime, now: datetime) -> bool:
        """Give a job back, to be due later; the attempt counts."""

    def release(self, job: ClaimedJob, now: datetime) -> bool:
        """Give a job back untouched; it is due at once and no attempt is counted."""

    def await_key(self, job: ClaimedJob, now: datetime) -> bool:
        """Let a job wait for its tenant's key; no attempt is counted."""

    def list_open_jobs(self, tenant: str, limit: int) -> list[OpenJob]:
        """Return a tenant's jobs that have not ended: fresh changes first, and of these the ones that wait for its key."""

    def rearm(self, tenant: str, project: str, job_id: int, now: datetime) -> bool:
        """Make a job that waits for its tenant's key due; False when it does not wait."""

    def fail(self, job: ClaimedJob, error: str, now: datetime) -> bool:
        """Give a job up and keep the reason."""

    def count_open_jobs(self) -> dict[str, int]:
        """Return the number of jobs that are not done, by status."""

    def list_backlog(self) -> list[Backlog]:
        """Return the jobs that are not done, counted by stage and status."""

    def list_failed(self, limit: int) -> list[FailedJob]:
        """Return jobs that were given up, the latest first."""

    def retry_failed(self, now: datetime) -> int:
        """Make every job that was given up due again, unless a later one covers its path; returns how many."""

    def list_projects(self) -> list[tuple[str, str]]:
        """Return tenant and project of every project."""

    def requeue(self, tenant: str, project: str, stage: Stage, now: datetime) -> int:
        """Add a job for each live file of a project that has none open, as backlog; returns how many."""


class StoreUpkeep(Protocol):
    """Removes what has outlived its retention."""

    def purge(self, deleted_before: datetime, versions_before: datetime, others_before: datetime) -> int:
        """Remove older deleted files, versions, idempotency keys and ended jobs of every tenant; returns the rows."""

    def purge_done(self, before: datetime) -> int:
        """Remove up to a few thousand jobs, of every tenant, that were done before then; returns the rows."""
