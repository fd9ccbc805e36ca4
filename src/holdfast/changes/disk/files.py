"""The few things done to a disk by descriptor: read whole, write durably, compare, publish, set aside, sync."""

import base64
import errno
import fcntl
import hashlib
import json
import os
import secrets
import signal
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import (
    HoldfastError,
    InvalidArgument,
    IsDirectory,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    QuotaExceeded,
)
from holdfast.folders.access.descriptors import READ_FILE
from holdfast.folders.access.syscalls import rename_noreplace

CHUNK_BYTES = 1 << 20
TEMP_PREFIX = ".holdfast-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_leasing_devices: dict[int, bool] = {}
_NO_XATTRS = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.EINVAL)


def temp_name() -> str:
    """Return a name that nobody else uses, for a file or directory on its way in or out."""
    return f"{TEMP_PREFIX}{secrets.token_hex(16)}.tmp"


@contextmanager
def open_file(dir_fd: int, name: str, shown: str) -> Iterator[int]:
    """Open a regular file for reading; links are not followed and nothing else is waited for."""
    fd = open_regular(dir_fd, name, shown)
    try:
        yield fd
    finally:
        os.close(fd)


def open_regular(dir_fd: int, name: str, shown: str) -> int:
    """Return a descriptor of a regular file; IsDirectory or PermissionDenied for anything else."""
    fd = os.open(name, READ_FILE, dir_fd=dir_fd)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsDirectory(f"{shown} is a directory, not a file.")
    raise PermissionDenied(f"{shown} is not a regular file (a FIFO, socket or device).")


def read_all(fd: int) -> bytes:
    """Return a file's bytes from the beginning, wherever the descriptor stands."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, size + 1, 0)
    if len(data) == size:
        return data
    return b"".join(read_chunks(fd))


def read_chunks(fd: int) -> Iterator[bytes]:
    """Yield a file's bytes from the beginning."""
    at = 0
    while chunk := os.pread(fd, CHUNK_BYTES, at):
        yield chunk
        at += len(chunk)


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def hash_file(fd: int) -> str:
    """Return the SHA-256 of an open file's present bytes."""
    digest = hashlib.sha256()
    for chunk in read_chunks(fd):
        digest.update(chunk)
    return digest.hexdigest()


