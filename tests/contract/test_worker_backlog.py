"""A backlog of files to be indexed anew never stands in the way of what was just written, and still comes to its end."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.adapters.postgres.search.index import WITHOUT_BITMAPS
from holdfast.adapters.postgres.search.rows import STATEMENTS as SEARCHED_ON_POSTGRES
from holdfast.adapters.postgres.store.store import STATEMENTS as ON_POSTGRES
from holdfast.adapters.postgres.store.store import open_pool
from holdfast.adapters.sqlite.search.rows import STATEMENTS as SEARCHED_ON_SQLITE
from holdfast.adapters.sqlite.store.files import STATEMENTS as ON_SQLITE
from holdfast.auth.context import AuthContext
from holdfast.search.index import EMBED_BATCH, Indexer
from holdfast.search.model import Scope, Vector
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Stage
from holdfast.store.paths import span_with_prefix
from holdfast.store.ports import IndexQueue
from holdfast.store.service import Store
from holdfast.worker.loop import JobPolicy, Loop, backlog_slots
from holdfast.worker.model_keys import NoKeys
from tests.contract.test_store_cost import rows_read
from tests.helpers.databases import Backend, new_caller, postgres_backend, postgres_database, sqlite_backend
from tests.helpers.indexing import Topics, emptied

LEASE_MS = 60_000
MANY = 40


def now() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def backlog_of(queue: IndexQueue, store: Store, me: AuthContext, stage: Stage, files: int = MANY) -> None:
    """Give a tenant so many files that are to be indexed anew."""
    for number in range(files):
        store.write(me, "p", f"/old/{number}", "a cat")
    emptied(queue)
    assert queue.requeue(me.apikey_hash, "p", stage, datetime.now(UTC)) == files


def write_fresh(queue: IndexQueue, store: Store, me: AuthContext, path: str, stage: Stage) -> None:
    """Write a file and bring its job to a stage; the backlog's jobs that were claimed on the way are given back."""
    store.write(me, "p", path, "a boat")
    if stage is Stage.MEANING:
        (job,) = queue.claim(1, LEASE_MS, now(), Stage.WORDS)
        assert job.path == path
        queue.finish(job, now(), Stage.MEANING)


def paths(jobs: Sequence[ClaimedJob]) -> list[str]:
    return [job.path for job in jobs]


@pytest.mark.req("SE-07.d")
@pytest.mark.parametrize("stage", Stage)
def test_what_was_just_written_is_claimed_before_any_backlog(
    backend: Backend, store: Store, me: AuthContext, stage: Stage
) -> None:
    queue = emptied(backend.open_queue())
    backlog_of(queue, store, me, stage)
    for path in ("/new/a", "/new/b"):
        write_fresh(queue, store, me, path, stage)
    jobs = queue.claim(4, LEASE_MS, now(), stage)
    assert paths(jobs)[:2] == ["/new/a", "/new/b"]
    assert [job.is_backlog for job in jobs] == [False, False, True, True]


@pytest.mark.req("SE-07.d")
def test_a_tenants_fresh_change_comes_before_every_other_tenants_backlog(backend: Backend, store: Store) -> None:
    queue, tenants, last = emptied(backend.open_queue()), [new_caller() for _ in range(5)], new_caller()
    for tenant in tenants:
        for number in range(3):
            store.write(tenant, "p", f"/old/{number}", "a cat")
    emptied(queue)
    for tenant in tenants:
        queue.requeue(tenant.apikey_hash, "p", Stage.WORDS, datetime.now(UTC))
    store.write(last, "p", "/new", "a boat")
    for _ in tenants:
        store.write(last, "p", "/new", "a boat")
        (job,) = queue.claim(1, LEASE_MS, now())
        assert (job.tenant, job.path) == (last.apikey_hash, "/new")
        queue.finish(job, now())


