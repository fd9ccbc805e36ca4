"""Searches file contents with ripgrep: by path where the kernel can confine it, otherwise through descriptors of a walk."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.errors import TimedOut
from holdfast.folders.children.confine import Child, ChildStalled, can_confine, run_child
from holdfast.folders.finding.ripgrep import FileMatches, GrepQuery, RipgrepParser, pattern_error, ripgrep_path
from holdfast.folders.finding.walk import EntryType, IgnoreChecker, PathKey, Walk, WalkFolder, WalkStart, path_key
from holdfast.folders.service import Folders
from holdfast.text.display import quantity
from holdfast.text.glob import Glob

BATCH_FILES = 256
UNSORTED_MATCHES = 2_000
_FIRST_SECONDS = 0.012
"""Time that a search in path order may take before all cores are used: a fifth of what 20,000 files take."""
_ENOUGH_BYTES = 16_000_000
_MEMORY_BYTES = 1 << 30
"""Memory limit of one ripgrep: it holds a whole line, and a file may be one line of any length."""
_IDLE_SECONDS = 2.0
_PROGRESS_SECONDS = 0.5
_FAILED = 2

After = tuple[PathKey, int]
"""File and line of the last match on the page before."""


@dataclass(slots=True)
class GrepResult:
    """The files with matches, in path order.

    `is_cut`: there were more matches than wanted. `timed_out`: the time limit ended the search. `crashed`: some file
    killed ripgrep.
    """

    files: list[FileMatches] = field(default_factory=list)
    is_cut: bool = False
    timed_out: bool = False
    crashed: bool = False


class Grep:
    """One search, which ends once it has `max_matches`, not counting those up to `after`."""

    def __init__(self, folders: Folders, call: Call, query: GrepQuery, max_matches: int, after: After | None) -> None:
        self._jail = folders.jail
        self._outer = call
        self._call = call.within(folders.settings.search_seconds)
        self._query, self._max_matches, self._after = query, max_matches, after
        self._filter = GlobFilter(query.glob)
        self._started_at = self._reported_at = time.monotonic()

    def search_directory(self, start: WalkStart) -> GrepResult:
        """Search a directory and everything below it."""
        may_hide = self._jail.policy_in(start.root, start.folder) is not None
        if can_confine() and not start.root.walk_only and not may_hide:
            # ripgrep blocks for ever on an ignore file that is a FIFO; the walk opens nothing that can block.
            with suppress(ChildStalled):
                return self._search_by_path(start)
        return self._search_by_walk(start)

    def search_file(self, fd: int, name: str) -> GrepResult:
        """Search one open file, which is reported under the given name."""
        return self._search_open_files([(fd, name)], self._max_matches)

    def _search_by_path(self, start: WalkStart) -> GrepResult:
        """Search in path order for a moment, which is enough for small trees and common words; then on all cores, and sort.

        When that finds too many matches, search in path order and stop at `max_matches`.
        """
        result = self._run_by_path(start, ["--sort=path"], self._max_matches, self._call.within(_FIRST_SECONDS))
        if not result.timed_out:
            return result
        limit = max(UNSORTED_MATCHES, 2 * self._max_matches)
        result = self._run_by_path(start, [f"--max-count={limit}"], limit)
        if result.is_cut:
            return self._run_by_path(start, ["--sort=path"], self._max_matches)
        result.files.sort(key=lambda matches: path_key(matches.relative))
        return result

    def _run_by_path(
        self, start: WalkStart, options: Sequence[str], enough: int, call: Call | None = None
    ) -> GrepResult:
        checker = IgnoreChecker(self._jail, start) if self._query.glob and not self._query.include_ignored else None

        def admit(relative: str) -> int | None:
            return None if checker and checker.ignores(relative) else self._line_after(path_key(relative))

        argv = self._query.arguments(options, ["."])
        child = Child(
            argv, [start.root.fd], [ripgrep_path()], start.fd, memory_bytes=_MEMORY_BYTES, idle_seconds=_IDLE_SECONDS
        )
        return self._run(child, RipgrepParser(admit), enough, call)

    def _search_by_walk(self, start: WalkStart) -> GrepResult:
        result = GrepResult()
        ignore = not self._query.include_ignored
        walk = Walk(self._jail, self._call, start, ignore=ignore, seconds=self._call.remaining())
        batch: list[tuple[int, str]] = []
        try:
            for folder, entries in walk:
                for name in self._files_to_search(walk, folder, entries):
                    fd = walk.open_file(folder, name)
                    if fd is not None:
                        batch.append((fd, folder.relative + name))
                    if len(batch) >= BATCH_FILES and self._search_batch(result, batch):
                        return result
            self._search_batch(result, batch)
        except TimedOut:
            self._outer.check()
            result.timed_out = True
        finally:
            _close_all(batch)
        result.timed_out |= walk.timed_out
        return result

    def _files_to_search(self, walk: Walk, folder: WalkFolder, entries: Sequence[tuple[str, EntryType]]) -> list[str]:
        """Return the files of a run that are to be searched; prune a directory that is not."""
        relative = folder.relative
        name, kind = entries[-1]
        if kind is EntryType.DIRECTORY and (
            self._filter.excludes(relative + name) or self._is_before_cursor(path_key(relative + name))
        ):
            walk.prune()
        return [
            name
            for name, kind in entries
            if kind is EntryType.FILE
            and self._filter.includes(relative + name)
            and self._line_after(path_key(relative + name)) is not None
        ]

    def _search_batch(self, result: GrepResult, batch: list[tuple[int, str]]) -> bool:
        """Search the open files of a batch, close them, and return whether there are enough matches."""
        if batch:
            more = self._search_open_files(batch, self._max_matches - sum(len(file.matches) for file in result.files))
            result.files += more.files
            result.is_cut, result.timed_out = more.is_cut, more.timed_out
            result.crashed |= more.crashed
            _close_all(batch)
        return result.is_cut or result.timed_out

    def _search_open_files(self, files: Sequence[tuple[int, str]], enough: int) -> GrepResult:
        """Search files by their descriptors, which are all that the child can open."""
        paths = {f"/dev/fd/{fd}": relative for fd, relative in files}
        fds = [fd for fd, _ in files]
        argv = self._query.arguments(["--threads=1"], list(paths))
        child = Child(argv, fds, [ripgrep_path()], pass_fds=fds, memory_bytes=_MEMORY_BYTES)
        parser = RipgrepParser(
            lambda relative: self._line_after(path_key(relative)),
            {path.encode(): relative for path, relative in paths.items()},
        )
        return self._run(child, parser, enough)

    def _run(self, child: Child, parser: RipgrepParser, enough: int, call: Call | None = None) -> GrepResult:
        output_bytes = 0

        def is_enough(piece: bytes) -> bool:
            nonlocal output_bytes
            output_bytes += len(piece)
            parser.feed(piece)
            return parser.matches >= enough or output_bytes > _ENOUGH_BYTES

        result = GrepResult()
        try:
            ended = run_child(
                call or self._call, child, enough=is_enough, while_running=lambda: self._report_progress(parser)
            )
        except TimedOut:
            self._outer.check()
            result.timed_out = True
        else:
            result.is_cut = ended.stopped
            result.crashed = ended.status < 0
            if ended.status == _FAILED and ended.stderr and not ended.stopped:
                raise pattern_error(ended.stderr)
        result.files = [file for file in parser.files if file.matches]
        return result

    def _report_progress(self, parser: RipgrepParser) -> None:
        now = time.monotonic()
        if now - self._reported_at > _PROGRESS_SECONDS:
            self._reported_at = now
            seconds = round(now - self._started_at, 1)
            self._outer.progress(seconds, None, f"{seconds:g} s, {quantity(parser.matches, 'match', 'matches')}")

    def _line_after(self, key: PathKey) -> int | None:
        """Return the line of a file after which matches are wanted, None for a file of an earlier page."""
        if self._after is None or key > self._after[0]:
            return 0
        return self._after[1] if key == self._after[0] else None

    def _is_before_cursor(self, directory: PathKey) -> bool:
        return self._after is not None and directory < self._after[0][: len(directory)]


class GlobFilter:
    """Ripgrep's `--glob` for files searched by descriptor: `!` excludes, a pattern without `/` holds at any depth."""

    def __init__(self, pattern: str | None) -> None:
        text = pattern or ""
        self._is_exclusion = text.startswith("!")
        body = text.removeprefix("!").rstrip("/")
        self._only_directories = text.endswith("/")
        anchored = body.removeprefix("/") if "/" in body else f"**/{body}"
        self._glob = Glob(anchored) if body else None

    def includes(self, relative: str) -> bool:
        """Return whether a file is to be searched."""
        if self._glob is None:
            return True
        return (self._glob.matches(relative) and not self._only_directories) is not self._is_exclusion

    def excludes(self, relative: str) -> bool:
        """Return whether a directory is to be skipped."""
        return self._is_exclusion and self._glob is not None and self._glob.matches(relative)


def _close_all(files: list[tuple[int, str]]) -> None:
    while files:
        os.close(files.pop()[0])
