"""A review as text for a terminal: coloured hunks, both sides next to each other, nothing that moves the cursor."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import click

from holdfast.review.visible import visible, visible_lines

_COLUMN = 58
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_MAX_SPLIT_LINES = 4_000


def numbered(hunks: list[dict[str, Any]]) -> Iterator[str]:
    """Give the lines of a diff whose hunks have numbers."""
    for hunk in hunks:
        yield f"{hunk['header'].rstrip()} hunk {hunk['number']}"
        yield from visible_lines(hunk["body"])


def coloured(line: str) -> str:
    """Return a line of a diff in its colour; click takes colours away where nobody sees them."""
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def side_by_side(before: str, after: str) -> str:
    """Return the changed places of two texts next to each other, with the numbers of their lines."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _MAX_SPLIT_LINES:
        return "The texts are too long to be shown side by side."
    out: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        out.append(click.style("─" * (2 * _COLUMN + 3), fg="cyan"))
        for tag, old_start, old_end, new_start, new_end in group:
            left = [(number + 1, old[number]) for number in range(old_start, old_end)]
            right = [(number + 1, new[number]) for number in range(new_start, new_end)]
            out += [_row(one, other, tag != "equal") for one, other in zip_longest(left, right)]
    return "\n".join(out)


def _row(left: tuple[int, str] | None, right: tuple[int, str] | None, is_change: bool) -> str:
    one, other = _cell(left), _cell(right)
    if not is_change:
        return f"{one} │ {other}"
    return f"{click.style(one, fg='red')} │ {click.style(other, fg='green')}"


def _cell(line: tuple[int, str] | None) -> str:
    if line is None:
        return " " * _COLUMN
    number, text = line
    return f"{number:>5} {visible(text.expandtabs(4))}"[:_COLUMN].ljust(_COLUMN)