@pytest.mark.req("SE-07.d")
def test_the_backlog_has_places_of_its_own_and_they_are_given_to_others_when_it_is_empty(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    queue = emptied(backend.open_queue())
    backlog_of(queue, store, me, Stage.WORDS, 3)
    for number in range(6):
        store.write(me, "p", f"/new/{number}", "a boat")
    assert [job.is_backlog for job in queue.claim(4, LEASE_MS, now(), for_backlog=1)] == [False, False, False, True]
    (job,) = queue.claim(1, LEASE_MS, now(), for_backlog=1)
    assert job.is_backlog
    assert [job.is_backlog for job in queue.claim(4, LEASE_MS, now(), for_backlog=2)] == [False, False, False, True]
    assert queue.claim(4, LEASE_MS, now(), for_backlog=1) == []


@pytest.mark.parametrize("limit", [1, 3, 4, 20])
def test_every_fourth_place_is_the_backlogs(limit: int) -> None:
    kept = [backlog_slots(number, limit) for number in range(12)]
    assert sum(kept) == 12 * limit // 4
    assert max(kept) - min(kept) <= 1


@pytest.mark.req("SE-07.d")
def test_a_write_to_a_file_of_the_backlog_makes_it_fresh(backend: Backend, store: Store, me: AuthContext) -> None:
    queue = emptied(backend.open_queue())
    backlog_of(queue, store, me, Stage.MEANING)
    store.write(me, "p", "/old/7", " and a boat")
    (job,) = queue.claim(1, LEASE_MS, now(), Stage.WORDS)
    assert (job.path, job.is_backlog) == ("/old/7", False)
    queue.finish(job, now(), Stage.MEANING)
    (job, *_) = queue.claim(4, LEASE_MS, now(), Stage.MEANING)
    assert (job.path, job.is_backlog) == ("/old/7", False)


@pytest.mark.req("SE-07.d")
def test_a_backlog_comes_to_its_end_under_more_fresh_changes_than_can_be_done(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    loop = loop_of(backend, Topics("cat", "boat"))
    backlog_of(loop.queue, store, me, Stage.WORDS, 10)
    left, passes = 10, 0
    while left:
        for number in range(8):
            store.write(me, "p", f"/new/{passes}/{number}", "a boat")
        assert loop.run_words_pass() == 4
        passes += 1
        left = open_backlog(backend, me)
        assert passes <= 10, "a place in each pass of four"
    assert passes == 10


@pytest.mark.req("SE-07.c")
def test_the_lag_is_that_of_fresh_changes(backend: Backend, store: Store, me: AuthContext) -> None:
    loop = loop_of(backend, Topics("cat", "boat"))
    backlog_of(loop.queue, store, me, Stage.WORDS, 3)
    store.write(me, "p", "/new", "a boat")
    assert loop.run_words_pass() == 4
    while loop.run_meaning_pass():
        pass
    assert [loop.stats.lag(stage).count for stage in Stage] == [1, 1]


class Interrupted(Topics):
    """An embedder during whose first request something happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__("cat", "boat")
        self._meanwhile: list[Callable[[], object]] = [meanwhile]

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        while self._meanwhile:
            self._meanwhile.pop()()
        return super().embed(texts, key, check)


@pytest.mark.req("SE-07.d")
def test_a_long_file_of_the_backlog_makes_way_and_loses_nothing_of_its_work(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    def meanwhile() -> None:
        store.write(me, "p", "/new", "a boat")
        assert loop.run_words_pass() == 1

    model = Interrupted(meanwhile)
    loop = replace(loop_of(backend, model), policy=JobPolicy(batch_size=4, lease_ms=1))
    parts = [f"# Part {number}\n\n" + "a cat sat there. " * 90 for number in range(3 * EMBED_BATCH)]
    store.write(me, "p", "/old", "\n\n".join(parts))
    loop.run_words_pass()
    emptied(loop.queue).requeue(me.apikey_hash, "p", Stage.MEANING, datetime.now(UTC))
    assert loop.run_meaning_pass() == 1
    assert len(model.embedded) == EMBED_BATCH, "one request, then it made way"
    while loop.run_meaning_pass():
        pass
    assert model.embedded[EMBED_BATCH] == "a boat"
    assert len(model.embedded) == len(parts) + 1


def loop_of(backend: Backend, embedder: Topics | None) -> Loop:
    queue = emptied(backend.open_queue())
    return Loop(queue, Indexer(backend.open_index(), embedder), NoKeys(), policy=JobPolicy(batch_size=4), now=now)


def open_backlog(backend: Backend, me: AuthContext) -> int:
    query = (
        "SELECT count(*) AS jobs FROM mcp_file_index_jobs WHERE stage = 'words' AND status = 'pending' AND is_backlog"
    )
    (row,) = backend.look(me, f"{query} AND apikey_hash = '{me.apikey_hash}'")
    return int(row["jobs"])


@pytest.mark.req("SE-07.d")
@pytest.mark.parametrize("is_backlog", [False, True])
def test_a_claim_among_very_many_jobs_reads_no_more_than_it_takes(
    backend: Backend, store: Store, me: AuthContext, is_backlog: bool, request: pytest.FixtureRequest
) -> None:
    queue = emptied(backend.open_queue())
    backlog_of(queue, store, me, Stage.MEANING, 300)
    write_fresh(queue, store, me, "/new", Stage.MEANING)
    asked = {"stage": "meaning", "is_backlog": is_backlog, "limit": 4, "claim": "c"}
    if backend.name == "sqlite":
        steps = [
            str(row["detail"])
            for name in ("claim_jobs", "next_due")
            for row in backend.look(me, "EXPLAIN QUERY PLAN " + filled(ON_SQLITE[name], asked))
        ]
        turns = [step for step in steps if "mcp_file_index_jobs_turn (stage=? AND is_backlog=?" in step]
        assert len(turns) >= 2, steps
        assert not [step for step in steps if "TEMP B-TREE FOR ORDER BY" in step or "SCAN mcp" in step], steps
        return
    with open_pool(request.getfixturevalue("postgres_url"), "holdfast_worker", 1) as pool, pool.connection() as worker:
        worker.execute("SET enable_seqscan = off")
        for name in ("claim_jobs", "next_due"):
            at = {"at": now(), "until": now()}
            with worker.transaction(force_rollback=True):
                row = worker.execute(
                    b"EXPLAIN (ANALYZE, FORMAT JSON) " + ON_POSTGRES[name].encode(), {**asked, **at}
                ).fetchone()
            assert row is not None
            assert sum(rows_read(row["QUERY PLAN"][0]["Plan"])) <= 3 * 4, row


OTHER_TENANTS = """
INSERT INTO mcp_file_index_jobs (apikey_hash, project, file_path, operation, file_updated_at, version, status,
                                 available_at, created_at, updated_at, stage, is_backlog)
SELECT md5(n::text) || md5(%(run)s), 'p', '/' || n, 'UPSERT', now(), 1, %(status)s, now() + '1 year', now(), now(), 'words',
       %(is_backlog)s
FROM generate_series(1, 1500) AS n
"""


@pytest.mark.req("SE-18.a")
def test_a_search_on_sqlite_reads_nothing_of_the_backlog(tmp_path: Path) -> None:
    with sqlite_backend(tmp_path) as backend:
        asked = with_a_backlog(backend, me := new_caller())
        sql = filled(SEARCHED_ON_SQLITE["pending_files"], asked)
        (first, *_) = [row["detail"] for row in backend.look(me, "EXPLAIN QUERY PLAN " + sql) if " j " in row["detail"]]
    assert "mcp_file_index_jobs_turn (stage=? AND is_backlog=?" in first


@pytest.mark.req("SE-18.a")
@pytest.mark.parametrize(("status", "is_backlog"), [("done", False), ("pending", True)])
def test_a_search_on_postgres_reads_nothing_of_the_backlog(
    postgres_server_url: str, status: str, is_backlog: bool
) -> None:
    with postgres_database(postgres_server_url) as url, postgres_backend(url) as backend:
        asked = with_a_backlog(backend, me := new_caller())
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(OTHER_TENANTS, {"run": me.apikey_hash, "status": status, "is_backlog": is_backlog})
            owner.execute("ANALYZE mcp_file_index_jobs")
        with (
            open_pool(url, "holdfast_app", 1, steady_plans=True) as pool,
            pool.connection() as reader,
            reader.transaction(),
        ):
            reader.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [me.apikey_hash])
            reader.execute(WITHOUT_BITMAPS)
            explained = b"EXPLAIN (ANALYZE, FORMAT JSON) " + SEARCHED_ON_POSTGRES["pending_files"].encode()
            row = reader.execute(explained, asked).fetchone()
    assert row is not None
    assert sum(rows_read(row["QUERY PLAN"][0]["Plan"])) < 10, row


def with_a_backlog(backend: Backend, me: AuthContext) -> dict[str, Any]:
    """Give a tenant 300 files that are to be indexed anew and a fresh one; returns what a search asks for."""
    queue, store = backend.open_queue(), backend.store()
    backlog_of(queue, store, me, Stage.WORDS, 300)
    store.write(me, "p", "/new", "a boat")
    (found,) = backend.open_index().load_pending_files(me.apikey_hash, Scope("p", span_with_prefix("")), 64, 10**6)
    assert found.path == "/new"
    return {"apikey_hash": me.apikey_hash, "project": "p", "low": "/", "high": "0", "limit": 64, "max_bytes": 10**6}


def filled(sql: str, values: dict[str, Any]) -> str:
    """Return a statement with its values in it."""
    for name, value in {**values, "at": now().isoformat(), "until": now().isoformat()}.items():
        sql = sql.replace(f":{name}", repr(value) if isinstance(value, str) else str(int(value)))
    return sql
