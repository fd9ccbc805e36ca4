"""Writers that are killed at any moment: what was acknowledged is there, once, and the counters tell the truth."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.auth.context import AuthContext
from holdfast.store.model import StoreLimits
from tests.helpers.databases import Backend

TOP = Path(__file__).parents[2]
SECONDS = 2.5
WRITERS = 3

WRITER = """
import itertools, sys
from tests.helpers.databases import *
kind, place, tenant, name = sys.argv[1:]
store = Store(SqliteStore(place) if kind == "sqlite" else PostgresStore(place), StoreLimits(lock_timeout_ms=20_000))
me = AuthContext(tenant, "writer")
for number in itertools.count():
    token = f"<{name}.{number}>"
    print("try", token, flush=True)
    store.write(me, "p", "/log", token)
    print("done", token, flush=True)
    if number % 5 == 0:
        store.write(me, "p", f"/made/{name}.{number}", token)
        store.rename(me, "p", f"/made/{name}.{number}", f"/kept/{name}.{number}")
"""


def start(kind: str, place: str, me: AuthContext, name: str, folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / f"{name}.out").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, kind, place, me.apikey_hash, name],
            cwd=TOP,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(TOP)},
        )


def said(folder: Path, word: str) -> list[str]:
    lines = [line.split() for path in folder.glob("*.out") for line in path.read_text().splitlines()]
    return [line[1] for line in lines if len(line) == 2 and line[0] == word and line[1].endswith(">")]


@pytest.mark.req("ST-33", "ST-38", "ST-39")
def test_killed_writers_lose_nothing_that_was_acknowledged(
    backend: Backend, me: AuthContext, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "store") if backend.name == "sqlite" else request.getfixturevalue("postgres_url")
    folder, choose = tmp_path / "said", random.Random(5)
    folder.mkdir()
    backend.store().write(me, "p", "/log", "")
    writers = [start(backend.name, place, me, f"w{number}", folder) for number in range(WRITERS)]
    end, born = time.monotonic() + SECONDS, WRITERS
    try:
        while time.monotonic() < end or not said(folder, "done"):
            time.sleep(choose.uniform(0.2, 0.5))
            victim = choose.randrange(WRITERS)
            writers[victim].kill()
            writers[victim].wait()
            writers[victim] = start(backend.name, place, me, f"w{born}", folder)
            born += 1
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()

    store = backend.store(StoreLimits(lock_timeout_ms=20_000))
    store.write(me, "p", "/last", "x")
    text = store.read(me, "p", "/log").text
    held = [f"<{token}" for token in text.split("<")[1:]]
    assert len(held) == len(set(held)), "nothing twice"
    assert set(said(folder, "done")) <= set(held) <= set(said(folder, "try"))
    files = backend.look(me, f"SELECT size, version, deleted FROM mcp_files WHERE apikey_hash = '{me.apikey_hash}'")
    (state,) = backend.look(me, f"SELECT * FROM mcp_projects WHERE apikey_hash = '{me.apikey_hash}'")
    assert state["file_count"] == len(files)
    assert state["total_bytes"] == sum(file["size"] for file in files)
    assert state["version"] == max(file["version"] for file in files)
    jobs = backend.look(
        me, f"SELECT file_path, version FROM mcp_file_index_jobs WHERE apikey_hash = '{me.apikey_hash}'"
    )
    assert {job["file_path"]: job["version"] for job in jobs}["/last"] == state["version"]
    assert len(jobs) == len({job["file_path"] for job in jobs})
