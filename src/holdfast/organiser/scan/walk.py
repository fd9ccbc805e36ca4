"""Walks a folder by descriptors and yields, in batches, the files that may be moved and the skipped entries.

No file is opened and no link is followed. A directory is listed completely before any of its entries is added, because
the neighbours of a file decide whether it belongs to a unit. One directory is held open for each level, up to a limit.
"""

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.folders.access.descriptors import READ_DIRECTORY
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import identity_of
from holdfast.folders.finding.walk import OPEN_DIRECTORIES, WalkProgress, WalkStart, open_beneath, open_start
from holdfast.organiser.model import SkipReason
from holdfast.organiser.scan.directory import DirectoryScanner, ScanBatch, ScanOptions, ScanRecorder, list_directory


@dataclass(slots=True)
class _Level:
    """An open directory on the way down, and the subdirectories that are still to be walked, the next one last."""

    relative: str
    fd: int
    below: list[str] = field(default_factory=list)


class FolderScan:
    """One scan of a folder. Iterate over it once; `skip_counts` and `entry_count` grow meanwhile.

    Raises what the jail raises for a folder outside the roots, and Cancelled or TimedOut as the call does.
    """

    def __init__(self, jail: Jail, call: Call, folder: str, options: ScanOptions) -> None:
        self._jail, self._call, self._folder = jail, call, folder
        self._recorder = ScanRecorder("")
        self._scanner = DirectoryScanner(self._recorder, options)
        self._stack: list[_Level] = []

    @property
    def skip_counts(self) -> Counter[SkipReason]:
        """Return how many entries were skipped, by reason."""
        return self._recorder.skip_counts

    @property
    def entry_count(self) -> int:
        """Return how many entries the scan has met."""
        return self._recorder.entry_count

    def __iter__(self) -> Iterator[ScanBatch]:
        progress = WalkProgress(self._call, None)
        with open_start(self._jail, self._folder, ignore=False) as start:
            self._recorder.base = start.path.rstrip("/") + "/"
            try:
                with closing(self._walk(start)) as steps:
                    for _ in steps:
                        progress.is_overdue(self._recorder.entry_count)
                        if self._recorder.is_full():
                            yield self._recorder.take_batch()
            finally:
                for level in self._stack:
                    _close(level)
        if self._recorder.batch:
            yield self._recorder.take_batch()

    def _walk(self, start: WalkStart) -> Generator[None, None, None]:
        yield from self._directory(_Level("", os.dup(start.fd)))
        while self._stack:
            level = self._stack[-1]
            if not level.below:
                _close(self._stack.pop())
                continue
            name = level.below.pop()
            fd = self._open(start, level, name)
            if fd is not None:
                yield from self._directory(_Level(f"{level.relative}{name}/", fd))

    def _open(self, start: WalkStart, level: _Level, name: str) -> int | None:
        """Open a subdirectory; the state folder is left out without a trace."""
        if level.fd < 0:
            reopened = open_beneath(self._jail, start.fd, level.relative)
            level.fd = -1 if reopened is None else reopened
        try:
            fd = os.open(name, READ_DIRECTORY, dir_fd=level.fd)
        except OSError as error:
            self._recorder.skip_unreadable(level.relative + name, error)
            return None
        if self._jail.hidden and self._jail.is_hidden(identity_of(os.fstat(fd))):
            os.close(fd)
            return None
        return fd

    def _directory(self, level: _Level) -> Iterator[None]:
        """Add one directory, and keep it on the stack while it has subdirectories to walk."""
        try:
            entries = list_directory(level.fd)
            if not self._scanner.add_as_whole(level.fd, level.relative, entries):
                yield from self._scanner.add_entries(level.relative, entries, level.below)
        except OSError as error:
            self._recorder.skip_unreadable(level.relative.rstrip("/") or ".", error)
        finally:
            if level.below:
                self._stack.append(level)
                if len(self._stack) > OPEN_DIRECTORIES:
                    _close(self._stack[-OPEN_DIRECTORIES - 1])
            else:
                _close(level)
        yield


def _close(level: _Level) -> None:
    if level.fd >= 0:
        with suppress(OSError):
            os.close(level.fd)
        level.fd = -1
