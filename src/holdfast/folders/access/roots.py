"""The allowed directories (roots) of one connection, each opened once and kept as a descriptor."""

import errno
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import InvalidArgument
from holdfast.text.decode import has_lone_surrogate

_log = logging.getLogger(__name__)

Identity = tuple[int, int]


def identity_of(status: os.stat_result) -> Identity:
    """Return device and inode, which identify a file on this machine whatever its name."""
    return (status.st_dev, status.st_ino)


@dataclass(frozen=True, slots=True)
class Root:
    """One allowed directory: its real path, the path it was given by, its descriptor.

    With `walk_only` the state folder lies beneath it, so that every component of a path must be checked.
    """

    path: str
    given_path: str
    fd: int
    identity: Identity
    walk_only: bool


def open_roots(paths: Sequence[str], cwd: str, state_dir: str) -> list[Root]:
    """Open the directories that a caller may use, in the given order, each once.

    A directory that is missing, not a directory, or inside the state folder is skipped with a warning.
    Raises InvalidArgument when directories were given and none can be used, or when none was given
    and the working directory is `/` or the home folder.
    """
    if not _is_path_text(cwd):
        raise InvalidArgument(f"The working directory holds a NUL byte or is not valid Unicode text: {cwd!r}")
    if not paths:
        paths = [_check_working_directory(cwd)]
    roots: list[Root] = []
    skipped: list[str] = []
    for number, name in enumerate(paths, start=1):
        try:
            root = _open_root(name, cwd, state_dir)
        except OSError as error:
            skipped.append(f"{name!r}: {error.strerror}")
            _log.warning("allowed directory %d of %d skipped: %s", number, len(paths), error.strerror)
            continue
        if all(root.identity != earlier.identity for earlier in roots):
            roots.append(root)
        else:
            os.close(root.fd)
    if not roots:
        raise InvalidArgument(f"None of the given directories can be used: {'; '.join(skipped)}.")
    return roots


def close_roots(roots: Iterable[Root]) -> None:
    """Close the descriptors."""
    for root in roots:
        os.close(root.fd)


def _check_working_directory(cwd: str) -> str:
    real = os.path.realpath(cwd)
    if real in {"/", os.path.realpath(Path.home())}:
        raise InvalidArgument(
            f"No directory was given, and the working directory {cwd!r} is too wide to allow by itself. "
            "Name the directories to serve: holdfast stdio DIR…"
        )
    return cwd


def _open_root(path: str, cwd: str, state_dir: str) -> Root:
    if not _is_path_text(path):
        raise OSError(errno.EILSEQ, "its path holds a NUL byte or is not valid Unicode text")
    try:
        absolute = os.path.normpath(Path(cwd) / Path(path).expanduser())
    except RuntimeError:
        raise OSError(errno.ENOENT, "this machine has no user of that name") from None
    real = os.path.realpath(absolute)
    if has_lone_surrogate(real):
        raise OSError(errno.EILSEQ, "its path is not valid Unicode text")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(real, flags)
    try:
        identity = identity_of(os.fstat(fd))
        if _is_state_folder_or_inside(real, state_dir):
            raise PermissionError(1, "it lies inside the state folder of Holdfast")
        return Root(real, absolute, fd, identity, walk_only=identity in set(_ancestors(state_dir)))
    except BaseException:
        os.close(fd)
        raise


def _is_path_text(path: str) -> bool:
    return "\0" not in path and not has_lone_surrogate(path)


def _is_state_folder_or_inside(path: str, state_dir: str) -> bool:
    try:
        state = identity_of(os.stat(state_dir))
    except FileNotFoundError:
        return False
    return state in set(_ancestors(path))


def _ancestors(path: str) -> Iterator[Identity]:
    current = os.path.realpath(path)
    while True:
        try:
            yield identity_of(os.stat(current))
        except FileNotFoundError:
            pass
        parent = os.path.dirname(current)
        if parent == current:
            return
        current = parent
