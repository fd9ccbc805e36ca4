"""The project store for many callers, on SQLite and on PostgreSQL: locks, tenants, retries, jobs, versions."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from holdfast.auth.context import LOCAL_USER
from holdfast.store.model import StoreLimits
from tests.helpers.agent import Agent, Reply
from tests.helpers.stores import SMALL, Deployment, Files

pytestmark = pytest.mark.timeout(90)

TABLES = ("mcp_files", "mcp_file_versions", "mcp_file_index_jobs", "mcp_applied", "mcp_projects")


def counts(place: Deployment, project: str) -> dict[str, int]:
    """Return how many rows each table has for a project."""
    return {
        table: place.rows(f"SELECT count(*) AS n FROM {table} WHERE project = '{project}'")[0]["n"] for table in TABLES
    }


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in order of their name; fails when one was torn."""
    assert text.startswith("<") and text.endswith(">")
    return sorted(text[1:-1].split("><"))


@pytest.mark.req("ST-33")
def test_24_parallel_appends_leave_every_token_once(files: Files) -> None:
    calls = [("file_write", {"project": files.project, "path": "/log", "content": f"<{n}>"}) for n in range(24)]
    assert all(not reply.is_error for reply in files.agent.parallel(calls))
    assert tokens(files.text("/log")) == sorted(str(n) for n in range(24))


@pytest.mark.req("ST-33", "ST-39")
def test_appends_of_two_clients_and_another_instance_leave_every_token_once(
    place: Deployment, small: Deployment, files: Files
) -> None:
    instance = place.backend.store()

    def by(agent: Agent, name: str) -> Callable[[int], object]:
        own = Files(agent, files.project)
        return lambda n: own("file_write", path="/log", content=f"<{name}{n}>").ok()

    with place.another_client() as second:
        writers = [
            by(place.agent, "a"),
            by(second, "b"),
            lambda n: instance.write(LOCAL_USER, files.project, "/log", f"<c{n}>"),
        ]
        names = ["a", "b", "c"]
        if place.is_postgres:
            writers.append(by(small.agent, "d"))
            names.append("d")
        with ThreadPoolExecutor(len(writers)) as threads:
            list(threads.map(lambda write: [write(n) for n in range(12)], writers))
    assert tokens(files.text("/log")) == sorted(f"{name}{n}" for name in names for n in range(12))
    (row,) = place.rows(f"SELECT version FROM mcp_projects WHERE project = '{files.project}'")
    assert row["version"] == 12 * len(names)


@pytest.mark.req("ST-34", "ST-35")
def test_a_held_project_is_busy_after_three_seconds_and_others_do_not_wait(place: Deployment, files: Files) -> None:
    files.replace("/a", "before")
    with place.holding(files.project):
        start = time.monotonic()
        waiting = files.agent.start("file_write", {"project": files.project, "path": "/a", "content": "x"})
        Files(files.agent, f"{files.project}.other").replace("/a", "x")
        assert files.text("/a") == "before"
        assert time.monotonic() - start < 2.5
        reply = waiting.result(timeout=30)
        waited = time.monotonic() - start
    assert (reply.code, reply.error["retryable"]) == ("RESOURCE_BUSY", True)
    assert 2.8 < waited < 6
    assert files.text("/a") == "before"
    files("file_write", path="/a", content="+").ok()


@pytest.mark.req("ST-34", "ST-39")
def test_a_lock_given_back_in_time_is_waited_for(place: Deployment, files: Files) -> None:
    with place.holding(files.project):
        waiting = files.agent.start("file_write", {"project": files.project, "path": "/a", "content": "x"})
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
    waiting.result(timeout=30).ok()


