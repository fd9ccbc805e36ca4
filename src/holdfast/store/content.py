"""Pure: bytes and text: encodings, modes, splices, and slices that keep characters whole."""

from enum import StrEnum

from holdfast.errors import InvalidOffset, InvalidQuery
from holdfast.store.model import ContentSlice, Window

ENCODING = "utf-8"
MARGIN = 3
"""A character is at most four bytes, so its ends are within three bytes of any cut in it."""

MAX_POSITION = 2**31 - 16
"""Positions beyond this are beyond every file; it keeps numbers within what a database can slice by."""


class Mode(StrEnum):
    """How content meets what the file already holds."""

    APPEND = "APPEND"
    OVERWRITE = "OVERWRITE"
    TRUNCATE = "TRUNCATE"


def encoded(content: str, encoding: str) -> bytes:
    """Return the bytes of a content; InvalidQuery for another encoding or for text that has no UTF-8 form."""
    if encoding.lower() not in ("", ENCODING):
        raise InvalidQuery(f"content_encoding must be 'utf-8': {encoding[:40]!a}")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"content is not valid Unicode text: a lone surrogate at character {error.start}") from None


def mode_of(mode: str) -> Mode:
    """Return the mode, in any case; InvalidOffset for an unknown one."""
    try:
        return Mode(mode.upper())
    except ValueError:
        raise InvalidOffset(f"mode must be APPEND, OVERWRITE or TRUNCATE: {mode[:40]!a}") from None


def check_offset(mode: Mode, offset: int) -> None:
    """Raise InvalidOffset for an offset that is wrong whatever the file holds."""
    if offset < 0:
        raise InvalidOffset(f"offset must be 0 or more: {_number(offset)}")
    if mode is Mode.TRUNCATE and offset:
        raise InvalidOffset(f"offset must be 0 with TRUNCATE: {_number(offset)}")


def combined(before: bytes | None, content: bytes, mode: Mode, offset: int) -> bytes:
    """Return what the file holds after a write; `before` is None for a file that does not exist."""
    held = before or b""
    if mode is Mode.TRUNCATE:
        return content
    if mode is Mode.APPEND:
        return held + content
    return _spliced(held, content, offset)


def _spliced(held: bytes, content: bytes, offset: int) -> bytes:
    if offset > len(held):
        raise InvalidOffset(f"offset must be at most the file's size, {len(held)}: {_number(offset)}")
    end = offset + len(content)
    for cut in (offset, end):
        if content and cut < len(held) and is_inside(held[cut]):
            raise InvalidOffset(f"the write would cut a character in two at byte {cut}")
    return held[:offset] + content + held[end:]


def is_inside(byte: int) -> bool:
    """Return whether a byte of UTF-8 continues a character."""
    return byte & 0xC0 == 0x80


def check_range(offset: int, length: int) -> None:
    """Raise InvalidOffset for a range that no file has; a length of -1 means all the rest."""
    if offset < 0:
        raise InvalidOffset(f"offset must be 0 or more: {_number(offset)}")
    if length < -1:
        raise InvalidOffset(f"length must be 0 or more, or -1 for the rest: {_number(length)}")


def window_of(offset: int, length: int) -> tuple[int, int]:
    """Return start and byte count of what must be fetched to slice a range without cutting a character."""
    start = max(0, min(offset, MAX_POSITION) - MARGIN)
    end = MAX_POSITION if length == -1 else min(offset + length, MAX_POSITION)
    return start, max(0, end - start) + MARGIN


def sliced(window: Window, offset: int, length: int) -> ContentSlice:
    """Return the text of a range, both ends moved down to a character, at least one character unless at the end."""
    asked_start = min(offset, window.size)
    asked_end = window.size if length == -1 else min(offset + length, window.size)
    start, end = _down(window, asked_start), _down(window, asked_end)
    if end <= start and asked_end > asked_start:
        end = _up(window, start + 1)
    text = window.data[start - window.start : end - window.start].decode()
    return ContentSlice(text, start, end, (start, end) != (asked_start, asked_end))


def _down(window: Window, at: int) -> int:
    while window.start < at < window.size and is_inside(window.data[at - window.start]):
        at -= 1
    return at


def _up(window: Window, at: int) -> int:
    """Return the end of the character that begins before `at`; the window may end there, and then it ends whole."""
    while at - window.start < len(window.data) and is_inside(window.data[at - window.start]):
        at += 1
    return at


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**18 else "a number beyond all files"
