"""Many callers at once: threads, other instances, other processes; nobody waits without an end, nothing is half done."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from holdfast.auth.context import AuthContext
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.store.model import IndexJob, Operation, ProjectState, Stamp, StoreLimits
from holdfast.store.paths import span_of_path
from holdfast.store.service import Store
from holdfast.store.tenant_share import Growth
from tests.helpers.databases import Backend, new_caller

TOP = Path(__file__).parents[2]


def all_at_once(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Run an action in so many threads that start together."""
    ready = threading.Barrier(count)

    def started(number: int) -> Any:
        ready.wait()
        return action(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(started, range(count)))


@pytest.mark.req("ST-33")
def test_24_parallel_appends_leave_every_token_once(backend: Backend, me: AuthContext) -> None:
    patient = StoreLimits(lock_timeout_ms=30_000)
    stores = [backend.store(patient) for _ in range(2)]
    all_at_once(24, lambda number: stores[number % 2].write(me, "p", "/log", f"<{number}>"))
    text = stores[0].read(me, "p", "/log").text
    assert sorted(text.replace("<", "").split(">")[:-1], key=int) == [str(number) for number in range(24)]
    assert stores[0].projects(me)[0].total_bytes == len(text)


@pytest.mark.req("ST-34", "ST-35")
def test_a_held_project_is_busy_in_time_and_other_projects_do_not_wait(backend: Backend, me: AuthContext) -> None:
    holder = backend.database()
    store = backend.store(StoreLimits(lock_timeout_ms=200))
    store.write(me, "p", "/a", "before")
    with holder.mutation(me.apikey_hash, "p", 1000) as held:
        assert held.state.version == 1, "asking for it waits until the lock is there"
        begun = time.monotonic()
        with pytest.raises(ResourceBusy) as caught:
            store.write(me, "p", "/a", "x")
        waited = time.monotonic() - begun
        assert caught.value.payload()["code"] == "RESOURCE_BUSY"
        assert caught.value.payload()["retryable"] is True
        assert me.apikey_hash not in caught.value.message
        assert 0.15 <= waited < 3
        assert store.write(me, "q", "/a", "x").bytes_written == 1
        assert store.write(new_caller(), "p", "/a", "x").bytes_written == 1
        assert store.read(me, "p", "/a").text == "before", "readers never wait"
    assert store.write(me, "p", "/a", "!").bytes_written == 1


@pytest.mark.req("ST-35")
def test_many_who_wait_for_one_project_keep_nobody_else_from_theirs(backend: Backend, me: AuthContext) -> None:
    holder, store = backend.database(), backend.store(StoreLimits(lock_timeout_ms=1500))
    store.write(me, "p", "/a", "x")

    def wait(_number: int) -> str:
        with pytest.raises(ResourceBusy):
            store.write(me, "p", "/a", "x")
        return "busy"

    with holder.mutation(me.apikey_hash, "p", 1000) as held, ThreadPoolExecutor(1) as pool:
        assert held.state.version == 1
        waiting = pool.submit(all_at_once, 24, wait)
        time.sleep(0.2)
        begun = time.monotonic()
        assert store.write(me, "q", "/a", "x").bytes_written == 1
        assert store.read(me, "p", "/a").text == "x"
        assert time.monotonic() - begun < 1
        assert waiting.result() == ["busy"] * 24


@pytest.mark.req("ST-34")
def test_a_lock_that_is_given_back_in_time_is_waited_for(backend: Backend, me: AuthContext) -> None:
    holder, store = backend.database(), backend.store(StoreLimits(lock_timeout_ms=20_000))
    held, written = threading.Event(), threading.Event()

    def hold() -> None:
        with holder.mutation(me.apikey_hash, "p", 1000) as mutation:
            assert mutation.state.version == 0
            held.set()
            assert not written.wait(0.3)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        held.wait()
        assert store.write(me, "p", "/a", "x").bytes_written == 1
        written.set()
        holding.result()


