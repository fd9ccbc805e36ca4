"""Damaged, emptied or exchanged state: a plain message on every door and command, and never a trace."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.changing import change_of
from tests.helpers.disks import noise
from tests.helpers.doors import House, until

Damage = Callable[[Path], None]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder with some history, and no server."""
    made = House(tmp_path)
    with Agent([made.root], made.state) as agent:
        agent.call("write_file", path=str(made.root / "a.txt"), content="new\n").ok()
        (made.root / "large.bin").write_bytes(noise(300_000))
        agent.call("delete_file", path=str(made.root / "large.bin")).ok()
        agent.call("file_write", project="p", path="/a.txt", content="stored").ok()
    _stop(made)
    yield made
    made.end()


def _stop(house: House) -> None:
    house.run("stop")
    until("the server has ended", lambda: not house.facts())


def _overwrite(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(b"SQLite format 3\0" + noise(40_000))


def _empty(state: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (state / f"state.db{suffix}").unlink(missing_ok=True)
    (state / "state.db").write_bytes(b"")


def _exchange(state: Path) -> None:
    other = House(_made(state.parent / "other"))
    with Agent([other.root], other.state) as agent:
        agent.call("write_file", path=str(other.root / "b.txt"), content="b").ok()
    _stop(other)
    _empty(state)
    shutil.copy(other.state / "state.db", state / "state.db")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _shorten_key(state: Path) -> None:
    (state / "person.key").write_text("short")


def _make_token_a_folder(state: Path) -> None:
    (state / "agent.token").unlink(missing_ok=True)
    (state / "agent.token").mkdir()


def _no_files(state: Path) -> None:
    shutil.rmtree(state / "images")
    (state / "images").write_text("not a folder")


_DAMAGES: dict[str, Damage] = {
    "garbage": lambda state: _overwrite(state / "state.db"),
    "emptied": _empty,
    "missing": lambda state: (state / "state.db").unlink(),
    "exchanged": _exchange,
    "no images folder": _no_files,
    "person.key": _shorten_key,
    "agent.token": _make_token_a_folder,
}

_ADVICE = {
    "garbage": "damaged",
    "emptied": "is empty",
    "missing": "is missing",
    "exchanged": "not the one that belongs there",
    "person.key": "person.key",
    "agent.token": "agent.token",
}
_NEEDED_BY_DOORS = ("person.key", "agent.token")
"""A command that finds no server works on the state itself and needs no key."""


def _is_plain(text: str) -> bool:
    return not any(word in text for word in ("Traceback", 'File "', "site-packages", "holdfast/adapters", "sqlite3."))


@pytest.mark.req("SV-14.d")
@pytest.mark.parametrize("kind", _DAMAGES)
def test_damaged_state_is_told_in_plain_words_on_every_door(house: House, kind: str) -> None:
    _DAMAGES[kind](house.state)
    for options in ((), ("--in-process",)):
        with house.relay(options=options) as pipes:
            pipes.send(jsonrpc="2.0", id=1, method="initialize", params={"protocolVersion": "2025-06-18"})
            answer = json.dumps(pipes.answer(1))
            pipes.close_stdin()
            errors = pipes.errors()
        assert "error" in answer, answer
        assert _ADVICE.get(kind, "") in answer, answer
        assert _is_plain(answer), answer
        assert _is_plain(errors), errors
    assert house.run("serve", "--port", "0").returncode not in (0, 1)
    for command in (["review"], ["organise", "list"], ["files", "ls", "-p", "p"], ["serve", "--port", "0"]):
        done = house.run(*command)
        assert (done.returncode in (0, 1)) is (kind in _NEEDED_BY_DOORS and command[0] != "serve"), (command, done)
        assert _is_plain(done.stdout + done.stderr), done.stderr
    for command in (["doctor"], ["keys", "list"], ["status"], ["config", "show"]):
        done = house.run(*command)
        assert _is_plain(done.stdout + done.stderr), done.stderr
    log = house.state / "server.log"
    assert not log.exists() or _is_plain(log.read_text())


@pytest.mark.req("SV-14.d")
def test_doctor_names_a_lost_database_and_what_to_do(house: House) -> None:
    _empty(house.state)
    done = house.run("doctor")
    assert done.returncode == 1
    assert "is empty" in done.stdout
    assert "from a backup" in done.stdout


@pytest.mark.req("SV-14.d")
def test_a_state_database_from_a_backup_is_taken(house: House) -> None:
    backup = house.state.parent / "backup.db"
    shutil.copy(house.state / "state.db", backup)
    _empty(house.state)
    assert house.run("review").returncode != 0
    shutil.copy(backup, house.state / "state.db")
    assert house.run("review").returncode == 0


@pytest.mark.req("SV-14.d")
def test_moving_what_the_message_names_begins_anew(house: House) -> None:
    _empty(house.state)
    aside = _made(house.state.parent / "aside")
    for name in ("state.db", "state.id", "images", "reviews", "quarantine"):
        if os.path.lexists(house.state / name):
            shutil.move(house.state / name, aside / name)
    assert house.run("review").returncode == 0


@pytest.mark.req("SV-14.d")
def test_a_damaged_before_image_is_refused_and_nothing_is_written(house: House) -> None:
    (image,) = [path for path in (house.state / "images").rglob("*") if path.is_file()]
    data = bytearray(image.read_bytes())
    data[1000] ^= 1
    image.write_bytes(data)
    with Agent([house.root], house.state) as agent:
        deletion = next(row for row in agent.call("list_changes").data["changes"] if row["kind"] == "delete")
        reply = agent.call("undo_change", change_id=deletion["change_id"])
        assert reply.code == "STORAGE_DAMAGED", reply.text
        assert not (house.root / "large.bin").exists()
        image.unlink()
        assert agent.call("undo_change", change_id=deletion["change_id"]).code == "STORAGE_DAMAGED"
        assert [path.name for path in house.root.iterdir()] == ["a.txt"]
        change_of(agent.call("write_file", path=str(house.root / "a.txt"), content="other\n"))


@pytest.mark.req("SV-14.d")
def test_the_damaged_file_of_a_tenant_is_a_plain_error_for_that_tenant(house: House) -> None:
    (store,) = [path for path in (house.state / "store").iterdir() if path.suffix == ".db"]
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    _overwrite(store)
    with Agent([house.root], house.state) as agent:
        replies = [
            agent.call("file_read", project="p", path="/a.txt"),
            agent.call("file_write", project="p", path="/a.txt", content="x"),
            agent.call("project_list"),
        ]
        assert [reply.code for reply in replies] == ["STORAGE_DAMAGED"] * 3, [reply.text for reply in replies]
        assert all(_is_plain(reply.text) for reply in replies)
        agent.call("write_file", path=str(house.root / "a.txt"), content="still\n").ok()
