"""Pure: rules for content: encodings, write modes, overwriting a range, and slices that keep characters whole."""

from enum import StrEnum

from holdfast.errors import InvalidOffset, InvalidQuery
from holdfast.store.model import ContentSlice, Window
from holdfast.text.decode import is_continuation_byte

ENCODING = "utf-8"
MARGIN = 3
"""A character is at most four bytes, so its ends are within three bytes of any cut in it."""

MAX_POSITION = 2**31 - 16
"""Positions beyond this are beyond every file; the bound keeps them within what a database can slice by."""


class WriteMode(StrEnum):
    """How a write combines its content with what the file already holds."""

    APPEND = "APPEND"
    OVERWRITE = "OVERWRITE"
    TRUNCATE = "TRUNCATE"


def encode_content(content: str, encoding: str) -> bytes:
    """Return the bytes of a content; InvalidQuery for another encoding or for text that has no UTF-8 form."""
    if encoding.lower() not in ("", ENCODING):
        raise InvalidQuery(f"content_encoding must be 'utf-8': {encoding[:40]!a}")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"content is not valid Unicode text: a lone surrogate at character {error.start}") from None


def parse_mode(mode: str) -> WriteMode:
    """Return the mode of a name in any case; InvalidOffset for an unknown one."""
    try:
        return WriteMode(mode.upper())
    except ValueError:
        raise InvalidOffset(f"mode must be APPEND, OVERWRITE or TRUNCATE: {mode[:40]!a}") from None


def check_offset(mode: WriteMode, offset: int) -> None:
    """Raise InvalidOffset for an offset that is wrong whatever the file holds."""
    if offset < 0:
        raise InvalidOffset(f"offset must be 0 or more: {_format_int(offset)}")
    if mode is WriteMode.TRUNCATE and offset:
        raise InvalidOffset(f"offset must be 0 with TRUNCATE: {_format_int(offset)}")


def apply_write(before: bytes | None, content: bytes, mode: WriteMode, offset: int) -> bytes:
    """Return what the file holds after a write; `before` is None for a file that does not exist."""
    current = before or b""
    if mode is WriteMode.TRUNCATE:
        return content
    if mode is WriteMode.APPEND:
        return current + content
    if offset > len(current):
        raise InvalidOffset(f"offset must be at most the file's size, {len(current)}: {_format_int(offset)}")
    end = offset + len(content)
    for cut in (offset, end):
        if content and cut < len(current) and is_continuation_byte(current[cut]):
            raise InvalidOffset(f"the write would cut a character in two at byte {cut}")
    return current[:offset] + content + current[end:]


def check_range(offset: int, length: int) -> None:
    """Raise InvalidOffset for a range that no file has; a length of -1 means the rest of the file."""
    if offset < 0:
        raise InvalidOffset(f"offset must be 0 or more: {_format_int(offset)}")
    if length < -1:
        raise InvalidOffset(f"length must be 0 or more, or -1 for the rest: {_format_int(length)}")


def window_for_range(offset: int, length: int) -> tuple[int, int]:
    """Return start and byte count of what must be fetched to slice a range without cutting a character."""
    start = max(0, min(offset, MAX_POSITION) - MARGIN)
    end = MAX_POSITION if length == -1 else min(offset + length, MAX_POSITION)
    return start, max(0, end - start) + MARGIN


def slice_text(window: Window, offset: int, length: int) -> ContentSlice:
    """Return the text of a range, both ends moved down to a character, at least one character unless at the end."""
    requested_start = min(offset, window.size)
    requested_end = window.size if length == -1 else min(offset + length, window.size)
    start, end = _character_start(window, requested_start), _character_start(window, requested_end)
    if end <= start and requested_end > requested_start:
        end = _character_end(window, start + 1)
    text = window.data[start - window.start : end - window.start].decode()
    return ContentSlice(text, start, end, (start, end) != (requested_start, requested_end))


def _character_start(window: Window, at: int) -> int:
    while window.start < at < window.size and is_continuation_byte(window.data[at - window.start]):
        at -= 1
    return at


def _character_end(window: Window, at: int) -> int:
    """Return the end of the character that starts before `at`; where the window ends, the character ends too."""
    while at - window.start < len(window.data) and is_continuation_byte(window.data[at - window.start]):
        at += 1
    return at


def _format_int(value: int) -> str:
    return str(value) if abs(value) < 10**18 else "a number that is too large"
