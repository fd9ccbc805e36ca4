"""Pure: rules for project names and paths: which are valid, and which paths are below, above or next to another.

Paths are compared as bytes. Every character of a path is printable ASCII, so what lies beneath `/d` is the range from
`/d/` up to `/d0` ('0' follows '/'), and nothing lies between a path and the same path with '!' added.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType

from holdfast.errors import InvalidPath, NotFound

StorePath = NewType("StorePath", str)

ROOT = StorePath("")
MAX_PATH_BYTES = 512
_PROJECT = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
_PATH_CHARS = re.compile(r"[\x21-\x7e]+\Z")
_FIRST_CHAR = "!"
_AFTER_SLASH = "0"
_AFTER_ALL = "\x7f"


class PathRange(NamedTuple):
    """Every path from `low` up to, but not including, `high`."""

    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Move:
    """The old and the new path of one file in a rename."""

    source: str
    target: str


def check_project(project: str) -> str:
    """Return the project; InvalidPath when it is not 1 to 128 letters, digits, '_', '-' or '.'."""
    if not _PROJECT.match(project):
        raise InvalidPath(f"project must be 1 to 128 of A-Z a-z 0-9 _ - . and is {_quote(project)}")
    return project


def parse_path(path: str) -> StorePath:
    """Return the path of a file or directory, "" for the root ("/" means it too); InvalidPath says what is wrong."""
    if path in ("", "/"):
        return ROOT
    if not path.startswith("/"):
        raise InvalidPath(f"path must start with '/': {_quote(path)}. Write {_quote(f'/{path}')}.")
    if not _PATH_CHARS.match(path):
        raise InvalidPath(f"path may hold printable ASCII without spaces only: {_quote(path)}")
    if len(path) > MAX_PATH_BYTES:
        raise InvalidPath(f"path must be at most {MAX_PATH_BYTES} bytes and has {len(path)}")
    closed = path + "/"
    if "//" in closed or "/./" in closed or "/../" in closed:
        raise InvalidPath(f"path may not have empty, '.' or '..' components: {_quote(path)}")
    return StorePath(path)


def parse_file_path(path: str) -> StorePath:
    """Return a path that can name a file; InvalidPath for the root as well."""
    checked = parse_path(path)
    if checked == ROOT:
        raise InvalidPath("path must name a file, not the root")
    return checked


def list_ancestors(path: str) -> list[str]:
    """Return every directory above a path, nearest last, without the root."""
    return [path[:at] for at, char in enumerate(path) if char == "/" and at > 0]


def span_beneath(path: str) -> PathRange:
    """Return the span of everything below a directory; of the whole project for the root."""
    return PathRange(path + "/", path + _AFTER_SLASH)


def span_of_path(path: str) -> PathRange:
    """Return the span that holds one path and nothing else."""
    return PathRange(path, path + _FIRST_CHAR)


def span_with_prefix(prefix: str) -> PathRange:
    """Return the span of all paths that begin with a string, which need not be a whole path; empty when none can."""
    if not prefix:
        return span_beneath(ROOT)
    if not _PATH_CHARS.match(prefix):
        return PathRange("", "")
    return PathRange(prefix, prefix + _AFTER_ALL)


def count_components(path: str) -> int:
    """Return the number of components."""
    return path.count("/")


def first_components(path: str, components: int) -> str:
    """Return the first components of a path, or all of a shorter one."""
    at = 0
    for _ in range(components):
        at = path.find("/", at + 1)
        if at < 0:
            return path
    return path[:at]


def next_group_start(path: str, components: int) -> str:
    """Return the least path after this one whose first components differ from its own; SQL calls it `beyond`."""
    head = first_components(path, components)
    return path + _FIRST_CHAR if head == path else head + _AFTER_SLASH


def uncovered_directories(directory: str, last: str) -> list[str]:
    """Return paths that may be directories which sort before the last path although all their files come after it.

    `/a` sorts before `/a-b`, and `/a/x` after it. Only a prefix of the last path, cut before a character less than
    '/', can be such a directory.
    """
    first = len(directory) + 2
    return [last[:at] for at in range(first, len(last)) if last[at] < "/" and last[at - 1] != "/"]


def plan_moves(source: str, target: str, paths: Iterable[str]) -> list[Move]:
    """Return where each path beneath the source goes; InvalidPath when one would become too long."""
    moves = [Move(path, target + path[len(source) :]) for path in paths]
    for move in moves:
        if len(move.target) > MAX_PATH_BYTES:
            raise InvalidPath(
                f"the rename would make a path of {len(move.target)} bytes; the limit is {MAX_PATH_BYTES}: {_quote(move.source)}"
            )
    return moves


def list_target_directories(moves: Sequence[Move]) -> list[str]:
    """Return every directory that the targets of a rename need, each once, in order."""
    return sorted({above for move in moves for above in list_ancestors(move.target)})


def path_not_found(path: str) -> NotFound:
    """Return the one error for a path where nothing is."""
    return NotFound(f"there is no such path: {path}")


def _quote(value: str) -> str:
    return ascii(value if len(value) <= 80 else value[:80] + "…")
