"""`holdfast files` and `holdfast migrate` as a person uses them, on SQLite and on PostgreSQL, with and without a server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.helpers.databases import postgres_database
from tests.helpers.doors import House, until
from tests.helpers.stores import Deployment, Files

pytestmark = pytest.mark.timeout(90)

TOP = Path(__file__).parents[2]


class Commands:
    """The commands of one house, with the project filled in."""

    def __init__(self, house: House, project: str, **env: str) -> None:
        self._house = house
        self._project = project
        self._env = env

    def __call__(self, verb: str, *arguments: str, stdin: bytes = b"") -> "CompletedProcess[bytes]":
        where = [] if verb == "projects" else ["--project", self._project]
        return self._house.run_bytes("files", verb, *where, *arguments, stdin=stdin, **self._env)

    def out(self, verb: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command that must succeed and return what it printed."""
        ran = self(verb, *arguments, stdin=stdin)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout

    def data(self, verb: str, *arguments: str, stdin: bytes = b"") -> Any:
        """Run a command that must succeed and return its JSON."""
        return json.loads(self.out(verb, "--json", *arguments, stdin=stdin))


@pytest.fixture
def commands(place: Deployment, project: str) -> Commands:
    """Give the commands beside the running server."""
    return Commands(place.house, project)


@pytest.fixture
def alone(database_url: str | None, tmp_path: Path) -> Iterator[House]:
    """Give a state folder without a server."""
    house = House(tmp_path, **({"DATABASE_URL": database_url} if database_url else {}))
    yield house
    house.end()


@pytest.mark.req("ST-06", "ST-20", "ST-24", "ST-29", "ST-50")
def test_a_person_sees_and_changes_what_the_agents_see(commands: Commands, files: Files, tmp_path: Path) -> None:
    text = "one\r\nzwei\t€\0end".encode()
    source = tmp_path / "source.txt"
    source.write_bytes(text)
    assert commands.out("put", "/d/a", str(source)).decode() == f"{len(text)} bytes written to /d/a\n"
    assert commands.out("cat", "/d/a") == text
    assert files.text("/d/a").encode() == text
    assert commands.data("put", "/d/a", "--append", stdin=b"!") == {"bytes_written": 1}
    assert commands.out("cat", "/d/a", "--offset", "3", "--length", "2") == b"\r\n"

    files.write("/b")
    assert [line.split()[-1] for line in commands.out("ls").decode().splitlines()] == ["/b", "/d/"]
    assert [one["path"] for one in commands.data("ls", "--depth", "2")["entries"]] == ["/b", "/d", "/d/a"]
    assert b"FILE" in commands.out("stat", "/b")
    assert commands.data("stat", "/b") == files.data("file_stat", path="/b")

    assert commands.data("mv", "/d", "/e") == {"moved_count": 1}
    assert commands.data("rm", "/e", "--recursive") == {"deleted_count": 1}
    assert "has no earlier version" in commands.out("history", "/b").decode()
    newest, first = commands.data("history", "/e/a")["versions"]
    assert commands.out("history", "/e/a").decode().split()[:2] == [str(newest["version"]), str(newest["size"])]
    assert commands.data("restore", "/e/a", str(first["version"])) == {"bytes_written": len(text)}
    assert files.text("/e/a").encode() == text
    assert commands.out("search", "zwei").decode().startswith("/e/a [0, ")
    (mine,) = [one for one in commands.data("projects")["projects"] if one["project"] == files.project]
    assert (mine["file_count"], mine["total_bytes"]) == (2, len(text) + 2)
    assert files.project in commands.out("projects").decode()


@pytest.mark.req("ST-04", "ST-09", "ST-20", "ST-21", "ST-25")
def test_what_cannot_be_done_is_one_line_and_an_exit_code(commands: Commands, files: Files) -> None:
    files.write("/a", "/b", "/d/x")
    refused = {
        ("cat", "/none"): 1,
        ("cat", "/d"): 1,
        ("cat", "none"): 2,
        ("cat", "/a", "--offset", "-1"): 2,
        ("mv", "/a", "/b"): 1,
        ("rm", "/d"): 1,
        ("rm", "", "-r"): 13,
        ("restore", "/a", "99"): 1,
        ("search", " "): 2,
    }
    for line, status in refused.items():
        ran = commands(*line)
        assert (ran.returncode, ran.stdout) == (status, b""), line
        told = ran.stderr.decode()
        assert told.startswith("holdfast: ")
        assert told.count("\n") == 1
    assert commands("stat", "/none").returncode == 1
    assert commands("search", "nowhere to be found", "--prefix", "/none").returncode == 1
    assert commands("put", "/x", stdin=b"\xff\xfe").returncode == 2
    assert commands("cat").returncode == 2
    assert files.paths() == ["/a", "/b", "/d/x"]


@pytest.mark.req("ST-36")
def test_a_key_is_another_tenant_and_keeps_out_of_the_way(place: Deployment, files: Files) -> None:
    key = f"key-{uuid4().hex}"
    theirs = Commands(place.house, files.project, HOLDFAST_KEY=key)
    files.write("/a")
    assert theirs("cat", "/a").returncode == 1
    assert theirs.data("projects")["projects"] == []
    theirs.out("put", "/a", stdin="zwei €".encode())
    assert Commands(place.house, files.project).out("cat", "/a", "--key", key, "--url", place.house.url) == (
        "zwei €".encode()
    )
    assert files.text("/a") == "/a"
    with place.tenant(key) as owner:
        assert Files(owner, files.project).text("/a") == "zwei €"


