"""Pure: the line ends of a text, and how a text from an editor that knows only one of them gets those of its file back."""

import re
from difflib import SequenceMatcher

_MAX_COMPARED = 2_000_000
_END = re.compile("\r\n|\n|\r")
_LINE = re.compile("[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def line_end_style(text: str) -> str:
    """Return which line ends a text has: LF, CRLF, CR, mixed, or none."""
    crlf, feeds, returns = text.count("\r\n"), text.count("\n"), text.count("\r")
    styles = [name for name, count in (("CRLF", crlf), ("LF", feeds - crlf), ("CR", returns - crlf)) if count]
    return "none" if not styles else styles[0] if len(styles) == 1 else "mixed"


def restore_line_ends(before: str, text: str) -> str:
    """Return a text whose lines end in line feeds with the line ends of the file that it was made from.

    A line that the file had keeps its own end, a new one gets the commonest of the file. A text that has carriage
    returns itself is returned as it is.
    """
    if "\r" in text or "\r" not in before:
        return text
    old, new = _LINE.findall(before), _LINE.findall(text)
    ends = _END.findall(before)
    usual = max(("\n", "\r\n", "\r"), key=ends.count)
    plain = [_END.sub("\n", line) for line in old]
    head = _count_equal(plain, new)
    tail = _count_equal(plain[head:][::-1], new[head:][::-1])
    middle = _restore_middle(
        old[head : len(old) - tail], plain[head : len(plain) - tail], new[head : len(new) - tail], usual
    )
    return "".join([*old[:head], *middle, *old[len(old) - tail :]])


def _restore_middle(old: list[str], plain: list[str], new: list[str], usual: str) -> list[str]:
    restored = [line.replace("\n", usual) for line in new]
    if len(plain) * len(new) <= _MAX_COMPARED:
        for old_at, new_at, count in SequenceMatcher(None, plain, new, autojunk=False).get_matching_blocks():
            restored[new_at : new_at + count] = old[old_at : old_at + count]
    return restored


def _count_equal(left: list[str], right: list[str]) -> int:
    count = 0
    for one_line, other_line in zip(left, right, strict=False):
        if one_line != other_line:
            break
        count += 1
    return count
