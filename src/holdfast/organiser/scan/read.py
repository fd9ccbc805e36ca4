"""Reads files in two tiers through descriptors: a look at their ends, and the text of those that need more.

Each descriptor is checked against what the scan found, so a file that was replaced or is being written is not taken
for the one that was seen.
"""

import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from holdfast.call import Call
from holdfast.errors import HoldfastError
from holdfast.folders.access.descriptors import READ_FILE, read_ends, read_fully
from holdfast.folders.access.file_version import hash_ends
from holdfast.folders.access.jail import Jail
from holdfast.folders.children.extract import (
    FILES_PER_CHILD,
    ExtractedText,
    ExtractionLimits,
    ExtractionRequest,
    extract_texts,
)
from holdfast.organiser.model import Excerpt, FileType, ScannedFile, SkippedFile, SkipReason
from holdfast.organiser.scan.excerpts import TAIL_BYTES, decoded, first_look, reader_of

MAX_TEXT_BYTES = 16_000
_RECENT_NS = 300 * 10**9


class PeekedFile(NamedTuple):
    """A file after the first look: its hash and what its ends say, or why it is left alone after all.

    What is no file has no hash: it is known by its name.
    """

    found: ScannedFile
    file_hash: str
    excerpt: Excerpt
    skip: SkippedFile | None = None


def look(jail: Jail, call: Call, files: Sequence[ScannedFile]) -> list[PeekedFile]:
    """Return tier 1 of each file, in the same order; files of one folder should be neighbours."""
    looks: list[PeekedFile] = []
    for parent, group in groupby(files, key=lambda found: os.path.dirname(found.path)):
        call.check()
        members = list(group)
        try:
            with jail.open_directory(parent) as fd:
                looks += [_looked(fd, found) for found in members]
        except HoldfastError as error:
            looks += [_left(found, SkipReason.UNREADABLE, error.message) for found in members]
    return looks


def deepen(jail: Jail, call: Call, files: Sequence[tuple[ScannedFile, Excerpt]], max_bytes: int) -> list[Excerpt]:
    """Return tier 2 of each file, in the same order; one that gives no text keeps tier 1, with a note that says why.

    Documents over `max_bytes` are not read. Raises Cancelled or TimedOut as the call does.
    """
    excerpts: list[Excerpt] = []
    for at in range(0, len(files), FILES_PER_CHILD):
        call.check()
        excerpts += _deepened(jail, call, files[at : at + FILES_PER_CHILD], max_bytes)
    return excerpts


def _looked(dir_fd: int, found: ScannedFile) -> PeekedFile:
    if found.kind is not FileType.FILE:
        return PeekedFile(
            found, "", Excerpt("", 0, 0, f"inode/{'directory' if found.kind is FileType.DIRECTORY else 'symlink'}")
        )
    try:
        fd = os.open(found.name, READ_FILE, dir_fd=dir_fd)
    except OSError as error:
        return _left(found, SkipReason.UNREADABLE, error.strerror or "")
    try:
        status = os.fstat(fd)
        if not _is_same(status, found):
            return _left(found, SkipReason.UNREADABLE, "it was replaced during the scan")
        if _is_being_written(fd, status, found):
            return _left(found, SkipReason.BEING_WRITTEN)
        head, tail = read_ends(fd, status.st_size)
        return PeekedFile(
            found, hash_ends(status, head, tail), first_look(status.st_size, head, tail, found.suffix[1:])
        )
    except OSError as error:
        return _left(found, SkipReason.UNREADABLE, error.strerror or "")
    finally:
        os.close(fd)


def _left(found: ScannedFile, reason: SkipReason, detail: str = "") -> PeekedFile:
    return PeekedFile(found, "", Excerpt("", 0), SkippedFile(found.relative, reason, detail))


def _is_same(status: os.stat_result, found: ScannedFile) -> bool:
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == (found.device, found.inode)


def _is_being_written(fd: int, status: os.stat_result, found: ScannedFile) -> bool:
    """Return whether a file grew since the scan saw it, or was written lately by a program that still has it open."""
    if (status.st_size, status.st_mtime_ns) != (found.size, found.mtime_ns):
        return True
    return abs(time.time_ns() - status.st_mtime_ns) < _RECENT_NS and _has_writer(fd)


def _has_writer(fd: int) -> bool:
    """Return whether the system refuses a read lease because somebody may write; False where it cannot tell.

    A program that opens the file in between is held up until the lease is given back, the next moment; the notice of
    it is a signal that is ignored by default.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _deepened(jail: Jail, call: Call, files: Sequence[tuple[ScannedFile, Excerpt]], max_bytes: int) -> list[Excerpt]:
    excerpts = [excerpt for _, excerpt in files]
    wanted: dict[int, ExtractionRequest] = {}
    with ExitStack() as held:
        for at, (found, excerpt) in enumerate(files):
            reader = reader_of(excerpt.content_type)
            if reader is None or found.kind is not FileType.FILE:
                excerpts[at] = _with_note(excerpt, f"there is no text to take out of {excerpt.content_type}")
            elif reader != "TEXT" and found.size > max_bytes:
                excerpts[at] = _with_note(excerpt, f"it has {found.size} bytes; documents are read up to {max_bytes}")
            else:
                try:
                    fd = held.enter_context(_opened(jail, found))
                    if reader == "TEXT":
                        excerpts[at] = _text(fd, found, excerpt)
                    else:
                        wanted[at] = ExtractionRequest(fd, reader)
                except (HoldfastError, OSError) as error:
                    excerpts[at] = _with_note(excerpt, _told(error), is_transient=True)
        taken = extract_texts(call, list(wanted.values()), ExtractionLimits(MAX_TEXT_BYTES))
    for at, each in zip(wanted, taken, strict=True):
        excerpts[at] = _taken(excerpts[at], each, files[at][0].size)
    return excerpts


@contextmanager
def _opened(jail: Jail, found: ScannedFile) -> Iterator[int]:
    with jail.open_file(found.path) as file:
        if not _is_same(file.status, found):
            raise OSError(0, "it was replaced during the scan")
        yield file.fd


def _text(fd: int, found: ScannedFile, excerpt: Excerpt) -> Excerpt:
    head = read_fully(fd, 0, min(found.size, MAX_TEXT_BYTES))
    rest = min(TAIL_BYTES, found.size - len(head))
    tail = read_fully(fd, found.size - rest, rest) if rest > 0 else b""
    text = decoded(head, tail, excerpt.content_type)
    if text is None:
        return _with_note(excerpt, "its bytes are no text")
    return replace(excerpt, text=text, tier=2, bytes_read=len(head) + len(tail))


def _taken(excerpt: Excerpt, taken: ExtractedText, size: int) -> Excerpt:
    if taken.error:
        return _with_note(excerpt, taken.error, is_transient=taken.is_transient)
    return replace(excerpt, text=taken.text.replace("\0", "").strip(), tier=2, bytes_read=size)


def _with_note(excerpt: Excerpt, note: str, *, is_transient: bool = False) -> Excerpt:
    return replace(excerpt, tier=2, note=note, is_transient=is_transient)


def _told(error: HoldfastError | OSError) -> str:
    return error.message if isinstance(error, HoldfastError) else error.strerror or ""
