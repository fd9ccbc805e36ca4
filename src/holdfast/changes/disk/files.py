"""Reads and writes entries of a directory by descriptor: open, hash, write durably, rename, sync, extended attributes.

New content is written as an unnamed file (O_TMPFILE) while the journal records the intent. The two waits for the disk
overlap, and a crash in between leaves nothing: a file without a name vanishes.
"""

import base64
import errno
import fcntl
import hashlib
import json
import os
import queue
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from holdfast.errors import (
    HoldfastError,
    InvalidArgument,
    IsDirectory,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    StorageFull,
)
from holdfast.folders.access.roots import Identity, identity_of
from holdfast.folders.access.syscalls import READ_FILE, rename_noreplace
from holdfast.text.display import display_name

CHUNK_BYTES = 1 << 20
TEMP_PREFIX = ".holdfast-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_grants_leases_by_device: dict[int, bool] = {}
_NO_XATTRS = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.EINVAL)
_WRITING_THREADS = 8
_O_TMPFILE = getattr(os, "O_TMPFILE", None)
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
_pool = ThreadPoolExecutor(_WRITING_THREADS, thread_name_prefix="new-content")


def temp_name() -> str:
    """Return a random temporary name for a file or directory that is not complete or about to go."""
    return f"{TEMP_PREFIX}{secrets.token_hex(16)}.tmp"


@contextmanager
def open_file(dir_fd: int, name: str, display_path: str) -> Iterator[int]:
    """Open a regular file for reading and close it at the end; links are not followed, and a FIFO does not block."""
    fd = open_regular(dir_fd, name, display_path)
    try:
        yield fd
    finally:
        os.close(fd)


def open_regular(dir_fd: int, name: str, display_path: str) -> int:
    """Return a descriptor of a regular file; IsDirectory or PermissionDenied for anything else."""
    fd = os.open(name, READ_FILE, dir_fd=dir_fd)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsDirectory(f"{display_path} is a directory, not a file.")
    raise PermissionDenied(f"{display_path} is not a regular file (a FIFO, socket or device).")


def read_all(fd: int) -> bytes:
    """Return all bytes of a file, whatever the descriptor's position is."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, size + 1, 0)
    if len(data) == size:
        return data
    return b"".join(read_chunks(fd))


def read_chunks(fd: int) -> Iterator[bytes]:
    """Yield all bytes of a file in chunks."""
    offset = 0
    while chunk := os.pread(fd, CHUNK_BYTES, offset):
        yield chunk
        offset += len(chunk)


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
    set_metadata: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Create a file with this content, durably, and return its device and inode.

    `like_fd` gives it that file's owner, mode and extended attributes; until then nobody else can read it.
    Without it the file gets `mode` less the umask. `set_metadata` may change the open file before it is synced.
    """
    fd = os.open(name, _NEW, mode if like_fd is None else 0o600, dir_fd=dir_fd)
    try:
        write_content(fd, data, like_fd, set_metadata)
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return (status.st_dev, status.st_ino)


def write_content(
    fd: int, data: Iterable[bytes], like_fd: int | None, set_metadata: Callable[[int], None] | None = None
) -> None:
    """Write the content of a new file, copy the metadata of `like_fd`, and sync it."""
    for chunk in data:
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]
    if like_fd is not None:
        _copy_metadata(like_fd, fd)
    if set_metadata is not None:
        set_metadata(fd)
    sync_file(fd)


def move_entry(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Rename an entry on the same device. FileExistsError when the new name is taken; nothing is replaced."""
    rename_noreplace(old_dir, old, new_dir, new)


def publish(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Rename a finished copy to its final name. FileExistsError when that is taken; nothing is replaced."""
    rename_noreplace(old_dir, old, new_dir, new)


def quarantine_source(old_dir: int, old: str, new_dir: int, new: str) -> None:
    """Move a source whose copy is published into a quarantine on its own device; its bytes stay."""
    rename_noreplace(old_dir, old, new_dir, new)


def make_directory(dir_fd: int, name: str) -> None:
    """Make a directory with the mode that the umask leaves. FileExistsError when the name is taken."""
    os.mkdir(name, 0o777, dir_fd=dir_fd)


def remove_directory(dir_fd: int, name: str) -> None:
    """Remove an empty directory; OSError for any other."""
    os.rmdir(name, dir_fd=dir_fd)


def sync_file(fd: int) -> None:
    """Make the content of an open file, or the entries of a directory, durable."""
    os.fsync(fd)


def make_state_folder(state_dir: str, name: str) -> str:
    """Return the path of a folder of ours in the state folder, made durably if it is missing."""
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
    """Make the entries of a directory durable; an O_PATH descriptor is opened again for that."""
    try:
        sync_file(dir_fd)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            sync_file(fd)
        finally:
            os.close(fd)


def stat_entry(dir_fd: int, name: str) -> os.stat_result | None:
    """Return the status of an entry, of a link itself, None when it does not exist."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def has_writer(fd: int, dir_fd: int) -> bool:
    """Return whether some program has the file open for writing, where the system can tell.

    A read lease is granted only when no program has; it is released at once. A program that opens the file in
    between waits that long, and the kernel's notice of it is a signal that is ignored by default.
    Network file systems refuse leases for reasons of their own: a fresh file in `dir_fd` shows whether this one does.
    """
    return not _can_lease(fd) and _grants_leases(dir_fd)


def _can_lease(fd: int) -> bool:
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
    grants = _grants_leases_by_device.get(device)
    if grants is None:
        name = temp_name()
        write_new(dir_fd, name, (), mode=0o600)
        try:
            with open_file(dir_fd, name, name) as fd:
                grants = _grants_leases_by_device[device] = _can_lease(fd)
        finally:
            os.unlink(name, dir_fd=dir_fd)
    return grants


def remove_if_present(dir_fd: int, name: str) -> None:
    """Remove a temporary file of ours if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=dir_fd)


