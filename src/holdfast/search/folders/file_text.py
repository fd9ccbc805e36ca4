"""Reads one file of a root for the index, and reads it again before a passage of it is handed out."""

import hashlib
import time
from typing import NamedTuple

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge, ResourceBusy, TimedOut
from holdfast.folders.access.descriptors import read_fully
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail, OpenFile
from holdfast.folders.children.extract import extract_document
from holdfast.folders.children.extract_batch import ExtractionLimits, ExtractionRequest, extract_texts
from holdfast.search.folders.model import ContentKind, FileRecord, FolderLimits
from holdfast.text.decode import SAMPLE_BYTES, decode, detect_encoding
from holdfast.text.media_types import document_format, is_web_page

_YOUNG_NS = 2_000_000_000
"""Times of files are as coarse as this on some disks: one written so lately may be written again and look the same."""

_READ_BYTES = 1 << 20
_PAGE_SECONDS = 20.0


class FileReading(NamedTuple):
    """A file as it was read: what the index keeps of it, and its text in UTF-8; None when that is what it has."""

    known: FileRecord
    data: bytes | None = b""


class CurrentContent(NamedTuple):
    """A file at this moment: the hash of its text, and the text; or of its bytes, when its text must be extracted."""

    digest: str
    text: bytes | None = None


GONE = CurrentContent("gone")


def read_quickly(jail: Jail, path: str, limits: FolderLimits, known: FileRecord | None = None) -> FileReading:
    """Read a text; a file that a child must extract comes back without its text. Raises what the jail raises."""
    with jail.open_file(path) as file:
        look = _look(file)
        first = read_fully(file.fd, 0, min(file.status.st_size, SAMPLE_BYTES))
        if _kind(first, path).is_extracted:
            return FileReading(FileRecord(look, _kind(first, path)))
        if file.status.st_size > limits.max_file_bytes and detect_encoding(first, complete=False) is not None:
            return FileReading(FileRecord(look, ContentKind.TOO_LARGE))
        data = _text(file, limits)
    if data is None:
        return FileReading(FileRecord(look, ContentKind.NONE))
    read = FileRecord(look, ContentKind.TEXT, _hashed(data).hexdigest(), len(data))
    return FileReading(read, None if known is not None and known.holds_as(read) else data)


def read_document(call: Call, jail: Jail, path: str, limits: FolderLimits, known: FileRecord | None) -> FileReading:
    """Take the text out of a document, unless its bytes are those that are known. Raises what the jail does; Cancelled.

    One that is broken has no text; one whose reader failed, whatever the reason, comes back unread. What is a text by
    now has none here, and is to be read again at the next scan.
    """
    with jail.open_file(path) as file:
        look = _look(file)
        kind = _kind(read_fully(file.fd, 0, SAMPLE_BYTES), path)
        if not kind.is_extracted:
            return FileReading(FileRecord("", ContentKind.NONE))
        if file.status.st_size > limits.max_document_bytes:
            return FileReading(FileRecord(look, ContentKind.TOO_LARGE))
        digest = _digest(file)
        if known is not None and known.holds_as(FileRecord(look, kind, digest)):
            return FileReading(known._replace(look=look), None)
        text = _extracted(call, file, kind, limits)
        if text is None:
            return FileReading(FileRecord(FileVersion.from_stat(file.status).index_text, ContentKind.UNREAD))
    data = text[: limits.max_file_bytes].decode(errors="ignore").encode()
    return FileReading(FileRecord(look, kind, digest, len(data)), data)


def read_now(jail: Jail, path: str, limits: FolderLimits, *, is_extracted: bool) -> CurrentContent:
    """Return what a file holds at this moment. Raises what the jail raises."""
    with jail.open_file(path) as file:
        if is_extracted:
            return CurrentContent(_digest(file))
        text = _text(file, limits)
    return GONE if text is None else CurrentContent(_hashed(text).hexdigest(), text)


def _digest(file: OpenFile) -> str:
    hashed = _hashed(b"")
    at = 0
    while piece := read_fully(file.fd, at, _READ_BYTES):
        hashed.update(piece)
        at += len(piece)
    return hashed.hexdigest()


def _hashed(data: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)


def _look(file: OpenFile) -> str:
    is_young = time.time_ns() - file.status.st_ctime_ns < _YOUNG_NS
    return "" if is_young else FileVersion.from_stat(file.status).index_text


def _kind(first: bytes, path: str) -> ContentKind:
    if document_format(first, path) is not None:
        return ContentKind.DOCUMENT
    if is_web_page(first, path):
        return ContentKind.PAGE
    return ContentKind.TEXT


def _text(file: OpenFile, limits: FolderLimits) -> bytes | None:
    if file.status.st_size > limits.max_file_bytes:
        return None
    data = read_fully(file.fd, 0, limits.max_file_bytes)
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    return data if encoding.is_plain_utf8 else decode(data, encoding, errors="replace").encode()


def _extracted(call: Call, file: OpenFile, kind: ContentKind, limits: FolderLimits) -> bytes | None:
    """Return a document's text, nothing for one that is broken; None when its reader failed."""
    if kind is ContentKind.PAGE:
        (taken,) = extract_texts(
            call, [ExtractionRequest(file.fd, "HTML")], ExtractionLimits(limits.max_file_bytes, _PAGE_SECONDS)
        )
        return None if taken.is_transient else taken.text.encode()
    try:
        return extract_document(call, file, limits.max_document_bytes).text.encode()
    except (InvalidArgument, PayloadTooLarge):
        return b""
    except (ResourceBusy, TimedOut):
        return None
