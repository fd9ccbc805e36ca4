"""Reads and replaces one configuration file: atomically, with a backup beside it, mode and links as they were."""

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from holdfast.errors import Conflict, InvalidArgument, PermissionDenied

_BACKUP = "holdfast-backup"
_MAX_BYTES = 64 * 1_048_576
_FOLDER_MODE = 0o755
_NEW_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file as it was read. `raw` is None when there is none yet; `path` is behind any symbolic link."""

    display_path: str
    path: str
    raw: bytes | None
    text: str
    mode: int = _NEW_FILE_MODE

    def encode(self, text: str) -> bytes:
        """Return the bytes of a new text, with the byte order mark that the file had."""
        mark = codecs.BOM_UTF8 if self.raw is not None and self.raw.startswith(codecs.BOM_UTF8) else b""
        return mark + text.encode()


def read_config(path: str, project: str | None = None) -> ConfigFile:
    """Read a file that may be missing. Raises InvalidArgument when it is no text file, PermissionDenied when it is closed.

    PermissionDenied, too, when a link leads out of the project whose file it is: others may have put it there.
    """
    real = os.path.realpath(path)
    if project is not None and not real.startswith(os.path.join(os.path.realpath(project), "")):
        raise PermissionDenied(
            f"{path} leads out of the project, to {real}; nothing was changed. If that file is meant, name it with --config."
        )
    try:
        raw, status = _read(real)
    except FileNotFoundError:
        return ConfigFile(path, real, None, "")
    except PermissionError:
        raise PermissionDenied(f"{path} may not be read by you; nothing was changed.") from None
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"{path} is not UTF-8 text (byte {error.start + 1}). Nothing was changed; save it as UTF-8 and repeat."
        ) from None
    return ConfigFile(path, real, raw, text, stat.S_IMODE(status.st_mode))


def check_writable(file: ConfigFile) -> None:
    """Raise PermissionDenied for a file that its owner, or another program, keeps from being changed."""
    if file.raw is None:
        return
    is_closed = not file.mode & 0o222 or not os.access(file.path, os.W_OK)
    if is_closed or not os.access(os.path.dirname(file.path), os.W_OK):
        raise PermissionDenied(
            f"{file.display_path} is read-only; nothing was changed. Another program may manage it: "
            "add the entry there, which `--print` shows, or make the file writable."
        )


def replace_config(file: ConfigFile, content: bytes | None, *, keeps_backup: bool = True) -> str | None:
    """Replace the file by new content, None to remove it; return the path of the backup, None when there is none.

    Raises Conflict when the file is no longer as it was read.
    """
    try:
        backup = _back_up(file) if keeps_backup and file.raw is not None else None
        if content is None:
            _check_unchanged(file)
            os.unlink(file.path)
        else:
            os.makedirs(os.path.dirname(file.path), mode=_FOLDER_MODE, exist_ok=True)
            _write_atomically(file, content)
    except OSError as error:
        raise PermissionDenied(
            f"{file.display_path} could not be written: {error.strerror}. It is as it was before."
        ) from None
    return backup


def backups_of(file: ConfigFile) -> Iterator[bytes]:
    """Yield the content of the backups beside the file, the newest first."""
    for path in reversed(_backup_paths(file)):
        with suppress(OSError):
            yield _read(path)[0]


def _backup_paths(file: ConfigFile) -> list[str]:
    """Return the backups that are there, the oldest first; they are numbered without gaps."""
    paths: list[str] = []
    while os.path.lexists(path := _backup_path(file, len(paths) + 1)):
        paths.append(path)
    return paths


def _backup_path(file: ConfigFile, number: int) -> str:
    return f"{file.path}.{_BACKUP}" + (f"-{number}" if number > 1 else "")


def _back_up(file: ConfigFile) -> str:
    """Return a backup with the content of the file: one that is there already, or a new one."""
    assert file.raw is not None
    paths = _backup_paths(file)
    for path in paths:
        with suppress(OSError):
            if _read(path)[0] == file.raw:
                return path
    path = _backup_path(file, len(paths) + 1)
    _create(path, file.raw, file.mode)
    return path


def _write_atomically(file: ConfigFile, content: bytes) -> None:
    temporary = f"{file.path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    _create(temporary, content, file.mode)
    try:
        if file.raw is not None:
            _keep_owner(file.path, temporary)
        _check_unchanged(file)
        os.replace(temporary, file.path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(file.path))


def _keep_owner(path: str, copy: str) -> None:
    status = os.stat(path)
    copy_status = os.stat(copy)
    if (status.st_uid, status.st_gid) != (copy_status.st_uid, copy_status.st_gid):
        os.chown(copy, status.st_uid, status.st_gid)


def _check_unchanged(file: ConfigFile) -> None:
    try:
        raw: bytes | None = _read(file.path)[0]
    except FileNotFoundError:
        raw = None
    if raw != file.raw:
        raise Conflict(
            f"{file.display_path} was changed by another program meanwhile; nothing was written. Repeat the command."
        )


def _read(path: str) -> tuple[bytes, os.stat_result]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(0, "it is not a regular file")
        if status.st_size > _MAX_BYTES:
            raise OSError(0, f"it is larger than {_MAX_BYTES} bytes")
        with os.fdopen(os.dup(fd), "rb") as stream:
            return stream.read(), status
    finally:
        os.close(fd)


def _create(path: str, content: bytes, mode: int) -> None:
    """Write a new file and sync it; it is readable by its owner alone until its mode is set."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE_MODE)
    try:
        with os.fdopen(os.dup(fd), "wb") as stream:
            stream.write(content)
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
