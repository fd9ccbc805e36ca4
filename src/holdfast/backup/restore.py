"""Lays a verified backup out beside the state that it is to replace, every byte checked once more; it takes no place yet."""

import hashlib
import os
import shutil
import tarfile
from contextlib import suppress
from typing import BinaryIO

from holdfast.backup.archive import Advance, members, open_backup, verify_whole
from holdfast.backup.model import (
    DATABASE,
    FOLDERS,
    IDENTITY,
    MANIFEST,
    SECRETS,
    SETTINGS,
    STORE,
    BackupContents,
    DatabaseCopier,
    Manifest,
    Part,
    Report,
)
from holdfast.errors import Conflict, StorageDamaged

STAGED_PREFIX = "restored-"
REPLACED = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", IDENTITY, *FOLDERS)
"""What always goes with the state that is replaced, whether or not the backup has it."""

_FILES = frozenset({DATABASE, IDENTITY, SETTINGS, *SECRETS})
_TREES = frozenset({STORE, *FOLDERS})
_CHUNK_BYTES = 1 << 20


def verify_backup(path: str, report: Report) -> BackupContents:
    """Read every byte of a backup and return what is in it. StorageDamaged when one byte is not as it was written."""
    with open_backup(path) as file:
        size = os.fstat(file.fileno()).st_size
        sha256, manifest = verify_whole(file, path, _ByteProgress(report, size, "verifying").advance)
        _check_parts(file, manifest)
    return BackupContents(path, size, sha256, manifest)


def stage_backup(
    path: str, state_dir: str, staged: str, newest_state: int, databases: DatabaseCopier, report: Report
) -> BackupContents:
    """Verify a backup and write it to the folder `staged` of the state folder, durably.

    Conflict when it is of a newer release than this one; then and after any other failure nothing of it is left.
    """
    _remove_abandoned(state_dir)
    contents = verify_backup(path, report)
    manifest = contents.manifest
    if manifest.state_version > newest_state:
        raise Conflict(
            f"This backup was made by Holdfast {manifest.version}, whose state has version {manifest.state_version}; this "
            f"release knows versions up to {newest_state}. Restore it with that release or a later one."
        )
    folder = os.path.join(state_dir, staged)
    os.mkdir(folder, 0o700)
    try:
        with open_backup(path) as file:
            _extract(file, manifest, folder, _ByteProgress(report, contents.bytes, "restoring").advance)
        for part in manifest.parts:
            if part.name.endswith(".db"):
                databases.check(os.path.join(folder, part.name))
        _sync_tree(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return contents


class _ByteProgress:
    def __init__(self, report: Report, total: int, doing: str) -> None:
        self._report, self._total, self._doing, self._done = report, total, doing, 0

    def advance(self, bytes_: int) -> None:
        self._done += bytes_
        self._report(self._done, self._total, self._doing)


def _check_parts(file: BinaryIO, manifest: Manifest) -> None:
    """See that the archive holds what its manifest says and nothing else, and that no name leads out of a state folder."""
    names = {part.name: part for part in manifest.parts}
    entries = [member for member, _ in members(file) if member.name != MANIFEST]
    if len(names) != len(manifest.parts) or [entry.name for entry in entries] != [part.name for part in manifest.parts]:
        raise StorageDamaged("The entries of this backup are not those of its manifest.")
    for entry in entries:
        part = names[entry.name]
        if not _may_be_restored(part, names) or _type_of(entry) != part.type or entry.size != part.bytes:
            raise StorageDamaged(f"The backup has an entry {entry.name!r} that belongs into no state folder.")


def _may_be_restored(part: Part, names: dict[str, Part]) -> bool:
    """Return whether a part has a name of the state folder, and lies in directories of the backup alone."""
    top, *rest = part.name.split("/")
    if not rest:
        return (top in _FILES and part.type == "file") or (top in _TREES and part.type == "directory")
    if top not in _TREES or any(step in ("", ".", "..") for step in rest) or "\0" in part.name:
        return False
    above = ["/".join([top, *rest[:depth]]) for depth in range(len(rest))]
    return all(name not in names or names[name].type == "directory" for name in above)


def _type_of(entry: tarfile.TarInfo) -> str:
    return "file" if entry.isreg() else "directory" if entry.isdir() else "link" if entry.issym() else "other"


def _extract(file: BinaryIO, manifest: Manifest, folder: str, advance: Advance) -> None:
    parts = {part.name: part for part in manifest.parts}
    directories: list[tuple[str, tarfile.TarInfo]] = []
    for member, source in members(file):
        if member.name == MANIFEST:
            continue
        place = os.path.join(folder, member.name)
        _make_private_folders(folder, os.path.dirname(member.name))
        if source is not None:
            _write_file(place, source, parts[member.name], member, advance)
        elif member.issym():
            os.symlink(member.linkname, place)
        else:
            _make_private_folders(folder, member.name)
            directories.append((place, member))
    for place, member in reversed(directories):
        os.chmod(place, member.mode & 0o7777)
        os.utime(place, (member.mtime, member.mtime))


def _make_private_folders(folder: str, name: str) -> None:
    place = folder
    for step in name.split("/") if name else ():
        place = os.path.join(place, step)
        with suppress(FileExistsError):
            os.mkdir(place, 0o700)


def _write_file(place: str, source: BinaryIO, part: Part, member: tarfile.TarInfo, advance: Advance) -> None:
    digest = hashlib.sha256()
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as target:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            target.write(chunk)
            advance(len(chunk))
        target.flush()
        os.fchmod(target.fileno(), member.mode & 0o7777)
        os.utime(target.fileno(), (member.mtime, member.mtime))
        os.fsync(target.fileno())
    if digest.hexdigest() != part.sha256:
        raise StorageDamaged(f"{part.name!r} in the backup is damaged; nothing was restored.")


def _sync_tree(folder: str) -> None:
    for place, _, _ in os.walk(folder):
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _remove_abandoned(state_dir: str) -> None:
    """Remove what a restore left whose process was killed before it was recorded; only the holder of the lock is here."""
    for name in os.listdir(state_dir):
        if name.startswith(STAGED_PREFIX):
            shutil.rmtree(os.path.join(state_dir, name), ignore_errors=True)
