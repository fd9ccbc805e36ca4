"""Tenants see nothing of each other: what one observes is the same, byte for byte, with and without the others."""

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.postgres.search import rows as postgres_search
from holdfast.adapters.postgres.store import store as postgres_store
from holdfast.adapters.sqlite.search import rows as sqlite_search
from holdfast.adapters.sqlite.store import files as sqlite_rows
from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.errors import HoldfastError
from holdfast.search.service import Search
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import Backend, new_caller, sqlite_backend

PROJECTS = ["p", "q"]
PATHS = ["", "/a", "/a/x", "/a/y", "/a-b", "/b", "/b/c/d", "/c%_"]
STEPS = 60


def step(choose: random.Random) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return one call of any verb, drawn by chance."""
    project, path, other = choose.choice(PROJECTS), choose.choice(PATHS), choose.choice(PATHS)
    text = choose.choice(["one", "two é", "needle"])
    key = choose.choice([None, None, "k1", "k2"])
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("write", (project, path, text), {"mode": choose.choice(["APPEND", "TRUNCATE"]), "idempotency_key": key}),
        ("write", (project, path, text), {"offset": choose.randrange(4), "mode": "OVERWRITE"}),
        ("read", (project, path, choose.randrange(4)), {}),
        ("stat", (project, path), {}),
        ("delete", (project, path), {"recursive": choose.random() < 0.7}),
        ("rename", (project, path, other), {"overwrite": choose.random() < 0.5}),
        ("listing", (project, path, choose.randrange(4), choose.randrange(4)), {}),
        ("search", (choose.choice(["*", project]), "needle one", "/a"), {}),
        ("history", (project, path), {}),
        ("restore", (project, path, choose.randrange(1, 9)), {}),
        ("projects", (), {}),
    ]
    return choose.choice(calls)


class Ticking:
    """A clock of one tenant: it moves with that tenant's calls alone."""

    def __init__(self) -> None:
        self.at = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


