"""Pure: one answer's lines, up to its token budget, and the notice that says how to go on."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.text.budget import encode_cursor, estimate_tokens

RESERVED_TOKENS = 100
"""Kept free for the notices at the end."""


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
        """Add as many of the lines as fit, in order, and return how many that were."""
        cost = sum(map(estimate_tokens, lines)) + len(lines)
        if cost <= self.left:
            self.left -= cost
            self.lines += lines
            return len(lines)
        return next((index for index, line in enumerate(lines) if not self.add(line)), len(lines))

    def text(self, *notices: str) -> str:
        """Return the lines and the notices that are not empty."""
        return "\n".join([*self.lines, *(notice for notice in notices if notice)])


def more_notice(position: Mapping[str, Any]) -> str:
    """Return the notice that there is more, with the cursor to get it."""
    return f'[More: repeat the call with cursor="{encode_cursor(dict(position))}"]'
