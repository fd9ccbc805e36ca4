"""Pure: the syntax of callers' paths, the reserved name of the quarantine, and system errors that name the caller's path."""

import errno
from typing import NoReturn

from holdfast.errors import AccessDenied, InvalidPath, NotDirectory, NotFound, PermissionDenied
from holdfast.folders.access.policy import fold_name
from holdfast.text.display import display_name

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4096

QUARANTINE = ".holdfast-quarantine"
"""The directory that keeps the sources of moves to other devices for a while; no caller's path resolves into it."""


def split_path(path: str) -> tuple[str, ...]:
    """Return the names of a path."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def without_quarantine(parts: tuple[str, ...], path: str) -> tuple[str, ...]:
    """Return the parts of a path. NotFound when one of them is the quarantine."""
    if names_quarantine(parts, path):
        raise NotFound.at(path, display_name(path))
    return parts


def names_quarantine(parts: tuple[str, ...], path: str) -> bool:
    """Return whether a part of a path is the quarantine, however its name is spelt."""
    if path.isascii() and ".holdfast-" not in path.lower():
        return False
    return any(fold_name(part) == QUARANTINE for part in parts)


def check_syntax(path: str) -> None:
    """Raise InvalidPath for a path that no file can have."""
    if "\0" in path:
        raise InvalidPath("A path cannot hold a NUL byte.")
    try:
        encoded = path.encode("utf-8", "surrogateescape")  # the journal holds names that are not UTF-8
    except UnicodeEncodeError:
        raise InvalidPath("A path must be valid Unicode text; it holds a lone surrogate.") from None
    if len(encoded) > MAX_PATH_BYTES:
        raise InvalidPath(f"The path is {len(encoded)} bytes long; the limit is {MAX_PATH_BYTES}.")
    if any(len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")):
        raise InvalidPath(f"A name in the path is longer than {MAX_NAME_BYTES} bytes: {path[:80]!r}…")


def raise_for_errno(error: OSError, display_path: str) -> NoReturn:
    """Raise an error of the system as one that names the path as the caller gave it."""
    code = error.errno
    if code == errno.ENOENT:
        raise NotFound.at(display_path, display_name(display_path)) from None
    if code == errno.ENOTDIR:
        raise NotDirectory(f"{display_path} is not a directory, or lies beneath a file.") from None
    if code in (errno.EXDEV, errno.ELOOP):
        raise AccessDenied.outside(display_path) from None
    if code in (errno.EACCES, errno.EPERM):
        raise PermissionDenied(f"The operating system does not allow access to {display_path}.") from None
    if code == errno.ENXIO:
        raise PermissionDenied(f"{display_path} is not a regular file (a FIFO, socket or device).") from None
    if code == errno.ENAMETOOLONG:
        raise InvalidPath(f"A name in the path is too long: {display_path[:80]!r}…") from None
    raise error
