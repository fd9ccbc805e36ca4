"""The outbox: every change leaves its jobs, workers share them by leases, and only the last word on a path counts."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.auth.context import AuthContext
from holdfast.store.model import ClaimedJob, IndexJob, Operation, Stamp
from holdfast.store.ports import IndexQueue
from holdfast.store.service import Store
from tests.helpers.databases import Backend

LEASE_MS = 60_000


def now() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def claimed(queue: IndexQueue, me: AuthContext, at: datetime | None = None) -> dict[str, ClaimedJob]:
    """Claim everything; return this tenant's jobs by path and finish those of earlier tests."""
    found = {}
    for job in queue.claim(10_000, LEASE_MS, at or now()):
        if job.tenant == me.apikey_hash:
            found[job.path] = job
        else:
            queue.finish(job, at or now())
    return found


def operations(jobs: dict[str, ClaimedJob]) -> dict[str, str]:
    return {path: job.operation.value for path, job in jobs.items()}


@pytest.mark.req("ST-40")
def test_every_mutation_owes_its_jobs(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/d/a", "x")
    store.write(me, "p", "/d/b", "x")
    store.write(me, "p", "/t", "target")
    jobs = claimed(queue, me)
    assert operations(jobs) == {"/d/a": "UPSERT", "/d/b": "UPSERT", "/t": "UPSERT"}
    assert all(queue.finish(job, now()) for job in jobs.values())
    store.rename(me, "p", "/d", "/e")
    jobs = claimed(queue, me)
    assert operations(jobs) == {"/d/a": "DELETE", "/d/b": "DELETE", "/e/a": "UPSERT", "/e/b": "UPSERT"}
    assert all(queue.finish(job, now()) for job in jobs.values())
    store.rename(me, "p", "/e/a", "/t", overwrite=True)
    store.delete(me, "p", "/e", recursive=True)
    assert operations(claimed(queue, me)) == {"/e/a": "DELETE", "/t": "UPSERT", "/e/b": "DELETE"}


@pytest.mark.req("ST-40")
def test_the_same_job_twice_is_harmless_and_an_older_one_does_nothing(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    database, queue = backend.database(), backend.open_queue()
    store.write(me, "p", "/a", "x")
    at = store.projects(me)[0].updated_at
    for version, operation in ((2, Operation.UPSERT), (2, Operation.UPSERT), (1, Operation.DELETE)):
        with database.mutation(me.apikey_hash, "p", 1000) as mutation:
            mutation.enqueue([IndexJob("/a", operation)], Stamp(version, at))
    jobs = claimed(queue, me)
    assert operations(jobs) == {"/a": "UPSERT"}
    assert jobs["/a"].version == 2


def test_writes_coalesce_to_one_job_of_the_last_version(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    for _ in range(5):
        store.write(me, "p", "/a", "x")
    store.delete(me, "p", "/a")
    (job,) = claimed(queue, me).values()
    assert (job.operation, job.version, job.retry_count) == (Operation.DELETE, 6, 0)


def test_a_job_renewed_while_it_is_worked_on_is_due_again(backend: Backend, store: Store, me: AuthContext) -> None:
    queue, other = backend.open_queue(), backend.open_queue()
    store.write(me, "p", "/a", "x")
    (first,) = claimed(queue, me).values()
    store.write(me, "p", "/a", "y")
    assert claimed(other, me) == {}, "one file is never indexed twice at once"
    assert queue.finish(first, now())
    (second,) = claimed(other, me).values()
    assert (first.version, second.version) == (1, 2)
    assert other.finish(second, now())
    assert claimed(queue, me) == {}


def test_a_job_of_a_dead_worker_is_taken_up_again_and_its_finish_no_longer_counts(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue, other = backend.open_queue(), backend.open_queue()
    store.write(me, "p", "/a", "x")
    (lost,) = claimed(queue, me).values()
    later = now() + timedelta(milliseconds=LEASE_MS + 1000)
    (taken,) = claimed(other, me, later).values()
    assert taken.id == lost.id
    assert taken.claim != lost.claim
    assert not queue.finish(lost, later)
    assert not queue.fail(lost, "too late", later)
    assert other.finish(taken, later)


def test_a_failure_waits_counts_and_ends(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    (job,) = claimed(queue, me).values()
    at = now()
    assert queue.retry(job, "no model", at + timedelta(seconds=30), at)
    assert claimed(queue, me, at) == {}
    (again,) = claimed(queue, me, at + timedelta(seconds=31)).values()
    assert again.retry_count == 1
    assert queue.fail(again, "no model at all", at)
    assert claimed(queue, me, at + timedelta(days=1)) == {}
    rows = backend.look(
        me, f"SELECT status, last_error FROM mcp_file_index_jobs WHERE apikey_hash = '{me.apikey_hash}'"
    )
    assert rows == [{"status": "failed", "last_error": "no model at all"}]
    assert queue.count_open_jobs()["failed"] >= 1
    store.write(me, "p", "/a", "x")
    assert operations(claimed(queue, me)) == {"/a": "UPSERT"}


def test_a_batch_is_no_larger_than_asked_and_no_job_is_given_twice(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue, other = backend.open_queue(), backend.open_queue()
    claimed(queue, me)
    for number in range(7):
        store.write(me, "p", f"/{number}", "x")
    batches = [one.claim(3, LEASE_MS, now()) for one in (queue, other, queue, other)]
    assert [len(batch) for batch in batches] == [3, 3, 1, 0]
    assert len({job.path for batch in batches for job in batch}) == 7


def test_ended_jobs_are_purged(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    store.write(me, "p", "/b", "x")
    jobs = claimed(queue, me)
    queue.finish(jobs["/a"], now())
    upkeep = backend.open_upkeep()
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    upkeep.purge(long_ago, long_ago, now() + timedelta(days=1))
    rows = backend.look(me, f"SELECT file_path, status FROM mcp_file_index_jobs WHERE apikey_hash = '{me.apikey_hash}'")
    assert rows == [{"file_path": "/b", "status": "processing"}]
