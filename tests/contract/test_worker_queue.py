"""The stages of index jobs: words before meaning, slow work never in the way of quick work, keys waited for, failures kept."""

import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.store.queue import SqliteQueue
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import AuthContext
from holdfast.store.model import ClaimedJob, Operation, Stage, StoreLimits
from holdfast.store.ports import IndexQueue
from holdfast.store.service import Store
from tests.helpers.databases import Backend, new_caller, postgres_backend

LEASE_MS = 60_000


def now() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def claimed(queue: IndexQueue, me: AuthContext, stage: Stage, at: datetime | None = None) -> list[ClaimedJob]:
    """Claim everything of a stage; return this tenant's jobs and finish those of earlier tests."""
    found = []
    for job in queue.claim(10_000, LEASE_MS, at or now(), stage):
        if job.tenant == me.apikey_hash:
            found.append(job)
        else:
            queue.finish(job, at or now())
    return found


def states(backend: Backend, me: AuthContext) -> list[tuple[str, str, str, int]]:
    rows = backend.look(
        me,
        "SELECT file_path, stage, status, retry_count FROM mcp_file_index_jobs "
        f"WHERE apikey_hash = '{me.apikey_hash}' ORDER BY id",
    )
    return [(row["file_path"], row["stage"], row["status"], row["retry_count"]) for row in rows]