def observed(store: Store, search: Search, auth: AuthContext, call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> str:
    """Return everything that a caller sees of one call."""
    verb, arguments, options = call
    try:
        answer = getattr(search if verb == "search" else store, verb)(auth, *arguments, **options)
    except HoldfastError as error:
        return repr(error.payload())
    return f"{verb} {answer!r}"


def run(backend: Backend, me: AuthContext, seed: int, *, others: int) -> list[str]:
    """Run one tenant's script, with so many other tenants' calls before each of its own."""
    mine, theirs = random.Random(seed), random.Random(seed + 1000)
    clock, strangers = Ticking(), [new_caller() for _ in range(2)]
    limits = StoreLimits(allow_root_wipe=True, max_project_bytes=60)
    store, noise, search = backend.store(limits, now=clock), backend.store(limits), backend.search()
    seen = []
    for _ in range(STEPS):
        for _ in range(others):
            observed(noise, search, theirs.choice(strangers), step(theirs))
        clock.at += timedelta(seconds=1)
        seen.append(observed(store, search, me, step(mine)))
    return seen


@pytest.mark.req("ST-36")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_tenant_observes_the_same_with_and_without_others(backend: Backend, seed: int) -> None:
    alone = run(backend, new_caller(), seed, others=0)
    among = run(backend, new_caller(), seed, others=2)
    assert alone == among
    assert sum("code" not in line for line in alone) > STEPS // 4


@pytest.mark.req("ST-36")
def test_both_databases_answer_a_script_alike(backend: Backend, tmp_path: Path) -> None:
    with sqlite_backend(tmp_path / "twin") as twin:
        expected = run(twin, new_caller(), 4, others=0)
    assert run(backend, new_caller(), 4, others=0) == expected


@pytest.mark.req("ST-36")
def test_a_stranger_finds_every_path_absent_in_every_verb(backend: Backend, store: Store, me: AuthContext) -> None:
    stranger, search = new_caller(), backend.search()
    store.write(me, "p", "/secret/needle", "one needle")
    store.write(me, "p", "/secret/needle", "two needle")
    for path in ("/secret/needle", "/secret"):
        assert not store.stat(stranger, "p", path).exists
        for verb, arguments in (
            ("read", ()),
            ("delete", ()),
            ("rename", ("/x",)),
            ("listing", ()),
            ("history", ()),
            ("restore", (1,)),
        ):
            theirs = observed(store, search, stranger, (verb, ("p", path, *arguments), {}))
            absent = observed(store, search, stranger, (verb, ("p", "/absent", *arguments), {}))
            assert theirs == absent.replace("/absent", path)
    assert search.search(stranger, "p", "needle") == []
    assert search.search(stranger, "*", "needle") == []
    assert store.projects(stranger) == []
    assert store.write(stranger, "p", "/secret", "a file of my own").bytes_written == 16
    assert store.read(me, "p", "/secret/needle").text == "one needletwo needle"


class Recorded(dict[str, Any]):
    """Statements that remember in which order they were asked for."""

    def __init__(self, statements: dict[str, Any]) -> None:
        super().__init__(statements)
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return super().__getitem__(name)


@pytest.mark.req("ST-36")
@pytest.mark.parametrize("path", ["/secret/needle", "/secret"])
def test_a_strangers_path_takes_the_same_statements_as_an_absent_one(
    backend: Backend, store: Store, me: AuthContext, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = new_caller()
    store.write(me, "p", "/secret/needle", "one")
    store.write(me, "p", "/secret/needle", "two")
    rows = {"sqlite": sqlite_rows, "postgres": postgres_store}[backend.name]
    recorded = Recorded(dict(rows.STATEMENTS))
    monkeypatch.setattr(rows, "STATEMENTS", recorded)
    search_rows = {"sqlite": sqlite_search, "postgres": postgres_search}[backend.name]
    looked_up = Recorded(dict(search_rows.STATEMENTS))
    monkeypatch.setattr(search_rows, "STATEMENTS", looked_up)
    search = backend.search()

    def statements(verb: str, *arguments: Any) -> list[str]:
        recorded.asked.clear()
        looked_up.asked.clear()
        observed(store, search, stranger, (verb, arguments, {}))
        return recorded.asked + looked_up.asked

    for verb, rest in {
        "stat": (),
        "read": (),
        "delete": (),
        "rename": ("/x",),
        "listing": (),
        "history": (),
        "restore": (1,),
    }.items():
        asked = statements(verb, "p", path, *rest)
        assert asked
        assert asked == statements(verb, "p", path.replace("secret", "absent"), *rest)
    assert statements("search", "p", "one")
    assert statements("search", "p", "one") == statements("search", "none", "one")


@pytest.mark.req("ST-36")
def test_the_local_user_is_a_tenant_like_any_other(store: Store, me: AuthContext, tmp_path: Path) -> None:
    project = f"only-{me.apikey_hash[:8]}"
    store.write(LOCAL_USER, project, "/a", "mine")
    assert store.read(LOCAL_USER, project, "/a").text == "mine"
    assert project in [one.project for one in store.projects(LOCAL_USER)]
    assert not store.stat(me, project, "/a").exists


@pytest.mark.req("ST-36")
def test_a_tenant_that_only_looks_leaves_no_file(tmp_path: Path) -> None:
    with sqlite_backend(tmp_path / "store") as backend:
        store, stranger = backend.store(), new_caller()
        store.stat(stranger, "p", "/a")
        for verb, arguments in (
            ("read", ("p", "/a")),
            ("delete", ("p", "/a")),
            ("rename", ("p", "/a", "/b")),
            ("history", ("p", "/a")),
        ):
            with pytest.raises(HoldfastError):
                getattr(store, verb)(stranger, *arguments)
        assert not list((tmp_path / "store").glob("*.db"))
        store.write(stranger, "p", "/a", "x")
        (file,) = (tmp_path / "store").glob("*.db")
        assert file.stat().st_mode & 0o777 == 0o600
        assert stranger.apikey_hash not in file.name


def test_few_files_stay_open_however_many_tenants_there_are(tmp_path: Path) -> None:
    with sqlite_backend(tmp_path / "store") as backend:
        database = backend.database()
        store = Store(database, StoreLimits())
        tenants = [new_caller() for _ in range(40)]
        for tenant in tenants:
            store.write(tenant, "p", "/a", "x")
        open_files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        stores = {path for path in open_files if path.startswith(str(tmp_path)) and path.endswith(".db")}
        assert 0 < len(stores) <= 32
        assert all(store.read(tenant, "p", "/a").text == "x" for tenant in tenants)
