"""Makes a backup of a state folder while its server goes on; it gets its name when all of it is on the disk."""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from secrets import token_hex
from typing import BinaryIO

from holdfast import __version__
from holdfast.backup.archive import ArchiveWriter
from holdfast.backup.model import (
    DATABASE,
    FOLDERS,
    IDENTITY,
    IMAGES,
    SECRETS,
    SETTINGS,
    STORE,
    Absence,
    BackupContents,
    BackupOptions,
    DatabaseCopier,
    Manifest,
    Report,
)
from holdfast.changes.disk.image_lock import hold_images
from holdfast.clock import utc_now
from holdfast.errors import AlreadyExists, Conflict, InvalidArgument, NotDirectory, NotFound, StorageFull

_PARTIAL, _PARTIAL_END = ".holdfast-backup-", ".partial"
_SMALL_BYTES = 16_000_000
_WHOLE, _COPY, _LOCK = "backup.tar", "copy.db", "lock"


class BackupMaker:
    """Makes one backup; `run` does it all."""

    def __init__(self, state_dir: str, databases: DatabaseCopier, report: Report) -> None:
        self._state_dir = os.path.realpath(state_dir)
        self._databases = databases
        self._report = report
        self._done_bytes = 0
        self._total_bytes = 0
        self._doing = ""

    def run(self, path: str, options: BackupOptions) -> BackupContents:
        """Make a backup at a path where nothing is. StorageFull, and no file, when the disk has no room for it.

        StorageDamaged when a database is not sound: a damaged backup would only hide that.
        """
        folder = os.path.dirname(os.path.abspath(path))
        self._check_target(path, folder)
        try:
            with _partial_folder(folder) as partial:
                sha256, manifest = self._write(partial, options)
                size = os.stat(os.path.join(partial, _WHOLE)).st_size
                _publish(os.path.join(partial, _WHOLE), path, folder)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise StorageFull(
                    f"The disk of {folder!r} is full; no backup was made. It needs up to twice the size of the state folder."
                ) from None
            raise
        return BackupContents(path, size, sha256, manifest)

    def _check_target(self, path: str, folder: str) -> None:
        if not os.path.exists(os.path.join(self._state_dir, DATABASE)):
            raise NotFound(f"There is nothing to back up: {self._state_dir!r} has no {DATABASE}.")
        if not os.path.isdir(folder):
            raise NotDirectory(f"{folder!r} is no directory; make it first.")
        if os.path.lexists(path):
            raise AlreadyExists(f"{path!r} is there already; a backup replaces nothing. Choose another name.")
        if os.path.commonpath([os.path.realpath(folder), self._state_dir]) == self._state_dir:
            raise InvalidArgument("A backup does not belong into the state folder that it is of. Choose another place.")

    def _write(self, partial: str, options: BackupOptions) -> tuple[str, Manifest]:
        self._total_bytes = _size_of(self._state_dir)
        whole = os.open(os.path.join(partial, _WHOLE), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(whole, "wb") as file:
            archive = ArchiveWriter(file, self._advance)
            absences = list(options.absences)
            with hold_images(self._state_dir):
                version = self._add_state(archive, os.path.join(partial, _COPY), absences)
            self._add_store(archive, os.path.join(partial, _COPY))
            self._add_keys_and_settings(archive, options)
            manifest = Manifest(
                __version__, utc_now(), version, options.has_secrets, tuple(archive.parts), tuple(absences)
            )
            sha256 = archive.finish(manifest)
            file.flush()
            os.fsync(file.fileno())
        return sha256, manifest

    def _add_state(self, archive: ArchiveWriter, copy: str, absences: list[Absence]) -> int:
        """Add state.db as it is at one moment, then every image that it names, and the folders beside it."""
        self._begin("the journal")
        self._databases.copy(os.path.join(self._state_dir, DATABASE), copy)
        facts = self._databases.state_facts(copy)
        self._add_copy(archive, DATABASE, copy)
        with suppress(FileNotFoundError), _open_file(os.path.join(self._state_dir, IDENTITY)) as identity:
            archive.add_file(IDENTITY, identity)
        self._begin("before-images")
        for name in facts.image_files:
            try:
                with _open_file(os.path.join(self._state_dir, IMAGES, name)) as image:
                    archive.add_file(f"{IMAGES}/{name}", image)
            except FileNotFoundError:
                raise Conflict(
                    f"The before-image {name} is missing. It was lost, or a server of an earlier release removed it "
                    "meanwhile: restart the server and try again; `holdfast doctor` checks the rest."
                ) from None
        for folder in FOLDERS[1:]:
            self._begin(folder)
            self._add_tree(archive, folder, absences)
        return facts.version

    def _add_tree(self, archive: ArchiveWriter, name: str, absences: list[Absence]) -> None:
        """Add a directory with all in it, as it is found: what comes or goes meanwhile may be in it or not."""
        path = os.path.join(self._state_dir, name)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        mode = stat.S_IMODE(status.st_mode)
        try:
            if stat.S_ISDIR(status.st_mode):
                archive.add_directory(name, mode, status.st_mtime)
                for entry in sorted(os.listdir(path)):
                    self._add_tree(archive, f"{name}/{entry}", absences)
            elif stat.S_ISLNK(status.st_mode):
                archive.add_link(name, os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                with _open_file(path) as file:
                    if status.st_size <= _SMALL_BYTES:  # it may be saved meanwhile, so it is read at once
                        archive.add_bytes(name, file.read(), mode, status.st_mtime)
                    else:
                        archive.add_file(name, file, mode, status.st_mtime)
            else:
                absences.append(Absence(name, "it is neither file, directory nor link"))
        except FileNotFoundError:
            return

    def _add_store(self, archive: ArchiveWriter, copy: str) -> None:
        folder = os.path.join(self._state_dir, STORE)
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in names:
            if name.endswith(".db"):
                self._begin("the project store")
                self._databases.copy(os.path.join(folder, name), copy)
                self._add_copy(archive, f"{STORE}/{name}", copy)

    def _add_keys_and_settings(self, archive: ArchiveWriter, options: BackupOptions) -> None:
        names = (*(SECRETS if options.has_secrets else ()), *((SETTINGS,) if options.has_settings else ()))
        for name in names:
            with suppress(FileNotFoundError), _open_file(os.path.join(self._state_dir, name)) as file:
                archive.add_file(name, file)

    def _add_copy(self, archive: ArchiveWriter, name: str, copy: str) -> None:
        with _open_file(copy) as file:
            archive.add_file(name, file)
        os.unlink(copy)

    def _begin(self, doing: str) -> None:
        self._doing = doing
        self._advance(0)

    def _advance(self, bytes_: int) -> None:
        self._done_bytes += bytes_
        self._report(min(self._done_bytes, self._total_bytes), self._total_bytes, self._doing)


@contextmanager
def _open_file(path: str) -> Iterator[BinaryIO]:
    """Open a file of ours, never through a link."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        yield file


@contextmanager
def _partial_folder(folder: str) -> Iterator[str]:
    """Give a private folder beside the backup-to-be; it is removed at the end, and so are those that a crash left."""
    _remove_abandoned(folder)
    path = os.path.join(folder, f"{_PARTIAL}{token_hex(8)}{_PARTIAL_END}")
    os.mkdir(path, 0o700)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def _remove_abandoned(folder: str) -> None:
    """Remove the folders of backups whose process was killed: their lock is free."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not (name.startswith(_PARTIAL) and name.endswith(_PARTIAL_END)):
            continue
        with suppress(OSError):
            lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _publish(whole: str, path: str, folder: str) -> None:
    """Give the backup its name, durably, unless something has it by now."""
    try:
        os.link(whole, path)
    except FileExistsError:
        raise AlreadyExists(f"{path!r} is there already; a backup replaces nothing. Choose another name.") from None
    except OSError:  # a disk without hard links
        os.rename(whole, path)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _size_of(state_dir: str) -> int:
    """Return about how many bytes a backup has to read."""
    names = [os.path.join(state_dir, name) for name in (DATABASE, STORE, *FOLDERS)]
    total = 0
    for name in names:
        if os.path.isfile(name):
            total += os.path.getsize(name)
        for folder, _, files in os.walk(name):
            for file in files:
                with suppress(OSError):
                    total += os.lstat(os.path.join(folder, file)).st_size
    return total