@pytest.mark.req("ST-36", "SV-11.d")
def test_to_another_tenant_everything_is_as_if_absent(place: Deployment, project: str) -> None:
    with place.tenant(f"key-{uuid4().hex}") as owner, place.tenant(f"key-{uuid4().hex}") as stranger:
        mine, theirs = Files(owner, project), Files(stranger, project)
        mine.replace("/d/a", "one")
        mine.replace("/d/a", "two canaries")
        mine("file_write", path="/gone", content="x", idempotency_key="k").ok()
        mine("file_delete", path="/gone").ok()

        absent = Files(stranger, f"p-{uuid4().hex}")
        assert answers(theirs) == answers(absent)
        assert stranger.call("project_list").data["projects"] == []
        assert stranger.call("file_search", project="*", query="canaries").data == {"chunks": []}

        theirs("file_write", path="/d/a", content="theirs", idempotency_key="k").ok()
        assert theirs.text("/d/a") == "theirs"
        assert mine.text("/d/a") == "two canaries"
        theirs("file_delete", path="/d", recursive=True).ok()
        assert mine.paths() == ["/d/a"]
        assert Files(place.agent, project).data("file_stat", path="/d/a")["exists"] is False


def answers(files: Files) -> list[tuple[bool, str, str]]:
    """Return what each tool says to one who has no file there, as data and as text, without the project's name."""
    calls: list[tuple[str, dict[str, Any]]] = [
        *[("file_stat", {"path": path}) for path in ("/d/a", "/d", "/gone", "")],
        *[("file_read", {"path": path}) for path in ("/d/a", "/d", "/gone")],
        *[("file_list", {"path": path, "depth": depth}) for path in ("", "/d", "/d/a") for depth in (0, 1)],
        *[("file_history", {"path": path}) for path in ("/d/a", "/gone")],
        *[("file_restore", {"path": path, "version": version}) for path in ("/d/a", "/gone") for version in (1, 2)],
        ("file_delete", {"path": "/d/a"}),
        ("file_delete", {"path": "/d", "recursive": True, "idempotency_key": "k"}),
        ("file_rename", {"from_path": "/d", "to_path": "/e"}),
        ("file_write", {"path": "/d/a", "content": "x", "mode": "OVERWRITE", "offset": 1}),
        ("file_search", {"query": "canaries"}),
    ]
    replies: list[Reply] = [files(tool, **arguments) for tool, arguments in calls]
    texts = [(reply.is_error, json.dumps(reply.result.structured_content), reply.text) for reply in replies]
    return [
        (is_error, data.replace(files.project, ""), text.replace(files.project, "")) for is_error, data, text in texts
    ]


@pytest.mark.req("ST-37")
def test_a_reader_sees_old_or_new(place: Deployment, files: Files) -> None:
    size = 300_000
    files.replace("/a", "0" * size)
    seen: set[str] = set()
    done = threading.Event()
    with place.another_client() as second:
        own = Files(second, files.project)

        def read() -> None:
            while not done.is_set():
                seen.add(own.text("/a"))

        reader = threading.Thread(target=read)
        reader.start()
        for digit in "123456789":
            files.replace("/a", digit * size)
        done.set()
        reader.join()
    assert seen
    assert all(text == text[0] * size for text in seen)


@pytest.mark.req("ST-38")
def test_a_failed_change_leaves_no_row_no_job_and_no_key(place: Deployment, files: Files) -> None:
    files.write("/f", "/d/x")
    before = counts(place, files.project)
    failing: list[tuple[str, dict[str, Any]]] = [
        ("file_write", {"path": "/f/x", "content": "x"}),
        ("file_write", {"path": "/f", "content": "x", "offset": 99, "mode": "OVERWRITE"}),
        ("file_delete", {"path": "/d"}),
        ("file_rename", {"from_path": "/f", "to_path": "/d"}),
        ("file_restore", {"path": "/f", "version": 99}),
    ]
    for tool, arguments in failing:
        assert files(tool, idempotency_key="k", **arguments).is_error
    assert counts(place, files.project) == before
    nowhere = f"{files.project}.new"
    assert Files(files.agent, nowhere)("file_delete", path="/x").code == "NOT_FOUND"
    assert set(counts(place, nowhere).values()) == {0}


