"""What .gitignore and its kin leave out, read through descriptors as a walk goes down.

The rules are ripgrep's: the last line that matches decides, a deeper file beats a higher one, and `.rgignore` beats
`.ignore` beats `.gitignore` beats `.git/info/exclude`. An entry is judged by itself, not by the directories above it:
whoever walks leaves an ignored directory out, and whoever names one sees into it.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from holdfast.errors import InvalidQuery
from holdfast.folders.finding.glob import Glob

MAX_FILE_BYTES = 4_000_000
MAX_PATTERNS = 5_000
"""Patterns of one file that count: each may be held against every name of a tree, and a hostile file can have many."""

_KEPT_BYTES = 32_768
REPOSITORY = ".git"
_EXCLUDE = (REPOSITORY, "info", "exclude")
_STRONGEST_FIRST = (".rgignore", ".ignore", ".gitignore", "exclude")
_MARKERS = frozenset({".rgignore", ".ignore", ".gitignore", REPOSITORY})
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_GROUP = re.compile(r"([@+!?*])\(")
_WILD = re.compile(r"[*?\[].*[*?\]]|[*?\[]", re.DOTALL)


class NameHints(NamedTuple):
    """A quick test that lets most names through: what no line of any file can match."""

    names: frozenset[str] = frozenset({REPOSITORY})
    suffixes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()

    def joined(self, other: "NameHints") -> "NameHints":
        """Return the hints of both."""
        return NameHints(
            self.names | other.names,
            self.suffixes + other.suffixes,
            self.prefixes + other.prefixes,
            self.edges + other.edges,
        )


@lru_cache(maxsize=64)
def _pattern(edges: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"{re.escape(first)}.*{re.escape(end)}" for first, end in edges), re.DOTALL)


class IgnoreRules:
    """The rules that hold in one directory: its own and those from above.

    `is_cut` says that a file had more of them than count, so that something may be let through that it leaves out.
    """

    __slots__ = ("_above", "_base", "_between", "_files", "_hints", "is_cut")

    def __init__(self, above: "IgnoreRules | None", base: str, files: dict[str, "RuleFile"]) -> None:
        self._above, self._base, self._files = above, base, files
        self.is_cut: bool = (above is not None and above.is_cut) or any(file.is_cut for file in files.values())
        hints = above._hints if above else NameHints()
        for file in files.values():
            hints = hints.joined(file.hints)
        self._hints: NameHints = hints
        self._between = _pattern(hints.edges).fullmatch

    def doubtful(self, entries: Iterable[tuple[str, object]]) -> set[str]:
        """Return the names that must be judged by `ignores`; all others are let through."""
        names, suffixes, prefixes, edges = self._hints
        between = self._between
        if not (suffixes or prefixes or edges):
            return {name for name, _ in entries if name in names}
        return {
            name
            for name, _ in entries
            if name in names or name.endswith(suffixes) or name.startswith(prefixes) or (edges and between(name))
        }

    def ignores(self, folder: str, name: str, *, is_directory: bool) -> bool:
        """Return whether an entry is left out. `folder` is its directory's path, as given to `rules_in`, ending in `/`."""
        for kind in _STRONGEST_FIRST:
            verdict = self._verdict(kind, folder + name, is_directory)
            if verdict is not None:
                return verdict
        return False

    def _verdict(self, kind: str, path: str, is_directory: bool) -> bool | None:
        rules: IgnoreRules | None = self
        while rules is not None:
            file = rules._files.get(kind)
            verdict = file.verdict(path[len(rules._base) :], is_directory) if file else None
            if verdict is not None:
                return verdict
            rules = rules._above
        return None


NO_RULES = IgnoreRules(None, "", {})


def rules_in(rules: IgnoreRules, fd: int, folder: str, names: Collection[str]) -> IgnoreRules:
    """Return the rules of a directory, given those of its parent, its descriptor, its path and the names in it."""
    present = _MARKERS.intersection(names)
    if not present:
        return rules
    files = {name: file for name in present - {REPOSITORY} if (file := _read(fd, (name,)))}
    if REPOSITORY in present and (file := _read(fd, _EXCLUDE)):
        files["exclude"] = file
    return IgnoreRules(rules, folder, files) if files else rules


