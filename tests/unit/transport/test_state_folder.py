"""The state folder and its keys, locks and socket address."""

import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.transport.state_folder import AGENT_TOKEN, PERSON_KEY, Lock, StateFault, StateFolder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    StateFolder(str(tmp_path / "a" / "state")).prepare()
    assert mode_of(tmp_path / "a" / "state") == 0o700


def test_a_folder_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    StateFolder(str(folder)).prepare()
    assert mode_of(folder) == 0o700


def test_a_file_in_its_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(StateFault, match="cannot be made"):
        StateFolder(str(tmp_path / "state")).prepare()


def test_a_folder_of_someone_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(StateFault, match="belongs to user"):
        StateFolder(str(tmp_path)).prepare()


def test_a_key_is_made_once_however_many_ask_at_once(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _n: folder.key(PERSON_KEY), range(32)))
    assert len(keys) == 1
    assert len(bytes.fromhex(keys.pop())) == 32
    assert mode_of(tmp_path / PERSON_KEY) == 0o600
    assert folder.key(AGENT_TOKEN) != folder.key(PERSON_KEY)
    assert sorted(path.name for path in tmp_path.iterdir()) == [AGENT_TOKEN, PERSON_KEY]


def test_a_key_readable_by_others_is_closed_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    key = folder.key(AGENT_TOKEN)
    (tmp_path / AGENT_TOKEN).chmod(0o644)
    assert folder.key(AGENT_TOKEN) == key
    assert mode_of(tmp_path / AGENT_TOKEN) == 0o600
    (tmp_path / AGENT_TOKEN).write_text("short")
    with pytest.raises(StateFault, match="does not hold a key"):
        folder.key(AGENT_TOKEN)


def test_a_key_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("0" * 64)
    (tmp_path / AGENT_TOKEN).symlink_to("elsewhere")
    with pytest.raises(StateFault, match="cannot be read"):
        StateFolder(str(tmp_path)).key(AGENT_TOKEN)


def test_a_lock_has_one_holder_who_is_named(tmp_path: Path) -> None:
    first, second = Lock(str(tmp_path / "lock")), Lock(str(tmp_path / "lock"))
    assert second.holder() == {}
    assert first.take(0, kind="foreground")
    assert not second.take(0.02)
    assert second.holder() == {"pid": os.getpid(), "kind": "foreground"}
    first.release()
    assert second.holder() == {}
    assert second.take(0)
    second.release()


@pytest.mark.parametrize("length", [1, 200])
def test_a_socket_can_be_bound_and_connected_however_long_the_path(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("d" * length)
    path.mkdir()
    folder = StateFolder(str(path))
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        with folder.socket_address() as address:
            listener.bind(address)
        listener.listen()
        assert (path / "server.sock").exists()
        with folder.socket_address() as address:
            client.connect(address)


def test_server_json_is_replaced_whole_and_forgotten(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    folder.record({"pid": 1})
    folder.record({"pid": 2})
    assert (tmp_path / "server.json").read_text() == '{"pid": 2}\n'
    folder.forget()
    folder.forget()
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_grew_large_is_set_aside(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    (tmp_path / "server.log").write_bytes(b"x" * 5_000_001)
    fd = folder.open_log()
    os.write(fd, b"fresh\n")
    os.close(fd)
    assert folder.log_tail(0) == "fresh"
    assert (tmp_path / "server.log.1").stat().st_size == 5_000_001