@pytest.mark.req("ST-39")
def test_changes_are_ordered_by_a_counter_without_a_gap(place: Deployment, files: Files) -> None:
    calls = [("file_write", {"project": files.project, "path": f"/{n}", "content": "x"}) for n in range(12)]
    assert not any(reply.is_error for reply in files.agent.parallel(calls))
    rows = place.rows(f"SELECT version, updated_at FROM mcp_files WHERE project = '{files.project}' ORDER BY version")
    assert [row["version"] for row in rows] == list(range(1, 13))
    times = [row["updated_at"] for row in rows]
    assert times == sorted(set(times))


@pytest.mark.req("ST-40")
def test_every_change_owes_its_index_jobs(place: Deployment, files: Files) -> None:
    def jobs() -> dict[str, str]:
        asked = f"FROM mcp_file_index_jobs WHERE project = '{files.project}' ORDER BY version, id"
        rows = place.rows(f"SELECT file_path, operation {asked}")
        return {row["file_path"]: row["operation"] for row in rows}

    files.write("/d/a", "/d/b", "/c")
    assert jobs() == {"/d/a": "UPSERT", "/d/b": "UPSERT", "/c": "UPSERT"}
    files("file_rename", from_path="/d", to_path="/e").ok()
    files("file_delete", path="/c").ok()
    assert jobs() == {"/d/a": "DELETE", "/d/b": "DELETE", "/e/a": "UPSERT", "/e/b": "UPSERT", "/c": "DELETE"}


@pytest.mark.req("ST-40")
def test_a_written_file_is_found_and_a_renamed_one_at_its_new_place(files: Files) -> None:
    files.replace("/b", "in the way")
    files("file_write", path="/docs/a", content="the quick brown fox").ok()
    files("file_rename", from_path="/docs/a", to_path="/b", overwrite=True).ok()
    (hit,) = files.data("file_search", query="Quick")["chunks"]
    assert (hit["file_path"], hit["chunk_content"], hit["is_full_file"]) == ("/b", "the quick brown fox", True)
    read = files.data("file_read", path="/b", offset=hit["file_seek_start_bytes"], length=hit["file_seek_end_bytes"])
    assert read["content"] == hit["chunk_content"]
    assert files("file_search", query=" ").code == "INVALID_QUERY"
    everywhere = files.data("file_search", project="*", query="quick", limit=20)["chunks"]
    assert [one["file_path"] for one in everywhere if one["project"] == files.project] == ["/b"]


