"""A restore that stops at any step is completed by the next one to come, and a hostile file is never laid out."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from holdfast.backup.archive import ArchiveWriter
from holdfast.backup.model import Manifest, Part
from holdfast.backup.restore import stage_backup, verify_backup
from holdfast.errors import Conflict, HoldfastError, StorageDamaged
from holdfast.transport.pending_restore import begin_restore, complete_restore, has_pending_restore
from holdfast.transport.state_folder import StateFault, StateFolder
from tests.helpers.trees import Tree, harvest, plant

REPLACED = ("state.db", "state.db-wal", "images", "store")
OLD: Tree = {"state.db": "old", "state.db-wal": "old log", "images": {"aa": {"1": "old"}}, "agent.token": "stays"}
NEW: Tree = {"state.db": "new", "images": {"bb": {"2": "new"}}, "store": {"t.db": "new"}}


class Stop(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("steps", range(9))
def test_a_restore_that_stops_after_any_step_is_completed(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, {**OLD, "staged": NEW})
    begin_restore(str(tmp_path), "staged", "aside", REPLACED)
    left = steps

    def stop_in_time(call: object) -> object:
        def step(*arguments: object) -> object:
            nonlocal left
            if left == 0:
                raise Stop
            left -= 1
            return call(*arguments)  # type: ignore[operator]  # a function of os

        return step

    with monkeypatch.context() as patch:
        for name in ("rename", "rmdir", "unlink"):
            patch.setattr(os, name, stop_in_time(getattr(os, name)))
        try:
            complete_restore(str(tmp_path))
        except Stop:
            assert has_pending_restore(str(tmp_path))

    StateFolder(str(tmp_path)).prepare()

    aside = {name: OLD[name] for name in ("state.db", "state.db-wal", "images")}
    expected = {**NEW, "agent.token": "stays", "aside": aside}
    found = harvest(tmp_path)
    found.pop("server.lock", None)
    plain = tmp_path.parent / f"{tmp_path.name}-expected"
    plain.mkdir()
    plant(plain, expected)
    assert found == harvest(plain)


def test_nobody_uses_a_state_folder_whose_restore_is_being_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.transport.state_folder._RESTORE_WAIT_SECONDS", 0.1)
    plant(tmp_path, {**OLD, "staged": NEW})
    begin_restore(str(tmp_path), "staged", "aside", REPLACED)
    other = StateFolder(str(tmp_path))
    assert other.server_lock.take(1)
    with pytest.raises(StateFault, match="is being completed"):
        StateFolder(str(tmp_path)).prepare()
    other.server_lock.release()
    StateFolder(str(tmp_path)).prepare()
    assert (tmp_path / "state.db").read_text() == "new"


class NoDatabases:
    """Finds every database sound."""

    def copy(self, source: str, target: str) -> None:
        raise AssertionError

    def check(self, path: str) -> None:
        assert Path(path).exists()

    def state_facts(self, path: str) -> object:
        raise AssertionError


def write_backup(path: Path, entries: list[tarfile.TarInfo], version: int = 3) -> None:
    """Write a backup with these entries, each as its manifest says and with right checksums."""
    with path.open("wb") as file:
        writer = ArchiveWriter(file, lambda _bytes: None)
        empty = hashlib.sha256(b"").hexdigest()
        for entry in entries:
            writer._tar.addfile(entry, io.BytesIO(b""))
            type_ = {tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link"}.get(entry.type, "file")
            writer.parts.append(Part(entry.name, type_, 0, empty, entry.linkname))
        writer.finish(Manifest("9.9.9", "2026-01-01T00:00:00Z", version, False, tuple(writer.parts)))


def entry(name: str, type_: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = type_, target
    return info


HOSTILE = {
    "above": [entry("../outside")],
    "absolute": [entry("/etc/passwd")],
    "through": [entry("images/../../outside")],
    "other name": [entry("authorized_keys")],
    "through a link": [
        entry("images", tarfile.DIRTYPE),
        entry("images/l", tarfile.SYMTYPE, "/tmp"),
        entry("images/l/x"),
    ],
    "link for a file": [entry("state.db", tarfile.SYMTYPE, "/etc/passwd")],
    "device": [entry("quarantine", tarfile.DIRTYPE), entry("quarantine/d", tarfile.CHRTYPE)],
    "hard link": [entry("state.db", tarfile.LNKTYPE, "/etc/passwd")],
    "twice": [entry("state.db"), entry("state.db")],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_entry_that_belongs_into_no_state_folder_is_refused(name: str, tmp_path: Path) -> None:
    write_backup(tmp_path / "a.tar", HOSTILE[name])
    state = tmp_path / "state"
    state.mkdir()
    with pytest.raises(StorageDamaged):
        stage_backup(str(tmp_path / "a.tar"), str(state), "staged", 5, NoDatabases(), lambda *_: None)  # type: ignore[arg-type]  # it is asked to check alone
    assert list(state.iterdir()) == []


def test_a_backup_of_a_newer_release_is_refused_by_name(tmp_path: Path) -> None:
    write_backup(tmp_path / "a.tar", [entry("state.db")], version=6)
    state = tmp_path / "state"
    state.mkdir()
    with pytest.raises(Conflict, match=r"made by Holdfast 9\.9\.9.*version 6.*up to 5"):
        stage_backup(str(tmp_path / "a.tar"), str(state), "staged", 5, NoDatabases(), lambda *_: None)  # type: ignore[arg-type]
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("text", [b"", b"no backup at all", b"x" * 5_000, json.dumps({}).encode()])
def test_what_is_no_backup_is_said_to_be_none(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(text)
    with pytest.raises(HoldfastError, match="no backup of Holdfast"):
        verify_backup(str(tmp_path / "a.tar"), lambda *_: None)