def write_new(
    dir_fd: int,
    name: str,
    data: Iterable[bytes],
    *,
    like_fd: int | None = None,
    mode: int = 0o666,
    dress: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Write a file that was not there, durably, and return its device and inode.

    `like_fd` gives it that file's owner, mode and extended attributes; until then nobody else can read it.
    Without it the file gets `mode` less the umask. `dress` may change the open file before it is made durable.
    """
    fd = os.open(name, _NEW, mode if like_fd is None else 0o600, dir_fd=dir_fd)
    try:
        write_content(fd, data, like_fd, dress)
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return (status.st_dev, status.st_ino)


def write_content(
    fd: int, data: Iterable[bytes], like_fd: int | None, dress: Callable[[int], None] | None = None
) -> None:
    """Write the whole content of a new file, dress it like another one where asked, and make it durable."""
    for piece in data:
        _write_piece(fd, piece)
    if like_fd is not None:
        _make_like(fd, like_fd)
    if dress is not None:
        dress(fd)
    sync_file(fd)


def move_entry(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Give an entry another place on the same device. FileExistsError when something is there, which stays."""
    rename_noreplace(old_dir, old, new_dir, new)


def publish(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Give a finished copy its name. FileExistsError when something is there, which stays."""
    rename_noreplace(old_dir, old, new_dir, new)


def set_aside(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Take a source whose copy is published out of sight, on its own device; its bytes stay."""
    rename_noreplace(old_dir, old, new_dir, new)


def make_directory(dir_fd: int, name: str) -> None:
    """Make a directory with the mode that the umask leaves. FileExistsError when something is there."""
    os.mkdir(name, 0o777, dir_fd=dir_fd)


def remove_directory(dir_fd: int, name: str) -> None:
    """Remove a directory that is empty; OSError for any other one."""
    os.rmdir(name, dir_fd=dir_fd)


def sync_file(fd: int) -> None:
    """Make what an open file or directory holds durable."""
    os.fsync(fd)


def make_state_folder(state_dir: str, name: str) -> str:
    """Return the path of a folder of ours in the state folder; it is there, and durably so."""
    path = os.path.join(state_dir, name)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    fd = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file(fd)
    finally:
        os.close(fd)
    return path


def sync_directory(dir_fd: int) -> None:
    """Make a directory's entries durable; the descriptor may be one that only names it."""
    try:
        sync_file(dir_fd)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        _sync_named(dir_fd)


def _sync_named(dir_fd: int) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        sync_file(fd)
    finally:
        os.close(fd)


def stat_entry(dir_fd: int, name: str) -> os.stat_result | None:
    """Return the status of an entry itself, None when nothing is there."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def has_writer(fd: int, dir_fd: int) -> bool:
    """Return whether some program has the file open for writing, where the system can tell.

    A read lease is granted only when nobody has; it is given back at once. A program that opens the file in
    between waits that long, and the kernel's notice of it is a signal that is ignored by default.
    Network file systems refuse leases for reasons of their own: a fresh file in `dir_fd` shows whether this one does.
    """
    return not _lease(fd) and _grants_leases(dir_fd)


def _lease(fd: int) -> bool:
    if not hasattr(fcntl, "F_SETLEASE"):
        return True
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True


def _grants_leases(dir_fd: int) -> bool:
    device = os.fstat(dir_fd).st_dev
    known = _leasing_devices.get(device)
    if known is None:
        name = temp_name()
        write_new(dir_fd, name, (), mode=0o600)
        try:
            with open_file(dir_fd, name, name) as fd:
                known = _leasing_devices[device] = _lease(fd)
        finally:
            os.unlink(name, dir_fd=dir_fd)
    return known


def remove_if_present(dir_fd: int, name: str) -> None:
    """Remove a helper file of ours that may or may not be there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=dir_fd)


def error_from_os(error: OSError, path: str) -> HoldfastError | None:
    """Return what a caller is told about a system error, None when it is a fault of ours."""
    number = error.errno
    if number in (errno.ENOSPC, errno.EDQUOT):
        return QuotaExceeded(f"The disk is full; {path} was not changed.")
    if number == errno.EFBIG:
        return PayloadTooLarge(f"The system does not allow so large a file; {path} was not changed.")
    if number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY):
        return PermissionDenied(f"The operating system does not allow changing {path}.")
    if number in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"No such file or directory: {path}")
    if number == errno.EINVAL:
        return InvalidArgument(f"The operating system refused this for {path}.")
    return None


def _write_piece(fd: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(fd, view) :]


def _make_like(fd: int, model_fd: int) -> None:
    model, ours = os.fstat(model_fd), os.fstat(fd)
    if (model.st_uid, model.st_gid) != (ours.st_uid, ours.st_gid):
        os.fchown(fd, model.st_uid, model.st_gid)
    os.fchmod(fd, stat.S_IMODE(model.st_mode))
    copy_xattrs(model_fd, fd)


def copy_xattrs(model_fd: int, fd: int) -> None:
    """Copy extended attributes as far as the file system and our rights go."""
    put_xattrs(fd, read_xattrs(model_fd))


def read_xattrs(fd: int) -> str | None:
    """Return the extended attributes of an open file in a form that can be stored, None when it has none."""
    if not hasattr(os, "listxattr"):
        return None
    try:
        found = {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return None
        raise
    return json.dumps({name: base64.b64encode(value).decode() for name, value in found.items()}) if found else None


def put_xattrs(fd: int, stored: str | None) -> None:
    """Give an open file extended attributes, as far as the file system and our rights go."""
    for name, value in json.loads(stored or "{}").items():
        try:
            os.setxattr(fd, name, base64.b64decode(value))
        except OSError as error:
            if error.errno not in _NO_XATTRS:
                raise
