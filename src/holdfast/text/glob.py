"""Pure: glob patterns with the semantics of the reference server, matched one directory level at a time.

A pattern is matched against the path relative to where the search starts: `*.py` means that directory only,
`**/*.py` any depth. Names with a leading dot match like any other. Matching a name is linear in its length.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from operator import methodcaller
from typing import Any

from holdfast.errors import InvalidQuery

MAX_PATTERN_CHARS = 4096
MAX_ALTERNATIVES = 500
MAX_EXPANDED_CHARS = 100_000
_MAGIC = re.compile(r"[*?\[\\]|[@+!]\(")
_PIECE = re.compile(r"\\.|[?*+@!]\(|.", re.DOTALL)
_BRACE = re.compile(r"\\.|[{},]", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,4})\.\.(-?\d{1,4})|([a-zA-Z])\.\.([a-zA-Z])")
_CLASS = re.compile(r"\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*)\]", re.DOTALL)

Test = Callable[[str], bool]


class Glob:
    """A compiled pattern; `start` is the state of the directory that the search begins in."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN_CHARS:
            raise InvalidQuery(f"A pattern may have {MAX_PATTERN_CHARS} characters; this one has {len(pattern)}.")
        body = pattern.lstrip("!") if not pattern.startswith("!(") else pattern
        self.negated = (len(pattern) - len(body)) % 2 == 1
        self._segments = [_merge_stars(_split(text)) for text in _expand(body.removeprefix("./"))]
        self._branches = [[_compile_level(segment) for segment in segments] for segments in self._segments]
        self.start = self._state((branch, 0) for branch in range(len(self._branches)))

    def matches(self, path: str) -> bool:
        """Return whether a relative path matches; for one path on its own."""
        *folders, name = path.split("/")
        state = self.start
        for folder in folders:
            state = state.enter(folder)
        return state.matches(name)

    def _state(self, positions: Iterator[tuple[int, int]]) -> "State":
        reached: dict[tuple[int, int], None] = {}
        for branch, first in positions:
            segments = self._branches[branch]
            for at in range(first, len(segments)):
                reached[branch, at] = None
                if segments[at] is not None:
                    break
        return State(self, tuple(reached))


class State:
    """How far a pattern has been matched on the way down to one directory."""

    __slots__ = ("_glob", "_positions", "_test", "is_dead")

    def __init__(self, glob: Glob, positions: tuple[tuple[int, int], ...]) -> None:
        self._glob, self._positions = glob, positions
        self._test = self._last_test()
        self.is_dead = not positions and not glob.negated

    def matches(self, name: str) -> bool:
        """Return whether an entry of this directory matches the whole pattern."""
        return self._test(name) is not self._glob.negated

    def select(self, entries: Iterable[tuple[str, object]]) -> list[str]:
        """Return the names among the entries of this directory that match the whole pattern."""
        test, negated = self._test, self._glob.negated
        return [name for name, _ in entries if test(name) is not negated]

    def last_segments(self) -> Iterator[str]:
        """Yield the segments of which an entry of this directory has to match one, `**` for any name."""
        for branch, at in self._positions:
            if at + 1 == len(self._glob._branches[branch]):
                yield self._glob._segments[branch][at]

    def enter(self, name: str) -> "State":
        """Return the state of a directory below; `is_dead` when nothing in it can match."""
        return self._glob._state(self._advance(name))

    def _advance(self, name: str) -> Iterator[tuple[int, int]]:
        for branch, at in self._positions:
            test = self._glob._branches[branch][at]
            if test is None:
                yield branch, at
            elif test(name):
                yield branch, at + 1

    def _last_test(self) -> Test:
        tests: list[Test] = []
        for branch, at in self._positions:
            segments = self._glob._branches[branch]
            if at + 1 == len(segments):
                tests.append(segments[at] or _always)
        if len(tests) == 1:
            return tests[0]
        return lambda name: any(test(name) for test in tests)


def _always(_name: str) -> bool:
    return True


def has_magic(segment: str) -> bool:
    """Return whether a segment matches anything but its own text."""
    return _MAGIC.search(segment) is not None


def _merge_stars(segments: list[str]) -> list[str]:
    """Return the segments with each run of `**` as one."""
    return [segment for at, segment in enumerate(segments) if segment != "**" or at == 0 or segments[at - 1] != "**"]


def _compile_level(segment: str) -> Test | None:
    """Return the test of one level, None for `**`, any number of levels."""
    return None if segment == "**" else compile_segment(segment)


