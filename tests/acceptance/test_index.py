"""From a write to its being found, as a person and an agent see it: lanes in the server, a worker apart, the commands."""

import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import LOCAL_TENANT
from holdfast.store.ports import IndexQueue
from tests.helpers.databases import postgres_database
from tests.helpers.doors import House, Pipes, until
from tests.helpers.stores import OPEN, Deployment, Files, deployed

pytestmark = pytest.mark.timeout(120)

WORDS_ALONE = {"search": {"embedder": {"kind": "none"}}}


def index_of(place: Deployment) -> dict[str, Any]:
    """Return what `holdfast index status` tells."""
    ran = place.house.run("index", "status", "--json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def open_jobs(place: Deployment) -> int:
    rows = place.rows(
        f"SELECT count(*) AS jobs FROM mcp_file_index_jobs WHERE apikey_hash = '{LOCAL_TENANT}' "
        "AND status IN ('pending', 'processing')"
    )
    return int(rows[0]["jobs"])


@pytest.mark.req("SE-07.a", "SE-07.c")
def test_what_is_written_is_indexed_within_moments_and_the_lag_is_told(place: Deployment, files: Files) -> None:
    begun = time.monotonic()
    for number in range(10):
        files("file_write", path=f"/{number}.md", content=f"The lighthouse number {number} stands.").ok()
    until("everything is indexed", lambda: not open_jobs(place), 20)
    assert time.monotonic() - begun < 20
    told = index_of(place)
    assert told["lag"]["words"]["count"] >= 10
    assert 0 < told["lag"]["words"]["p50_ms"] <= told["lag"]["words"]["p95_ms"]
    assert told["lanes"] >= 2
    assert [one for one in told["backlog"] if one["status"] == "processing"] == []
    chunks = place.rows(f"SELECT file_path FROM mcp_file_chunks WHERE project = '{files.project}'")
    assert len(chunks) == 10


@pytest.mark.req("SE-07.c")
def test_the_commands_say_in_words_what_waits_and_what_failed(place: Deployment, files: Files) -> None:
    files("file_write", path="/a.md", content="x").ok()
    until("everything is indexed", lambda: not open_jobs(place))
    queue = place.backend.open_queue()
    until("there is something to claim", lambda: _failed_one(queue, files))
    ran = place.house.run("index", "status")
    assert ran.returncode == 0, ran.stderr
    assert "words     p50 " in ran.stdout
    assert re.search(r"^searches  \d+$", ran.stdout, re.MULTILINE), ran.stdout
    assert f"failed    {files.project} /bad.md: a made-up fault (after 1 attempt)" in ran.stdout
    assert "holdfast index retry" in ran.stdout
    assert place.house.run("index", "drain").stdout.startswith("Nothing more can be done now: 1 failed,")
    assert "jobs to be tried again: 1" in place.house.run("index", "retry").stdout
    until("it is indexed after all", lambda: not open_jobs(place))
    assert files.project not in place.house.run("index", "status").stdout


def _failed_one(queue: IndexQueue, files: Files) -> bool:
    """Write while jobs are being claimed, so that one is caught before the server's own lane has it, and give it up."""
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(files, "file_write", path="/bad.md", content="x")
        is_last, is_failed = False, False
        while not is_last and not is_failed:
            is_last = writing.done()
            for job in queue.claim(100, 60_000, datetime.now(UTC) + timedelta(seconds=1)):
                if job.path == "/bad.md" and job.project == files.project:
                    is_failed = queue.fail(job, "a made-up fault", datetime.now(UTC))
                else:
                    queue.release(job, datetime.now(UTC))
    writing.result().ok()
    return is_failed


@contextmanager
def worker_of(house: House) -> Iterator[Pipes]:
    """Run `holdfast worker` beside the servers of a house."""
    with Pipes(["worker"], house.env, "/") as process:
        yield process
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGTERM)
            assert process.process.wait(15) == 0, process.errors()


