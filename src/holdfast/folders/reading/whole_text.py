"""Reads a whole file for a person's editor: its text, hash, encoding and line ends, or why there is no text."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePosixPath

from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail, OpenFile
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.children.extract import extract_document
from holdfast.text.decode import SAMPLE_BYTES, decode, detect_encoding, round_trips
from holdfast.text.display import format_size
from holdfast.text.line_ends import line_end_style
from holdfast.text.media_types import document_format, media_type, text_media_type

MAX_BYTES = 5_000_000
"""Above this size a file is not opened in an editor: its text would not fit the answer of one request."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class WholeText:
    """A file as an editor shows it. `text` is None with a `reason`; one that `can_save` may be written back whole."""

    size_bytes: int
    modified: float
    media_type: str
    text: str | None = None
    hash: str | None = None
    encoding: str | None = None
    line_ending: str | None = None
    is_binary: bool = False
    can_save: bool = False
    reason: str | None = None


def read_whole_text(call: Call, jail: Jail, path: str, settings: FolderSettings) -> WholeText:
    """Return a file for an editor; of a document the text that can be taken out of it, which cannot be saved."""
    with jail.open_file(path) as file:
        size, modified = file.status.st_size, file.status.st_mtime
        suffix = PurePosixPath(file.display_path).suffix.lower()
        first = read_fully(file.fd, 0, min(size, SAMPLE_BYTES))
        if document_format(first, file.display_path) is not None:
            return _document(call, file, settings, media_type(first, suffix))
        if size > MAX_BYTES:
            is_binary = detect_encoding(first, complete=False) is None
            kind = media_type(first, suffix) if is_binary else text_media_type(suffix)
            too_large = f"It has {format_size(size)}; files up to {format_size(MAX_BYTES)} are opened here."
            return WholeText(size, modified, kind, is_binary=is_binary, reason=too_large)
        data = _read_all(call, file.fd, size)
        encoding = detect_encoding(data)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if encoding is None:
            kind = media_type(first, suffix)
            return WholeText(len(data), modified, kind, hash=digest, is_binary=True, reason="It is no text.")
        text = decode(data, encoding, errors="replace")
        is_exact = round_trips(data, encoding)
        reason = (
            None if is_exact else f"Not every byte of it is {encoding.name}, so a save would change more than you do."
        )
        if is_exact and not _is_writable(jail, path):
            is_exact, reason = False, "The file is read-only."
        return WholeText(
            len(data),
            modified,
            text_media_type(suffix),
            text=text,
            hash=digest,
            encoding=encoding.name,
            line_ending=line_end_style(text),
            can_save=is_exact,
            reason=reason,
        )


def _document(call: Call, file: OpenFile, settings: FolderSettings, kind: str) -> WholeText:
    size, modified = file.status.st_size, file.status.st_mtime
    try:
        document = extract_document(call, file, settings.max_document_bytes)
    except HoldfastError as error:
        if error.code in ("CANCELLED", "TIMEOUT"):
            raise
        return WholeText(size, modified, kind, is_binary=True, reason=error.message)
    reason = "This is the text taken out of a document; the document itself is not text and cannot be saved here."
    text = document.text[: MAX_BYTES // 4]
    return WholeText(size, modified, kind, text=text, is_binary=True, reason=reason)


def _is_writable(jail: Jail, path: str) -> bool:
    with jail.place(path, follow=True) as place:
        return os.access(place.name, os.W_OK, dir_fd=place.parent_fd)


def _read_all(call: Call, fd: int, size: int) -> bytes:
    chunks, offset = [], 0
    while offset < size and (chunk := read_fully(fd, offset, min(_CHUNK_BYTES, size - offset))):
        call.check()
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)