def _split(pattern: str) -> list[str]:
    """Split at slashes, several of which count as one, but not inside groups such as `@(a/b|c)`."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        if piece == "/" and depth == 0:
            parts.append("")
            continue
        parts[-1] += piece
        if len(piece) == 2 and piece[1] == "(":
            depth += piece[0] != "\\"
        elif piece == ")" and depth:
            depth -= 1
    return [parts[0], *(part for part in parts[1:-1] if part), *parts[1:][-1:]]


@lru_cache(maxsize=4096)
def compile_segment(segment: str) -> Test:
    """Return the test of a name against one level of a pattern. InvalidQuery for one that is not valid."""
    if not _MAGIC.search(segment):
        return methodcaller("__eq__", segment)
    if segment.strip("*") == "":
        return _always
    if segment[0] == "*" and not _MAGIC.search(segment.lstrip("*")) and segment[1] != "(":
        return methodcaller("endswith", segment.lstrip("*"))
    if segment[-1] == "*" and not _MAGIC.search(segment.rstrip("*")):
        return methodcaller("startswith", segment.rstrip("*"))
    return _compile_regex(segment)


def _compile_regex(segment: str) -> Test:
    import re2  # loaded late: only unusual patterns need it

    try:
        compiled: Any = re2.compile(f"(?s)\\A(?:{_translate(segment)})\\z", _quiet(re2))
    except (re2.error, UnicodeEncodeError):
        raise InvalidQuery(f"This name pattern is not valid: {segment!r}") from None

    def test(name: str) -> bool:
        try:
            return compiled.search(name) is not None
        except UnicodeEncodeError:
            return compiled.search(name.encode("utf-8", "replace").decode()) is not None

    return test


def _quiet(re2: Any) -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def _translate(segment: str) -> str:
    out, at, closers = [], 0, []
    while at < len(segment):
        char = segment[at]
        if char in "?*+@!" and segment[at + 1 : at + 2] == "(" and ")" in segment[at:]:
            if char == "!":
                raise InvalidQuery(f"Groups of the form !(…) are not supported: {segment!r}. Use excludePatterns.")
            out.append("(?:")
            closers.append({"@": ")", "?": ")?", "*": ")*", "+": ")+"}[char])
            at += 2
        elif closers and char in "|)":
            out.append("|" if char == "|" else closers.pop())
            at += 1
        else:
            piece, at = _translate_char(segment, at)
            out.append(piece)
    return "".join(out)


def _translate_char(segment: str, at: int) -> tuple[str, int]:
    char = segment[at]
    if char == "*":
        return ".*", at + 1
    if char == "?":
        return ".", at + 1
    if char == "\\" and at + 1 < len(segment):
        return re.escape(segment[at + 1]), at + 2
    char_class = _CLASS.match(segment, at) if char == "[" else None
    if char_class and char_class[2]:
        return f"[{'^' if char_class[1] else ''}{_class_body(char_class[2])}]", char_class.end()
    return re.escape(char), at + 1


def _class_body(body: str) -> str:
    return "".join(
        part if part.startswith(("[:", "\\")) else part.replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
        for part in re.split(r"(\[:\w+:\]|\\.)", body)
    )


def _expand(pattern: str) -> list[str]:
    """Return every alternative of the pattern's braces."""
    pending, expanded = [pattern], []
    while pending:
        text = pending.pop()
        group = _first_group(text)
        if group is None:
            expanded.append(text)
        else:
            start, end, choices = group
            pending.extend(text[:start] + choice + text[end:] for choice in reversed(choices))
        if len(pending) + len(expanded) > MAX_ALTERNATIVES:
            raise InvalidQuery(f"The braces of a pattern may have at most {MAX_ALTERNATIVES} alternatives.")
    if sum(map(len, expanded)) > MAX_EXPANDED_CHARS:
        raise InvalidQuery(f"The alternatives of a pattern may have {MAX_EXPANDED_CHARS} characters in all.")
    return expanded


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    open_groups: list[tuple[int, list[int]]] = []
    groups: list[tuple[int, int, list[str]]] = []
    for mark in _BRACE.finditer(text):
        if mark[0] == "{":
            open_groups.append((mark.start(), []))
        elif mark[0] == "," and open_groups:
            open_groups[-1][1].append(mark.start())
        elif mark[0] == "}" and open_groups:
            start, commas = open_groups.pop()
            choices = _choices(text, start, commas, mark.start())
            if choices:
                groups.append((start, mark.end(), choices))
    return min(groups, default=None)


def _choices(text: str, start: int, commas: list[int], end: int) -> list[str]:
    if commas:
        edges = [start, *commas, end]
        return [text[left + 1 : right] for left, right in pairwise(edges)]
    bounds = _RANGE.fullmatch(text, start + 1, end)
    if not bounds:
        return []
    if bounds[3]:
        first, last = ord(bounds[3]), ord(bounds[4])
        return [chr(code) for code in _between(first, last)]
    return [str(number) for number in _between(int(bounds[1]), int(bounds[2]))]


def _between(first: int, last: int) -> range:
    step = 1 if last >= first else -1
    return range(first, last + step, step)
