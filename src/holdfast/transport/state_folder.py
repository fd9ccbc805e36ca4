"""The state folder: its permissions, the two keys in it, its locks, its log and the record of the running server.

Standard library only, and little of it: the relay imports this.
"""

import errno
import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.transport.pending_restore import complete_restore, has_pending_restore

AGENT_TOKEN = "agent.token"
PERSON_KEY = "person.key"
METRICS_TOKEN = "metrics.token"
KEY_FILES = (AGENT_TOKEN, PERSON_KEY, METRICS_TOKEN)
BROWSER_SESSIONS = "browser.sessions"
SOCKET = "server.sock"
LOG = "server.log"

_ROOT = 0
_KEY_BYTES = 32
_SOCKET_PATH_BYTES = 100
"""Longest socket path that is used as it is: the kernel's limit is 103 bytes on macOS, 107 on Linux."""
_RESTORE_WAIT_SECONDS = 5.0
_MAX_LOG_BYTES = 5_000_000
_MAX_PRIVATE_BYTES = 1_000_000


class StateFault(Exception):
    """The state folder cannot be used; the message says why and what to do."""

    exit_status = 78


class StateFolder:
    """One user's state folder. Nothing in it may be open to anyone else."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.server_lock = Lock(self.file("server.lock"))
        self.start_lock = Lock(self.file("start.lock"))

    def file(self, name: str) -> str:
        """Return the path of one file in the folder."""
        return os.path.join(self.path, name)

    def prepare(self) -> None:
        """Make the folder if it is missing, close it to everyone else and complete a restore that was cut short.

        Raises StateFault when that cannot be done.
        """
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            status = os.stat(self.path)
        except OSError as error:
            raise StateFault(f"The state folder {self.path!r} cannot be made: {error.strerror}.") from None
        if status.st_uid != os.geteuid():
            raise StateFault(
                f"The state folder {self.path!r} belongs to user {status.st_uid}, not to you ({os.geteuid()}). "
                "Set HOLDFAST_STATE_DIR to a folder of your own."
            )
        if status.st_mode & 0o077:
            self._deny_others()
        self._refuse_foreign_entries()
        if has_pending_restore(self.path):
            self._complete_restore()

    def _complete_restore(self) -> None:
        if not self.server_lock.take(_RESTORE_WAIT_SECONDS, kind="command"):
            raise StateFault(f"A restore of the state folder {self.path!r} is being completed. Try again in a moment.")
        try:
            complete_restore(self.path)
        except (OSError, ValueError, KeyError) as error:
            raise StateFault(
                f"A restore of the state folder {self.path!r} could not be completed ({error}). Correct what keeps it "
                "and repeat the command: it goes on where it stopped."
            ) from None
        finally:
            self.server_lock.release()

    def _refuse_foreign_entries(self) -> None:
        """Refuse a folder with something in it that another user put there, while the folder was open to others."""
        try:
            names = os.listdir(self.path)
        except OSError as error:
            raise self.fault(error) from None
        for name in names:
            with suppress(FileNotFoundError):  # a file of ours that has gone
                owner = os.lstat(self.file(name)).st_uid
                if owner not in (os.geteuid(), _ROOT):
                    raise StateFault(
                        f"The state folder {self.path!r} was open to other users: {name!r} in it belongs to user {owner}. "
                        "Nothing of it was used. Remove what is not yours; if you cannot tell what was changed, "
                        "move the folder away and begin with a new one."
                    )

    def fault(self, error: OSError) -> "StateFault":
        """Return the fault for an error of the system in this folder."""
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return StateFault(
                f"The state folder {self.path!r} cannot be used: {error.strerror}. It must be readable and writable for you; "
                "set HOLDFAST_STATE_DIR to another folder, or put the rights in order."
            )
        return StateFault(f"The state folder {self.path!r} cannot be used: {error.strerror or error}.")

    def _deny_others(self) -> None:
        with suppress(OSError):
            os.chmod(self.path, 0o700)
        mode = stat.S_IMODE(os.stat(self.path).st_mode)
        if mode & 0o077:
            raise StateFault(
                f"The state folder {self.path!r} is open to other users (mode {mode:04o}) and cannot be closed. "
                "Set HOLDFAST_STATE_DIR to a folder on a file system with permissions."
            )

    def key(self, name: str) -> str:
        """Return the key in the named file, made on first use: 256 random bits in hexadecimal, readable by you alone."""
        path = self.file(name)
        if not os.path.lexists(path):
            self._create_once(name, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise StateFault(f"{path!r} cannot be read ({error.strerror}); remove it to have a new key made.") from None
        try:
            status = os.fstat(fd)
            if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
                raise StateFault(f"{path!r} is not a file of yours; remove it to have a new key made.")
            if status.st_mode & 0o077:
                os.fchmod(fd, 0o600)
            text = os.read(fd, 4 * _KEY_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(fd)
        if len(text) != 2 * _KEY_BYTES:
            raise StateFault(
                f"{path!r} does not hold a key of {8 * _KEY_BYTES} bits; remove it to have a new one made."
            )
        return text

    def rotate_key(self, name: str) -> str:
        """Replace the key in the named file by a new one, as a whole, and return it. Raises StateFault."""
        text = os.urandom(_KEY_BYTES).hex()
        self.write_private(name, text + "\n")
        return text

    def _create_once(self, name: str, content: bytes) -> None:
        """Write a complete file under a new name; if another process was first, its file stays."""
        temporary = self._write_temporary(name, content)
        try:
            with suppress(FileExistsError):
                os.link(temporary, self.file(name))
        finally:
            os.unlink(temporary)

    def _write_temporary(self, name: str, content: bytes) -> str:
        path = self.file(f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self.fault(error) from None
        try:
            os.write(fd, content)
            os.fsync(fd)
        finally:
            os.close(fd)
        return path

    def read_private(self, name: str) -> str:
        """Return the text of a file that only this user can have written, empty when there is none or it is not that."""
        try:
            fd = os.open(self.file(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            status = os.fstat(fd)
            if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
                return ""
            return os.read(fd, _MAX_PRIVATE_BYTES).decode("utf-8", "replace")
        finally:
            os.close(fd)

    def write_private(self, name: str, text: str) -> None:
        """Replace a file that only this user can read, as a whole. Raises StateFault."""
        os.replace(self._write_temporary(name, text.encode()), self.file(name))

    def record(self, facts: dict[str, object]) -> None:
        """Write `server.json` atomically."""
        os.replace(self._write_temporary("server.json", json.dumps(facts).encode() + b"\n"), self.file("server.json"))

    def forget(self) -> None:
        """Remove the record and the socket of the server; only the holder of the server's lock may."""
        for name in ("server.json", SOCKET):
            with suppress(FileNotFoundError):
                os.unlink(self.file(name))

    @contextmanager
    def socket_address(self, name: str = SOCKET) -> Iterator[str]:
        """Give an address of a socket in the folder that is short enough for the kernel, however long the folder's path is."""
        path = self.file(name)
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
            yield path
            return
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if sys.platform == "linux":
                yield f"/proc/self/fd/{fd}/{name}"
                return
            with _change_directory(fd):
                yield name
        finally:
            os.close(fd)

    def open_log(self) -> int:
        """Open the background server's log for appending; a large one is renamed first."""
        path = self.file(LOG)
        with suppress(FileNotFoundError):
            if os.stat(path).st_size > _MAX_LOG_BYTES:
                os.replace(path, path + ".1")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self.fault(error) from None

    def renew_log(self) -> None:
        """Go on in a new log when this process writes to the log and it has grown large; the one before it stays."""
        with suppress(OSError):
            present = os.fstat(2)
            if present.st_size > _MAX_LOG_BYTES and os.path.samestat(present, os.stat(self.file(LOG))):
                fd = self.open_log()
                for stream in (1, 2):
                    os.dup2(fd, stream)
                os.close(fd)

    def log_tail(self, start: int, limit: int = 2000) -> str:
        """Return the end of what was logged from an offset on."""
        with suppress(OSError):
            fd = os.open(self.file(LOG), os.O_RDONLY | os.O_CLOEXEC)
            try:
                size = os.fstat(fd).st_size
                return os.pread(fd, limit, max(start, size - limit)).decode("utf-8", "replace").strip()
            finally:
                os.close(fd)
        return ""


