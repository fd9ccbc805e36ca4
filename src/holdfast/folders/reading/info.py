"""Describes a file or directory: size, times, lines, tokens, encoding, hash, and the shape of JSON and CSV.

A file up to `max_edit_bytes` is read once, in pieces; of a bigger one only a sample is read, and the numbers are estimates.
"""

import codecs
import csv
import hashlib
import io
import json
import os
import stat
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.errors import IsDirectory
from holdfast.folders.access.jail import Jail, OpenFile
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.folders.access.policy import FolderPolicy
from holdfast.folders.access.roots import identity_of
from holdfast.folders.access.syscalls import birth_time, read_fully
from holdfast.text.budget import estimate_tokens
from holdfast.text.decode import SAMPLE_BYTES, Encoding, decode, detect_encoding
from holdfast.text.media_types import document_format, media_type, text_media_type

MAX_COUNTED_ENTRIES = 100_000
MAX_SHAPED_BYTES = 10_000_000
MAX_SHOWN_KEYS = 50
_DELIMITERS = ",;\t|"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PathInfo:
    """The description of a file or directory; fields that do not apply are None."""

    size: int
    created: float
    modified: float
    accessed: float
    is_directory: bool
    permissions: str
    entries: int | None = None
    mime_type: str | None = None
    encoding: str | None = None
    newlines: str | None = None
    lines: int | None = None
    characters: int | None = None
    tokens: int | None = None
    estimated: bool = False
    sha256: str | None = None
    shape: str | None = None
    hint: str | None = None


def describe_path(call: Call, jail: Jail, path: str, settings: FolderSettings) -> PathInfo:
    """Return the description of a path; only a bounded part of a large file is read."""
    try:
        with jail.open_file(path) as file:
            return _describe_file(call, file, settings)
    except IsDirectory:
        root, parts = jail.locate(path)
        policy = jail.policy_in(root, "/".join(parts))
        with jail.open_directory("/".join([root.path.rstrip("/"), *parts]) or "/") as fd:
            return replace(_status_info(fd), entries=_count_entries(call, jail, fd, policy))


def _status_info(fd: int) -> PathInfo:
    status = os.fstat(fd)
    return PathInfo(
        size=status.st_size,
        created=birth_time(fd) or status.st_ctime,
        modified=status.st_mtime,
        accessed=status.st_atime,
        is_directory=stat.S_ISDIR(status.st_mode),
        permissions=f"{stat.S_IMODE(status.st_mode):03o}",
    )


def _count_entries(call: Call, jail: Jail, fd: int, policy: FolderPolicy | None) -> int:
    count = 0
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.name == QUARANTINE or (policy is not None and policy.hides(entry.name)):
                continue
            if jail.hidden and jail.is_hidden(identity_of(entry.stat(follow_symlinks=False))):
                continue
            count += 1
            if count >= MAX_COUNTED_ENTRIES:
                break
            if count % 1000 == 0:
                call.check()
    return count


def _describe_file(call: Call, file: OpenFile, settings: FolderSettings) -> PathInfo:
    info, size = _status_info(file.fd), file.status.st_size
    first = read_fully(file.fd, 0, min(size, SAMPLE_BYTES))
    suffix = PurePosixPath(file.display_path).suffix.lower()
    encoding = (
        None if document_format(first, file.display_path) else detect_encoding(first, complete=len(first) == size)
    )
    whole = size <= settings.max_edit_bytes
    if encoding is None:
        sha256 = _hash(call, file.fd, size) if whole else None
        return replace(
            info, mime_type=media_type(first, suffix), sha256=sha256, hint=_binary_hint(first, file.display_path)
        )
    counts = _count(call, file.fd, size, encoding) if whole else _estimate(first, size, encoding)
    info = replace(
        info,
        mime_type=text_media_type(suffix),
        encoding=encoding.name,
        newlines=counts.newlines,
        lines=counts.lines,
        characters=counts.characters,
        tokens=counts.tokens,
        estimated=not whole,
        sha256=counts.sha256,
        shape=_shape(file.fd, size, suffix, first, encoding, counts.lines),
    )
    return replace(info, hint=_hint(info, settings.max_answer_tokens))


@dataclass(frozen=True, slots=True)
class _Count:
    lines: int
    characters: int
    tokens: int
    newlines: str
    sha256: str | None = None


