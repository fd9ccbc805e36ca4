"""Surveys a folder: scans it, looks its files up in the cache, and reads the beginning and the end of those not cached.

The scan walks by descriptors, opens no file and follows no link. A directory is listed completely before any of its
entries is added, because the neighbours of a file decide whether it belongs to a unit.

A file whose device, inode, size and mtime are cached is not opened. What was read is cached after every batch, so a
survey that was stopped continues from there the next time.
"""

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import identity_of
from holdfast.folders.access.syscalls import READ_DIRECTORY
from holdfast.folders.finding.walk import OPEN_DIRECTORIES, WalkProgress, WalkStart, open_beneath, open_start
from holdfast.organiser.classify.taxonomy import MAX_EXAMPLES, example_folder, pick_evenly
from holdfast.organiser.model import Example, Excerpt, FileType, ScannedFile, SkippedFile, SkipReason
from holdfast.organiser.ports import CachedFile, FileCache
from holdfast.organiser.scan.directory import DirectoryScanner, ScanBatch, ScanOptions, ScanRecorder, list_directory
from holdfast.organiser.scan.excerpts import reason_to_read_text
from holdfast.organiser.scan.read import peek_files, read_texts

_READ_TOGETHER = 64


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
        """Return how many entries the scan has read."""
        return self._recorder.entry_count

    def __iter__(self) -> Iterator[ScanBatch]:
        progress = WalkProgress(self._call, None)
        with open_start(self._jail, self._folder, ignore=False) as start:
            self._start = start
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
            reopened = open_beneath(self._jail, start, level.relative)
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
            policy = self._jail.policy_in(self._start.root, self._start.folder + level.relative)
            entries = list_directory(level.fd, policy)
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


class SurveyedFile(NamedTuple):
    """A file or unit with its hash, which is empty for a link or a directory; `excerpt` is None for a cached file."""

    file: ScannedFile
    file_hash: str
    excerpt: Excerpt | None


@dataclass(slots=True)
class SurveyBatch:
    """About a thousand entries of a survey."""

    files: list[SurveyedFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)


class Survey:
    """One survey of a folder. Iterate over it once; the counts grow meanwhile."""

    def __init__(self, jail: Jail, call: Call, folder: str, options: ScanOptions, cache: FileCache) -> None:
        self._jail, self._call, self._cache = jail, call, cache
        self._scan = FolderScan(jail, call, folder, options)
        self.skip_counts: Counter[SkipReason] = Counter()
        self.opened_count = 0
        self.bytes_read = 0

    @property
    def entry_count(self) -> int:
        """Return how many entries the scan has read."""
        return self._scan.entry_count

    def __iter__(self) -> Iterator[SurveyBatch]:
        for batch in self._scan:
            files, unreadable = self._survey(batch.files)
            skipped = batch.skipped + unreadable
            self.skip_counts.update(entry.reason for entry in skipped)
            yield SurveyBatch(files, skipped)

    def _survey(self, files: list[ScannedFile]) -> tuple[list[SurveyedFile], list[SkippedFile]]:
        """Return the files with their hashes, in the same order, and those that turn out to be skipped."""
        hashes = self._cache.find_hashes(files)
        if None not in hashes:
            new = tuple.__new__
            return [new(SurveyedFile, row) for row in zip(files, hashes, repeat(None))], []
        results = peek_files(
            self._jail, self._call, [file for file, hash_ in zip(files, hashes, strict=True) if hash_ is None]
        )
        self._cache.save(
            [CachedFile(result.file, result.file_hash, result.excerpt) for result in results if result.file_hash]
        )
        self.opened_count += sum(1 for result in results if result.file.type is FileType.FILE)
        self.bytes_read += sum(result.excerpt.bytes_read for result in results)
        survey: list[SurveyedFile] = []
        remaining = iter(results)
        for file, hash_ in zip(files, hashes, strict=True):
            if hash_ is not None:
                survey.append(SurveyedFile(file, hash_, None))
            elif (result := next(remaining)).skipped is None:
                survey.append(SurveyedFile(file, result.file_hash, result.excerpt))
        return survey, [result.skipped for result in results if result.skipped is not None]


def read_examples(
    jail: Jail, call: Call, folder: str, options: ScanOptions, max_bytes: int, max_per_folder: int = MAX_EXAMPLES
) -> list[Example]:
    """Return files that lie in subfolders as examples; `category` is the subfolder's path from the folder.

    Of a subfolder with many files, evenly spread ones are read. Files in the folder itself are no examples. Documents
    over `max_bytes` count by name and type alone. Raises what the jail raises for a folder outside the roots, and
    Cancelled or TimedOut as the call does.
    """
    files = (file for batch in FolderScan(jail, call, folder, options) for file in batch.files)
    results = [
        result for result in peek_files(jail, call, _pick_examples(files, max_per_folder)) if result.skipped is None
    ]
    to_read = [
        result for result in results if reason_to_read_text(result.excerpt, result.file.suffix.removeprefix("."))
    ]
    texts: list[Excerpt] = []
    for start in range(0, len(to_read), _READ_TOGETHER):
        call.progress(start, len(to_read), f"Reading documents: {start:,} of {len(to_read):,}")
        part = to_read[start : start + _READ_TOGETHER]
        texts += read_texts(jail, call, [(result.file, result.excerpt) for result in part], max_bytes)
    excerpts = {result.file.relative: excerpt for result, excerpt in zip(to_read, texts, strict=True)}
    examples = []
    for result in results:
        excerpt = excerpts.get(result.file.relative, result.excerpt)
        category = example_folder(result.file.folder)
        examples.append(Example(result.file_hash, result.file.name, category, excerpt.text, excerpt.content_type))
    return examples


def _pick_examples(files: Iterable[ScannedFile], max_per_folder: int) -> list[ScannedFile]:
    folders: dict[str, list[ScannedFile]] = {}
    for file in files:
        if file.type is FileType.FILE and file.folder:
            folders.setdefault(example_folder(file.folder), []).append(file)
    return [file for members in folders.values() for file in pick_evenly(members, max_per_folder)]
