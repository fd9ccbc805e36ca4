"""Workers: what they leave in the index, and what becomes of jobs that fail, are overtaken, or lose their worker."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from holdfast.auth.context import AuthContext
from holdfast.search.index import Indexer
from holdfast.search.model import Scope
from holdfast.search.ports import Embedder, EmbedFault
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Stage, StoreLimits
from holdfast.store.paths import span_of_path
from holdfast.store.service import Store
from holdfast.worker.indexing_stats import IndexingStats, TimedEmbedder
from holdfast.worker.loop import JobPolicy, Loop, ModelKeys
from holdfast.worker.model_keys import NoKeys
from holdfast.worker.purge import Purge
from holdfast.worker.service import Workers
from tests.helpers.databases import Backend
from tests.helpers.doors import until
from tests.helpers.indexing import Topics

CANARY = "sk-canary-71c0ffee"


class Clock:
    """A clock that only moves when it is told to; it begins a little late, so that everything written is due."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC) + timedelta(seconds=2)

    def __call__(self) -> datetime:
        return self.at

    def go_on(self, **by: float) -> None:
        self.at += timedelta(**by)


class Watched(Indexer):
    """An indexer that can be told to fail for a path, and that notes which paths are worked on at once."""

    def __init__(self, backend: Backend, embedder: Embedder | None) -> None:
        super().__init__(backend.open_index(), embedder)
        self.done: list[tuple[str, int]] = []
        self.at_once: list[str] = []
        self.bad: dict[str, Exception] = {}
        self._busy: set[tuple[str, str]] = set()

    def index_words(self, jobs: Sequence[ClaimedJob]) -> list[bool]:
        for job in jobs:
            if (job.tenant, job.path) in self._busy:
                self.at_once.append(job.path)
            self._busy.add((job.tenant, job.path))
        try:
            for job in jobs:
                if job.path in self.bad:
                    raise self.bad[job.path]
            owed = super().index_words(jobs)
            self.done += [(job.path, job.version) for job in jobs]
            return owed
        finally:
            self._busy -= {(job.tenant, job.path) for job in jobs}


def loop_of(
    backend: Backend, embedder: Embedder | None = None, keys: ModelKeys | None = None, clock: Clock | None = None
) -> Loop:
    """Return a worker's loop after everything that earlier tests left is done."""
    stats = IndexingStats()
    timed = TimedEmbedder(embedder, stats) if embedder else None
    loop = Loop(
        backend.open_queue(),
        Watched(backend, timed),
        keys or NoKeys(),
        needs_key=bool(timed and timed.needs_key),
        policy=JobPolicy(retry_backoff_ms=1000),
        stats=stats,
        now=clock or Clock(),
    )
    for stage in Stage:
        for job in loop.queue.claim(10_000, 60_000, datetime.now(UTC) + timedelta(days=1), stage):
            loop.queue.finish(job, loop.now())
    return loop


def watched(loop: Loop) -> Watched:
    assert isinstance(loop.indexing, Watched)
    return loop.indexing


def indexed(backend: Backend, me: AuthContext, path: str) -> list[tuple[int, int]]:
    """Return the ranges that the index holds of a file of project p."""
    return [(chunk.start, chunk.end) for chunk in backend.open_index().load_indexed_chunks(me.apikey_hash, "p", path)]


def job_rows(backend: Backend, me: AuthContext) -> list[dict[str, Any]]:
    return backend.look(
        me,
        "SELECT file_path, stage, status, retry_count, last_error FROM mcp_file_index_jobs "
        f"WHERE apikey_hash = '{me.apikey_hash}' ORDER BY id",
    )


@pytest.mark.req("SE-03.a")
def test_two_writes_and_one_pass_index_the_last_state_once(backend: Backend, store: Store, me: AuthContext) -> None:
    loop = loop_of(backend)
    store.write(me, "p", "/a", "first")
    store.write(me, "p", "/a", " and second")
    assert loop.run_words_pass() == 1
    assert watched(loop).done == [("/a", 2)]
    assert indexed(backend, me, "/a") == [(0, 16)]
    assert loop.run_words_pass() == 0


