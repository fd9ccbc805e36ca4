"""Walks a folder by descriptors and tells, batch by batch, what may be moved and what is left alone, with its reason.

No file is opened and no link is followed. A directory is listed whole before anything in it is told, because what lies
beside a file decides whether it stands alone; directories are held open one for each level, up to a limit.
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
from holdfast.organiser.scan.batch import ScanBatch, ScanRecorder
from holdfast.organiser.scan.directory import DirectoryScanner, ScanOptions, listed


@dataclass(slots=True)
class _Level:
    """A directory on the way down, and the names of those in it that are still to be walked, the next one last."""

    relative: str
    fd: int
    below: list[str] = field(default_factory=list)


class FolderScan:
    """Iterate over it once for the batches; `counts` says how many entries were left alone so far, and why.

    Raises what the jail raises for a folder outside the roots, and Cancelled or TimedOut as the call does.
    """

    def __init__(self, jail: Jail, call: Call, folder: str, options: ScanOptions) -> None:
        self._jail, self._call, self._folder = jail, call, folder
        self._tally = ScanRecorder("")
        self._teller = DirectoryScanner(self._tally, options)
        self._stack: list[_Level] = []

    @property
    def counts(self) -> Counter[SkipReason]:
        """Return how often something was left alone, by reason."""
        return self._tally.counts

    @property
    def seen(self) -> int:
        """Return how many entries were looked at."""
        return self._tally.seen

    def __iter__(self) -> Iterator[ScanBatch]:
        pace = WalkProgress(self._call, None)
        with open_start(self._jail, self._folder, ignore=False) as start:
            self._tally.base = start.path.rstrip("/") + "/"
            try:
                with closing(self._walk(start)) as steps:
                    for _ in steps:
                        pace.is_over(self._tally.seen)
                        if self._tally.is_full():
                            yield self._tally.take()
            finally:
                for level in self._stack:
                    _close(level)
        if self._tally.batch:
            yield self._tally.take()

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
        """Open a directory of a level; one that is the state folder is not spoken of."""
        if level.fd < 0:
            again = open_beneath(self._jail, start.fd, level.relative)
            level.fd = -1 if again is None else again
        try:
            fd = os.open(name, READ_DIRECTORY, dir_fd=level.fd)
        except OSError as error:
            self._tally.fail(level.relative + name, error)
            return None
        if self._jail.hidden and self._jail.is_hidden(identity_of(os.fstat(fd))):
            os.close(fd)
            return None
        return fd

    def _directory(self, level: _Level) -> Iterator[None]:
        """Tell of one directory, and keep it on the stack while there is something below it."""
        try:
            listing = listed(level.fd)
            if not self._teller.is_one_thing(level.fd, level.relative, listing):
                yield from self._teller.tell(level.relative, listing, level.below)
        except OSError as error:
            self._tally.fail(level.relative.rstrip("/") or ".", error)
        finally:
            self._keep(level)
        yield

    def _keep(self, level: _Level) -> None:
        if not level.below:
            _close(level)
            return
        self._stack.append(level)
        if len(self._stack) > OPEN_DIRECTORIES:
            _close(self._stack[-OPEN_DIRECTORIES - 1])


def _close(level: _Level) -> None:
    if level.fd >= 0:
        with suppress(OSError):
            os.close(level.fd)
        level.fd = -1
