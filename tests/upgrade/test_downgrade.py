"""State of a newer release is refused in plain words and left as it is; the way back is a backup made before."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from holdfast.adapters.sqlite.state.migrations import STEPS
from tests.helpers.agent import Agent
from tests.helpers.backups import change_of
from tests.helpers.doors import House
from tests.upgrade.earlier import extract_source, serve

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("upgrade")]

FIRST_COMMIT = "1c3e35a"
"""The first one with a state.db: changes and their undo."""
KEYS_COMMIT = "c99882e"
"""The first one that runs with keys of tenants."""
WORDS = "written by a newer release of Holdfast"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder with a change, a stored file and a backup of both; no server runs."""
    house = House(tmp_path)
    with Agent([house.root], house.state) as agent:
        agent.call("write_file", path="a.txt", content="changed\n").ok()
        agent.call("file_write", project="p", path="/a.md", content="stored").ok()
    assert house.run("stop").returncode == 0
    assert house.run("backup", "create", str(tmp_path / "before.tar")).returncode == 0
    yield house
    house.end()


def raise_version(path: Path, version: int) -> None:
    """Leave a database as a newer release would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE of_tomorrow (id INTEGER PRIMARY KEY)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_every_command_refuses_a_newer_state_and_changes_nothing(house: House, tmp_path: Path) -> None:
    raise_version(house.state / "state.db", len(STEPS) + 1)
    before = (house.state / "state.db").read_bytes()
    for arguments in (["serve", "--port", "0"], ["changes"], ["keys", "list"], ["keys", "create"], ["undo", "--yes"]):
        ran = house.run(*arguments)
        assert ran.returncode == 74, (arguments, ran.stdout, ran.stderr)
        assert WORDS in ran.stderr and "Nothing was changed" in ran.stderr, arguments
    doctor = house.run("doctor")
    assert doctor.returncode == 1 and WORDS in doctor.stdout
    assert (house.state / "state.db").read_bytes() == before
    assert house.run("restore", str(tmp_path / "before.tar"), "--yes").returncode == 0
    assert house.run("undo", "--yes").returncode == 0
    assert (house.root / "a.txt").read_text() == "hello\n"


def test_a_stored_file_of_a_newer_release_is_refused_and_changes_nothing(house: House) -> None:
    (path,) = (house.state / "store").glob("*.db")
    raise_version(path, 99)
    before = path.read_bytes()
    with Agent([house.root], house.state) as agent:
        for tool, arguments in (("file_read", {}), ("file_write", {"content": "x"})):
            reply = agent.call(tool, project="p", path="/a.md", **arguments)
            assert reply.code == "STORAGE_DAMAGED" and WORDS in reply.text
        agent.call("write_file", path="b.txt", content="folders go on").ok()
    assert path.read_bytes() == before


def test_a_database_that_a_newer_release_migrated_is_refused(tmp_path: Path, postgres_url: str) -> None:
    house = House(tmp_path, DATABASE_URL=postgres_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO mcp_migrations (number, name) VALUES (9999, '9999_tomorrow')")
    for arguments in (["migrate"], ["serve", "--port", "0"]):
        ran = house.run(*arguments)
        assert ran.returncode == 74 and "migrated by a newer release" in ran.stderr, ran.stderr
    house.end()


def test_a_backup_of_a_newer_release_is_refused(house: House, tmp_path: Path) -> None:
    raise_version(house.state / "state.db", len(STEPS) + 1)
    assert house.run("backup", "create", str(tmp_path / "newer.tar")).returncode == 0
    assert house.run("restore", str(tmp_path / "before.tar"), "--yes").returncode == 0
    refused = house.run("restore", str(tmp_path / "newer.tar"), "--yes")
    assert refused.returncode == 1 and f"knows versions up to {len(STEPS)}" in refused.stderr
    assert not [name for name in os.listdir(house.state) if name.startswith("restored-")]


def test_changes_of_the_first_version_are_listed_and_undone(tmp_path: Path) -> None:
    house = House(tmp_path)
    source = tmp_path / "source"
    source.mkdir()
    (house.root / "deleted.txt").write_text("precious\n")
    with serve(house, extract_source(FIRST_COMMIT, source)) as agent:
        changes = [
            change_of(agent.call("write_file", path="a.txt", content="changed\n").ok()),
            change_of(agent.call("delete_file", path="deleted.txt").ok()),
            change_of(agent.call("move_file", source="a.txt", destination="moved.txt").ok()),
        ]
    with serve(house) as agent:
        listed = [change["change_id"] for change in agent.call("list_changes").ok().data["changes"]]
        assert set(changes) <= set(listed)
        for change_id in reversed(changes):
            agent.call("undo_change", change_id=change_id).ok()
    assert (house.root / "a.txt").read_text() == "hello\n"
    assert (house.root / "deleted.txt").read_text() == "precious\n"
    assert not (house.root / "moved.txt").exists()


def test_keys_of_the_first_version_that_had_some_stay_valid(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings("settings: {auth: {mode: listed}}")
    source = tmp_path / "source"
    source.mkdir()
    house.environment["PYTHONPATH"] = str(extract_source(KEYS_COMMIT, source))
    key = house.run("keys", "create", "--label", "farm").stdout.strip()
    assert key.startswith("hf_")
    del house.environment["PYTHONPATH"]
    with house.serve():
        written = house.run_bytes("files", "put", "-p", "p", "/a.md", stdin=b"x", HOLDFAST_KEY=key)
        assert written.returncode == 0, written.stderr
    assert [key["label"] for key in json.loads(house.run("keys", "list", "--json").stdout)] == ["farm"]
