"""Pure: compares two texts: their unified diff, at a cost that depends on the difference, and their common ends.

Long texts are cut at the lines that both have once, in the order of both, so that many small changes in them stay small.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import AnyStr

CONTEXT_LINES = 3
_MAX_COMPARED = 2_000_000

DIFF_CUT = "The diff is longer than an answer may be; the rest was left out."
"""What a tool says of a diff that it cut."""

_STEP_BYTES = 1 << 20

ReadAt = Callable[[int, int], bytes]
"""Returns so many bytes from an offset on, as `os.pread` does."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One difference of two texts with its context: lines `start` to `end` of the first become `lines`.

    In the second text these lines begin at `new_start`. Lines count from 0.
    """

    header: str
    body: str
    start: int
    end: int
    lines: tuple[str, ...]
    new_start: int

    @property
    def hash(self) -> str:
        """Return the hash that names this hunk: the place in the first text and every line of the body."""
        return sha256(f"{self.start}:{self.end}\n{self.body}".encode("utf-8", "surrogatepass")).hexdigest()


def unified_diff(before: str, after: str, path: str) -> str:
    """Return a git-style unified diff, empty when the texts are the same.

    Lines end at line feeds only; a last line without one is marked as git does. A difference too large to align
    is shown as one block removed and one block added.
    """
    if before == after:
        return ""
    out = [f"--- a/{path.lstrip('/')}\n", f"+++ b/{path.lstrip('/')}\n"]
    for hunk in compute_hunks(before, after):
        out += (hunk.header, hunk.body)
    return "".join(out)


def compute_hunks(before: str, after: str) -> list[Hunk]:
    """Return the hunks of the unified diff, in order."""
    old, new = split_lines(before), split_lines(after)
    head = _count_equal_lines(old, new)
    tail = _count_equal_lines(old[head:][::-1], new[head:][::-1])
    first = max(0, head - CONTEXT_LINES)
    last = max(0, tail - CONTEXT_LINES)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    return [_build_hunk(group, old, new, first) for group in _group_opcodes(old, new)]


def apply_hunks(before: str, after: str, hunk_hashes: Collection[str]) -> str:
    """Return the first text with only the chosen hunks, each named by its hash, of its difference to the second."""
    old, out, at = split_lines(before), [], 0
    for hunk in compute_hunks(before, after):
        out += old[at : hunk.start]
        out += hunk.lines if hunk.hash in hunk_hashes else old[hunk.start : hunk.end]
        at = hunk.end
    return "".join([*out, *old[at:]])


def fence_diff(diff: str) -> str:
    """Return the diff as a Markdown block, in a fence longer than any run of backticks in it."""
    fence = "```"
    while fence in diff:
        fence += "`"
    return f"{fence}diff\n{diff}{fence}"


Opcode = tuple[str, int, int, int, int]


def _build_hunk(group: list[Opcode], old: list[str], new: list[str], first: int) -> Hunk:
    body: list[str] = []
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            body += _prefix_lines(" ", old[old_start:old_end])
            continue
        body += _prefix_lines("-", old[old_start:old_end])
        body += _prefix_lines("+", new[new_start:new_end])
    lines = tuple(new[group[0][3] : group[-1][4]])
    start, end, new_start = group[0][1] + first, group[-1][2] + first, group[0][3] + first
    return Hunk(_header(group, first), "".join(body), start, end, lines, new_start)


def _group_opcodes(old: list[str], new: list[str]) -> list[list[Opcode]]:
    matcher = SequenceMatcher(None, old, new) if len(old) * len(new) <= _MAX_COMPARED else _AnchoredMatcher(old, new)
    return [list(group) for group in matcher.get_grouped_opcodes(CONTEXT_LINES)]


class _AnchoredMatcher(SequenceMatcher[str]):
    """Compares long texts piece by piece, between the lines that each of them has exactly once."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None)
        self._old, self._new = old, new
        self.opcodes = list(_merge_opcodes(self._find_opcodes()))

    def get_opcodes(self) -> list[Opcode]:  # type: ignore[override]
        """Return what turns the first text into the second."""
        return self.opcodes

    def _find_opcodes(self) -> Iterator[Opcode]:
        old_at = new_at = 0
        for old_anchor, new_anchor in [*find_anchors(self._old, self._new), (len(self._old), len(self._new))]:
            yield from self._compare_piece(old_at, old_anchor, new_at, new_anchor)
            if old_anchor < len(self._old):
                yield ("equal", old_anchor, old_anchor + 1, new_anchor, new_anchor + 1)
            old_at, new_at = old_anchor + 1, new_anchor + 1

    def _compare_piece(self, old_at: int, old_end: int, new_at: int, new_end: int) -> Iterator[Opcode]:
        old, new = self._old[old_at:old_end], self._new[new_at:new_end]
        if len(old) * len(new) > _MAX_COMPARED:
            yield ("replace", old_at, old_end, new_at, new_end)
        elif old or new:
            for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new).get_opcodes():
                yield (tag, first + old_at, last + old_at, new_first + new_at, new_last + new_at)