def _count(call: Call, fd: int, size: int, encoding: Encoding) -> _Count:
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
    lines = crlf = characters = tokens = 0
    last, offset = "", 0
    while offset < size and (chunk := read_fully(fd, offset, min(_CHUNK_BYTES, size - offset))):
        call.check()
        call.progress(offset, size, "reading")
        digest.update(chunk)
        text = decoder.decode(chunk.removeprefix(encoding.bom) if offset == 0 else chunk)
        offset += len(chunk)
        lines += text.count("\n")
        crlf += text.count("\r\n") + (last == "\r" and text.startswith("\n"))
        characters += len(text)
        tokens += estimate_tokens(text)
        last = text[-1:] or last
    style = _newline_style(lines, crlf)
    return _Count(lines + (last not in ("\n", "")), characters, tokens, style, f"sha256:{digest.hexdigest()}")


def _estimate(first: bytes, size: int, encoding: Encoding) -> _Count:
    text = decode(first, encoding, errors="replace")
    factor = size / len(first)
    lines = text.count("\n")
    style = _newline_style(lines, text.count("\r\n"))
    return _Count(
        max(1, round(lines * factor)), round(len(text) * factor), round(estimate_tokens(text) * factor), style
    )


def _newline_style(lines: int, crlf: int) -> str:
    if not lines:
        return "none"
    return "LF" if not crlf else "CRLF" if crlf == lines else "mixed"


def _hash(call: Call, fd: int, size: int) -> str:
    digest, offset = hashlib.sha256(), 0
    while offset < size and (chunk := read_fully(fd, offset, min(_CHUNK_BYTES, size - offset))):
        call.check()
        digest.update(chunk)
        offset += len(chunk)
    return f"sha256:{digest.hexdigest()}"


def _shape(fd: int, size: int, suffix: str, first: bytes, encoding: Encoding, lines: int) -> str | None:
    if suffix == ".json" or (not suffix and first.lstrip()[:1] in (b"{", b"[")):
        return (
            json_shape(decode(read_fully(fd, 0, size), encoding, errors="replace"))
            if size <= MAX_SHAPED_BYTES
            else None
        )
    if suffix in {".csv", ".tsv"}:
        whole = size <= MAX_SHAPED_BYTES
        text = decode(read_fully(fd, 0, size) if whole else first, encoding, errors="replace")
        return csv_shape(text, None if whole else lines)
    return None


def _binary_hint(first: bytes, name: str) -> str:
    return "Use read_text_file: its text is extracted." if document_format(first, name) else "Use read_media_file."


def _hint(info: PathInfo, budget: int) -> str | None:
    if not info.tokens or info.tokens <= budget or not info.lines:
        return None
    reads = -(-info.tokens // budget)
    per_read = max(1, info.lines // reads)
    about = "about " if info.estimated else ""
    return (
        f"{about}{reads} answers long: go on with the cursor of read_text_file, "
        f"or read_files by start_line/end_line, {per_read} lines at a time; grep_content finds the place."
    )


def json_shape(text: str) -> str:
    """Return the top-level type of a JSON text with its keys or its length; where it is not valid, the place of the error."""
    try:
        value = json.loads(text)
    except ValueError as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        return f"JSON: not valid{where}"
    except RecursionError:
        return "JSON: nested too deeply"
    if isinstance(value, dict):
        return f"JSON object, {len(value)} keys: {_join_names(value)}"
    if isinstance(value, list):
        return f"JSON array of {len(value)}" + _element_shape(value)
    return f"JSON {type(value).__name__}"


def _element_shape(values: list[Any]) -> str:
    if not values or not isinstance(values[0], dict):
        return ""
    return f", the first an object with keys: {_join_names(values[0])}"


def csv_shape(text: str, lines: int | None) -> str:
    """Return the columns and the rows of a CSV text; with `lines`, the text is a sample of that many lines."""
    header_line = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header_line.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(rows, [])
        count = f"{sum(1 for _ in rows)} rows" if lines is None else f"about {lines - 1} rows"
    except csv.Error as error:
        return f"CSV: not valid ({error})"
    return f"CSV, {len(header)} columns: {_join_names(header)}; {count}"


def _join_names(names: Any) -> str:
    quoted = [json.dumps(str(name)[:80], ensure_ascii=False) for name in list(names)[:MAX_SHOWN_KEYS]]
    return ", ".join(quoted) + (", …" if len(names) > MAX_SHOWN_KEYS else "")