@pytest.mark.req("ST-41")
def test_postgresql_shows_the_application_nothing_without_a_tenant(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO mcp_projects VALUES ('wall', 'p', 1, 0, 0, now())")
        connection.execute("SET ROLE holdfast_app")
        for table in TABLES:
            assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
        connection.execute("SELECT set_config('holdfast.apikey_hash', 'wall', true)")
        assert connection.execute("SELECT count(*) FROM mcp_projects").fetchone() == (1,)
        connection.rollback()
        connection.execute("SET ROLE holdfast_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO mcp_projects VALUES ('wall', 'p', 1, 0, 0, now())")


@pytest.mark.req("ST-42")
def test_a_retried_change_counts_once(files: Files) -> None:
    for _ in range(2):
        assert files.data("file_write", path="/a", content="x", idempotency_key="w") == {"bytes_written": 1}
    assert files.text("/a") == "x"
    assert files("file_write", path="/a", content="y", idempotency_key="w").code == "CONFLICT"
    for _ in range(2):
        moved = files.data("file_rename", from_path="/a", to_path="/b", idempotency_key="m")
        assert moved == {"moved_count": 1}
    for _ in range(2):
        assert files.data("file_delete", path="/b", idempotency_key="d") == {"deleted_count": 1}
    newest = files.data("file_history", path="/b")["versions"][0]
    for _ in range(2):
        restored = files.data("file_restore", path="/b", version=newest["version"], idempotency_key="r")
        assert restored == {"bytes_written": 1}
    assert files.text("/b") == "x"


@pytest.mark.req("ST-42")
def test_a_retry_after_a_restart_of_the_client_and_at_once_counts_once(place: Deployment, files: Files) -> None:
    arguments = {"project": files.project, "path": "/a", "content": "x", "idempotency_key": "k"}
    replies = files.agent.parallel([("file_write", arguments)] * 8)
    assert {reply.data["bytes_written"] for reply in replies} == {1}
    with place.another_client() as second:
        assert second.call("file_write", **arguments).data == {"bytes_written": 1}
    assert files.text("/a") == "x"


@pytest.mark.req("ST-50")
def test_versions_come_back_also_of_moved_and_deleted_files(files: Files) -> None:
    for text in ("one", "two", "three"):
        files.replace("/a", text)
    files("file_rename", from_path="/a", to_path="/b").ok()
    assert [one["size"] for one in files.data("file_history", path="/b")["versions"]] == [3, 3]
    files("file_delete", path="/b").ok()
    newest, *_, oldest = files.data("file_history", path="/b")["versions"]
    assert newest["written_at"] < newest["replaced_at"]
    assert files.data("file_restore", path="/b", version=oldest["version"]) == {"bytes_written": 3}
    assert files.text("/b") == "one"
    assert files.data("file_restore", path="/b", version=newest["version"]) == {"bytes_written": 5}
    assert files.text("/b") == "three"
    assert files("file_restore", path="/b", version=99).code == "NOT_FOUND"
    assert files("file_history", path="/none").code == "NOT_FOUND"


@pytest.mark.req("ST-50")
def test_the_newest_twenty_versions_are_kept(files: Files) -> None:
    for number in range(23):
        files.replace("/a", "x" * number)
    sizes = [one["size"] for one in files.data("file_history", path="/a")["versions"]]
    assert sizes == list(range(21, 1, -1))


@pytest.mark.req("ST-50")
def test_versions_are_outside_the_quota_and_as_many_as_the_settings_say(small: Deployment, project: str) -> None:
    files = Files(small.agent, project)
    for number in range(20):
        files.replace("/a", f"{number:03}".ljust(100, "."))
    versions = files.data("file_history", path="/a")["versions"]
    assert len(versions) == SMALL["versions_kept"]
    files("file_restore", path="/a", version=versions[0]["version"]).ok()
    assert files.text("/a").startswith("018")


@pytest.mark.req("ST-22", "ST-50")
def test_the_purge_removes_what_is_thirty_days_old(place: Deployment, files: Files) -> None:
    files.replace("/kept", "one")
    files.replace("/kept", "two")
    files.write("/gone")
    files("file_delete", path="/gone").ok()

    def purge(days: float) -> None:
        later = datetime.now(UTC) + timedelta(days=days)
        place.backend.store(StoreLimits(), now=lambda: later).purge(place.backend.open_upkeep())

    purge(29)
    assert len(files.data("file_history", path="/gone")["versions"]) == 1
    assert len(files.data("file_history", path="/kept")["versions"]) == 1
    purge(31)
    assert files("file_history", path="/gone").code == "NOT_FOUND"
    assert files.data("file_history", path="/kept")["versions"] == []
    assert files.text("/kept") == "two"
    assert [row["path"] for row in place.rows(f"SELECT path FROM mcp_files WHERE project = '{files.project}'")] == [
        "/kept"
    ]


@pytest.mark.req("ST-51")
def test_projects_are_listed_with_files_bytes_and_last_change(place: Deployment, files: Files) -> None:
    def mine() -> list[dict[str, Any]]:
        return [one for one in place.agent.call("project_list").data["projects"] if one["project"] == files.project]

    assert mine() == []
    files.write("/a", "/b", "/gone")
    files("file_delete", path="/gone").ok()
    (found,) = mine()
    assert (found["file_count"], found["total_bytes"]) == (2, 4)
    assert found["updated_at"] > files.data("file_stat", path="/b")["updated_at"]
