"""What a tenant holds in all: counted by the row, kept within its share by the oldest history, then by refusing growth."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.adapters.postgres.store.store import PostgresStore
from holdfast.auth.context import AuthContext
from holdfast.errors import HoldfastError, NotFound, QuotaExceeded, ResourceBusy
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import Backend, new_caller, postgres_backend

SHARE = StoreLimits(max_tenant_bytes=1000, max_file_bytes=800, allow_root_wipe=True)
PAST = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = PAST

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def texts(store: Store, me: AuthContext, project: str, path: str) -> list[str]:
    """Return the versions of a path, oldest first."""
    kept = store.history(me, project, path)
    return [store.version_text(me, project, path, version.version) for version in reversed(kept)]


@pytest.mark.req("SV-14.a")
def test_versions_deleted_files_and_all_projects_count(backend: Backend, me: AuthContext) -> None:
    store = backend.store(SHARE)
    assert store.usage(me) == (0, 0)
    store.write(me, "p", "/a", "x" * 100)
    store.write(me, "q", "/b", "x" * 50)
    assert store.usage(me) == (150, 0)
    store.write(me, "p", "/a", "y")
    store.write(me, "q", "/b", "z", mode="TRUNCATE")
    assert store.usage(me) == (102, 150)
    store.delete(me, "q", "/b")
    assert store.usage(me) == (101, 151)
    store.restore(me, "q", "/b", store.history(me, "q", "/b")[-1].version)
    assert store.usage(me) == (151, 151)
    store.rename(me, "p", "/a", "/c")
    assert store.usage(me) == (151, 151)
    store.write(me, "p", "/d", "new")
    store.rename(me, "p", "/d", "/c", overwrite=True)
    assert store.usage(me) == (53, 252), "what was replaced can be brought back, so it counts"
    assert store.usage(new_caller()) == (0, 0)
    assert store.usage(me) == backend.true_usage(me)


@pytest.mark.req("SV-14.a")
def test_over_the_share_the_oldest_history_of_all_projects_goes_and_no_live_content(
    backend: Backend, me: AuthContext
) -> None:
    store = backend.store(SHARE, now=Clock())
    store.write(me, "p", "/a", "a" * 300)
    store.write(me, "p", "/a", "b" * 300, mode="TRUNCATE")
    store.write(me, "q", "/gone", "c" * 100)
    store.delete(me, "q", "/gone")
    store.write(me, "r", "/d", "d" * 200)
    assert store.usage(me).total_bytes == 900
    store.write(me, "r", "/e", "e" * 150)
    assert texts(store, me, "p", "/a") == [], "the oldest version went"
    assert texts(store, me, "q", "/gone") == ["c" * 100], "the deleted file is younger and was not needed"
    assert store.usage(me) == (650, 100)
    store.write(me, "r", "/f", "f" * 300)
    with pytest.raises(NotFound):
        store.history(me, "q", "/gone")
    assert store.usage(me) == (950, 0) == backend.true_usage(me)
    contents = [("p", "/a", "b" * 300), ("r", "/d", "d" * 200), ("r", "/e", "e" * 150), ("r", "/f", "f" * 300)]
    assert all(store.read(me, project, path).text == text for project, path, text in contents)


@pytest.mark.req("SV-14.a")
def test_then_growth_is_refused_with_what_is_used_and_nothing_is_lost(backend: Backend, me: AuthContext) -> None:
    store = backend.store(SHARE)
    store.write(me, "p", "/a", "a" * 400)
    store.write(me, "q", "/b", "b" * 500)
    store.write(me, "q", "/b", "B", mode="OVERWRITE")
    before = store.usage(me)
    with pytest.raises(QuotaExceeded) as refused:
        store.write(me, "r", "/c", "c" * 101)
    for part in ("1001 bytes", "limit is 1000", "900 bytes", "max_tenant_bytes", "Delete or shorten"):
        assert part in refused.value.message
    assert store.usage(me) == before == backend.true_usage(me)
    assert not store.stat(me, "r", "/c").exists
    assert store.write(me, "r", "/c", "c" * 100).bytes_written == 100, "equality is fine"
    assert store.usage(me) == (1000, 0)


@pytest.mark.req("SV-14.a")
def test_deletes_and_shrinking_writes_succeed_however_full_it_is(backend: Backend, me: AuthContext) -> None:
    roomy, tight = backend.store(), backend.store(StoreLimits(max_tenant_bytes=10, allow_root_wipe=True))
    for path in ("/a", "/b", "/d/c"):
        roomy.write(me, "p", path, "x" * 100)
    tight.write(me, "p", "/a", "short", mode="TRUNCATE")
    tight.write(me, "p", "/b", "y" * 100, mode="OVERWRITE")
    tight.rename(me, "p", "/b", "/e")
    assert tight.usage(me) == (205, 0), "no history fits"
    with pytest.raises(QuotaExceeded):
        tight.write(me, "p", "/a", "!")
    tight.delete(me, "p", "/d", recursive=True)
    tight.delete(me, "p", "", recursive=True)
    assert tight.usage(me) == (0, 0) == backend.true_usage(me)
    assert tight.write(me, "p", "/a", "!").size == 1


@pytest.mark.req("SV-14.a")
def test_without_a_limit_nothing_goes(backend: Backend, me: AuthContext) -> None:
    store = backend.store(StoreLimits(max_tenant_bytes=0))
    for number in range(9):
        store.write(me, "p", "/a", str(number) * 500_000, mode="TRUNCATE")
    assert store.usage(me) == (500_000, 4_000_000)


@pytest.mark.req("SV-14.a")
def test_purge_and_pruning_are_counted(backend: Backend, me: AuthContext) -> None:
    clock = Clock()
    store = backend.store(StoreLimits(versions_kept=3), now=clock)
    for number in range(7):
        store.write(me, "p", "/a", f"{number:010}", mode="TRUNCATE")
    store.write(me, "p", "/b", "x" * 9)
    store.write(me, "p", "/b", "y")
    store.delete(me, "p", "/b")
    assert store.usage(me) == (10, 49) == backend.true_usage(me)
    clock.at += timedelta(days=31)
    store.write(me, "p", "/a", "new", mode="TRUNCATE")
    assert store.purge(backend.open_upkeep()) >= 4
    assert store.usage(me) == (3, 10) == backend.true_usage(me)


@pytest.mark.req("SV-14.a")
def test_more_history_than_one_round_evicts_goes_in_order(backend: Backend, me: AuthContext) -> None:
    clock = Clock()
    store = backend.store(StoreLimits(max_tenant_bytes=2000, versions_kept=1000), now=clock)
    for number in range(300):
        store.write(me, "p", "/a", f"{number % 10}", mode="TRUNCATE")
        store.write(me, "q", f"/{number}", "x")
        store.delete(me, "q", f"/{number}")
    assert store.usage(me) == (1, 599)
    store.write(me, "r", "/big", "y" * 1950)
    assert store.usage(me) == (1951, 49) == backend.true_usage(me)
    assert texts(store, me, "p", "/a") == [f"{number % 10}" for number in range(275, 299)]
    known = [number for number in range(300) if _is_known(store, me, f"/{number}")]
    assert known == list(range(275, 300)), "the oldest went first, whichever kind they were"


def _is_known(store: Store, me: AuthContext, path: str) -> bool:
    try:
        store.history(me, "q", path)
    except NotFound:
        return False
    return True


@pytest.mark.req("SV-14.a", "ST-35")
@pytest.mark.parametrize("max_bytes", [2_000, 1_000_000])
def test_many_writers_of_many_projects_are_counted_rightly_and_stay_within_the_share(
    backend: Backend, me: AuthContext, max_bytes: int
) -> None:
    stores = [
        backend.store(StoreLimits(max_tenant_bytes=max_bytes, max_file_bytes=1000, versions_kept=2)) for _ in "12"
    ]
    over = list[int]()

    def work(number: int) -> None:
        choose, store = random.Random(number), stores[number % 2]
        for _ in range(25):
            path, project = f"/{choose.randrange(3)}", f"p{number % 5}"
            try:
                change(store, choose, project, path)
            except (QuotaExceeded, NotFound, ResourceBusy):
                pass
            if store.usage(me).total_bytes > max_bytes:
                over.append(store.usage(me).total_bytes)

    def change(store: Store, choose: random.Random, project: str, path: str) -> None:
        if choose.random() < 0.2:
            store.delete(me, project, path)
        elif choose.random() < 0.1:
            store.rename(me, project, path, "/0", overwrite=True)
        else:
            store.write(me, project, path, "x" * choose.randrange(300), mode=choose.choice(["APPEND", "TRUNCATE"]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not over
    assert stores[0].usage(me) == backend.true_usage(me)


@pytest.mark.req("SV-14.a")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_any_script_the_counters_are_the_truth(backend: Backend, me: AuthContext, seed: int) -> None:
    clock, choose = Clock(), random.Random(seed)
    store = backend.store(
        StoreLimits(max_tenant_bytes=500, max_file_bytes=400, versions_kept=3, allow_root_wipe=True), now=clock
    )
    for _ in range(150):
        project, path = choose.choice("pq"), choose.choice(["/a", "/b", "/d/a", "/d/b"])
        step = choose.choice(["write"] * 6 + ["delete", "restore", "rename", "purge", "wipe"])
        try:
            take_step(store, backend, choose, me, (step, project, path))
        except HoldfastError:
            pass
        clock.at += timedelta(days=choose.choice([0, 0, 0, 9]))
        assert store.usage(me) == backend.true_usage(me)
        assert store.usage(me).total_bytes <= 500


def take_step(
    store: Store, backend: Backend, choose: random.Random, me: AuthContext, step: tuple[str, str, str]
) -> None:
    """Change a file or a project."""
    verb, project, path = step
    if verb == "write":
        mode = choose.choice(["APPEND", "TRUNCATE", "OVERWRITE"])
        store.write(me, project, path, "x" * choose.randrange(150), mode=mode)
    elif verb == "delete":
        store.delete(me, project, path)
    elif verb == "restore":
        for version in store.history(me, project, path)[-1:]:
            store.restore(me, project, path, version.version)
    elif verb == "rename":
        store.rename(me, project, path, "/b", overwrite=choose.random() < 0.7)
    elif verb == "purge":
        store.purge(backend.open_upkeep())
    else:
        store.delete(me, project, "", recursive=True)


@pytest.mark.req("SV-14.a")
def test_a_change_that_fails_counts_nothing(backend: Backend, me: AuthContext) -> None:
    store = backend.store(StoreLimits(max_project_bytes=10, max_tenant_bytes=100))
    store.write(me, "p", "/a", "x" * 8)
    with pytest.raises(QuotaExceeded, match="It holds 8"):
        store.write(me, "p", "/a", "x" * 8)
    assert store.usage(me) == (8, 0) == backend.true_usage(me)
    assert store.write(me, "p", "/b", "x", idempotency_key="k").size == 1
    assert store.write(me, "p", "/b", "x", idempotency_key="k").size is None
    assert store.usage(me) == (9, 0)


@pytest.mark.req("SV-13.a", "SV-14.a")
def test_a_tenant_near_its_limit_that_waits_leaves_the_connections_to_others(
    postgres_url: str, me: AuthContext
) -> None:
    limits = StoreLimits(max_tenant_bytes=1000, max_file_bytes=500, lock_timeout_ms=2000)
    with postgres_backend(postgres_url) as backend:
        database = PostgresStore(postgres_url, pool_size=2)
        store, other = Store(database, limits), backend.database()
        store.write(me, "p", "/a", "x")
        held = other.mutation(me.apikey_hash, "", 1000)  # the lock of the whole tenant, as another server holds it
        with ThreadPoolExecutor(8) as pool:
            with held as mutation:
                assert mutation.state.version == 0
                waiting = [pool.submit(store.write, me, f"p{number}", "/a", "x") for number in range(8)]
                time.sleep(0.3)
                started = time.monotonic()
                store.write(new_caller(), "p", "/a", "x")
                took = time.monotonic() - started
            outcomes = [future.exception() for future in waiting]
        database.close()
        assert took < 1.0
        assert all(outcome is None or isinstance(outcome, ResourceBusy) for outcome in outcomes)
        assert None in outcomes


@pytest.mark.req("SV-14.a", "ST-35")
def test_a_tenant_far_from_its_share_does_not_wait_for_its_other_projects(backend: Backend, me: AuthContext) -> None:
    database, store = backend.database(), backend.store()
    with database.mutation(me.apikey_hash, "held", 1000) as mutation:
        assert mutation.state.version == 0
        started = time.monotonic()
        store.write(me, "p", "/a", "x")
        assert time.monotonic() - started < 2
