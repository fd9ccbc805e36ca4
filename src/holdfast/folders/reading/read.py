"""Reads selected lines of a text, as many as the token budget allows, and returns the position to continue from.

A text is the bytes of a file through its descriptor, or what was extracted from a document. No more is read than can be
shown: a page from the start, a page from the end, or the bytes up to a line.
"""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.errors import Conflict, InvalidArgument, InvalidOffset, InvalidQuery
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.children.extract import extract_document
from holdfast.text.budget import cut_end_to_budget, cut_to_budget, invalid_cursor
from holdfast.text.decode import SAMPLE_BYTES, UTF8, Encoding, binary_file_error, detect_encoding
from holdfast.text.display import quantity
from holdfast.text.media_types import document_format

ReadAt = Callable[[int, int], bytes]
_SCAN_BYTES = 1 << 20
_ASCII_PER_TOKEN = 4
_WIDEST_CHAR_BYTES = 4
_MAX_COUNTED_BYTES = 8 << 20
"""Up to this offset the lines before a page from the end are counted, so that it has line numbers."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """Encoded text that can be read at any offset; `first` is its beginning, which is already read.

    `size` is the size at opening, so a file that grows meanwhile still has an end.
    """

    size: int
    encoding: Encoding
    version: str
    first: bytes
    reader: ReadAt
    note: str = ""

    @property
    def start(self) -> int:
        """Return the offset of the text, after the byte order mark."""
        return len(self.encoding.bom)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset, never beyond the size at opening; fewer when the file shrank."""
        end = min(offset + length, self.size)
        if end <= len(self.first):
            return self.first[offset:end]
        return self.reader(offset, end - offset)

    def check_version(self, version: object) -> None:
        """Raise Conflict when a cursor was given for another version of the file."""
        if version != self.version:
            raise Conflict("The file changed since the cursor was given. Read it again from the start.")


def open_source(call: Call, file: OpenFile, settings: FolderSettings) -> TextSource:
    """Return a file as text; a document is extracted first. InvalidArgument when the file is binary."""
    size, version = file.status.st_size, FileVersion.from_stat(file.status).content_text
    first = read_fully(file.fd, 0, min(size, SAMPLE_BYTES))
    if document_format(first, file.display_path) is not None:
        return _open_document(call, file, settings, version)
    encoding = detect_encoding(first, complete=len(first) == size)
    if encoding is None:
        raise binary_file_error()
    return TextSource(size, encoding, version, first, lambda offset, length: read_fully(file.fd, offset, length))


def _open_document(call: Call, file: OpenFile, settings: FolderSettings, version: str) -> TextSource:
    document = extract_document(call, file, settings.max_document_bytes)
    data = document.text.encode()
    return TextSource(
        len(data), UTF8, version, data, lambda offset, length: data[offset : offset + length], document.note
    )


