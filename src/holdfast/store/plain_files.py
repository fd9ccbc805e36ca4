"""Exports a project of the store as plain files, and imports plain files into one; byte for byte, for the person alone.

What is written here is a directory of its own that did not exist, never a file that somebody may be working on.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex

from holdfast.auth.context import AuthContext
from holdfast.errors import AlreadyExists, Conflict, HoldfastError, InvalidPath, InvalidQuery, NotDirectory
from holdfast.store.paths import check_project, parse_file_path
from holdfast.store.service import Store

Advance = Callable[[int, int, str], None]
"""Is told how many files are done, how many there are, and the path of the next."""

_MAX_PROBLEMS = 20


@dataclass(frozen=True)
class ExportedFiles:
    """What an export wrote."""

    directory: str
    files: int
    bytes: int


@dataclass
class ImportedFiles:
    """What an import did with each file, by its path in the project."""

    created: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    bytes: int = 0


def export_project(store: Store, auth: AuthContext, project: str, directory: str, advance: Advance) -> ExportedFiles:
    """Write every live file of a project to a new directory, all of one moment.

    The directory gets its name when all is in it. AlreadyExists when it is there and not empty, NotFound for a project
    without files.
    """
    directory = os.path.abspath(directory)
    if os.path.lexists(directory) and not (os.path.isdir(directory) and not os.listdir(directory)):
        raise AlreadyExists(
            f"{directory!r} is there already; an export replaces nothing. Name a directory that is not there."
        )
    if not os.path.isdir(os.path.dirname(directory)):
        raise NotDirectory(f"{os.path.dirname(directory)!r} is no directory; make it first.")
    partial = f"{directory}.{token_hex(4)}.partial"
    os.mkdir(partial, 0o700)
    total_bytes = count = 0
    try:
        for summary, file_count, data in store.read_project(auth, project):
            advance(count, file_count, summary.path)
            count += 1
            _write_new(partial, summary.path, data, summary.updated_at.timestamp())
            total_bytes += len(data)
        with suppress(FileNotFoundError):
            os.rmdir(directory)
        os.rename(partial, directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return ExportedFiles(directory, count, total_bytes)


def import_project(
    store: Store, auth: AuthContext, directory: str, project: str, advance: Advance, *, overwrite: bool = False
) -> ImportedFiles:
    """Write every file below a directory to a project.

    Every name and text is checked first, and what is in the way: InvalidPath, InvalidQuery or AlreadyExists name them, and
    nothing was written. An import that is cut short is repeated: files that are there already stay as they are.
    """
    check_project(project)
    if not os.path.isdir(directory):
        raise NotDirectory(f"{directory!r} is no directory.")
    paths = dict(_list_files(directory))
    present = store.hashes_of(auth, project, list(paths))
    outcome, to_write = ImportedFiles(), []
    for path, file in paths.items():
        digest = sha256(_read_text(file)).hexdigest()
        if present.get(path) == digest:
            outcome.unchanged.append(path)
        else:
            to_write.append(path)
    in_the_way = [path for path in to_write if path in present]
    if in_the_way and not overwrite:
        raise AlreadyExists(
            f"{len(in_the_way)} files of the project hold something else: {_some(in_the_way)}. Nothing was written. "
            "--overwrite replaces them; what they hold stays in their history."
        )
    for number, path in enumerate(to_write):
        advance(number, len(to_write), path)
        data = _read_text(paths[path])
        store.replace_text(auth, project, path, data.decode(), present.get(path))
        (outcome.replaced if path in present else outcome.created).append(path)
        outcome.bytes += len(data)
    return outcome


def _write_new(top: str, path: str, data: bytes, mtime: float) -> None:
    """Write one file below a directory of ours. InvalidPath for a name that this file system cannot hold."""
    place = os.path.join(top, path.removeprefix("/"))
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise Conflict(
            f"{path} and another path are the same name on this file system; export to another one."
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidPath(f"{path} has a name that is too long for this file system.") from None
        raise
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.utime(file.fileno(), (mtime, mtime))


def _list_files(directory: str) -> Iterator[tuple[str, str]]:
    """Yield the path in the project and the path on the disk of each file, in order. InvalidPath names what cannot be stored."""
    problems: list[str] = []
    for folder, names, files in os.walk(directory, onerror=_raise):
        names.sort()
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in sorted([*files, *links]):
            place = os.path.join(folder, name)
            try:
                if not stat.S_ISREG(os.lstat(place).st_mode):
                    raise InvalidPath(f"{os.path.relpath(place, directory)!r} is a link or no regular file")
                path = parse_file_path("/" + os.path.relpath(place, directory))
            except HoldfastError as problem:
                problems.append(problem.message)
            else:
                yield path, place
    if problems:
        raise InvalidPath(
            f"{len(problems)} files cannot be stored: {'; '.join(problems[:_MAX_PROBLEMS])}. Nothing was written."
        )


def _read_text(place: str) -> bytes:
    """Return what a file holds. InvalidQuery when it is no UTF-8, which is what the store keeps."""
    fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        data = file.read()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InvalidQuery(
            f"{place!r} is no UTF-8 text (byte {error.start}); the store keeps text alone. Nothing was written."
        ) from None
    return data


def _raise(error: OSError) -> None:
    raise error


def _some(paths: list[str]) -> str:
    more = len(paths) - _MAX_PROBLEMS
    return ", ".join(paths[:_MAX_PROBLEMS]) + (f" and {more} more" if more > 0 else "")
