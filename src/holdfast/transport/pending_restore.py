"""Completes a restore of the state folder: from the moment its record is written, the restored state is the state.

The record names a folder in the state folder where everything lies complete and verified. What it replaces is moved
aside, then each entry takes its place; a process that is killed meanwhile leaves the rest to the next command or server,
which does this before anything else. Standard library only: the relay imports this.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress

RECORD = "restore.json"


def begin_restore(state_dir: str, staged: str, aside: str, replaced: Sequence[str]) -> None:
    """Record durably that the entries of the folder `staged` are the state, and that those to be replaced go `aside`."""
    record = {"staged": staged, "aside": aside, "names": sorted(os.listdir(os.path.join(state_dir, staged)))}
    record["replaced"] = sorted({*replaced, *record["names"]})
    temporary = os.path.join(state_dir, f".{RECORD}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, json.dumps(record).encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, os.path.join(state_dir, RECORD))
    _sync(state_dir)


def has_pending_restore(state_dir: str) -> bool:
    """Return whether a restore was recorded and is not complete."""
    return os.path.lexists(os.path.join(state_dir, RECORD))


def complete_restore(state_dir: str) -> None:
    """Put every entry of a recorded restore in its place; for the holder of the server's lock alone. Any number of times."""
    try:
        fd = os.open(os.path.join(state_dir, RECORD), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    with os.fdopen(fd, "rb") as file:
        record = json.load(file)
    staged, aside = (os.path.join(state_dir, record[name]) for name in ("staged", "aside"))
    with suppress(FileExistsError):
        os.mkdir(aside, 0o700)
    for name in record["replaced"]:
        place = os.path.join(state_dir, name)
        is_in_place = name in record["names"] and not os.path.lexists(os.path.join(staged, name))
        if is_in_place:
            continue
        if os.path.lexists(place):
            os.rename(place, os.path.join(aside, name))
        if name in record["names"]:
            os.rename(os.path.join(staged, name), place)
    for folder in (aside, state_dir):
        _sync(folder)
    for folder in (staged, aside):
        with suppress(OSError):  # what was replaced stays
            os.rmdir(folder)
    os.unlink(os.path.join(state_dir, RECORD))
    _sync(state_dir)


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
