"""Mounts, loop devices and copies of images that only this process and its children see, by the kernel's own calls."""

import ctypes
import fcntl
import functools
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_MS_PRIVATE_ALL = 0x44000
_MNT_DETACH = 2
_FICLONE = 0x40049409
_LOOP_SET_FD = 0x4C00
_LOOP_CLR_FD = 0x4C01
_LOOP_CTL_ADD = 0x4C80
_LOOP_CTL_REMOVE = 0x4C81
_LOOP_MAJOR = 7

_libc = ctypes.CDLL(None, use_errno=True)


def _done(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


@functools.cache
def is_private() -> bool:
    """Give this process a view of the mounts of its own, which ends with it; False where that is not allowed."""
    if os.geteuid() != 0 or _libc.unshare(_CLONE_NEWNS) != 0:
        return False
    return bool(_libc.mount(b"none", b"/", None, _MS_PRIVATE_ALL, None) == 0)


@contextmanager
def mounted(source: str, folder: Path, kind: str, options: str = "") -> Iterator[None]:
    """Mount for as long as the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    _done(_libc.mount(source.encode(), os.fsencode(folder), kind.encode(), 0, options.encode()), f"mount {folder}")
    try:
        yield
    finally:
        if _libc.umount2(os.fsencode(folder), 0) != 0:
            _done(_libc.umount2(os.fsencode(folder), _MNT_DETACH), f"umount {folder}")


@contextmanager
def looped(image: Path, number: int) -> Iterator[str]:
    """Make an image a block device of the given number for as long as the block runs."""
    name = f"/dev/loop{number}"
    _have_device(name, number)
    device, backing = os.open(name, os.O_RDWR | os.O_CLOEXEC), os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(device, _LOOP_SET_FD, backing)
        try:
            yield name
        finally:
            fcntl.ioctl(device, _LOOP_CLR_FD, 0)
    finally:
        os.close(backing)
        os.close(device)


def _have_device(name: str, number: int) -> None:
    if os.path.exists(name):
        return
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            fcntl.ioctl(control, _LOOP_CTL_ADD, number)
    finally:
        os.close(control)
    with suppress(FileExistsError):
        os.mknod(name, 0o600 | stat.S_IFBLK, os.makedev(_LOOP_MAJOR, number))


def forget_loops(numbers: Iterable[int]) -> None:
    """Give loop devices back that were made for us and are not in use."""
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        for number in numbers:
            with suppress(OSError):
                fcntl.ioctl(control, _LOOP_CTL_REMOVE, number)
    finally:
        os.close(control)


def clone(source: Path, target: Path) -> None:
    """Copy a file by sharing its blocks, as one act: what the source holds at this moment."""
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        fcntl.ioctl(writing, _FICLONE, reading)
    finally:
        os.close(reading)
        os.close(writing)


def sync_device(folder: Path) -> None:
    """Write out all that a file system holds back."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _done(_libc.syncfs(fd), f"syncfs {folder}")
    finally:
        os.close(fd)
