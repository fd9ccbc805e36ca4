"""Reads files in two tiers: the beginning and the end of every file, and the text of those that need it.

Each open descriptor is compared with the result of the scan, so a file that was replaced or is being written is not
mistaken for the scanned one.
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
from holdfast.folders.access.file_version import hash_ends
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.syscalls import READ_FILE, read_ends, read_fully
from holdfast.folders.children.extract import FILES_PER_CHILD, ExtractionLimits, ExtractionRequest, extract_texts
from holdfast.organiser.model import Excerpt, FileType, ScannedFile, SkippedFile, SkipReason
from holdfast.organiser.scan.excerpts import TAIL_BYTES, decode_text, drop_part_headers, excerpt_from_ends, reader_for

MAX_TEXT_BYTES = 16_000
_RECENT_NS = 300 * 10**9


class PeekedFile(NamedTuple):
    """A file with its hash and its tier 1 excerpt, or the reason why it is skipped; only regular files have a hash."""

    file: ScannedFile
    file_hash: str
    excerpt: Excerpt
    skipped: SkippedFile | None = None


def peek_files(jail: Jail, call: Call, files: Sequence[ScannedFile]) -> list[PeekedFile]:
    """Return the tier 1 excerpt of each file, in the same order; files of one folder should be neighbours."""
    results: list[PeekedFile] = []
    for parent, group in groupby(files, key=lambda file: os.path.dirname(file.path)):
        call.check()
        members = list(group)
        try:
            with jail.open_directory(parent) as fd:
                results += [_peek(fd, file) for file in members]
        except HoldfastError as error:
            results += [_skip(file, SkipReason.UNREADABLE, error.message) for file in members]
    return results


def read_texts(jail: Jail, call: Call, files: Sequence[tuple[ScannedFile, Excerpt]], max_bytes: int) -> list[Excerpt]:
    """Return the tier 2 excerpt of each file, in the same order; a file without text keeps tier 1, with a note that says why.

    Documents over `max_bytes` are not read. Raises Cancelled or TimedOut as the call does.
    """
    excerpts: list[Excerpt] = []
    for start in range(0, len(files), FILES_PER_CHILD):
        call.check()
        excerpts += _read_batch(jail, call, files[start : start + FILES_PER_CHILD], max_bytes)
    return excerpts


def _peek(dir_fd: int, file: ScannedFile) -> PeekedFile:
    if file.type is not FileType.FILE:
        return PeekedFile(
            file, "", Excerpt("", 0, 0, f"inode/{'directory' if file.type is FileType.DIRECTORY else 'symlink'}")
        )
    try:
        fd = os.open(file.name, READ_FILE, dir_fd=dir_fd)
    except OSError as error:
        return _skip(file, SkipReason.UNREADABLE, error.strerror or "")
    try:
        status = os.fstat(fd)
        if not _is_same(status, file):
            return _skip(file, SkipReason.UNREADABLE, "it was replaced during the scan")
        if _is_being_written(fd, status, file):
            return _skip(file, SkipReason.BEING_WRITTEN)
        head, tail = read_ends(fd, status.st_size)
        return PeekedFile(
            file, hash_ends(status, head, tail), excerpt_from_ends(status.st_size, head, tail, file.suffix[1:])
        )
    except OSError as error:
        return _skip(file, SkipReason.UNREADABLE, error.strerror or "")
    finally:
        os.close(fd)


def _skip(file: ScannedFile, reason: SkipReason, detail: str = "") -> PeekedFile:
    return PeekedFile(file, "", Excerpt("", 0), SkippedFile(file.relative, reason, detail))


def _is_same(status: os.stat_result, file: ScannedFile) -> bool:
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == (file.device, file.inode)


def _is_being_written(fd: int, status: os.stat_result, file: ScannedFile) -> bool:
    """Return whether a file changed since the scan, or was written lately by a program that still has it open."""
    if (status.st_size, status.st_mtime_ns) != (file.size, file.mtime_ns):
        return True
    return abs(time.time_ns() - status.st_mtime_ns) < _RECENT_NS and _has_writer(fd)


def _has_writer(fd: int) -> bool:
    """Return whether the system refuses a read lease because a writer has the file open; False where it cannot tell.

    A program that opens the file meanwhile waits until the lease is released, a moment later. The system announces it
    by a signal; SIGURG is one that is ignored by default.
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


def _read_batch(jail: Jail, call: Call, files: Sequence[tuple[ScannedFile, Excerpt]], max_bytes: int) -> list[Excerpt]:
    excerpts = [excerpt for _, excerpt in files]
    extraction_requests: dict[int, ExtractionRequest] = {}
    with ExitStack() as stack:
        for at, (file, excerpt) in enumerate(files):
            reader = reader_for(excerpt.content_type)
            if reader is None or file.type is not FileType.FILE:
                excerpts[at] = _add_note(excerpt, f"there is no text to take out of {excerpt.content_type}")
            elif reader != "TEXT" and file.size > max_bytes:
                excerpts[at] = _add_note(excerpt, f"it has {file.size} bytes; documents are read up to {max_bytes}")
            else:
                try:
                    fd = stack.enter_context(_open_same(jail, file))
                    if reader == "TEXT":
                        excerpts[at] = _read_text(fd, file, excerpt)
                    else:
                        extraction_requests[at] = ExtractionRequest(fd, reader)
                except (HoldfastError, OSError) as error:
                    excerpts[at] = _add_note(excerpt, _message(error), is_transient=True)
        extracted = extract_texts(call, list(extraction_requests.values()), ExtractionLimits(MAX_TEXT_BYTES))
    for at, extraction in zip(extraction_requests, extracted, strict=True):
        if extraction.error:
            excerpts[at] = _add_note(excerpts[at], extraction.error, is_transient=extraction.is_transient)
        else:
            text = drop_part_headers(extraction.text.replace("\0", ""))
            excerpts[at] = replace(excerpts[at], text=text, tier=2, bytes_read=files[at][0].size)
    return excerpts


@contextmanager
def _open_same(jail: Jail, file: ScannedFile) -> Iterator[int]:
    with jail.open_file(file.path) as open_file:
        if not _is_same(open_file.status, file):
            raise OSError(0, "it was replaced during the scan")
        yield open_file.fd


def _read_text(fd: int, file: ScannedFile, excerpt: Excerpt) -> Excerpt:
    head = read_fully(fd, 0, min(file.size, MAX_TEXT_BYTES))
    tail_bytes = min(TAIL_BYTES, file.size - len(head))
    tail = read_fully(fd, file.size - tail_bytes, tail_bytes) if tail_bytes > 0 else b""
    text = decode_text(head, tail, excerpt.content_type)
    if text is None:
        return _add_note(excerpt, "its bytes are no text")
    return replace(excerpt, text=text, tier=2, bytes_read=len(head) + len(tail))


def _add_note(excerpt: Excerpt, note: str, *, is_transient: bool = False) -> Excerpt:
    return replace(excerpt, tier=2, note=note, is_transient=is_transient)


def _message(error: HoldfastError | OSError) -> str:
    return error.message if isinstance(error, HoldfastError) else error.strerror or ""