def error_from_os(error: OSError, path: str) -> HoldfastError | None:
    """Return the HoldfastError for a system error, None when it is a bug in Holdfast."""
    code = error.errno
    if code in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"The disk is full; {path} was not changed. Free some space, then repeat the call.")
    if code == errno.EFBIG:
        return PayloadTooLarge(f"The system does not allow a file of that size; {path} was not changed.")
    if code in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY):
        return PermissionDenied(f"The operating system does not allow changing {path}.")
    if code in (errno.ENOENT, errno.ENOTDIR):
        return NotFound.at(path, display_name(path))
    if code == errno.EINVAL:
        return InvalidArgument(f"The operating system refused this for {path}.")
    return None


def _copy_metadata(from_fd: int, to_fd: int) -> None:
    source_status, target_status = os.fstat(from_fd), os.fstat(to_fd)
    if (source_status.st_uid, source_status.st_gid) != (target_status.st_uid, target_status.st_gid):
        os.fchown(to_fd, source_status.st_uid, source_status.st_gid)
    os.fchmod(to_fd, stat.S_IMODE(source_status.st_mode))
    set_xattrs(to_fd, read_xattrs(from_fd))


def read_xattrs(fd: int) -> str | None:
    """Return the extended attributes of an open file as JSON, None when it has none."""
    if not hasattr(os, "listxattr"):
        return None
    try:
        xattrs = {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return None
        raise
    return json.dumps({name: base64.b64encode(value).decode() for name, value in xattrs.items()}) if xattrs else None


def set_xattrs(fd: int, stored: str | None) -> None:
    """Set extended attributes of an open file, as far as the file system and our rights allow."""
    for name, value in json.loads(stored or "{}").items():
        try:
            os.setxattr(fd, name, base64.b64decode(value))
        except OSError as error:
            if error.errno not in _NO_XATTRS:
                raise


class NewContent:
    """Content that is being written and has no name yet. Always `close()` it; unnamed content is then gone."""

    def __init__(self, dir_fd: int, data: bytes, like_fd: int | None) -> None:
        self._dir_fd = dir_fd
        self._data = data
        self._like_fd = like_fd
        self._is_closed = False
        self._written: Future[int | None] = _pool.submit(_write_unnamed, dir_fd, data, like_fd)

    def link_as(self, name: str) -> Identity:
        """Give the content a free name; returns its device and inode. FileExistsError when the name is taken."""
        fd = self._written.result()
        if fd is None:
            return write_new(self._dir_fd, name, (self._data,), like_fd=self._like_fd)
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self._dir_fd, follow_symlinks=True)
        identity = identity_of(os.fstat(fd))
        self.close()
        return identity

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._written.exception() is None:
            fd = self._written.result()
            if fd is not None:
                os.close(fd)


def _write_unnamed(dir_fd: int, data: bytes, like_fd: int | None) -> int | None:
    """Return a descriptor of the durable content, None where the file system has no O_TMPFILE."""
    if _O_TMPFILE is None:
        return None
    try:
        fd = os.open(".", _O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666 if like_fd is None else 0o600, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return None
        raise
    try:
        write_content(fd, (data,), like_fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Closer:
    """Closes descriptors of replaced files in a thread of its own: giving back their blocks may wait for the disk."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._is_started = False

    def close(self, fd: int) -> None:
        """Close a descriptor in the background; never waits."""
        if not self._is_started:
            with self._starting:
                if not self._is_started:
                    threading.Thread(target=self._loop, name="closer", daemon=True).start()
                    self._is_started = True
        self._queue.put(fd)

    def _loop(self) -> None:
        while True:
            os.close(self._queue.get())


closer = Closer()