@pytest.mark.req("SE-03.b")
def test_a_job_older_than_the_file_does_nothing(backend: Backend, store: Store, me: AuthContext) -> None:
    loop = loop_of(backend)
    store.write(me, "p", "/a", "old")
    (old,) = loop.queue.claim(10, 60_000, loop.now())
    store.write(me, "p", "/a", " and new")
    store.delete(me, "p", "/a")
    assert watched(loop).index_words([old]) == [False]
    loop.queue.finish(old, loop.now())
    assert loop.run_words_pass() == 1
    assert indexed(backend, me, "/a") == []


@pytest.mark.req("SE-01.b")
def test_an_empty_file_has_no_chunks_and_its_job_is_done(backend: Backend, store: Store, me: AuthContext) -> None:
    loop = loop_of(backend, Topics("cat"))
    store.write(me, "p", "/a", "")
    assert loop.run_words_pass() == 1
    assert job_rows(backend, me)[0]["status"] == "done"
    assert indexed(backend, me, "/a") == []


@pytest.mark.req("SE-04.a", "SE-04.c")
def test_a_failing_job_waits_longer_each_time_and_is_given_up_with_its_reason(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    clock = Clock()
    loop = loop_of(backend, clock=clock)
    for path in ("/a", "/bad", "/z"):
        store.write(me, "p", path, "x")
    watched(loop).bad["/bad"] = RuntimeError(f"could not parse {CANARY}")
    assert loop.run_words_pass() == 3
    assert sorted(watched(loop).done) == [("/a", 1), ("/z", 3)], "one bad job harms only itself"
    for attempt in range(1, 5):
        row = job_rows(backend, me)[1]
        assert (row["status"], row["retry_count"]) == ("pending", attempt)
        clock.go_on(milliseconds=1000 * attempt * 0.74)
        assert loop.run_words_pass() == 0
        clock.go_on(milliseconds=1000 * attempt * 0.52)
        assert loop.run_words_pass() == 1
    row = job_rows(backend, me)[1]
    assert (row["status"], row["retry_count"]) == ("failed", 5)
    assert row["last_error"].startswith("RuntimeError at test_worker.py:")
    clock.go_on(days=1)
    assert loop.run_words_pass() == 0


def test_a_wait_is_bounded_and_never_quite_the_same(backend: Backend) -> None:
    loop = loop_of(backend)
    waits = [loop.backoff_ms(1) for _ in range(50)]
    assert 750 <= min(waits) < max(waits) <= 1250
    assert loop.backoff_ms(10_000) <= 75_000


@pytest.mark.req("SE-04.b")
def test_the_job_of_a_dead_worker_is_done_by_another_after_its_lease(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    clock = Clock()
    dead, living = loop_of(backend, clock=clock), loop_of(backend, clock=clock)
    store.write(me, "p", "/a", "x")
    assert len(dead.queue.claim(10, dead.policy.lease_ms, clock())) == 1
    assert living.run_words_pass() == 0
    clock.go_on(milliseconds=dead.policy.lease_ms + 1)
    assert living.run_words_pass() == 1
    assert indexed(backend, me, "/a") == [(0, 1)]
    assert job_rows(backend, me)[0]["status"] == "done"


@pytest.mark.req("SE-02.b")
def test_many_workers_never_work_on_one_file_at_once_and_leave_nothing(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    first = loop_of(backend)
    shared = watched(first)
    loops = [replace(loop_of(backend), indexing=shared) for _ in range(4)]
    done = threading.Event()

    def work(loop: Loop) -> None:
        while not done.is_set():
            loop.run_words_pass()

    with ThreadPoolExecutor(4) as pool:
        for loop in loops:
            loop.now = lambda: datetime.now(UTC) + timedelta(seconds=2)
        futures = [pool.submit(work, loop) for loop in loops]
        try:
            for number in range(60):
                store.write(me, "p", f"/{number % 3}", f"{number} ")
            until(
                "every job of this tenant is done", lambda: {row["status"] for row in job_rows(backend, me)} == {"done"}
            )
        finally:
            done.set()
        for future in futures:
            future.result(30)
    assert shared.at_once == []
    for path in ("/0", "/1", "/2"):
        assert indexed(backend, me, path) == [(0, store.stat(me, "p", path).size)]


@pytest.mark.req("SE-07.b", "SE-07.c")
def test_meaning_follows_words_and_both_lags_are_told(backend: Backend, store: Store, me: AuthContext) -> None:
    clock = Clock()
    loop = loop_of(backend, Topics("cat", "boat"), clock=clock)
    store.write(me, "p", "/a", "a cat")
    loop.run_words_pass()
    index = backend.open_index()
    (chunk,) = index.load_chunks_without_vectors(me.apikey_hash, "p", "/a", "topics")
    assert chunk.text == "a cat"
    clock.go_on(seconds=10)
    assert loop.run_meaning_pass() == 1
    assert index.load_chunks_without_vectors(me.apikey_hash, "p", "/a", "topics") == []
    words, meaning = loop.stats.lag(Stage.WORDS), loop.stats.lag(Stage.MEANING)
    assert (words.count, meaning.count) == (1, 1)
    assert 1_000 < words.p95_ms < 9_000 < meaning.p95_ms
    assert loop.stats.speed().texts == 1


def test_a_model_that_is_down_is_tried_again_and_one_that_is_not_there_is_not(
    backend: Backend, store: Store, me: AuthContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics, clock = Topics("cat"), Clock()
    loop = loop_of(backend, topics, clock=clock)
    store.write(me, "p", "/a", "a cat")
    loop.run_words_pass()
    topics.is_down = True
    loop.run_meaning_pass()
    assert job_rows(backend, me)[0] | {"retry_count": 1, "last_error": "the model is down"} == job_rows(backend, me)[0]
    topics.is_down = False
    clock.go_on(seconds=2)
    loop.run_meaning_pass()
    assert job_rows(backend, me)[0]["status"] == "done"
    store.write(me, "p", "/a", " again")
    loop.run_words_pass()
    monkeypatch.setattr(watched(loop), "index_meaning", _not_installed)
    loop.run_meaning_pass()
    row = job_rows(backend, me)[-1]
    assert (row["status"], row["last_error"]) == ("failed", "not installed: onnxruntime")


def _not_installed(_job: ClaimedJob, _key: Secret | None, _check: Callable[[], None] = lambda: None) -> None:
    raise EmbedFault("not installed: onnxruntime", retryable=False)


def test_a_worker_that_is_told_to_stop_gives_its_jobs_back(backend: Backend, store: Store, me: AuthContext) -> None:
    loop = loop_of(backend, Topics("cat"))
    for number in range(3):
        store.write(me, "p", f"/{number}", "a cat")
    loop.run_words_pass()
    loop.stop.set()
    assert loop.run_meaning_pass() == 0
    assert [row["status"] for row in job_rows(backend, me)] == ["pending"] * 3
    loop.stop.clear()
    assert loop.run_meaning_pass() == 3


@pytest.mark.req("SE-02.c", "SE-07.a")
def test_lanes_bring_a_write_into_the_index_by_themselves_and_end_when_told(backend: Backend, me: AuthContext) -> None:
    store = backend.store()
    loop = replace(loop_of(backend, Topics("cat")), now=lambda: datetime.now(UTC))
    workers = Workers(loop, backend.open_index(), Purge(store, backend.open_upkeep()), Topics("cat"), 2)
    workers.start()
    try:
        store.write(me, "p", "/a", "a cat")
        until("the words are there", lambda: indexed(backend, me, "/a") == [(0, 5)])
        until("the job is done", lambda: job_rows(backend, me)[0]["status"] == "done")
        assert workers.has_work()
        assert workers.status().as_json()["lag"]["words"]["count"] == 1
    finally:
        workers.stop()
    assert not workers.has_work()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("holdfast-words")]


def test_jobs_that_wait_for_a_model_end_when_it_is_switched_off_and_come_back_with_it(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    model = Topics("cat", "boat")
    loop = loop_of(backend, model)
    store.write(me, "p", "/a", "a cat")
    until("it waits for its meaning", lambda: loop.run_words_pass() == 0)
    index, purge = backend.open_index(), Purge(store, backend.open_upkeep())
    without = replace(loop, indexing=Watched(backend, None))
    assert not Workers(without, index, purge, None, 1, is_alone=False).drain(0.2), (
        "it is left to those who have a model"
    )
    words_alone = Workers(without, index, purge, None, 1)
    words_alone.start()
    until("its job has ended", lambda: [row["status"] for row in job_rows(backend, me)] == ["done"])
    words_alone.stop()
    assert words_alone.status().meaning.count == 0
    again = Workers(replace(loop, stop=threading.Event()), index, purge, model, 1)
    assert again.catch_up() >= 1
    again.start()
    until("it has its meaning", lambda: index.load_chunks_without_vectors(me.apikey_hash, "p", "/a", model.model) == [])
    again.stop()


@pytest.mark.req("SE-32")
def test_another_model_is_brought_in_while_the_old_vectors_serve(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    old, new = Topics("cat", "boat"), Topics("cat", "boat", "dog", model="topics-2")
    first, text = loop_of(backend, old), f"a cat of {me.apikey_hash}"
    store.write(me, "p", "/a", text)
    first.run_words_pass()
    first.run_meaning_pass()
    second = loop_of(backend, new)
    index = backend.open_index()
    workers = Workers(second, index, Purge(store, backend.open_upkeep()), new, 1)
    assert workers.catch_up() >= 1
    scope, vector = Scope("p", span_of_path("/a")), old._vector("cat")
    assert len(index.find_nearest(me.apikey_hash, scope, "topics", vector, 5)) == 1
    assert index.find_nearest(me.apikey_hash, scope, "topics-2", new._vector("cat"), 5) == []
    while second.run_meaning_pass():
        pass
    assert len(index.find_nearest(me.apikey_hash, scope, "topics-2", new._vector("cat"), 5)) == 1
    assert len(index.find_nearest(me.apikey_hash, scope, "topics", vector, 5)) == 1
    assert new.embedded.count(text) == 1


@pytest.mark.req("SE-06.a")
def test_the_purge_takes_deleted_files_and_their_chunks_when_their_days_are_over(
    backend: Backend, me: AuthContext
) -> None:
    clock = Clock()
    store = backend.store(StoreLimits(delete_retention_days=1), now=clock)
    loop = loop_of(backend)
    store.write(me, "p", "/a", "x")
    store.delete(me, "p", "/a")
    loop.run_words_pass()
    assert Purge(store, backend.open_upkeep(), clock).run_due() == 0, "not at the start"
    purge = partial(Purge, store, backend.open_upkeep(), clock, delay_seconds=0)
    purge().run_due()
    deleted = f"SELECT count(*) AS files FROM mcp_files WHERE apikey_hash = '{me.apikey_hash}'"
    assert backend.look(me, deleted) == [{"files": 1}]
    clock.go_on(days=9)
    assert purge().run_due() >= 2
    assert backend.look(me, deleted) == [{"files": 0}]
    assert job_rows(backend, me) == []


@pytest.mark.req("SE-04.b")
def test_work_that_takes_longer_than_its_lease_keeps_it(backend: Backend, store: Store, me: AuthContext) -> None:
    clock = Clock()
    slow, other = loop_of(backend, clock=clock), loop_of(backend, clock=clock)
    store.write(me, "p", "/a", "x")
    taken: list[int] = []
    real = watched(slow).index_words

    def index_words(jobs: Sequence[ClaimedJob]) -> list[bool]:
        clock.go_on(milliseconds=slow.policy.lease_ms * 0.9)
        taken.append(slow.renew_words_leases())
        clock.go_on(milliseconds=slow.policy.lease_ms * 0.9)
        taken.append(other.run_words_pass())
        return real(jobs)

    watched(slow).index_words = index_words  # type: ignore[method-assign]
    assert slow.run_words_pass() == 1
    assert taken == [1, 0], "kept by one, not given to the other"
    assert slow.renew_words_leases() == 0
    assert job_rows(backend, me)[0]["status"] == "done"