HOLDER = """
import sys
from tests.helpers.databases import *
database = SqliteStore(sys.argv[2]) if sys.argv[1] == "sqlite" else PostgresStore(sys.argv[2])
with database.mutation(sys.argv[3], "p", 1000) as held:
    assert held.state is not None
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.req("ST-34", "ST-39")
def test_a_lock_held_by_another_process_is_respected_and_ends_with_it(
    backend: Backend, me: AuthContext, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "store") if backend.name == "sqlite" else request.getfixturevalue("postgres_url")
    store = backend.store(StoreLimits(lock_timeout_ms=200))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, backend.name, place, me.apikey_hash],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TOP)},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ResourceBusy):
            store.write(me, "p", "/a", "x")
        assert store.write(me, "q", "/a", "x").bytes_written == 1
        other.kill()
        other.wait()
        patient = backend.store(StoreLimits(lock_timeout_ms=10_000))
        assert patient.write(me, "p", "/a", "x").bytes_written == 1


@pytest.mark.req("ST-37")
def test_a_reader_sees_old_or_new_and_never_a_mix(backend: Backend, store: Store, me: AuthContext) -> None:
    writer = backend.store()
    writer.write(me, "p", "/a", "0" * 5000)
    stop = threading.Event()
    seen: set[str] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(store.read(me, "p", "/a").text)
            names = {entry.path for entry in store.listing(me, "p", "", 9).entries}
            assert names in (
                {"/a"},
                {"/a", "/d", "/d/x", "/d/y"},
                {"/a", "/e", "/e/x", "/e/y"},
                {"/a", "/d", "/d/x"},
                {"/a", "/e", "/e/x"},
            )

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for number in range(1, 10):
            writer.write(me, "p", "/a", str(number) * (5000 + number), mode="TRUNCATE")
        writer.write(me, "p", "/d/x", "x")
        writer.write(me, "p", "/d/y", "y")
        for _ in range(5):
            writer.rename(me, "p", "/d", "/e")
            writer.rename(me, "p", "/e", "/d")
        stop.set()
        reading.result()
    assert all(text == text[0] * (5000 + int(text[0])) for text in seen)


@pytest.mark.req("ST-38")
def test_a_failed_change_leaves_no_row_no_job_and_no_key(backend: Backend, me: AuthContext) -> None:
    store = backend.store(StoreLimits(max_project_bytes=10))
    store.write(me, "p", "/a", "12345")

    def everything() -> list[Any]:
        tables = ("mcp_files", "mcp_file_versions", "mcp_file_index_jobs", "mcp_projects", "mcp_applied")
        return [
            backend.look(me, f"SELECT * FROM {table} WHERE apikey_hash = '{me.apikey_hash}' ORDER BY 1, 2, 3")
            for table in tables
        ]

    before = everything()
    failing: list[Callable[[], Any]] = [
        lambda: store.write(me, "p", "/b", "1234567", idempotency_key="k"),
        lambda: store.write(me, "p", "/a", "1234567", idempotency_key="k"),
        lambda: store.write(me, "new", "/b", "x" * 11, idempotency_key="k"),
        lambda: store.write(me, "p", "/a/b", "1", idempotency_key="k"),
        lambda: store.rename(me, "p", "/a", "/a/b", idempotency_key="k"),
        lambda: store.delete(me, "p", "/none", idempotency_key="k"),
        lambda: store.restore(me, "p", "/a", 99, idempotency_key="k"),
    ]
    for action in failing:
        with pytest.raises(HoldfastError):
            action()
        assert everything() == before


@pytest.mark.req("ST-38")
def test_a_fault_in_the_middle_takes_everything_back(backend: Backend, me: AuthContext) -> None:
    database, store = backend.database(), backend.store()
    store.write(me, "p", "/a", "x")
    stamp = Stamp(2, store.projects(me)[0].updated_at)
    with pytest.raises(ZeroDivisionError), database.mutation(me.apikey_hash, "p", 1000) as mutation:
        mutation.delete(span_of_path("/a"), stamp)
        mutation.create("/b", b"y", stamp)
        mutation.enqueue([IndexJob("/b", Operation.UPSERT)], stamp)
        raise ZeroDivisionError
    assert [entry.path for entry in store.listing(me, "p").entries] == ["/a"]
    jobs = backend.look(me, f"SELECT file_path FROM mcp_file_index_jobs WHERE apikey_hash = '{me.apikey_hash}'")
    assert [job["file_path"] for job in jobs] == ["/a"]


@pytest.mark.req("ST-39")
def test_a_mutation_that_was_overtaken_is_refused(backend: Backend, me: AuthContext) -> None:
    database, store = backend.database(), backend.store()
    store.write(me, "p", "/a", "x")
    stale = Stamp(1, store.projects(me)[0].updated_at)
    with pytest.raises(ResourceBusy), database.mutation(me.apikey_hash, "p", 1000) as mutation:
        mutation.create("/b", b"y", stale)
        mutation.settle(ProjectState(1, 2, 2, stale.at), stale, None, Growth(1, 0))
    assert not store.stat(me, "p", "/b").exists


def test_a_value_that_a_column_refuses_is_no_reason_to_try_again(backend: Backend, me: AuthContext) -> None:
    database, store = backend.database(), backend.store()
    store.write(me, "p", "/a", "x")
    stamp = Stamp(2, store.projects(me)[0].updated_at)
    refused = (psycopg.errors.NotNullViolation, sqlite3.IntegrityError)
    with pytest.raises(refused), database.mutation(me.apikey_hash, "p", 1000) as mutation:
        mutation.create(cast(str, None), b"y", stamp)
        mutation.settle(ProjectState(2, 2, 2, stamp.at), stamp, None, Growth(1, 0))
    assert store.write(me, "p", "/b", "y").bytes_written == 1


@pytest.mark.req("ST-39")
def test_versions_of_a_project_have_no_gap_and_no_twin(backend: Backend, me: AuthContext) -> None:
    stores = [backend.store(StoreLimits(lock_timeout_ms=30_000)) for _ in range(2)]

    def work(number: int) -> None:
        store = stores[number % 2]
        for turn in range(4):
            store.write(me, "p", f"/{number}/{turn}", "x")
        store.rename(me, "p", f"/{number}", f"/moved{number}")

    all_at_once(6, work)
    rows = backend.look(me, f"SELECT written_version FROM mcp_files WHERE apikey_hash = '{me.apikey_hash}'")
    assert len({row["written_version"] for row in rows}) == 24
    (state,) = backend.look(
        me, f"SELECT version, file_count, total_bytes FROM mcp_projects WHERE apikey_hash = '{me.apikey_hash}'"
    )
    assert state == {"version": 30, "file_count": 24, "total_bytes": 24}


def test_a_mutation_reads_before_it_writes(backend: Backend, me: AuthContext) -> None:
    database, store = backend.database(), backend.store()
    store.write(me, "p", "/a", "x")
    stamp = Stamp(2, store.projects(me)[0].updated_at)
    with pytest.raises(RuntimeError), database.mutation(me.apikey_hash, "p", 1000) as mutation:
        mutation.delete(span_of_path("/a"), stamp)
        mutation.list_files_in(span_of_path("/a"))
    assert store.stat(me, "p", "/a").exists
