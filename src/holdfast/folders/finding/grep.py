"""Finding text in files with ripgrep: by path where the kernel can lock it in, else fed with open files by a walk."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.errors import TimedOut
from holdfast.folders.children.confine import Child, ChildStalled, can_confine, run_child
from holdfast.folders.finding.glob import Glob
from holdfast.folders.finding.ripgrep import FileMatches, GrepQuery, RipgrepParser, pattern_error, ripgrep_path
from holdfast.folders.finding.walk import EntryType, IgnoreChecker, PathKey, Walk, WalkFolder, WalkStart, path_key
from holdfast.folders.service import Folders

BATCH_FILES = 256
UNSORTED_MATCHES = 2_000
_FIRST_SECONDS = 0.012
"""How long a search in order may take before all cores are put to it: as long as a fifth of what 20,000 files take."""
_ENOUGH_BYTES = 16_000_000
_MEMORY_BYTES = 1 << 30
"""What one ripgrep may take: it holds a line whole, and a file may be one line of any length."""
_IDLE_SECONDS = 2.0
_PROGRESS_SECONDS = 0.5
_FAILED = 2

After = tuple[PathKey, int]
"""The file and the line of the last match that was shown before."""


@dataclass(slots=True)
class GrepResult:
    """The files with matches in the order of their paths.

    `is_cut` says that there were enough, `ran_out` that time was over, `broke_down` that ripgrep died of some file.
    """

    files: list[FileMatches] = field(default_factory=list)
    is_cut: bool = False
    ran_out: bool = False
    broke_down: bool = False


class Grep:
    """One search. `wanted` is the number of matches that is enough, those up to `after` not counted."""

    def __init__(self, folders: Folders, call: Call, question: GrepQuery, wanted: int, after: After | None) -> None:
        self._jail = folders.jail
        self._outer = call
        self._call = call.within(folders.settings.search_seconds)
        self._question, self._wanted, self._after = question, wanted, after
        self._filter = GlobFilter(question.glob)
        self._began_at = self._told_at = time.monotonic()

    def beneath(self, start: WalkStart) -> GrepResult:
        """Search a directory and everything below it."""
        if can_confine() and not start.root.walk_only:
            # ripgrep waits for ever on an ignore file that is a FIFO; the walk opens nothing that can wait.
            with suppress(ChildStalled):
                return self._by_path(start)
        return self._by_walk(start)

    def file(self, fd: int, name: str) -> GrepResult:
        """Search one open file, to be shown under the given name."""
        return self._fed([(fd, name)], self._wanted)

    def _by_path(self, start: WalkStart) -> GrepResult:
        """Search in order for a moment, which is enough for small trees and common words; then on all cores, and sort.

        Where that gives too much, search in order and stop when it is enough.
        """
        found = self._by_path_once(start, ["--sort=path"], self._wanted, self._call.within(_FIRST_SECONDS))
        if not found.ran_out:
            return found
        many = max(UNSORTED_MATCHES, 2 * self._wanted)
        found = self._by_path_once(start, [f"--max-count={many}"], many)
        if found.is_cut:
            return self._by_path_once(start, ["--sort=path"], self._wanted)
        found.files.sort(key=lambda hits: path_key(hits.relative))
        return found

    def _by_path_once(
        self, start: WalkStart, options: Sequence[str], enough: int, call: Call | None = None
    ) -> GrepResult:
        judge = IgnoreChecker(self._jail, start) if self._question.glob and not self._question.include_ignored else None

        def admit(relative: str) -> int | None:
            return None if judge and judge.ignores(relative) else self._line_after(path_key(relative))

        argv = self._question.arguments(options, ["."])
        child = Child(
            argv, [start.root.fd], [ripgrep_path()], start.fd, memory_bytes=_MEMORY_BYTES, idle_seconds=_IDLE_SECONDS
        )
        return self._run(child, RipgrepParser(admit), enough, call)

    def _by_walk(self, start: WalkStart) -> GrepResult:
        found = GrepResult()
        ignore = not self._question.include_ignored
        walk = Walk(self._jail, self._call, start, ignore=ignore, seconds=self._call.remaining())
        batch: list[tuple[int, str]] = []
        try:
            for folder, entries in walk:
                for name in self._to_search(walk, folder, entries):
                    fd = walk.open_file(folder, name)
                    if fd is not None:
                        batch.append((fd, folder.relative + name))
                    if len(batch) >= BATCH_FILES and self._search_batch(found, batch):
                        return found
            self._search_batch(found, batch)
        except TimedOut:
            self._outer.check()
            found.ran_out = True
        finally:
            _close_all(batch)
        found.ran_out |= walk.ran_out
        return found

    def _to_search(self, walk: Walk, folder: WalkFolder, entries: Sequence[tuple[str, EntryType]]) -> list[str]:
        """Return the files of a run that are to be searched, and keep the walk out of a directory that is not."""
        relative = folder.relative
        name, kind = entries[-1]
        if kind is EntryType.DIRECTORY and (
            self._filter.bars(relative + name) or self._is_over(path_key(relative + name))
        ):
            walk.prune()
        return [
            name
            for name, kind in entries
            if kind is EntryType.FILE
            and self._filter.takes(relative + name)
            and self._line_after(path_key(relative + name)) is not None
        ]

    def _search_batch(self, found: GrepResult, batch: list[tuple[int, str]]) -> bool:
        """Search the open files of a batch, close them, and return whether there are enough matches."""
        if batch:
            more = self._fed(batch, self._wanted - sum(len(hits.matches) for hits in found.files))
            found.files += more.files
            found.is_cut, found.ran_out = more.is_cut, more.ran_out
            found.broke_down |= more.broke_down
            _close_all(batch)
        return found.is_cut or found.ran_out

    def _fed(self, files: Sequence[tuple[int, str]], enough: int) -> GrepResult:
        """Search files by their descriptors, which is all that the child can open."""
        named = {f"/dev/fd/{fd}": relative for fd, relative in files}
        fds = [fd for fd, _ in files]
        argv = self._question.arguments(["--threads=1"], list(named))
        child = Child(argv, fds, [ripgrep_path()], pass_fds=fds, memory_bytes=_MEMORY_BYTES)
        reader = RipgrepParser(
            lambda relative: self._line_after(path_key(relative)),
            {path.encode(): relative for path, relative in named.items()},
        )
        return self._run(child, reader, enough)

    def _run(self, child: Child, reader: RipgrepParser, enough: int, call: Call | None = None) -> GrepResult:
        taken = 0

        def is_enough(piece: bytes) -> bool:
            nonlocal taken
            taken += len(piece)
            reader.feed(piece)
            return reader.matches >= enough or taken > _ENOUGH_BYTES

        found = GrepResult()
        try:
            outcome = run_child(call or self._call, child, enough=is_enough, while_running=lambda: self._tell(reader))
        except TimedOut:
            self._outer.check()
            found.ran_out = True
        else:
            found.is_cut = outcome.stopped
            found.broke_down = outcome.status < 0
            if outcome.status == _FAILED and outcome.stderr and not outcome.stopped:
                raise pattern_error(outcome.stderr)
        found.files = [hits for hits in reader.files if hits.matches]
        return found

    def _tell(self, reader: RipgrepParser) -> None:
        now = time.monotonic()
        if now - self._told_at > _PROGRESS_SECONDS:
            self._told_at = now
            seconds = round(now - self._began_at, 1)
            self._outer.progress(seconds, None, f"{seconds:g} s, {reader.matches} matches")

    def _line_after(self, place: PathKey) -> int | None:
        """Return the line of a file after which matches are wanted, None for a file that was shown before."""
        if self._after is None or place > self._after[0]:
            return 0
        return self._after[1] if place == self._after[0] else None

    def _is_over(self, directory: PathKey) -> bool:
        return self._after is not None and directory < self._after[0][: len(directory)]


class GlobFilter:
    """What ripgrep's `--glob` does, for files that are fed to it: `!` bars, a pattern without `/` means any depth."""

    def __init__(self, pattern: str | None) -> None:
        text = pattern or ""
        self._bars = text.startswith("!")
        body = text.removeprefix("!").rstrip("/")
        self._only_directories = text.endswith("/")
        anchored = body.removeprefix("/") if "/" in body else f"**/{body}"
        self._glob = Glob(anchored) if body else None

    def takes(self, relative: str) -> bool:
        """Return whether a file is to be searched."""
        if self._glob is None:
            return True
        return (self._glob.matches(relative) and not self._only_directories) is not self._bars

    def bars(self, relative: str) -> bool:
        """Return whether a directory is to be kept out of."""
        return self._bars and self._glob is not None and self._glob.matches(relative)


def _close_all(files: list[tuple[int, str]]) -> None:
    while files:
        os.close(files.pop()[0])
