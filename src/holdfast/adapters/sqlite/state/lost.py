"""Notices that state.db was lost or exchanged, so that an empty file is never taken for a state folder without history.

state.db has a random identity, and the file `state.id` beside it names that identity. Where the two differ, or the
database is missing or empty while other state is there, nothing is opened.
"""

import os
import sqlite3
from contextlib import suppress

from holdfast.errors import StorageDamaged

_MARK = "state.id"
_HISTORY = ("images", "reviews", "quarantine")
_MAX_MARK_BYTES = 100


def lost_state_fault(path: str) -> str | None:
    """Return what is wrong when a state.db is missing or empty although the folder shows that there was one."""
    if _size_of(path):
        return None
    folder = os.path.dirname(path)
    if _read_mark(folder) is None and not any(_has_entries(os.path.join(folder, name)) for name in _HISTORY):
        return None
    what = "is empty" if os.path.lexists(path) else "is missing"
    return f"state.db in {folder} {what}, but the folder holds other state: the history of changes was lost. {_advice(folder)}"


def refuse_lost_state(path: str) -> None:
    """Raise StorageDamaged when a state.db was lost."""
    fault = lost_state_fault(path)
    if fault is not None:
        raise StorageDamaged(fault)


def confirm_identity(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageDamaged when the open state.db is not the one of its folder; a folder without a mark gets one."""
    folder = os.path.dirname(path)
    (identity,) = connection.execute("SELECT id FROM state_identity").fetchone()
    mark = _read_mark(folder)
    if mark is None:
        _write_mark(folder, identity)
    elif mark != identity:
        raise StorageDamaged(
            f"state.db in {folder} is not the one that belongs there: the history of changes was exchanged or lost. "
            + _advice(folder)
        )


def _advice(folder: str) -> str:
    return (
        "Put state.db back from a backup. To start over without the history, move state.db, "
        f"{_MARK} and the folders {', '.join(_HISTORY)} out of {folder}."
    )


def _read_mark(folder: str) -> str | None:
    try:
        fd = os.open(os.path.join(folder, _MARK), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return os.read(fd, _MAX_MARK_BYTES).decode("ascii", "replace").strip() or None
    finally:
        os.close(fd)


def _write_mark(folder: str, identity: str) -> None:
    """Write the mark durably, and with it the name of a database that was just made."""
    path = os.path.join(folder, _MARK)
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, identity.encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _has_entries(folder: str) -> bool:
    with suppress(OSError):
        return any(True for _ in os.scandir(folder))
    return False