@pytest.mark.req("SE-02.d")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_worker_apart_does_what_the_server_leaves_to_it(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    database_url: str | None = None
    with ExitStack() as stack:
        if engine == "postgres":
            server = request.getfixturevalue("postgres_server_url")
            database_url = stack.enter_context(postgres_database(server, migrated=False))
        _with_a_worker_apart(tmp_path, database_url)


def _with_a_worker_apart(tmp_path: Path, database_url: str | None) -> None:
    settings = {**OPEN, "mcp": {"files": {**WORDS_ALONE, "index": {"workers": 0}}}}
    with deployed(tmp_path, settings, database_url) as place:
        files = Files(place.agent, "p")
        files("file_write", path="/a.md", content="one word").ok()
        told = index_of(place)
        assert told["lanes"] == 0
        assert [(one["stage"], one["status"], one["jobs"]) for one in told["backlog"]] == [("words", "pending", 1)]
        hits = files.data("file_search", query="word")["chunks"]
        assert [hit["file_path"] for hit in hits] == ["/a.md"], "found before any worker has run"
        with worker_of(place.house) as worker:
            until("the worker has done it", lambda: not open_jobs(place))
            files("file_write", path="/b.md", content="another word").ok()
            until("a later write is done too", lambda: not open_jobs(place))
            worker.process.kill()
            worker.process.wait(10)
        files("file_write", path="/c.md", content="a third word").ok()
        assert place.house.run("index", "drain", "--timeout", "0.01").returncode in (0, 75)
        ran = place.house.run("index", "drain", "--timeout", "20", "--json")
        assert (ran.returncode, json.loads(ran.stdout)) == (0, {"left": 0, "failed": 0, "waiting_credential": 0})
        assert len(place.rows("SELECT id FROM mcp_file_chunks")) == 3


@pytest.mark.req("SE-07.c")
def test_everything_can_be_queued_again_without_a_server(tmp_path: Path) -> None:
    with deployed(tmp_path, {"mcp": {"files": WORDS_ALONE}}, None) as place:
        Files(place.agent, "p").write("/a", "/b")
        until("everything is indexed", lambda: not open_jobs(place))
        house = place.house
    assert json.loads(house.run("index", "status", "--json").stdout)["backlog"] == []
    assert json.loads(house.run("index", "rebuild", "--json").stdout) == {"jobs": 2}
    (line,) = json.loads(house.run("index", "status", "--json").stdout)["backlog"]
    assert (line["stage"], line["status"], line["jobs"]) == ("words", "pending", 2)
    assert "nothing was indexed by the server" in house.run("index", "status").stdout
    late = house.run("index", "drain", "--timeout", "0")
    assert (late.returncode, "2 jobs left" in late.stderr) == (75, True)
    assert house.run("index", "drain").stdout == "Everything is indexed.\n"
    assert house.run("index", "drain", "--timeout", "0").stdout == "Everything is indexed.\n"
    refused = house.run("index", "rebuild", "--meaning")
    assert (refused.returncode, "there is no model to make vectors with" in refused.stderr) == (2, True)


@pytest.mark.req("SE-30.a", "SE-30.b", "SE-43")
def test_a_file_is_found_by_its_meaning_without_a_key_a_network_or_any_setting(tmp_path: Path) -> None:
    with deployed(tmp_path, {"mcp": {"files": {"search": {}}}}, None) as place:
        files = Files(place.agent, "p")
        files("file_write", path="/pets.md", content="The kitten fell asleep on the carpet.").ok()
        files("file_write", path="/money.md", content="Shares lost a tenth of their price in May.").ok()
        until("both have their meaning", lambda: not open_jobs(place), 60)
        told = index_of(place)
        assert told["embedder"]["model"].startswith("all-MiniLM-L6-v2")
        assert told["lag"]["meaning"]["count"] == 2
        hits = files.data("file_search", query="a cat taking a nap", limit=1)["chunks"]
        assert [hit["file_path"] for hit in hits] == ["/pets.md"]
        assert place.house.run("doctor").stdout.count("search model") == 1


@pytest.mark.req("SE-30.e")
def test_without_a_model_files_are_found_by_their_words(place: Deployment, files: Files) -> None:
    files("file_write", path="/pets.md", content="The kitten fell asleep on the carpet.").ok()
    assert files.data("file_search", query="a cat taking a nap")["chunks"] == []
    assert len(files.data("file_search", query="kitten")["chunks"]) == 1
    assert index_of(place)["embedder"]["model"] is None


@pytest.mark.req("SV-02.d")
def test_a_queued_job_keeps_a_background_server_up_and_an_empty_queue_lets_it_go(tmp_path: Path) -> None:
    house = House(tmp_path)
    settings = {"server": {"idle_exit_seconds": 1}, "mcp": {"files": WORDS_ALONE}}
    house.settings(json.dumps({"settings": settings}))
    with house.relay() as relay:
        relay.initialize()
        arguments = {"project": "p", "path": "/a", "content": "x"}
        assert "result" in relay.ask(1, "tools/call", name="file_write", arguments=arguments)
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        assert house.facts(), "it went although it had something to index"
        time.sleep(0.1)
    until("the server has gone", lambda: not house.facts(), 40)
