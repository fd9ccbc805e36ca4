"""Nothing an agent does is final: versions, restore, purge, and requests that are sent twice."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.auth.context import AuthContext
from holdfast.errors import Conflict, IsDirectory, NotFound
from holdfast.store.model import StoreLimits, WrittenFile
from holdfast.store.service import Store
from tests.helpers.databases import Backend, new_caller


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


@pytest.mark.req("ST-50")
def test_every_change_keeps_the_bytes_before_it(store: Store, me: AuthContext) -> None:
    store.write(me, "p", "/a", "one")
    store.write(me, "p", "/a", " two")
    store.write(me, "p", "/a", "ONE", mode="OVERWRITE")
    store.write(me, "p", "/a", "three", mode="TRUNCATE")
    kept = store.history(me, "p", "/a")
    assert [store.version_text(me, "p", "/a", one.version) for one in kept] == ["ONE two", "one two", "one"]
    assert [one.size for one in kept] == [7, 7, 3]
    assert all(one.written_at < one.replaced_at for one in kept)
    assert store.restore(me, "p", "/a", kept[-1].version).bytes_written == 3
    assert store.read(me, "p", "/a").text == "one"
    assert store.version_text(me, "p", "/a", store.history(me, "p", "/a")[0].version) == "three", (
        "restore is a new write"
    )
    with pytest.raises(NotFound):
        store.restore(me, "p", "/a", 999)
    with pytest.raises(NotFound, match=f"no version {10**30} of /a"):
        store.restore(me, "p", "/a", 10**30)


@pytest.mark.req("ST-50")
def test_only_the_newest_versions_are_kept(backend: Backend, store: Store, me: AuthContext) -> None:
    for number in range(25):
        store.write(me, "p", "/a", str(number), mode="TRUNCATE")
    kept = store.history(me, "p", "/a")
    assert [store.version_text(me, "p", "/a", one.version) for one in kept] == [
        str(number) for number in range(23, 3, -1)
    ]
    rows = backend.look(me, f"SELECT count(*) AS n FROM mcp_file_versions WHERE apikey_hash = '{me.apikey_hash}'")
    assert rows == [{"n": 20}]


@pytest.mark.req("ST-50")
def test_rename_moves_the_history(store: Store, me: AuthContext) -> None:
    store.write(me, "p", "/d/a", "one")
    store.write(me, "p", "/d/a", "two", mode="TRUNCATE")
    store.write(me, "p", "/b", "replaced")
    store.rename(me, "p", "/d", "/e")
    with pytest.raises(NotFound):
        store.history(me, "p", "/d/a")
    store.rename(me, "p", "/e/a", "/b", overwrite=True)
    texts = [store.version_text(me, "p", "/b", one.version) for one in store.history(me, "p", "/b")]
    assert sorted(texts) == ["one", "replaced"], "what an overwriting rename replaced can be brought back"
    store.write(me, "p", "/d/a", "anew")
    assert store.history(me, "p", "/d/a") == []


@pytest.mark.req("ST-50", "ST-22")
def test_deleted_paths_come_back_until_the_purge(backend: Backend, me: AuthContext) -> None:
    clock = Clock()
    store = backend.store(now=clock)
    store.write(me, "p", "/d/a", "one")
    store.write(me, "p", "/d/a", "two", mode="TRUNCATE")
    store.delete(me, "p", "/d", recursive=True)
    newest, oldest = store.history(me, "p", "/d/a")
    assert store.version_text(me, "p", "/d/a", newest.version) == "two"
    store.write(me, "p", "/d", "a file now")
    with pytest.raises(IsDirectory):
        store.write(me, "p", "/x/y", "z")
        store.write(me, "p", "/x", "z")
    store.delete(me, "p", "/d")
    assert store.restore(me, "p", "/d/a", oldest.version).bytes_written == 3
    assert store.read(me, "p", "/d/a").text == "one"
    store.delete(me, "p", "/d/a")

    upkeep = backend.open_upkeep()
    clock.at += timedelta(days=29)
    store.purge(upkeep)
    assert store.history(me, "p", "/d/a")
    clock.at += timedelta(days=2)
    assert store.purge(upkeep) > 0
    with pytest.raises(NotFound):
        store.history(me, "p", "/d/a")
    rows = backend.look(me, f"SELECT path FROM mcp_files WHERE apikey_hash = '{me.apikey_hash}'")
    assert [row["path"] for row in rows] == ["/x/y"]
    assert store.read(me, "p", "/x/y").text == "z"


@pytest.mark.req("ST-50")
def test_a_version_goes_when_it_is_too_old(backend: Backend, me: AuthContext) -> None:
    clock = Clock()
    store = backend.store(now=clock)
    store.write(me, "p", "/a", "one")
    clock.at += timedelta(days=40)
    store.write(me, "p", "/a", "two", mode="TRUNCATE")
    assert [store.version_text(me, "p", "/a", one.version) for one in store.history(me, "p", "/a")] == ["one"]
    clock.at += timedelta(days=31)
    assert store.history(me, "p", "/a") == []
    with pytest.raises(NotFound):
        store.version_text(me, "p", "/a", 1)
    store.purge(backend.open_upkeep())
    assert backend.look(me, f"SELECT version FROM mcp_file_versions WHERE apikey_hash = '{me.apikey_hash}'") == []
    assert store.read(me, "p", "/a").text == "two"


@pytest.mark.req("ST-50")
def test_versions_are_outside_the_quota_and_other_tenants_see_nothing(backend: Backend, me: AuthContext) -> None:
    store, stranger = backend.store(StoreLimits(max_project_bytes=10)), new_caller()
    for letter in "abcde":
        store.write(me, "p", "/a", letter * 10, mode="TRUNCATE")
    version = store.history(me, "p", "/a")[0].version
    store.write(stranger, "p", "/b", "x")
    for path in ("/a", "/b"):
        with pytest.raises(NotFound):
            store.restore(stranger, "p", path, 77)
    with pytest.raises(NotFound):
        store.history(stranger, "p", "/a")
    with pytest.raises(NotFound):
        store.version_text(stranger, "p", "/a", version)
    with pytest.raises(NotFound):
        store.restore(stranger, "p", "/a", version)


@pytest.mark.req("ST-50")
@pytest.mark.parametrize("version", [2**64, 2**63, 2**63 - 1, 0, -1, -(2**63) - 1])
def test_a_number_that_is_no_version_is_answered_as_it_was_given(store: Store, me: AuthContext, version: int) -> None:
    store.write(me, "p", "/a", "one")
    store.write(me, "p", "/a", "two", mode="TRUNCATE")
    with pytest.raises(NotFound, match=f"version {version} of"):
        store.restore(me, "p", "/a", version)


@pytest.mark.req("ST-51")
def test_projects_are_listed_with_their_sums(store: Store, me: AuthContext) -> None:
    assert store.projects(me) == []
    store.write(me, "b", "/x", "12")
    store.write(me, "a", "/x", "1")
    store.write(me, "a", "/y", "23")
    store.write(me, "gone", "/x", "1")
    store.delete(me, "gone", "/x")
    store.write(new_caller(), "foreign", "/x", "1")
    assert [(one.project, one.file_count, one.total_bytes) for one in store.projects(me)] == [("a", 2, 3), ("b", 1, 2)]
    assert store.projects(me)[0].updated_at == store.stat(me, "a", "/y").updated_at


@pytest.mark.req("ST-42")
def test_a_retried_change_is_applied_once(backend: Backend, store: Store, me: AuthContext) -> None:
    other = backend.store()
    assert store.write(me, "p", "/a", "x", idempotency_key="w") == WrittenFile(1, 1, is_new=True)
    assert other.write(me, "p", "/a", "x", idempotency_key="w") == WrittenFile(1, None, is_new=False)
    assert store.read(me, "p", "/a").text == "x"
    assert store.write(me, "q", "/a", "x", idempotency_key="w").bytes_written == 1, "a key belongs to its project"
    assert store.write(new_caller(), "p", "/a", "x", idempotency_key="w").bytes_written == 1, "and to its tenant"
    assert store.rename(me, "p", "/a", "/b", idempotency_key="r") == 1
    assert other.rename(me, "p", "/a", "/b", idempotency_key="r") == 1
    assert store.delete(me, "p", "/b", idempotency_key="d") == 1
    assert other.delete(me, "p", "/b", idempotency_key="d") == 1
    assert store.restore(me, "p", "/b", 1, idempotency_key="s").bytes_written == 1
    assert other.restore(me, "p", "/b", 1, idempotency_key="s").bytes_written == 1
    assert store.history(me, "p", "/b")[0].version == 1
    with pytest.raises(Conflict):
        store.write(me, "p", "/a", "y", idempotency_key="w")


@pytest.mark.req("ST-42")
def test_a_key_is_forgotten_after_its_days(backend: Backend, me: AuthContext) -> None:
    clock = Clock()
    store = backend.store(now=clock)
    store.write(me, "p", "/a", "x", idempotency_key="w")
    clock.at += timedelta(days=8)
    store.purge(backend.open_upkeep())
    store.write(me, "p", "/a", "x", idempotency_key="w")
    assert store.read(me, "p", "/a").text == "xx"
