"""A review as text for a terminal: coloured hunks, both sides next to each other, nothing that moves the cursor."""

import shutil
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import click

from holdfast.text.diff import split_lines
from holdfast.text.display import display_width, escape_invisible, escape_lines, fit_to_width

_MIN_COLUMN, _MAX_COLUMN = 18, 100
_SCREEN = (119, 24)
"""Columns and lines where there is no terminal."""

_MARGIN = 6
_NO_END = "\\ No newline at end of file\n"
_MAX_SPLIT_LINES = 4_000


def coded_lines(hunks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a diff, with the code of each hunk in its header."""
    for hunk in hunks:
        yield f"{hunk['header'].rstrip()} hunk {hunk['code']}"
        yield from escape_lines(hunk["body"])


def side_by_side(before: str, after: str) -> str:
    """Return the changed places of two texts next to each other, with the numbers of their lines."""
    old, new = _lines(before), _lines(after)
    if all(line.endswith("\r\n") for line in (*old, *new)):
        old, new = ([f"{line[:-2]}\n" for line in lines] for lines in (old, new))
    if len(old) + len(new) > _MAX_SPLIT_LINES:
        return "The texts are too long to show side by side."
    column = min(_MAX_COLUMN, max(_MIN_COLUMN, (shutil.get_terminal_size(_SCREEN).columns - 3) // 2))
    out: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        out.append(click.style("─" * (2 * column + 3), fg="cyan"))
        for tag, old_start, old_end, new_start, new_end in group:
            left = [(number + 1, old[number]) for number in range(old_start, old_end)]
            right = [(number + 1, new[number]) for number in range(new_start, new_end)]
            for left_line, right_line in zip_longest(left, right):
                out += _rows(left_line, right_line, column, is_change=tag != "equal")
    return "\n".join(out)


def _lines(text: str) -> list[str]:
    """Return the lines with what ends them; a last one that nothing ends gets git's mark."""
    lines = split_lines(text)
    return lines if not lines or lines[-1].endswith("\n") else [*lines, _NO_END]


def _rows(
    left: tuple[int, str] | None, right: tuple[int, str] | None, column: int, *, is_change: bool
) -> Iterator[str]:
    """Give a pair of lines, each in as many rows as it is long: what is cut off would be approved unseen."""
    for left_cell, right_cell in zip_longest(_cells(left, column), _cells(right, column), fillvalue=" " * column):
        if is_change:
            yield f"{click.style(left_cell, fg='red')} │ {click.style(right_cell, fg='green')}"
        else:
            yield f"{left_cell} │ {right_cell}"


def _cells(line: tuple[int, str] | None, column: int) -> list[str]:
    if line is None:
        return []
    number, text = line
    pieces = list(_pieces(escape_invisible(text.removesuffix("\n").expandtabs(4)), column - _MARGIN))
    marks = [f"{number:>5} ", *[" " * _MARGIN] * (len(pieces) - 1)]
    return [fit_to_width(f"{mark}{piece}", column) for mark, piece in zip(marks, pieces, strict=True)]


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield a text in pieces that each take as many columns of a terminal as there is room for, at least one piece."""
    start = width = 0
    for index, char in enumerate(text):
        char_width = display_width(char)
        if width + char_width > room:
            yield text[start:index]
            start, width = index, 0
        width += char_width
    yield text[start:]
