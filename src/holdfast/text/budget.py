"""Pure: token budgets: the estimated tokens of a text, where to cut it, pages of lines, and the cursor to go on from.

The estimate is deliberately simple: four ASCII characters make a token, any other character is one.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.errors import InvalidArgument

MAX_CURSOR_CHARS = 65_536
_ASCII_PER_TOKEN = 4
_MAX_POSITION = 2**63 - 1

RESERVED_TOKENS = 100
"""Tokens of a page that are kept for the notices at its end."""


class HasSeq(Protocol):
    """A row of a list that is paged by its sequence number."""

    @property
    def seq(self) -> int:
        """Return the number that orders the list."""


T = TypeVar("T")
Row = TypeVar("Row", bound=HasSeq)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // _ASCII_PER_TOKEN) + len(text) - ascii_chars


def cut_to_budget(text: str, max_tokens: int) -> tuple[str, bool]:
    """Return the start of a text that stays within the budget, and whether something is left over.

    The cut falls after a line's end; only a first line that is too long by itself is cut inside.
    """
    if len(text) <= max_tokens or estimate_tokens(text) <= max_tokens:
        return text, False
    end = _longest_prefix(text, max_tokens)
    line_end = text.rfind("\n", 0, end) + 1
    return text[: line_end or end], True


def cut_end_to_budget(text: str, max_tokens: int) -> tuple[str, bool]:
    """Return the end of a text that stays within the budget, and whether something before it is left over.

    It begins at a line's start unless its last line is too long by itself.
    """
    if len(text) <= max_tokens or estimate_tokens(text) <= max_tokens:
        return text, False
    start = len(text) - _longest_prefix(text[::-1], max_tokens)
    line_start = text.find("\n", start - 1, len(text) - 1) + 1
    return text[line_start or start :], True


def encode_cursor(state: dict[str, Any]) -> str:
    """Encode a position as the opaque text that an agent hands back."""
    raw = json.dumps(state, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_cursor(cursor: str) -> dict[str, Any]:
    """Decode a cursor. InvalidArgument when `encode_cursor` did not make it."""
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        state = json.loads(raw)
        json.dumps(state, ensure_ascii=False).encode(
            "utf-8", "surrogateescape"
        )  # surrogates that are bytes of a name pass
    except (ValueError, binascii.Error, RecursionError):
        raise invalid_cursor() from None
    if not isinstance(state, dict):
        raise invalid_cursor()
    return state


def read_position(cursor: str | None, key: str, origin: str = "") -> int | None:
    """Return the number under a key of a cursor, None without a cursor.

    InvalidArgument when the cursor has none; it names `origin`, the call whose answers give such cursors.
    """
    if cursor is None:
        return None
    position = decode_cursor(cursor).get(key)
    if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position <= _MAX_POSITION:
        raise InvalidArgument(f"The cursor is not one of {origin}.") if origin else invalid_cursor()
    return position


def visible_rows(
    fetch: Callable[[int | None], Sequence[Row]], is_visible: Callable[[Row], bool], limit: int, before_seq: int | None
) -> list[Row]:
    """Return that many rows, newest first, without those that the caller may not see; `fetch(before)` gives `limit` rows."""
    rows: list[Row] = []
    while len(rows) < limit:
        page = fetch(before_seq)
        rows += filter(is_visible, page)
        if len(page) < limit:
            break
        before_seq = page[-1].seq
    return rows[:limit]


def first_page(rows: Sequence[Row], limit: int, key: str) -> tuple[Sequence[Row], str | None]:
    """Return the first `limit` rows and the cursor to the rest, which a query for one row more than that shows to exist."""
    page = rows[:limit]
    return page, encode_cursor({key: page[-1].seq}) if len(rows) > limit else None


def take_rows(rows: Iterable[T], max_tokens: int, cost: Callable[[T], int]) -> list[T]:
    """Return the first rows whose cost in all stays within the budget, at least one; no further row is asked for."""
    rows_that_fit: list[T] = []
    for row in rows:
        max_tokens -= cost(row)
        if max_tokens < 0 and rows_that_fit:
            break
        rows_that_fit.append(row)
    return rows_that_fit


def invalid_cursor() -> InvalidArgument:
    """Return the error for a cursor that no answer of this server gave."""
    return InvalidArgument("The cursor is not one this server gave. Repeat the call without a cursor.")


class Page:
    """Collects lines until the budget is used up; at least one line always fits."""

    def __init__(self, max_tokens: int) -> None:
        self.left = max_tokens - RESERVED_TOKENS
        self.lines: list[str] = []

    def add(self, line: str) -> bool:
        """Add a line and return True, or return False when it does not fit."""
        cost = estimate_tokens(line) + 1
        if cost > self.left and self.lines:
            return False
        self.left -= cost
        self.lines.append(line)
        return True

    def add_all(self, lines: Sequence[str]) -> int:
        """Add as many of the lines as fit, in order, and return how many were added."""
        cost = sum(map(estimate_tokens, lines)) + len(lines)
        if cost <= self.left:
            self.left -= cost
            self.lines += lines
            return len(lines)
        return next((index for index, line in enumerate(lines) if not self.add(line)), len(lines))

    def text(self, *notices: str) -> str:
        """Return the page: its lines, then the notices that are not empty."""
        return "\n".join([*self.lines, *(notice for notice in notices if notice)])


def more_notice(position: Mapping[str, Any]) -> str:
    """Return the notice that there is more, with the cursor to get it."""
    return f'[More: repeat the call with cursor="{encode_cursor(dict(position))}"]'


def _longest_prefix(text: str, max_tokens: int) -> int:
    low, high = min(1, len(text)), min(len(text), max_tokens * _ASCII_PER_TOKEN)
    if estimate_tokens(text[:high]) <= max_tokens:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low
