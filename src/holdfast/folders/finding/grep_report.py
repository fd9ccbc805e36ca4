"""Renders the answer of a content search: matches with context by file, and the sections around them."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.call import Call
from holdfast.errors import NotDirectory
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.empty_search import explain_file_without_match, explain_no_content
from holdfast.folders.finding.grep import After, Grep, GrepResult
from holdfast.folders.finding.ripgrep import FileMatches, GrepLine, GrepQuery
from holdfast.folders.finding.sections import compile_patterns, default_patterns, section_ends
from holdfast.folders.finding.walk import WalkStart, open_beneath, open_regular, open_start, path_key
from holdfast.folders.service import Folders
from holdfast.text.budget import Page, decode_cursor, invalid_cursor, more_notice
from holdfast.text.display import display_name

NO_MATCHES = "No matches found."
SECTION_BYTES = 4_000_000
_TOKENS_PER_SECTION = 3

Content = Callable[[str], tuple[bytes, bool] | None]
"""Takes a file's path; returns the start of the file and whether that is all of it, None when it cannot be read."""


def grep_content(
    folders: Folders,
    call: Call,
    path: str,
    query: GrepQuery,
    *,
    max_results: int = 200,
    section_patterns: Sequence[str] = (),
    cursor: str | None = None,
) -> str:
    """Return the matches in a file or beneath a directory, up to the limits, and a cursor when there are more.

    When there are none, the text may say where else the caller can look.
    """
    jail = folders.jail
    report = GrepReport(folders.settings.max_answer_tokens, max_results, section_patterns)
    grep = Grep(folders, call, query, max_results + 1, _cursor_position(cursor))
    seconds = folders.settings.search_seconds
    try:
        with open_start(jail, path, ignore=not query.include_ignored) as start:
            prefix = start.folder if start.root is jail.roots[0] else f"{start.path.rstrip('/')}/"
            text = report.text(
                grep.search_directory(start), prefix, lambda relative: _read_beneath(jail, start, relative), seconds
            )
        hint = explain_no_content(folders, call, path, query) if text == NO_MATCHES and cursor is None else ""
    except NotDirectory:
        with jail.open_file(path) as file:
            *above, name = _shown_parts(jail, path)
            prefix = "".join(f"{part}/" for part in above)
            text = report.text(grep.search_file(file.fd, name), prefix, lambda _: _read_start(file.fd), seconds)
            hint = explain_file_without_match(file.fd, name) if text == NO_MATCHES else ""
    return "\n".join(filter(None, (text, hint)))


class GrepReport:
    """One page of matches."""

    def __init__(self, max_tokens: int, max_results: int, section_patterns: Sequence[str]) -> None:
        self._page = Page(max_tokens)
        self._left = max_results
        self._own_pattern = compile_patterns(section_patterns) if section_patterns else None
        self._last: dict[str, Any] | None = None

    def text(self, result: GrepResult, prefix: str, content: Content, seconds: float) -> str:
        """Return the page; `prefix` stands before every path, `content` reads a file for its sections."""
        is_full = False
        for file in result.files:
            numbers, is_full = self._add(f"File: {display_name(prefix + file.relative)}", file)
            if numbers:
                self._last = {"path": file.relative, "line": numbers[-1]}
                self._page.lines += [*self._sections(file.relative, numbers, content), ""]
            if is_full:
                break
        if self._page.lines and not self._page.lines[-1]:
            self._page.lines.pop()
        return self._page.text(*self._notices(result, seconds, is_full=is_full)) or NO_MATCHES

    def _notices(self, result: GrepResult, seconds: float, *, is_full: bool) -> Iterator[str]:
        if self._last is None and (result.is_cut or result.timed_out or result.crashed):
            yield NO_MATCHES
        if result.crashed:
            yield "[A file with a very long line ended the search; matches may be missing. Narrow search_path or glob.]"
        if result.timed_out:
            yield f"[Stopped after {seconds:g} s; matches may be missing. Narrow search_path or glob.]"
        if is_full or result.is_cut:
            yield (
                more_notice(self._last)
                if self._last
                else "[There is too much output to search. Narrow search_path or glob.]"
            )

    def _add(self, header: str, file: FileMatches) -> tuple[list[int], bool]:
        """Add the lines that fit; return the line numbers of the matches that were added, and whether the page is full."""
        page, numbers = self._page, list[int]()
        complete = len(page.lines)
        page.add(header)
        for group in _groups(file.lines):
            has_match = False
            if numbers:
                page.add("--")
            for line in group:
                if self._left == 0 or not page.add(f"{line.number}{':' if line.is_match else '-'}{line.text}"):
                    del page.lines[complete:]
                    return (numbers, True) if numbers or self._last else (self._force(header, file), True)
                has_match |= line.is_match
                if line.is_match:
                    numbers.append(line.number)
                    self._left -= 1
                    page.left -= _TOKENS_PER_SECTION
                if has_match:
                    complete = len(page.lines)
        return numbers, False

    def _force(self, header: str, file: FileMatches) -> list[int]:
        """Add one match without context though it does not fit, so that every page makes progress."""
        first = next(line for line in file.lines if line.is_match)
        self._page.lines += [header, f"{first.number}:{first.text}"]
        return [first.number]

    def _sections(self, relative: str, numbers: Sequence[int], content: Content) -> list[str]:
        """Return the line that gives each section: its first match and its last line."""
        read = content(relative)
        if read is None or b"\0" in read[0][:1024]:
            return []
        pattern = self._own_pattern or compile_patterns(default_patterns(relative))
        ends = section_ends(read[0], numbers, pattern, is_whole=read[1])
        first_of: dict[int, int] = {}
        for number, end in ends.items():
            first_of.setdefault(end, number)
        return [f"[sections: {', '.join(f'{first}..{end}' for end, first in first_of.items())}]"] if first_of else []


def _groups(lines: Sequence[GrepLine]) -> Iterator[list[GrepLine]]:
    """Yield the runs of consecutive lines that hold a match."""
    group: list[GrepLine] = []
    for line in lines:
        if group and line.number != group[-1].number + 1:
            yield from [group] if any(line.is_match for line in group) else []
            group = []
        group.append(line)
    if any(line.is_match for line in group):
        yield group


def _cursor_position(cursor: str | None) -> After | None:
    if cursor is None:
        return None
    state = decode_cursor(cursor)
    path, line = state.get("path"), state.get("line")
    if not isinstance(path, str) or not isinstance(line, int):
        raise invalid_cursor()
    return path_key(path), line


def _shown_parts(jail: Jail, path: str) -> Sequence[str]:
    root, parts = jail.locate(path)
    return parts if root is jail.roots[0] else (root.path.rstrip("/"), *parts)


def _read_beneath(jail: Jail, start: WalkStart, relative: str) -> tuple[bytes, bool] | None:
    folder, _, name = relative.rpartition("/")
    parent = open_beneath(jail, start, f"{folder}/" if folder else "")
    if parent is None:
        return None
    fd = open_regular(parent, name)
    os.close(parent)
    if fd is None:
        return None
    try:
        return _read_start(fd)
    finally:
        os.close(fd)


def _read_start(fd: int) -> tuple[bytes, bool] | None:
    try:
        content = os.pread(fd, SECTION_BYTES, 0)
    except OSError:
        return None
    return content, len(content) < SECTION_BYTES