@pytest.mark.req("SE-02.a")
def test_a_job_goes_from_words_to_meaning_to_done(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    assert claimed(queue, me, Stage.MEANING) == []
    (words,) = claimed(queue, me, Stage.WORDS)
    assert (words.stage, words.path) == (Stage.WORDS, "/a")
    assert abs((datetime.now(UTC) - words.written_at).total_seconds()) < 60
    assert queue.finish(words, now(), Stage.MEANING)
    assert claimed(queue, me, Stage.WORDS) == []
    (meaning,) = claimed(queue, me, Stage.MEANING)
    assert (meaning.id, meaning.stage, meaning.version) == (words.id, Stage.MEANING, words.version)
    assert queue.finish(meaning, now())
    assert states(backend, me) == [("/a", "meaning", "done", 0)]


@pytest.mark.req("SE-03.a")
def test_a_write_takes_a_slow_job_back_to_its_words_at_once(backend: Backend, store: Store, me: AuthContext) -> None:
    queue, other = backend.open_queue(), backend.open_queue()
    store.write(me, "p", "/a", "x")
    (words,) = claimed(queue, me, Stage.WORDS)
    queue.finish(words, now(), Stage.MEANING)
    (slow,) = claimed(queue, me, Stage.MEANING)
    store.write(me, "p", "/a", "y")
    (again,) = claimed(other, me, Stage.WORDS)
    assert again.version == slow.version + 1, "words do not wait for an embedding that is under way"
    assert not queue.renew(slow, LEASE_MS, now())
    assert not queue.finish(slow, now())
    assert other.finish(again, now())
    assert states(backend, me) == [("/a", "words", "done", 0)]


def test_a_write_while_words_are_indexed_makes_the_job_due_again_from_its_words(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    (words,) = claimed(queue, me, Stage.WORDS)
    store.write(me, "p", "/a", "y")
    assert not queue.renew(words, LEASE_MS, now()), "it is older than its file"
    assert queue.finish(words, now(), Stage.MEANING)
    assert claimed(queue, me, Stage.MEANING) == []
    (again,) = claimed(queue, me, Stage.WORDS)
    assert again.version == words.version + 1


def test_several_jobs_are_finished_together_and_lost_claims_are_counted(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue, stranger = backend.open_queue(), new_caller()
    for path in ("/a", "/b", "/c"):
        store.write(me, "p", path, "x")
    store.write(stranger, "p", "/a", "x")
    jobs = {(job.tenant, job.path): job for job in queue.claim(10_000, LEASE_MS, now(), Stage.WORDS)}
    a, b, c = (jobs[me.apikey_hash, path] for path in ("/a", "/b", "/c"))
    theirs = jobs[stranger.apikey_hash, "/a"]
    queue.fail(c, "no", now())
    assert queue.finish_all([(a, None), (b, Stage.MEANING), (c, None), (theirs, None)], now()) == 3
    assert states(backend, me) == [
        ("/a", "words", "done", 0),
        ("/b", "meaning", "pending", 0),
        ("/c", "words", "failed", 1),
    ]


@pytest.mark.req("SE-04.b")
def test_a_lease_that_is_renewed_does_not_end(backend: Backend, store: Store, me: AuthContext) -> None:
    queue, other = backend.open_queue(), backend.open_queue()
    store.write(me, "p", "/a", "x")
    (job,) = claimed(queue, me, Stage.WORDS)
    later = now() + timedelta(milliseconds=LEASE_MS * 0.9)
    assert queue.renew(job, LEASE_MS, later)
    after_the_first_lease = now() + timedelta(milliseconds=LEASE_MS * 1.5)
    assert claimed(other, me, Stage.WORDS, after_the_first_lease) == []
    assert len(claimed(other, me, Stage.WORDS, later + timedelta(milliseconds=LEASE_MS * 1.1))) == 1
    assert not queue.renew(job, LEASE_MS, later)


def test_a_job_that_is_released_is_due_at_once_and_counts_no_attempt(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    (job,) = claimed(queue, me, Stage.WORDS)
    assert queue.release(job, now())
    (again,) = claimed(queue, me, Stage.WORDS)
    assert again.retry_count == 0


@pytest.mark.req("SE-42.b")
def test_a_job_waits_for_its_tenants_key_and_only_that_tenant_makes_it_due(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue, stranger = backend.open_queue(), new_caller()
    store.write(me, "p", "/a", "x")
    store.write(stranger, "p", "/a", "x")
    jobs = {job.tenant: job for job in queue.claim(10_000, LEASE_MS, now(), Stage.WORDS)}
    for tenant in (me, stranger):
        queue.finish(jobs[tenant.apikey_hash], now(), Stage.MEANING)
    for job in queue.claim(10_000, LEASE_MS, now(), Stage.MEANING):
        assert queue.await_key(job, now())
    assert claimed(queue, me, Stage.MEANING) == []
    assert states(backend, me) == [("/a", "meaning", "waiting_credential", 0)]
    (waiting,) = queue.list_open_jobs(me.apikey_hash, 10)
    assert (waiting.project, waiting.path, waiting.is_waiting) == ("p", "/a", True)
    assert not queue.rearm(stranger.apikey_hash, "q", waiting.id, now())
    assert queue.rearm(me.apikey_hash, "p", waiting.id, now())
    assert not queue.rearm(me.apikey_hash, "p", waiting.id, now())
    (job,) = claimed(queue, me, Stage.MEANING)
    assert job.retry_count == 0
    assert queue.list_open_jobs(stranger.apikey_hash, 10)[0].is_waiting


@pytest.mark.req("SE-42.b")
def test_a_write_to_a_file_that_waits_for_a_key_is_found_by_its_words(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    (job,) = claimed(queue, me, Stage.WORDS)
    queue.finish(job, now(), Stage.MEANING)
    (job,) = claimed(queue, me, Stage.MEANING)
    queue.await_key(job, now())
    store.write(me, "p", "/a", "y")
    assert [job.version for job in claimed(queue, me, Stage.WORDS)] == [2]


@pytest.mark.req("SE-04.c")
def test_failed_jobs_are_shown_with_their_reason_and_can_be_tried_again(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue = backend.open_queue()
    store.write(me, "p", "/a", "x")
    store.write(me, "p", "/b", "x")
    for job in claimed(queue, me, Stage.WORDS):
        queue.fail(job, f"no {job.path}", now())
    store.write(me, "p", "/b", "y")
    mine = [job for job in queue.list_failed(100) if job.tenant == me.apikey_hash]
    assert sorted((job.path, job.error, job.attempts, job.stage) for job in mine) == [
        ("/a", "no /a", 1, Stage.WORDS),
        ("/b", "no /b", 1, Stage.WORDS),
    ]
    assert queue.retry_failed(now()) >= 1
    assert sorted(job.path for job in claimed(queue, me, Stage.WORDS)) == ["/a", "/b"]
    assert [job.path for job in queue.list_failed(100) if job.tenant == me.apikey_hash] == ["/b"], (
        "a later job covers it"
    )


@pytest.mark.req("SE-07.c")
def test_the_backlog_tells_stage_status_and_age(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    claimed(queue, me, Stage.WORDS)
    claimed(queue, me, Stage.MEANING)
    before = {(one.stage, one.status): one.jobs for one in queue.list_backlog()}
    for path in ("/a", "/b"):
        store.write(me, "p", path, "x")
    (first, _) = claimed(queue, me, Stage.WORDS)
    queue.finish(first, now(), Stage.MEANING)
    after = {(one.stage, one.status): one for one in queue.list_backlog()}
    assert after[Stage.MEANING, "pending"].jobs == before.get((Stage.MEANING, "pending"), 0) + 1
    assert after[Stage.WORDS, "processing"].jobs == before.get((Stage.WORDS, "processing"), 0) + 1
    assert after[Stage.MEANING, "pending"].oldest_at <= datetime.now(UTC)


def test_the_next_due_time_is_known(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    for stage in Stage:
        claimed(queue, me, stage)
    store.write(me, "p", "/a", "x")
    (job,) = claimed(queue, me, Stage.WORDS)
    due_at = (now() + timedelta(seconds=30)).replace(microsecond=0)
    queue.retry(job, "later", due_at, now())
    deadline = datetime.now(UTC) + timedelta(seconds=5)
    while queue.find_next_due(Stage.WORDS) != due_at and datetime.now(UTC) < deadline:
        assert claimed(queue, me, Stage.WORDS) == []
    assert queue.find_next_due(Stage.WORDS) == due_at


def test_files_are_queued_again_unless_they_are_already(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = backend.open_queue()
    for path in ("/a", "/b", "/gone"):
        store.write(me, "p", path, "x")
    store.delete(me, "p", "/gone")
    store.write(me, "q", "/a", "x")
    for job in claimed(queue, me, Stage.WORDS):
        queue.finish(job, now())
    store.write(me, "p", "/b", "y")
    assert {("p"), ("q")} <= {project for tenant, project in queue.list_projects() if tenant == me.apikey_hash}
    assert queue.requeue(me.apikey_hash, "p", Stage.MEANING, datetime.now(UTC)) == 1
    (job,) = claimed(queue, me, Stage.MEANING)
    assert (job.path, job.operation, job.version) == ("/a", Operation.UPSERT, 1)


@pytest.mark.req("SE-06.b")
def test_jobs_that_are_done_go_after_a_while_and_others_stay(backend: Backend, store: Store, me: AuthContext) -> None:
    queue, upkeep = backend.open_queue(), backend.open_upkeep()
    for path in ("/a", "/b", "/c"):
        store.write(me, "p", path, "x")
    a, b, _ = claimed(queue, me, Stage.WORDS)
    queue.finish(a, now())
    queue.fail(b, "no", now())
    upkeep.purge_done(datetime.now(UTC) - timedelta(minutes=1))
    assert [status for _, _, status, _ in states(backend, me)] == ["done", "failed", "processing"]
    assert upkeep.purge_done(now() + timedelta(minutes=1)) >= 1
    assert [status for _, _, status, _ in states(backend, me)] == ["failed", "processing"]


def heard(queue: IndexQueue, store: Store, me: AuthContext) -> bool:
    """Return whether a write is heard, and nothing more after the end."""
    rung = threading.Event()
    end = queue.listen(rung.set)
    try:
        rung.wait(1)
        rung.clear()
        store.write(me, "p", "/a", "x")
        was_heard = rung.wait(5)
    finally:
        end()
    rung.clear()
    store.write(me, "p", "/a", "x")
    return was_heard and not rung.wait(0.2)


@pytest.mark.req("SE-02.c")
def test_on_sqlite_a_commit_of_this_process_is_heard_at_once(tmp_path: Path, me: AuthContext) -> None:
    database = SqliteStore(str(tmp_path / "store"))
    assert heard(SqliteQueue(database.files), Store(database, StoreLimits()), me)
    database.close()


@pytest.mark.req("SE-02.c")
def test_on_postgres_a_commit_of_any_process_is_heard_at_once(postgres_url: str, me: AuthContext) -> None:
    with postgres_backend(postgres_url) as backend:
        assert heard(backend.open_queue(), backend.store(), me)


def test_on_sqlite_a_quiet_file_is_not_opened_again_and_a_commit_of_another_process_is_seen(
    tmp_path: Path, me: AuthContext
) -> None:
    ours, theirs = SqliteStore(str(tmp_path / "store")), SqliteStore(str(tmp_path / "store"))
    other = Store(theirs, StoreLimits())
    other.write(me, "p", "/a", "x")
    queue = SqliteQueue(ours.files)
    for job in queue.claim(10, LEASE_MS, now()):
        queue.finish(job, now())
    time.sleep(0.05)
    assert queue.claim(10, LEASE_MS, now()) == []
    borrowed: list[str] = []
    real = ours.files.borrow

    def watched(name: str) -> tuple[str, sqlite3.Connection]:
        borrowed.append(name)
        return real(name)

    ours.files.borrow = watched  # type: ignore[method-assign]
    assert queue.claim(10, LEASE_MS, now()) == []
    assert borrowed == []
    other.write(me, "p", "/b", "x")
    assert [job.path for job in queue.claim(10, LEASE_MS, now())] == ["/b"]
    ours.close()
    theirs.close()
