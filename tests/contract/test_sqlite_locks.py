"""SQLite's locks hold while a server opens more connections: another process that leaves does not take the log along."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.connection import create_private_file
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import AuthContext
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import new_caller

LOOK = (
    "import sqlite3, sys\n"
    "found = sqlite3.connect(sys.argv[1])\n"
    "print(found.execute('SELECT count(*) FROM mcp_files').fetchone()[0])\n"
    "found.close()\n"
)


def looked(path: Path) -> int:
    """Return how many files another process sees, which then leaves the database."""
    done = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.req("ST-39")
def test_another_process_that_leaves_does_not_take_the_log_of_a_running_server(tmp_path: Path) -> None:
    database, me = SqliteStore(str(tmp_path)), new_caller()
    store = Store(database, StoreLimits())
    store.write(me, "p", "/a", "x")
    path = tmp_path / f"{file_name(me.apikey_hash)}.db"
    with database.files.snapshot(me.apikey_hash), database.files.snapshot(me.apikey_hash):
        assert looked(path) == 1
        assert path.with_name(path.name + "-wal").exists()
        store.write(me, "p", "/b", "x")
        assert looked(path) == 2
    database.close()
    with sqlite3.connect(path) as after:
        assert after.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_database_file_is_its_owners_alone_and_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    create_private_file(str(path))
    path.write_bytes(b"kept")
    create_private_file(str(path))
    assert path.read_bytes() == b"kept"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.db"]


@pytest.mark.req("ST-39")
def test_a_file_that_several_open_at_the_same_first_moment_opens_for_all_of_them(tmp_path: Path) -> None:
    stores = [Store(SqliteStore(str(tmp_path)), StoreLimits()) for _ in range(4)]
    for _ in range(30):
        me, together = new_caller(), threading.Barrier(len(stores))

        def write(number: int, me: AuthContext = me, together: threading.Barrier = together) -> None:
            together.wait()
            stores[number].write(me, "p", f"/{number}", "x")

        with ThreadPoolExecutor(len(stores)) as pool:
            list(pool.map(write, range(len(stores))))
