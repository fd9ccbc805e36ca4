"""System calls on descriptors: opening without following a link, reading every byte, and those that Python does not wrap.

The last are Linux's openat2, statx, renameat2 and Landlock, each with the answer whether the kernel has it.
"""

import ctypes
import errno
import functools
import os
import platform
import struct
import sys
from collections.abc import Iterable

from holdfast.folders.access.file_version import END_BYTES, hash_ends

_NR_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}.get(platform.machine())
_NR_STATX = {"x86_64": 332, "aarch64": 291}.get(platform.machine())
_NR_OPENAT2 = 437
_NR_LANDLOCK_CREATE_RULESET = 444
_NR_LANDLOCK_ADD_RULE = 445
_NR_LANDLOCK_RESTRICT_SELF = 446

_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_STATX_BTIME_AT = 80

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2

_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_EXECUTE = 1 << 0
LANDLOCK_READ_FILE = 1 << 2
LANDLOCK_READ_DIR = 1 << 3
_LANDLOCK_FS_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LANDLOCK_FS_RIGHTS_NEWEST = (1 << 16) - 1
_LANDLOCK_NET_RIGHTS = 0b11
_LANDLOCK_SCOPES = 0b11

_libc = ctypes.CDLL(None, use_errno=True)
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""A FIFO or device does not block the open, and the caller checks that it got a regular file."""
READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _raise_errno(path: str | bytes) -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), os.fsdecode(path))


def openat2_beneath(dir_fd: int, path: str, flags: int) -> int:
    """Open a path in one system call that no component of the path can lead out of `dir_fd`.

    Raises OSError with EXDEV where the path would leave, ELOOP for a link, and ENOSYS where the kernel has no openat2.
    """
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    encoded = os.fsencode(path)
    for _ in range(128):
        fd: int = _libc.syscall(_NR_OPENAT2, dir_fd, encoded, how, len(how))
        if fd >= 0:
            return fd
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    _raise_errno(path)
    raise AssertionError("unreachable")


@functools.cache
def has_openat2() -> bool:
    """Return whether the kernel has openat2."""
    if sys.platform != "linux":
        return False
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(openat2_beneath(here, ".", os.O_PATH))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def birth_time(fd: int) -> float | None:
    """Return when an open file was created, None where the file system does not store that."""
    if sys.platform == "darwin":
        return os.fstat(fd).st_birthtime
    if _NR_STATX is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if _libc.syscall(_NR_STATX, fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        return None
    mask: int = struct.unpack_from("=I", buffer.raw)[0]
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _STATX_BTIME_AT)
    return float(seconds + nanoseconds / 1e9) if mask & _STATX_BTIME else None


def _renameat2(old_dir: int, old: str, new_dir: int, new: str, flags: int) -> None:
    if _NR_RENAMEAT2 is None or sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), new)
    if _libc.syscall(_NR_RENAMEAT2, old_dir, os.fsencode(old), new_dir, os.fsencode(new), flags) != 0:
        _raise_errno(new)


def rename_noreplace(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Rename atomically without replacing: FileExistsError when the target exists.

    Where the file system lacks the flag a file is linked and then unlinked, which never replaces either; a directory
    raises the kernel's error, because there is no other safe way.
    """
    try:
        _renameat2(old_dir, old, new_dir, new, _RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        os.link(old, new, src_dir_fd=old_dir, dst_dir_fd=new_dir, follow_symlinks=False)
        os.unlink(old, dir_fd=old_dir)


def rename_exchange(dir_a: int, name_a: str, dir_b: int, name_b: str) -> None:
    """Swap two names atomically. OSError with EINVAL or ENOSYS where the file system cannot."""
    _renameat2(dir_a, name_a, dir_b, name_b, _RENAME_EXCHANGE)


@functools.cache
def landlock_abi() -> int:
    """Return the kernel's Landlock version, 0 when it has none."""
    if sys.platform != "linux":
        return 0
    version: int = _libc.syscall(_NR_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    return max(0, version)


def landlock_restrict_thread(rules: Iterable[tuple[int, int]]) -> None:
    """Confine the calling thread, and every program it starts, to the given (descriptor, rights) pairs; it cannot be undone.

    Only the calling thread is confined, so the caller runs in a thread of its own. Network access is denied as well
    where the kernel can. Raises OSError when the kernel refuses; then nothing was confined.
    """
    abi = landlock_abi()
    handled = _LANDLOCK_FS_RIGHTS_BY_ABI.get(abi, _LANDLOCK_FS_RIGHTS_NEWEST)
    attr = struct.pack("=Q", handled)
    if abi >= 4:
        attr += struct.pack("=Q", _LANDLOCK_NET_RIGHTS)
    if abi >= 6:
        attr += struct.pack("=Q", _LANDLOCK_SCOPES)
    ruleset: int = _libc.syscall(_NR_LANDLOCK_CREATE_RULESET, attr, len(attr), 0)
    if ruleset < 0:
        _raise_errno("landlock")
    try:
        for fd, rights in rules:
            rule = struct.pack("=Qi", rights & handled, fd)
            if _libc.syscall(_NR_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0) != 0:
                _raise_errno("landlock rule")
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            _raise_errno("no_new_privs")
        if _libc.syscall(_NR_LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0:
            _raise_errno("landlock")
    finally:
        os.close(ruleset)


def read_fully(fd: int, offset: int, length: int) -> bytes:
    """Return `length` bytes at an offset, fewer only where the file ends."""
    piece = os.pread(fd, length, offset)
    if len(piece) == length or not piece:
        return piece
    pieces, got = [piece], len(piece)
    while got < length and (piece := os.pread(fd, length - got, offset + got)):
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)


def read_ends(fd: int, size: int) -> tuple[bytes, bytes]:
    """Return the first and the last 4 KB of an open file of that size; a shorter file is both, and is read once."""
    head = os.pread(fd, END_BYTES, 0)
    return head, (os.pread(fd, END_BYTES, size - END_BYTES) if size > END_BYTES else head)


def composite_hash(fd: int, status: os.stat_result) -> str:
    """Return the composite hash of an open regular file, at most 8 KB of which are read."""
    return hash_ends(status, *read_ends(fd, status.st_size))