class Lock:
    """A file lock that lasts until it is released or its process ends; the file names the holder."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None

    def take(self, seconds: float, **facts: object) -> bool:
        """Try for that many seconds to take the lock; `facts` are written into the file for others to read.

        A full disk takes no facts, and the lock holds without them. Raises StateFault when the file cannot be opened.
        """
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StateFault(
                f"{self._path!r} cannot be opened for writing ({error.strerror}). Correct the state folder, "
                "or set HOLDFAST_STATE_DIR to a folder that can be written to."
            ) from None
        deadline = time.monotonic() + seconds
        while not _try_lock(fd):
            if time.monotonic() >= deadline:
                os.close(fd)
                return False
            time.sleep(0.01)
        os.ftruncate(fd, 0)
        with suppress(OSError):
            os.pwrite(fd, json.dumps({"pid": os.getpid(), **facts}).encode(), 0)
        self._fd = fd
        return True

    def release(self) -> None:
        """Release the lock, if this process holds it."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def holder(self) -> dict[str, object]:
        """Return the facts of the process that holds the lock; empty when none does."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StateFolder(os.path.dirname(self._path)).fault(error) from None
        try:
            if _try_lock(fd):
                return {}
            facts = json.loads(os.pread(fd, 4096, 0) or b"{}")
            return facts if isinstance(facts, dict) else {}
        except ValueError:
            return {}
        finally:
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _change_directory(fd: int) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchdir(fd)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