class RuleLine(NamedTuple):
    """One pattern: a test on the path from its file, or on the name alone where it holds no slash; and what a match means."""

    matches: Callable[[str], bool]
    on_path: bool
    takes_back: bool
    only_directories: bool
    last: str

    @classmethod
    def of(cls, text: str) -> "RuleLine | None":
        """Parse a line; None for an empty one, a comment, and one that means nothing."""
        body = text.rstrip("\r\n")
        body = body if body.endswith("\\ ") else body.rstrip(" ")
        takes_back = body.startswith("!")
        body = body.removeprefix("!")
        pattern = body.rstrip("/")
        if not pattern or text.startswith("#"):
            return None
        on_path = "/" in pattern
        escaped = _GROUP.sub(r"\1\\(", pattern.removeprefix("/"))
        try:
            glob = Glob(f"\\{escaped}" if escaped.startswith("!") else escaped)
        except InvalidQuery:
            return None
        test = glob.matches if on_path else glob.start.matches
        return cls(test, on_path, takes_back, body.endswith("/"), pattern.rpartition("/")[2])


class RuleFile:
    """One parsed file; `is_cut` when it had more patterns or bytes than count."""

    __slots__ = ("_lines", "hints", "is_cut")

    def __init__(self, lines: list[RuleLine], *, is_cut: bool = False) -> None:
        self._lines = lines[::-1]
        self.is_cut = is_cut
        names, suffixes, prefixes, edges = set(), [], [], []
        for last in [line.last for line in lines]:
            first, end = _edges(last)
            if first == last:
                names.add(last)
            elif first and end:
                edges.append((first, end))
            elif first:
                prefixes.append(first)
            else:
                suffixes.append(end)
        self.hints = NameHints(frozenset(names), tuple(suffixes), tuple(prefixes), tuple(edges))

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Return True for ignored, False for taken back in, None when no line speaks of it."""
        name = path.rpartition("/")[2]
        for matches, on_path, takes_back, only_directories, _ in self._lines:
            if (is_directory or not only_directories) and matches(path if on_path else name):
                return not takes_back
        return None


def _edges(segment: str) -> tuple[str, str]:
    """Return the plain text before the first wildcard and after the last; both empty when any name may match."""
    if "\\" in segment or "{" in segment:
        return "", ""
    found = _WILD.search(segment)
    return (segment[: found.start()], segment[found.end() :]) if found else (segment, "")


def _read(fd: int, path: tuple[str, ...]) -> RuleFile | None:
    opened: list[int] = []
    try:
        for folder in path[:-1]:
            fd = os.open(folder, _READ | os.O_DIRECTORY, dir_fd=fd)
            opened.append(fd)
        fd = os.open(path[-1], _READ, dir_fd=fd)
        opened.append(fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return _parse(os.read(fd, MAX_FILE_BYTES + 1))
    except OSError:
        pass
    finally:
        for each in opened:
            with suppress(OSError):
                os.close(each)
    return None


def _parse(content: bytes) -> RuleFile | None:
    """Parse a file; what an ordinary one gave is kept, and a large one is not worth its memory."""
    return _kept(content) if len(content) <= _KEPT_BYTES else _kept.__wrapped__(content)


@lru_cache(maxsize=256)
def _kept(content: bytes) -> RuleFile | None:
    texts = content[:MAX_FILE_BYTES].decode("utf-8-sig", "replace").split("\n")
    patterns = [text for text in texts if not text.startswith("#") and not text.isspace() and text]
    lines = [line for line in map(RuleLine.of, patterns[:MAX_PATTERNS]) if line is not None]
    is_cut = len(patterns) > MAX_PATTERNS or len(content) > MAX_FILE_BYTES
    return RuleFile(lines, is_cut=is_cut) if lines or is_cut else None
