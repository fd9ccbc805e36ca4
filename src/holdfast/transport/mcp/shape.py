"""Pure: says whether a JSON text is cheap to parse, from a look at what is outside its strings.

A parser holds the interpreter until it is done: a second for a million names, or for numbers of thousands of digits.
Strings are cheap, so a message may be one large text, and its other parts are bounded here before it is parsed.
"""

import re

MAX_VALUES = 25_000
"""More than the values that the arguments of a call may hold, with the message around them."""
MAX_BYTES_OUTSIDE_STRINGS = 1_000_000
_WINDOW_BYTES = 1 << 18
_CHARACTERS = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SEPARATORS = (b",", b"[", b"{")


def is_cheap(raw: bytes) -> bool:
    """Return whether a text has few values and few bytes outside its strings; most texts are told by their size alone."""
    if len(raw) <= MAX_VALUES:
        return True
    values, outside, at = 0, 0, 0
    while at < len(raw):
        # A window at a time: no call into the interpreter's own code is long, so other threads get their turn.
        quote = raw.find(b'"', at, at + _WINDOW_BYTES)
        end = min(at + _WINDOW_BYTES, len(raw)) if quote < 0 else quote
        outside += end - at
        values += sum(raw.count(mark, at, end) for mark in _SEPARATORS)
        if values > MAX_VALUES or outside > MAX_BYTES_OUTSIDE_STRINGS:
            return False
        at = end if quote < 0 else _end_of_string(raw, quote + 1)
    return True


def _end_of_string(raw: bytes, start: int) -> int:
    """Return the position after the quote that ends a string, the end of the text when there is none."""
    at = start
    while at < len(raw):
        window = min(at + _WINDOW_BYTES, len(raw))
        quote = raw.find(b'"', at, window)
        escape = raw.find(b"\\", at, window if quote < 0 else quote)
        if escape >= 0:
            match = _CHARACTERS.match(raw, escape, window)
            at = match.end() if match and match.end() > escape else min(escape + 2, len(raw))
            quote = at if raw[at : at + 1] == b'"' else -1
        elif quote < 0:
            at = window
        if quote >= 0:
            return quote + 1
    return len(raw)
