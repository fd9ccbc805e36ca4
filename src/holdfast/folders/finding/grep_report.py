"""The answer of a content search: matches and their context by file, and how far the sections go that they stand in."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.call import Call
from holdfast.errors import NotDirectory
from holdfast.folders.access.jail import Jail
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
"""Told a file's path, it returns the file's start and whether that is all of it; None when it cannot be read."""


def grep_content(
    folders: Folders,
    call: Call,
    path: str,
    question: GrepQuery,
    *,
    max_results: int = 200,
    section_patterns: Sequence[str] = (),
    cursor: str | None = None,
) -> str:
    """Return the matches in a file, or in everything beneath a directory, up to the limits; and how to go on."""
    jail = folders.jail
    report = GrepReport(folders.settings.max_answer_tokens, max_results, section_patterns)
    grep = Grep(folders, call, question, max_results + 1, _after_of(cursor))
    seconds = folders.settings.search_seconds
    try:
        with open_start(jail, path, ignore=not question.include_ignored) as start:
            prefix = start.folder if start.root is jail.roots[0] else f"{start.path.rstrip('/')}/"
            return report.text(
                grep.beneath(start), prefix, lambda relative: _content_beneath(jail, start, relative), seconds
            )
    except NotDirectory:
        with jail.open_file(path) as file:
            *above, name = _shown_parts(jail, path)
            prefix = "".join(f"{part}/" for part in above)
            return report.text(grep.file(file.fd, name), prefix, lambda _: _content(file.fd), seconds)


class GrepReport:
    """Fills one page with matches."""

    def __init__(self, max_tokens: int, max_results: int, section_patterns: Sequence[str]) -> None:
        self._page = Page(max_tokens)
        self._left = max_results
        self._own_pattern = compile_patterns(section_patterns) if section_patterns else None
        self._last: dict[str, Any] | None = None

    def text(self, found: GrepResult, prefix: str, content: Content, seconds: float) -> str:
        """Return the page; `prefix` stands before every path, `content` reads a file for its sections."""
        is_full = False
        for hits in found.files:
            numbers, is_full = self._add(f"File: {display_name(prefix + hits.relative)}", hits)
            if numbers:
                self._last = {"path": hits.relative, "line": numbers[-1]}
                self._page.lines += [*self._sections(hits.relative, numbers, content), ""]
            if is_full:
                break
        if self._page.lines and not self._page.lines[-1]:
            self._page.lines.pop()
        return self._page.text(*self._notices(found, seconds, is_full=is_full)) or NO_MATCHES

    def _notices(self, found: GrepResult, seconds: float, *, is_full: bool) -> Iterator[str]:
        if self._last is None and (found.is_cut or found.ran_out or found.broke_down):
            yield NO_MATCHES
        if found.broke_down:
            yield "[A file with an enormous line ended the search; matches may be missing. Narrow search_path or glob.]"
        if found.ran_out:
            yield f"[Stopped after {seconds:g} s; matches may be missing. Narrow search_path or glob.]"
        if is_full or found.is_cut:
            yield (
                more_notice(self._last)
                if self._last
                else "[There is too much to look through. Narrow search_path or glob.]"
            )

    def _add(self, header: str, hits: FileMatches) -> tuple[list[int], bool]:
        """Add what there is room for; return the lines of the matches that were added, and whether the page is full."""
        page, numbers = self._page, list[int]()
        kept = len(page.lines)
        page.add(header)
        for group in _groups(hits.lines):
            has_match = False
            if numbers:
                page.add("--")
            for line in group:
                if self._left == 0 or not page.add(f"{line.number}{':' if line.is_match else '-'}{line.text}"):
                    del page.lines[kept:]
                    return (numbers, True) if numbers or self._last else (self._force(header, hits), True)
                has_match |= line.is_match
                if line.is_match:
                    numbers.append(line.number)
                    self._left -= 1
                    page.left -= _TOKENS_PER_SECTION
                if has_match:
                    kept = len(page.lines)
        return numbers, False

    def _force(self, header: str, hits: FileMatches) -> list[int]:
        """Add one match without its context, where even that does not fit, so that every page goes on."""
        first = next(line for line in hits.lines if line.is_match)
        self._page.lines += [header, f"{first.number}:{first.text}"]
        return [first.number]

    def _sections(self, relative: str, numbers: Sequence[int], content: Content) -> list[str]:
        """Return the line that says from which match to which line each section goes."""
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
    """Return the runs of neighbouring lines that hold a match."""
    group: list[GrepLine] = []
    for line in lines:
        if group and line.number != group[-1].number + 1:
            yield from [group] if any(each.is_match for each in group) else []
            group = []
        group.append(line)
    if any(each.is_match for each in group):
        yield group


def _after_of(cursor: str | None) -> After | None:
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


def _content_beneath(jail: Jail, start: WalkStart, relative: str) -> tuple[bytes, bool] | None:
    folder, _, name = relative.rpartition("/")
    parent = open_beneath(jail, start.fd, f"{folder}/" if folder else "")
    if parent is None:
        return None
    fd = open_regular(parent, name)
    os.close(parent)
    if fd is None:
        return None
    try:
        return _content(fd)
    finally:
        os.close(fd)


def _content(fd: int) -> tuple[bytes, bool] | None:
    try:
        content = os.pread(fd, SECTION_BYTES, 0)
    except OSError:
        return None
    return content, len(content) < SECTION_BYTES
