"""Pure: the three-way merge of texts by lines: the changes of two sides to a common base, or None on a conflict.

Changes to the same lines or to adjacent lines conflict, unless both sides made the same change.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from holdfast.text.diff import split_lines

_MAX_COMPARED = 4_000_000
_MAX_STEPS = 50_000_000
_MIN_LINES_FOR_AUTOJUNK = 200
"""difflib ignores very frequent lines (autojunk) only in texts of at least this many lines."""

Region = tuple[int, int, int, int]
"""Lines that all three have in common: where they begin in base, ours and theirs, and how many they are."""


def merge(base: str, ours: str, theirs: str) -> str | None:
    """Return the text with the changes of both sides, None when they conflict or are too costly to compare."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    old, ours_lines, theirs_lines = split_lines(base), split_lines(ours), split_lines(theirs)
    head = _count_equal_lines(old, ours_lines, theirs_lines)
    tail = _count_equal_lines(old[head:][::-1], ours_lines[head:][::-1], theirs_lines[head:][::-1])
    inner = [lines[head : len(lines) - tail] for lines in (old, ours_lines, theirs_lines)]
    if max(len(inner[1]), len(inner[2])) * len(inner[0]) > _MAX_COMPARED:
        return None
    if any(len(side) < _MIN_LINES_FOR_AUTOJUNK and _is_costly(inner[0], side) for side in inner[1:]):
        return None
    merged = _merge_lines(*inner)
    return None if merged is None else "".join([*old[:head], merged, *old[len(old) - tail :]])


def _merge_lines(old: list[str], ours: list[str], theirs: list[str]) -> str | None:
    out: list[str] = []
    at_old = at_ours = at_theirs = 0
    for start, start_ours, start_theirs, length in _common_regions(old, ours, theirs):
        piece = _merge_region(old[at_old:start], ours[at_ours:start_ours], theirs[at_theirs:start_theirs])
        if piece is None:
            return None
        out += piece
        out += old[start : start + length]
        at_old, at_ours, at_theirs = start + length, start_ours + length, start_theirs + length
    return "".join(out)


def _merge_region(old: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str] | None:
    if ours in (old, theirs):
        return theirs
    return ours if theirs == old else None


def _common_regions(old: list[str], ours: list[str], theirs: list[str]) -> list[Region]:
    """Return the regions of the base that both sides kept, and an empty one at the end."""
    ours_blocks, theirs_blocks = _matching_blocks(old, ours), _matching_blocks(old, theirs)
    regions: list[Region] = []
    i = j = 0
    while i < len(ours_blocks) and j < len(theirs_blocks):
        start_ours, at_ours, length_ours = ours_blocks[i]
        start_theirs, at_theirs, length_theirs = theirs_blocks[j]
        start = max(start_ours, start_theirs)
        end = min(start_ours + length_ours, start_theirs + length_theirs)
        if start < end:
            regions.append((start, at_ours + start - start_ours, at_theirs + start - start_theirs, end - start))
        if start_ours + length_ours < start_theirs + length_theirs:
            i += 1
        else:
            j += 1
    return [*regions, (len(old), len(ours), len(theirs), 0)]


def _matching_blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    matcher = SequenceMatcher(None, old, new, autojunk=_is_costly(old, new))
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def _is_costly(old: list[str], new: list[str]) -> bool:
    """Return whether there are so many equal lines that aligning them could take minutes."""
    times = Counter(new)
    pairs = sum(count * times[line] for line, count in Counter(old).items())
    return pairs * min(len(old), len(new)) > _MAX_STEPS


def _count_equal_lines(*sides: list[str]) -> int:
    count = 0
    for lines in zip(*sides, strict=False):
        if len(set(lines)) > 1:
            break
        count += 1
    return count
