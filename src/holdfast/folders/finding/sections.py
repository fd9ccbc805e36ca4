"""Pure: the end of the section around a line, so that an agent knows how far to read.

A section ends before the next line that matches a section pattern, or at the end of the file.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from holdfast.errors import InvalidQuery

HEADINGS = (r"^#{1,6}\s",)
DEFINITIONS = (
    (
        r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async|unsafe)\s+)*"
        r"(?:def|class|function|func|fn|impl|trait|interface|struct|enum|module|namespace|mod)\b"
    ),
    r"^\[[^\]]+\]\s*$",
)
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".org")


def default_patterns(path: str) -> Sequence[str]:
    """Return the section patterns for a file by its suffix: headings for prose, definitions for anything else."""
    return HEADINGS if path.lower().endswith(_PROSE) else DEFINITIONS


def compile_patterns(patterns: Sequence[str]) -> Any:
    """Compile patterns for a linear-time search over a file's bytes. InvalidQuery when one is not valid."""
    return _compile_cached(tuple(patterns))


@lru_cache(maxsize=32)
def _compile_cached(patterns: tuple[str, ...]) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    for pattern in patterns:
        try:
            re2.compile(pattern.encode(), options)
        except (re2.error, UnicodeEncodeError):
            raise InvalidQuery(f"This section pattern cannot be used: {pattern[:200]!r}") from None
    return re2.compile("|".join(f"(?m:{pattern})" for pattern in patterns).encode(), options)


def section_ends(content: bytes, lines: Sequence[int], pattern: Any, *, is_whole: bool) -> dict[int, int]:
    """Return the last line of the section of each given line, lines ascending and counted from 1.

    Unless `is_whole`, the content is only the start of a file, and sections that go beyond it are left out.
    """
    ends: dict[int, int] = {}
    beyond = _line_count(content) + 1
    line, at, next_start = 1, 0, 0
    for wanted_line in lines:
        while line <= wanted_line and at < len(content):
            at = content.find(b"\n", at) + 1 or len(content)
            line += 1
        if next_start <= wanted_line:
            next_start = _next_start(content, at, line, pattern) or beyond
        if next_start == beyond and not is_whole:
            break
        ends[wanted_line] = max(wanted_line, next_start - 1)
    return ends


def _next_start(content: bytes, at: int, line: int, pattern: Any) -> int:
    """Return the number of the next line that begins a section, 0 when there is none; `line` begins at `at`."""
    match = pattern.search(content, at)
    return line + content.count(b"\n", at, max(match.start(), match.end() - 1)) if match else 0


def _line_count(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n"))
