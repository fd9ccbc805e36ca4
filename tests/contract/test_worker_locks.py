"""On PostgreSQL changes of files and workers take the rows of jobs in one order: none of them ever waits in turn."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from holdfast.auth.context import AuthContext
from holdfast.store.model import Stage
from tests.helpers.databases import Backend, postgres_backend
from tests.helpers.doors import until

LOCK = (
    "SELECT 1 FROM mcp_file_index_jobs WHERE apikey_hash = %s AND file_path = %s AND status <> 'done' FOR UPDATE NOWAIT"
)
WAITS = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
def alone(postgres_url: str) -> Iterator[Backend]:
    with postgres_backend(postgres_url) as opened:
        yield opened


@contextmanager
def held(url: str, me: AuthContext, path: str) -> Iterator[None]:
    """Hold the job of a path until the end; fails at once when somebody else does."""
    with psycopg.connect(url) as connection, connection.transaction(force_rollback=True):
        assert connection.execute(LOCK, [me.apikey_hash, path]).fetchone()
        yield


def waits_for_a_first(url: str, backend: Backend, me: AuthContext, work: Callable[[], object]) -> None:
    """See that work on the jobs of /a and /b waits for /a without holding /b."""
    thread = threading.Thread(target=work)
    with held(url, me, "/a"):
        thread.start()
        until("it waits", lambda: backend.look(me, WAITS))
        with held(url, me, "/b"):
            pass
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.req("ST-34", "SE-02.b")
def test_a_rename_takes_the_jobs_of_its_paths_in_order(postgres_url: str, alone: Backend, me: AuthContext) -> None:
    store = alone.store()
    for path in ("/b", "/a"):
        store.write(me, "p", path, "x")
    waits_for_a_first(postgres_url, alone, me, lambda: store.rename(me, "p", "/b", "/a", overwrite=True))
    assert store.read(me, "p", "/a").text == "x"


@pytest.mark.req("ST-34", "SE-02.b")
def test_a_worker_ends_its_jobs_in_the_order_of_their_paths(postgres_url: str, alone: Backend, me: AuthContext) -> None:
    store, queue = alone.store(), alone.open_queue()
    for path in ("/b", "/a"):
        store.write(me, "p", path, "x")
    now = datetime.now(UTC) + timedelta(seconds=1)
    jobs = [job for job in queue.claim(10_000, 60_000, now) if job.tenant == me.apikey_hash]
    assert [job.path for job in jobs] == ["/b", "/a"]
    waits_for_a_first(postgres_url, alone, me, lambda: queue.finish_all([(job, Stage.MEANING) for job in jobs], now))
    assert {job.path for job in queue.list_open_jobs(me.apikey_hash, 10)} == {"/a", "/b"}