@dataclass(frozen=True, slots=True)
class LineSelection:
    """The wanted lines; lines count from 1 and both ends are included. All of them when nothing is set."""

    head: int | None = None
    tail: int | None = None
    start_line: int | None = None
    end_line: int | None = None
    read_to_next_pattern: str | None = None

    def check(self) -> None:
        """Raise InvalidArgument when options exclude each other, InvalidOffset on numbers below 1."""
        has_range = self.start_line is not None or self.end_line is not None or self.read_to_next_pattern is not None
        if self.head is not None and self.tail is not None:
            raise InvalidArgument("Cannot specify both head and tail parameters simultaneously")
        if has_range and (self.head is not None or self.tail is not None):
            raise InvalidArgument("head and tail cannot be combined with start_line, end_line or read_to_next_pattern.")
        for name in ("head", "tail", "start_line", "end_line"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOffset(f"{name} must be at least 1: {value}")
        if self.start_line and self.end_line and self.end_line < self.start_line:
            raise InvalidOffset(f"end_line {self.end_line} lies before start_line {self.start_line}.")


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where a later call continues: the byte offset to read from (or backwards from), the lines still wanted, the line number."""

    offset: int
    lines_left: int | None = None
    line: int | None = None
    backwards: bool = False
    is_continued: bool = False

    def state(self) -> dict[str, Any]:
        """Return the position as the data of a cursor."""
        return {"o": self.offset, "n": self.lines_left, "l": self.line, "b": self.backwards, "g": self.is_continued}

    @classmethod
    def of(cls, state: Any) -> "ReadPosition":
        """Return the position in the data of a cursor. InvalidArgument when it is not one."""
        if not isinstance(state, dict):
            raise invalid_cursor()
        offset, left, line = state.get("o"), state.get("n"), state.get("l")
        if not isinstance(offset, int) or not all(value is None or _is_count(value) for value in (offset, left, line)):
            raise invalid_cursor()
        return cls(offset, left, line, bool(state.get("b")), bool(state.get("g")))


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of text. `rest` is where to continue, None at the end; `notes` are for the caller, beside the text.

    `lacks_final_newline` says that the newline that ends its last line was left out.
    """

    text: str
    encoding: Encoding
    rest: ReadPosition | None = None
    first_line: int | None = None
    notes: tuple[str, ...] = ()
    lacks_final_newline: bool = False

    @property
    def line_count(self) -> int:
        """Return how many lines the text touches."""
        if self.lacks_final_newline:
            return self.text.count("\n") + 1
        return self.text.count("\n") + (not self.text.endswith("\n") if self.text else 0)


def read_lines(
    call: Call, source: TextSource, selection: LineSelection, max_tokens: int, position: ReadPosition | None = None
) -> TextPiece:
    """Read one piece. A selection that ends before the file does is returned without its last newline."""
    selection.check()
    pattern = _compile_pattern(selection.read_to_next_pattern)
    at = position or _first_position(call, source, selection)
    if at.offset > source.size:
        raise invalid_cursor()
    return _read_backward(source, at, max_tokens) if at.backwards else _read_forward(source, at, pattern, max_tokens)


def _first_position(call: Call, source: TextSource, selection: LineSelection) -> ReadPosition:
    if selection.tail is not None:
        return ReadPosition(source.size, selection.tail, backwards=True)
    if selection.head is not None:
        return ReadPosition(source.start, selection.head, 1)
    line = selection.start_line or 1
    line_count = selection.end_line - line + 1 if selection.end_line is not None else None
    return ReadPosition(_offset_of_line(call, source, line), line_count, line)


def _read_forward(source: TextSource, at: ReadPosition, pattern: Any, max_tokens: int) -> TextPiece:
    window = _before_nul(source, source.read_at(at.offset, _window_bytes(source.encoding, max_tokens)))
    reaches_end = at.offset + len(window) >= source.size
    encoding, text, errors, notes = _decode_window(source, window, reaches_end)
    end, is_complete = _find_selection_end(text, at, pattern)
    piece, left = cut_to_budget(text[:end], max_tokens)
    if left or (not is_complete and not reaches_end):
        return _cut_piece(at, piece, window, encoding, errors, notes)
    if pattern is not None and not is_complete:
        notes = (*notes, "No later line matches read_to_next_pattern; read to the end of the file.")
    trimmed_text = _without_newline(piece) if is_complete and (end < len(text) or not reaches_end) else piece
    return TextPiece(trimmed_text, encoding, None, at.line, notes, lacks_final_newline=len(trimmed_text) < len(piece))


def _find_selection_end(text: str, at: ReadPosition, pattern: Any) -> tuple[int, bool]:
    """Return where the selection ends in the text, and whether it is complete there."""
    ends = [
        end for end in (_find_end_of_lines(text, at.lines_left), _find_pattern(text, at, pattern)) if end is not None
    ]
    return (min(ends), True) if ends else (len(text), False)


def _find_end_of_lines(text: str, lines: int | None) -> int | None:
    if lines is None:
        return None
    end = 0
    for _ in range(lines):
        end = text.find("\n", end) + 1
        if end == 0:
            return None
    return end


def _find_pattern(text: str, at: ReadPosition, pattern: Any) -> int | None:
    if pattern is None:
        return None
    start = 0 if at.is_continued else text.find("\n") + 1
    while 0 < start < len(text) or (start == 0 and at.is_continued and text):
        end = text.find("\n", start) + 1 or len(text)
        if pattern.search(text[start:end].rstrip("\r\n")):
            return start
        start = end
    return None


def _cut_piece(
    at: ReadPosition, piece: str, window: bytes, encoding: Encoding, errors: str, notes: tuple[str, ...]
) -> TextPiece:
    newlines = piece.count("\n")
    offset = at.offset + _byte_length(window, piece, encoding, errors)
    left = None if at.lines_left is None else at.lines_left - newlines
    line = None if at.line is None else at.line + newlines
    return TextPiece(piece, encoding, ReadPosition(offset, left, line, is_continued=True), at.line, notes)


def _read_backward(source: TextSource, at: ReadPosition, max_tokens: int) -> TextPiece:
    unit = source.encoding.unit_bytes
    start = max(source.start, (at.offset - _window_bytes(source.encoding, max_tokens)) // unit * unit)
    window = source.read_at(start, at.offset - start)
    if start > source.start:
        whole_lines = _after_nul(source, window) or _after_first_newline(window, source.encoding)
        window, start = window[whole_lines:], start + whole_lines
    encoding, text, errors, notes = _decode_window(source, window, final=True)
    selected = _last_lines(text, at.lines_left or 0)
    piece, left = cut_end_to_budget(selected, max_tokens)
    offset = start + _byte_length(window, text[: len(text) - len(piece)], encoding, errors)
    lines_left = (at.lines_left or 0) - TextPiece(piece, encoding).line_count + _is_inside_a_line(source, offset)
    line = _number_of_line(source, offset)
    if not left and (len(selected) < len(text) or offset <= source.start or lines_left <= 0):
        return TextPiece(piece, encoding, None, line, notes)
    return TextPiece(piece, encoding, ReadPosition(offset, lines_left, backwards=True), line, notes)


def _number_of_line(source: TextSource, offset: int) -> int | None:
    """Return the number of the line at an offset, None far from the start of a large file: its lines are not counted."""
    if offset > _MAX_COUNTED_BYTES:
        return None
    before = source.read_at(source.start, offset - source.start)
    if source.encoding.unit_bytes == 1:
        return 1 + before.count(b"\n")
    return 1 + sum(1 for _ in _line_ends(before, source.encoding))


def _is_inside_a_line(source: TextSource, offset: int) -> bool:
    newline = source.encoding.newline
    return offset > source.start and source.read_at(offset - len(newline), len(newline)) != newline


def _last_lines(text: str, lines: int) -> str:
    start = len(text)
    for _ in range(lines):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
        if start == 0:
            return text
    return text[start:]


def _before_nul(source: TextSource, window: bytes) -> bytes:
    """Return the text before the first NUL: a file that begins as text may continue as binary data or as a hole."""
    nul = window.find(b"\0") if source.encoding.unit_bytes == 1 else -1
    if nul == 0:
        raise binary_file_error()
    return window if nul < 0 else window[:nul]


def _after_nul(source: TextSource, window: bytes) -> int:
    """Return where the text after the last NUL begins, 0 without one."""
    after = window.rfind(b"\0") + 1 if source.encoding.unit_bytes == 1 else 0
    if after and after == len(window):
        raise binary_file_error()
    return after


def _decode_window(source: TextSource, window: bytes, final: bool) -> tuple[Encoding, str, str, tuple[str, ...]]:
    """Decode a window. Where the encoding of the file's beginning does not fit, detect another; else replace bad bytes."""
    encoding = source.encoding
    try:
        return encoding, _decode(window, encoding, "strict", final), "strict", ()
    except UnicodeDecodeError:
        pass
    if encoding.is_plain_utf8 and source.first.isascii():
        legacy = detect_encoding(window, complete=final)
        if legacy is not None and legacy.unit_bytes == 1 and not legacy.is_plain_utf8:
            return legacy, _decode(window, legacy, "replace", final), "replace", ()
    note = f"Some bytes are not valid {encoding.name} and are shown as U+FFFD."
    return encoding, _decode(window, encoding, "replace", final), "replace", (note,)


def _decode(data: bytes, encoding: Encoding, errors: str, final: bool) -> str:
    return codecs.getincrementaldecoder(encoding.codec)(errors).decode(data, final)


def _byte_length(window: bytes, prefix: str, encoding: Encoding, errors: str) -> int:
    """Return how many bytes of the window make up the prefix of its text."""
    if errors == "strict" and encoding.codec.startswith("utf"):
        return len(prefix.encode(encoding.codec))
    low, high = 0, len(window)
    while low < high:
        middle = (low + high) // 2
        if len(_decode(window[:middle], encoding, errors, final=False)) < len(prefix):
            low = middle + 1
        else:
            high = middle
    return low


def _window_bytes(encoding: Encoding, max_tokens: int) -> int:
    return _ASCII_PER_TOKEN * (max_tokens + 1) * encoding.unit_bytes + _WIDEST_CHAR_BYTES


def _offset_of_line(call: Call, source: TextSource, line: int) -> int:
    offset, current = source.start, 1
    while current < line and offset < source.size:
        call.check()
        call.progress(call.elapsed(), None, f"looking for line {line}: byte {offset} of {source.size}")
        chunk = source.read_at(offset, _SCAN_BYTES)
        if not chunk:
            break
        if source.encoding.unit_bytes == 1 and current + (count := chunk.count(b"\n")) < line:
            current += count
            offset += len(chunk)
            continue
        for end in _line_ends(chunk, source.encoding):
            current += 1
            if current == line:
                return _check_start(source, offset + end, line, current)
        offset += len(chunk)
    return _check_start(source, offset, line, current)


def _check_start(source: TextSource, offset: int, line: int, current: int) -> int:
    past_the_end = current < line or (offset >= source.size and line > 1)
    if past_the_end:
        total = current if offset > source.start and _is_inside_a_line(source, source.size) else current - 1
        raise InvalidOffset(f"start_line {line} is past the end: the file has {quantity(total, 'line')}.")
    return offset


def _line_ends(chunk: bytes, encoding: Encoding) -> Iterator[int]:
    """Yield the offset after each line feed that lies on the boundary of a code unit."""
    newline, at = encoding.newline, -1
    while (at := chunk.find(newline, at + 1)) >= 0:
        if at % encoding.unit_bytes == 0:
            yield at + len(newline)


def _after_first_newline(window: bytes, encoding: Encoding) -> int:
    """Return where the first whole line of a window begins; inside one very long line, its first whole character."""
    first = next(_line_ends(window, encoding), len(window))
    if first < len(window):
        return first
    if encoding.codec != "utf-8":
        return 0
    return next((at for at in range(min(4, len(window))) if window[at] & 0xC0 != 0x80), 0)


def _without_newline(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _compile_pattern(pattern: str | None) -> Any:
    if pattern is None:
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a valid expression"
        reason = reason.decode() if isinstance(reason, bytes) else reason
        raise InvalidQuery(f"read_to_next_pattern is not a valid regular expression: {reason}") from None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
