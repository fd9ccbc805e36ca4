"""A review as text for a terminal: coloured hunks, both sides next to each other, nothing that moves the cursor."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import click

from holdfast.text.diff import split_lines
from holdfast.text.display import escape_invisible, escape_lines

_COLUMN = 58
_MARGIN = 6
_NO_END = "\\ No newline at end of file\n"
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_MAX_SPLIT_LINES = 4_000


def coded_lines(hunks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a diff, with the code of each hunk in its header."""
    for hunk in hunks:
        yield f"{hunk['header'].rstrip()} hunk {hunk['code']}"
        yield from escape_lines(hunk["body"])


def colour_line(line: str) -> str:
    """Return a line of a diff in its colour; click removes colours outside a terminal."""
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def side_by_side(before: str, after: str) -> str:
    """Return the changed places of two texts next to each other, with the numbers of their lines."""
    old, new = _lines(before), _lines(after)
    if all(line.endswith("\r\n") for line in (*old, *new)):
        old, new = ([f"{line[:-2]}\n" for line in lines] for lines in (old, new))
    if len(old) + len(new) > _MAX_SPLIT_LINES:
        return "The texts are too long to show side by side."
    out: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        out.append(click.style("─" * (2 * _COLUMN + 3), fg="cyan"))
        for tag, old_start, old_end, new_start, new_end in group:
            left = [(number + 1, old[number]) for number in range(old_start, old_end)]
            right = [(number + 1, new[number]) for number in range(new_start, new_end)]
            for left_line, right_line in zip_longest(left, right):
                out += _rows(left_line, right_line, tag != "equal")
    return "\n".join(out)


def _lines(text: str) -> list[str]:
    """Return the lines with what ends them; a last one that nothing ends gets git's mark."""
    lines = split_lines(text)
    return lines if not lines or lines[-1].endswith("\n") else [*lines, _NO_END]


def _rows(left: tuple[int, str] | None, right: tuple[int, str] | None, is_change: bool) -> Iterator[str]:
    """Give a pair of lines, each in as many rows as it is long: what is cut off would be approved unseen."""
    for left_cell, right_cell in zip_longest(_cells(left), _cells(right), fillvalue=" " * _COLUMN):
        if is_change:
            yield f"{click.style(left_cell, fg='red')} │ {click.style(right_cell, fg='green')}"
        else:
            yield f"{left_cell} │ {right_cell}"


def _cells(line: tuple[int, str] | None) -> list[str]:
    if line is None:
        return []
    number, text = line
    visible = escape_invisible(text.removesuffix("\n").expandtabs(4))
    room = _COLUMN - _MARGIN
    pieces = [visible[at : at + room] for at in range(0, len(visible), room)] or [""]
    marks = [f"{number:>5} ", *[" " * _MARGIN] * (len(pieces) - 1)]
    return [f"{mark}{piece}".ljust(_COLUMN) for mark, piece in zip(marks, pieces, strict=True)]