@pytest.mark.req("ST-03")
def test_a_key_that_is_not_known_or_has_no_server_is_refused(place: Deployment, alone: House, project: str) -> None:
    refused = Commands(place.house, project)("cat", "/a", "--key", "short")
    assert (refused.returncode, refused.stderr) == (13, b"holdfast: The server does not know this key.\n")
    nobody = Commands(alone, project)("cat", "/a", "--key", "a-key-of-sixteen-characters")
    assert nobody.returncode == 75
    assert b"none is running here" in nobody.stderr
    silent = Commands(alone, project)("cat", "/a", "--key", "a-key-of-sixteen", "--url", "http://127.0.0.1:1")
    assert silent.returncode == 75
    assert Commands(alone, project)("cat", "/a", "--key", "k", "--url", "ftp://x").returncode == 2


@pytest.mark.req("SV-02.c", "SV-02.i", "ST-39")
def test_without_a_server_the_commands_do_the_work_themselves_one_after_the_other(alone: House, project: str) -> None:
    commands = Commands(alone, project)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda n: commands.out("put", "/log", "--append", stdin=f"<{n}>".encode()), range(2)))
    assert alone.facts() == {}
    with alone.serve():
        assert sorted(commands.out("cat", "/log").decode()) == sorted("<0><1>")


@pytest.mark.req("ST-41", "SV-21.c")
def test_migrate_brings_a_database_up_to_date_and_says_what_it_did(postgres_server_url: str, tmp_path: Path) -> None:
    with postgres_database(postgres_server_url, migrated=False) as url:
        house = House(tmp_path, DATABASE_URL=url)
        assert "the first server will migrate it" in finding(house)["text"]
        first = house.run("migrate")
        assert first.returncode == 0, first.stderr
        assert all(line.startswith("applied: ") for line in first.stdout.splitlines())
        assert json.loads(house.run("migrate", "--json").stdout) == {"steps": []}
        assert "its schema is up to date" in finding(house)["text"]
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT count(*) FROM mcp_migrations").fetchone()
        assert rows == (len(first.stdout.splitlines()),)
    away = house.run("migrate")
    assert away.returncode == 75
    assert away.stderr.startswith("holdfast: cannot connect to the database of DATABASE_URL: ")
    assert away.stderr.count("\n") == 1
    assert (finding(house)["level"], house.run("serve", "--port", "0").returncode) == ("broken", 75)


def finding(house: House, subject: str = "project store") -> dict[str, str]:
    """Return what the doctor says of the project store."""
    found: list[dict[str, str]] = json.loads(house.run("doctor", "--json").stdout)
    return next(one for one in found if one["subject"] == subject)


@pytest.mark.req("SV-14.a", "SV-21.c")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_person_sees_what_is_used_and_is_warned_before_the_limit(
    engine: str, postgres_server_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database(postgres_server_url)) if engine == "postgres" else None
        house = House(tmp_path, **({"DATABASE_URL": url} if url else {}))
        house.settings("settings: {mcp: {files: {max_tenant_bytes: 1000, search: {embedder: {kind: none}}}}}")
        commands = Commands(house, "p")
        commands.out("put", "/a", stdin=b"x" * 300)
        commands.out("put", "/a", stdin=b"y" * 300)
        held = "300 bytes of files, 300 of versions and deleted files"
        assert f"In all projects: {held}; the limit for both is 1,000 bytes." in commands.out("projects").decode()
        assert commands.data("projects")["usage"] == {"file_bytes": 300, "history_bytes": 300, "limit_bytes": 1000}
        told = finding(house, "stored files")
        assert (told["level"], told["text"]) == ("ok", f"1 tenant, {held}; one uses 60 % of its 1,000 bytes")
        commands.out("put", "/b", stdin=b"z" * 250)
        told = finding(house, "stored files")
        assert (told["level"], "one uses 85 %" in told["text"]) == ("warning", True)
        assert "max_tenant_bytes" in told["advice"]
        commands.out("put", "/c", stdin=b"z" * 440)
        assert commands.data("projects")["usage"] == {"file_bytes": 990, "history_bytes": 0, "limit_bytes": 1000}
        refused = commands("put", "/d", stdin=b"z" * 11)
        assert b"would hold 1001 bytes; the limit is 1000" in refused.stderr
        assert refused.stderr.count(b"\n") == 1
        commands.out("put", "/b", stdin=b"z")
        commands.out("rm", "/c")
        commands.out("put", "/d", stdin=b"z" * 11)


@pytest.mark.req("SV-50")
def test_a_postgresql_to_try_out_ends_with_its_server_and_leaves_nothing(tmp_path: Path) -> None:
    house = House(tmp_path, PYTHONPATH=str(TOP))
    script = [sys.executable, "scripts/run_postgres.py", "--port", "0"]
    running = subprocess.Popen(
        script, cwd=TOP, env=house.env, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        assert running.stderr is not None
        url = running.stderr.readline().strip().removeprefix("DATABASE_URL=")
        until("the server is up", house.facts)
        Commands(house, "demo").out("put", "/a", stdin=b"kept")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT path, content FROM mcp_files").fetchall() == [("/a", b"kept")]
        os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=20)
    finally:
        running.kill()
        running.wait()
    assert not house.facts()
    assert not Path(url.partition("host=")[2]).exists()
