"""The file of a backup: a tar archive that any tar can read, and after it one line with the SHA-256 of all of it."""

import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from holdfast.backup.model import MANIFEST, Manifest, Part
from holdfast.errors import NotFound, StorageDamaged

_PREFIX = b"holdfast-backup sha256 "
_TRAILER_BYTES = len(_PREFIX) + 64 + 1
_CHUNK_BYTES = 1 << 20

Advance = Callable[[int], None]
"""Is told how many more bytes are done."""


class ArchiveWriter:
    """Writes the parts of a backup one after the other, each with its SHA-256 for the manifest."""

    def __init__(self, file: BinaryIO, advance: Advance) -> None:
        self._file = _HashingFile(file)
        self._tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # type: ignore[arg-type]  # write and tell are all it uses
        self._advance = advance
        self._made_at = time.time()
        self.parts: list[Part] = []

    def add_file(self, name: str, source: BinaryIO, mode: int = 0o600, mtime: float | None = None) -> None:
        """Add what an open file holds from here on, as many bytes as it has now."""
        size = os.fstat(source.fileno()).st_size
        header = _header(name, tarfile.REGTYPE, mode, self._made_at if mtime is None else mtime)
        header.size = size
        reader = _HashingReader(source, self._advance)
        self._tar.addfile(header, reader)  # type: ignore[arg-type]  # read is all it uses
        self.parts.append(Part(name, "file", size, reader.digest.hexdigest()))

    def add_bytes(self, name: str, data: bytes, mode: int = 0o600, mtime: float | None = None) -> None:
        """Add a small file."""
        header = _header(name, tarfile.REGTYPE, mode, self._made_at if mtime is None else mtime)
        header.size = len(data)
        self._tar.addfile(header, io.BytesIO(data))
        self.parts.append(Part(name, "file", len(data), hashlib.sha256(data).hexdigest()))

    def add_directory(self, name: str, mode: int, mtime: float) -> None:
        """Add a directory."""
        self._tar.addfile(_header(name, tarfile.DIRTYPE, mode, mtime))
        self.parts.append(Part(name, "directory"))

    def add_link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        header = _header(name, tarfile.SYMTYPE, 0o777, self._made_at)
        header.linkname = target
        self._tar.addfile(header)
        self.parts.append(Part(name, "link", target=target))

    def finish(self, manifest: Manifest) -> str:
        """Write the manifest and the last line; returns the SHA-256 in it."""
        text = json.dumps(manifest.to_json(), indent=1).encode()
        header = _header(MANIFEST, tarfile.REGTYPE, 0o600, self._made_at)
        header.size = len(text)
        self._tar.addfile(header, io.BytesIO(text))
        self._tar.close()
        whole = self._file.digest.hexdigest()
        self._file.write(_PREFIX + whole.encode() + b"\n")
        return whole


@contextmanager
def open_backup(path: str) -> Iterator[BinaryIO]:
    """Open the file of a backup. NotFound when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"The backup {path!r} cannot be opened: {error.strerror}.") from None
    with os.fdopen(fd, "rb") as file:
        yield file


def verify_whole(file: BinaryIO, path: str, advance: Advance) -> tuple[str, Manifest]:
    """Return the SHA-256 of a backup and its manifest, every byte read. StorageDamaged when one is not as it was written."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(0, size - _TRAILER_BYTES))
    trailer = file.read(_TRAILER_BYTES)
    if not trailer.startswith(_PREFIX) or len(trailer) != _TRAILER_BYTES or not trailer.endswith(b"\n"):
        raise StorageDamaged(
            f"{path!r} is no backup of Holdfast, or it is cut off or damaged: its last line is not there."
        )
    digest, left = hashlib.sha256(), size - _TRAILER_BYTES
    file.seek(0)
    while left:
        chunk = file.read(min(_CHUNK_BYTES, left))
        if not chunk:
            break
        digest.update(chunk)
        left -= len(chunk)
        advance(len(chunk))
    expected = trailer[len(_PREFIX) : -1].decode("ascii", "replace")
    if digest.hexdigest() != expected:
        raise StorageDamaged(
            f"{path!r} is damaged: the SHA-256 of its content is {digest.hexdigest()}, its last line says {expected!r}. "
            "Use another backup."
        )
    manifest = None
    for member, source in members(file):
        if member.name == MANIFEST and source is not None:
            manifest = Manifest.read(source.read())
    if manifest is None:
        raise StorageDamaged(f"{path!r} has no manifest; it is not a backup of Holdfast.")
    return expected, manifest


def members(file: BinaryIO) -> Iterator[tuple[tarfile.TarInfo, "tarfile.ExFileObject | None"]]:
    """Yield every entry of a verified backup, and for a file its content. StorageDamaged when it is no archive."""
    file.seek(0)
    try:
        with tarfile.TarFile(fileobj=file, mode="r") as archive:
            for member in archive:
                yield member, archive.extractfile(member) if member.isreg() else None  # type: ignore[misc]
    except tarfile.TarError as error:
        raise StorageDamaged(f"The backup is no tar archive ({error}).") from None


def _header(name: str, type_: bytes, mode: int, mtime: float) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.mode, header.mtime = type_, mode, mtime
    return header


class _HashingFile:
    """What a tar archive is written to: hashes all that is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written_bytes = 0
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self._file.write(data)
        self.digest.update(data)
        self._written_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how much was written."""
        return self._written_bytes


class _HashingReader:
    """What a part is read from: hashes what is read, and never gives fewer bytes than asked for while there are some."""

    def __init__(self, source: BinaryIO, advance: Advance) -> None:
        self._source = source
        self._advance = advance
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Read bytes."""
        data = self._source.read(size)
        self.digest.update(data)
        self._advance(len(data))
        return data
