"""Writes the new content of a file as an unnamed file (O_TMPFILE) while the journal records the intent.

The two waits for the disk overlap, and a crash in between leaves nothing: a file without a name vanishes.
"""

import errno
import os
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from holdfast.changes.disk.files import write_content, write_new
from holdfast.folders.access.roots import Identity, identity_of

_THREADS = 8
_O_TMPFILE = getattr(os, "O_TMPFILE", None)
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)

_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="new-content")


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
        if error.errno in _UNSUPPORTED:
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