def find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of lines that both texts have exactly once: the longest row of them in the order of both."""
    old_counts, new_counts = Counter(old), Counter(new)
    new_places = {line: at for at, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, new_places[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in new_places]
    ends: list[int] = []
    last_pairs: list[int] = []
    before: list[int | None] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last_pairs[length - 1] if length else None)
        ends[length : length + 1] = [place]
        last_pairs[length : length + 1] = [index]
    anchors: list[tuple[int, int]] = []
    at = last_pairs[-1] if last_pairs else None
    while at is not None:
        anchors.append(pairs[at])
        at = before[at]
    return anchors[::-1]


def _merge_opcodes(opcodes: Iterator[Opcode]) -> Iterator[Opcode]:
    """Yield the opcodes with neighbours of one kind as one, and what is removed and added side by side as replaced."""
    last: Opcode | None = None
    for opcode in opcodes:
        if last is None:
            last = opcode
        elif (last[0] == "equal") is (opcode[0] == "equal"):
            tag = last[0] if last[0] == opcode[0] else "replace"
            last = (tag, last[1], opcode[2], last[3], opcode[4])
        else:
            yield last
            last = opcode
    if last is not None:
        yield last


def _header(group: list[Opcode], offset: int) -> str:
    old_range = _range(group[0][1] + offset, group[-1][2] + offset)
    new_range = _range(group[0][3] + offset, group[-1][4] + offset)
    return f"@@ -{old_range} +{new_range} @@\n"


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their line feeds; only a line feed ends one."""
    lines = text.split("\n")
    last = lines.pop()
    ended = [line + "\n" for line in lines]
    return [*ended, last] if last else ended


def _count_equal_lines(left_lines: list[str], right_lines: list[str]) -> int:
    count = 0
    for left, right in zip(left_lines, right_lines, strict=False):
        if left != right:
            break
        count += 1
    return count


def _prefix_lines(mark: str, lines: list[str]) -> list[str]:
    return [
        f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n" for line in lines
    ]


def common_ends(read: ReadAt, size: int, read_other: ReadAt, other_size: int) -> tuple[int, int]:
    """Return how many bytes are the same at the beginnings, and how many of the rest at the ends."""
    shorter = min(size, other_size)
    prefix = 0
    while prefix < shorter:
        step = min(_STEP_BYTES, shorter - prefix)
        equal = common_prefix(read(step, prefix), read_other(step, prefix))
        prefix += equal
        if equal < step:
            break
    suffix = 0
    while suffix < shorter - prefix:
        step = min(_STEP_BYTES, shorter - prefix - suffix)
        ours = read(step, size - suffix - step)[::-1]
        theirs = read_other(step, other_size - suffix - step)[::-1]
        equal = common_prefix(ours, theirs)
        suffix += equal
        if equal < step:
            break
    return prefix, suffix


def common_prefix(ours: AnyStr, theirs: AnyStr) -> int:
    """Return how many characters or bytes are the same at the beginnings."""
    low, high = 0, min(len(ours), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if ours[low:middle] == theirs[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
