"""Keeps before-images on the disk while a backup copies them: removing their files and backing them up exclude each other."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import ResourceBusy

_LOCK = "backup.lock"
_WAIT_SECONDS = 5.0
_RETRY_SECONDS = 0.02


@contextmanager
def hold_images(state_dir: str) -> Iterator[None]:
    """Have no image file removed by any process meanwhile. ResourceBusy when another backup has them."""
    fd = _open_lock(state_dir, os.O_CREAT)
    try:
        # A server that removes files holds the lock for moments, another backup for long.
        deadline = time.monotonic() + _WAIT_SECONDS
        while not _try_lock(fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise ResourceBusy("Another backup of this state folder is running. Try again.")
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(fd)


@contextmanager
def image_removal(state_dir: str) -> Iterator[bool]:
    """Give whether image files may be removed: those that no row names any more, while no backup runs.

    A backup that begins later does not know them. No file is made for it: on a full disk, removing must work.
    """
    try:
        fd = _open_lock(state_dir, 0)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _open_lock(state_dir: str, flags: int) -> int:
    return os.open(os.path.join(state_dir, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
