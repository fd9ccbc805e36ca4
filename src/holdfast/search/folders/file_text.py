"""Reads the text of one file of a root: for the index, and again before a passage of it is returned."""

import hashlib
import time
from typing import NamedTuple

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge, ResourceBusy, TimedOut
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail, OpenFile
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.children.extract import ExtractionLimits, ExtractionRequest, extract_document, extract_texts
from holdfast.search.folders.model import ContentKind, FileRecord, FolderLimits
from holdfast.text.decode import SAMPLE_BYTES, decode, detect_encoding
from holdfast.text.media_types import document_format, is_web_page

_TIMESTAMP_NS = 2_000_000_000
"""The coarsest timestamps of a file system: a file written this recently may change again and keep its version."""

_READ_BYTES = 1 << 20
_WEB_PAGE_SECONDS = 20.0


class FileReading(NamedTuple):
    """A file as it was read: its record, and its text in UTF-8; None when the index has that text already."""

    record: FileRecord
    text: bytes | None = b""


class CurrentContent(NamedTuple):
    """A file at this moment: its text and the hash of it; or only the hash of its bytes when its text is extracted."""

    digest: str
    text: bytes | None = None


MISSING = CurrentContent("gone")


def read_text(jail: Jail, path: str, limits: FolderLimits, indexed: FileRecord | None = None) -> FileReading:
    """Read a text file; a file that must be extracted is returned without its text. Raises what the jail raises."""
    with jail.open_file(path) as file:
        version = _stable_version(file)
        sample = read_fully(file.fd, 0, min(file.status.st_size, SAMPLE_BYTES))
        kind = _content_kind(sample, path)
        if kind.is_extracted:
            return FileReading(FileRecord(version, kind))
        if file.status.st_size > limits.max_file_bytes and detect_encoding(sample, complete=False) is not None:
            return FileReading(FileRecord(version, ContentKind.TOO_LARGE))
        text = _read_as_utf8(file, limits)
    if text is None:
        return FileReading(FileRecord(version, ContentKind.NO_TEXT))
    record = FileRecord(version, ContentKind.TEXT, _new_hash(text).hexdigest(), len(text))
    return FileReading(record, None if indexed is not None and indexed.has_text_of(record) else text)


def read_document(call: Call, jail: Jail, path: str, limits: FolderLimits, indexed: FileRecord | None) -> FileReading:
    """Extract the text of a document, unless its bytes are the indexed ones. Raises what the jail raises; Cancelled.

    A damaged document has an empty text; one whose reader failed has the kind READER_FAILED. A file that has become a
    text file has no text here, and is read at the next scan.
    """
    with jail.open_file(path) as file:
        version = _stable_version(file)
        kind = _content_kind(read_fully(file.fd, 0, SAMPLE_BYTES), path)
        if not kind.is_extracted:
            return FileReading(FileRecord("", ContentKind.NO_TEXT))
        if file.status.st_size > limits.max_document_bytes:
            return FileReading(FileRecord(version, ContentKind.TOO_LARGE))
        digest = _hash_bytes(file)
        if indexed is not None and indexed.has_text_of(FileRecord(version, kind, digest)):
            return FileReading(indexed._replace(version=version), None)
        extracted = _extract(call, file, kind, limits)
        if extracted is None:
            return FileReading(FileRecord(FileVersion.from_stat(file.status).index_text, ContentKind.READER_FAILED))
    text = extracted[: limits.max_file_bytes].decode(errors="ignore").encode()
    return FileReading(FileRecord(version, kind, digest, len(text)), text)


def read_current(jail: Jail, path: str, limits: FolderLimits, *, is_extracted: bool) -> CurrentContent:
    """Return what a file holds at this moment, MISSING when that is no text. Raises what the jail raises."""
    with jail.open_file(path) as file:
        if is_extracted:
            return CurrentContent(_hash_bytes(file))
        text = _read_as_utf8(file, limits)
    return MISSING if text is None else CurrentContent(_new_hash(text).hexdigest(), text)


def _stable_version(file: OpenFile) -> str:
    """Return the version of a file; empty when it was written so recently that the version may not change again."""
    is_recent = time.time_ns() - file.status.st_ctime_ns < _TIMESTAMP_NS
    return "" if is_recent else FileVersion.from_stat(file.status).index_text


def _content_kind(sample: bytes, path: str) -> ContentKind:
    if document_format(sample, path) is not None:
        return ContentKind.DOCUMENT
    if is_web_page(sample, path):
        return ContentKind.WEB_PAGE
    return ContentKind.TEXT


def _read_as_utf8(file: OpenFile, limits: FolderLimits) -> bytes | None:
    """Return the text of a file in UTF-8; None when it is too large or not a text."""
    if file.status.st_size > limits.max_file_bytes:
        return None
    data = read_fully(file.fd, 0, limits.max_file_bytes)
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    return data if encoding.is_plain_utf8 else decode(data, encoding, errors="replace").encode()


def _extract(call: Call, file: OpenFile, kind: ContentKind, limits: FolderLimits) -> bytes | None:
    """Return the text of a document, empty when it is damaged; None when its reader failed."""
    if kind is ContentKind.WEB_PAGE:
        (page,) = extract_texts(
            call, [ExtractionRequest(file.fd, "HTML")], ExtractionLimits(limits.max_file_bytes, _WEB_PAGE_SECONDS)
        )
        return None if page.is_transient else page.text.encode()
    try:
        return extract_document(call, file, limits.max_document_bytes).text.encode()
    except (InvalidArgument, PayloadTooLarge):
        return b""
    except (ResourceBusy, TimedOut):
        return None


def _hash_bytes(file: OpenFile) -> str:
    digest = _new_hash(b"")
    offset = 0
    while data := read_fully(file.fd, offset, _READ_BYTES):
        digest.update(data)
        offset += len(data)
    return digest.hexdigest()


def _new_hash(data: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)
