"""Ignore rules: .gitignore and similar files, read through descriptors as a walk descends.

The rules are ripgrep's: the last matching line decides, a deeper file overrides a higher one, and `.rgignore` overrides
`.ignore` overrides `.gitignore` overrides `.git/info/exclude`. An entry is checked by itself, not by the directories
above it: a walk skips an ignored directory, and a caller that names one sees into it.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from holdfast.errors import InvalidQuery
from holdfast.text.glob import Glob

MAX_FILE_BYTES = 4_000_000
MAX_PATTERNS = 5_000
"""Patterns of one file that are used: each may be matched against every name of a tree, and a hostile file can have many."""

_MAX_CACHED_BYTES = 32_768
REPOSITORY = ".git"
_EXCLUDE = (REPOSITORY, "info", "exclude")
_STRONGEST_FIRST = (".rgignore", ".ignore", ".gitignore", "exclude")
_MARKERS = frozenset({".rgignore", ".ignore", ".gitignore", REPOSITORY})
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_GROUP = re.compile(r"([@+!?*])\(")
_WILD = re.compile(r"[*?\[].*[*?\]]|[*?\[]", re.DOTALL)


class NameHints(NamedTuple):
    """A quick check for names that some pattern may match: exact names, suffixes, prefixes, or both ends of a name."""

    names: frozenset[str] = frozenset({REPOSITORY})
    suffixes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()

    def merge(self, other: "NameHints") -> "NameHints":
        """Return the union of both."""
        return NameHints(
            self.names | other.names,
            self.suffixes + other.suffixes,
            self.prefixes + other.prefixes,
            self.edges + other.edges,
        )


@lru_cache(maxsize=64)
def _edges_pattern(edges: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"{re.escape(first)}.*{re.escape(end)}" for first, end in edges), re.DOTALL)


class IgnoreRules:
    """The ignore rules of one directory: its own and those of the directories above.

    With `is_cut` a file had more patterns than are used, so that an ignored entry may be missed.
    """

    __slots__ = ("_above", "_base", "_between", "_files", "_hints", "is_cut")

    def __init__(self, above: "IgnoreRules | None", base: str, files: dict[str, "RuleFile"]) -> None:
        self._above, self._base, self._files = above, base, files
        self.is_cut: bool = (above is not None and above.is_cut) or any(file.is_cut for file in files.values())
        hints = above._hints if above else NameHints()
        for file in files.values():
            hints = hints.merge(file.hints)
        self._hints: NameHints = hints
        self._between = _edges_pattern(hints.edges).fullmatch

    def maybe_ignored(self, entries: Iterable[tuple[str, object]]) -> set[str]:
        """Return the names that `ignores` must decide; all others are not ignored."""
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
        """Return whether an entry is ignored. `folder` is its directory's path, as given to `rules_in`, ending in `/`."""
        for kind in _STRONGEST_FIRST:
            is_ignored = self._decide(kind, folder + name, is_directory)
            if is_ignored is not None:
                return is_ignored
        return False

    def _decide(self, kind: str, path: str, is_directory: bool) -> bool | None:
        rules: IgnoreRules | None = self
        while rules is not None:
            file = rules._files.get(kind)
            is_ignored = file.decide(path[len(rules._base) :], is_directory) if file else None
            if is_ignored is not None:
                return is_ignored
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
    """One pattern, matched against the path from its file, or against the name alone where the pattern has no slash."""

    matches: Callable[[str], bool]
    on_path: bool
    is_negated: bool
    only_directories: bool
    last: str

    @classmethod
    def of(cls, text: str) -> "RuleLine | None":
        """Parse a line; None for an empty line, a comment, or an invalid pattern."""
        body = text.rstrip("\r\n")
        body = body if body.endswith("\\ ") else body.rstrip(" ")
        is_negated = body.startswith("!")
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
        return cls(test, on_path, is_negated, body.endswith("/"), pattern.rpartition("/")[2])


class RuleFile:
    """One parsed ignore file; `is_cut` when it had more patterns or bytes than are used."""

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

    def decide(self, path: str, is_directory: bool) -> bool | None:
        """Return True for ignored, False for included again by a `!` pattern, None when no pattern matches."""
        name = path.rpartition("/")[2]
        for matches, on_path, is_negated, only_directories, _ in self._lines:
            if (is_directory or not only_directories) and matches(path if on_path else name):
                return not is_negated
        return None


def _edges(segment: str) -> tuple[str, str]:
    """Return the literal text before the first wildcard and after the last; both empty when any name may match."""
    if "\\" in segment or "{" in segment:
        return "", ""
    wildcards = _WILD.search(segment)
    return (segment[: wildcards.start()], segment[wildcards.end() :]) if wildcards else (segment, "")


def _read(fd: int, path: tuple[str, ...]) -> RuleFile | None:
    fds: list[int] = []
    try:
        for folder in path[:-1]:
            fd = os.open(folder, _READ | os.O_DIRECTORY, dir_fd=fd)
            fds.append(fd)
        fd = os.open(path[-1], _READ, dir_fd=fd)
        fds.append(fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return _parse(os.read(fd, MAX_FILE_BYTES + 1))
    except OSError:
        pass
    finally:
        for opened_fd in fds:
            with suppress(OSError):
                os.close(opened_fd)
    return None


def _parse(content: bytes) -> RuleFile | None:
    """Parse a file; the result is cached unless the file is large."""
    return _parse_cached(content) if len(content) <= _MAX_CACHED_BYTES else _parse_cached.__wrapped__(content)


@lru_cache(maxsize=256)
def _parse_cached(content: bytes) -> RuleFile | None:
    texts = content[:MAX_FILE_BYTES].decode("utf-8-sig", "replace").split("\n")
    patterns = [text for text in texts if not text.startswith("#") and not text.isspace() and text]
    lines = [line for line in map(RuleLine.of, patterns[:MAX_PATTERNS]) if line is not None]
    is_cut = len(patterns) > MAX_PATTERNS or len(content) > MAX_FILE_BYTES
    return RuleFile(lines, is_cut=is_cut) if lines or is_cut else None
