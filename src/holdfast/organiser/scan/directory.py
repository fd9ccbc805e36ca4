"""Sorts the entries of one open directory into files, units that stay together, and skipped entries with their reasons.

Most files have an ordinary name; they take the short path, one stat call and nothing more.
"""

import functools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from holdfast.folders.access.policy import FolderPolicy
from holdfast.organiser.model import FileType, ScannedFile, SkippedFile, SkipReason, Unit
from holdfast.organiser.scan import skips, units

BATCH_SIZE = 1_000
_HAS_FLAGS = hasattr(os.stat_result, "st_flags")

Entry = os.DirEntry[str]


@dataclass(slots=True)
class ScanBatch:
    """The files and the skipped entries that a scan has read since the last batch."""

    files: list[ScannedFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.files) + len(self.skipped)


@dataclass(slots=True)
class ScanRecorder:
    """Collects the results of one scan; `base` is the absolute path of the scanned folder, ending in `/`."""

    base: str
    batch: ScanBatch = field(default_factory=ScanBatch)
    skip_counts: Counter[SkipReason] = field(default_factory=Counter)
    entry_count: int = 0
    devices_with_blocks: set[int] = field(default_factory=set)

    def add(self, file: ScannedFile) -> None:
        """Add a file or unit that may be moved."""
        self.batch.files.append(file)
        self.entry_count += 1

    def skip(self, relative: str, reason: SkipReason, detail: str = "") -> None:
        """Add a skipped entry."""
        self.batch.skipped.append(SkippedFile(relative, reason, detail))
        self.skip_counts[reason] += 1
        self.entry_count += 1

    def skip_unreadable(self, relative: str, error: OSError) -> None:
        """Add an entry whose status could not be read."""
        self.skip(relative, SkipReason.UNREADABLE, error.strerror or "")

    def scanned_file(self, relative: str, status: os.stat_result, file_type: FileType) -> ScannedFile:
        """Return an entry with its status, without adding it."""
        return ScannedFile(
            self.base + relative,
            relative,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_dev,
            status.st_ino,
            file_type,
        )

    def is_full(self) -> bool:
        """Return whether the batch is large enough to hand over."""
        return len(self.batch) >= BATCH_SIZE

    def take_batch(self) -> ScanBatch:
        """Return the batch and begin a new one."""
        batch, self.batch = self.batch, ScanBatch()
        return batch


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Which entries a scan includes besides ordinary files."""

    include_hidden: bool = False
    allow_symlinks: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryEntries:
    """The entries of one directory by type, files in the order of their names, and the set of all names and suffixes."""

    files: list[Entry]
    directories: list[Entry]
    others: list[Entry]
    names: frozenset[str]
    suffixes: frozenset[str]

    def has_special_names(self) -> bool:
        """Return whether any name can make a file special; in most directories none does."""
        return (
            any(map(_is_special_suffix, self.suffixes))
            or not skips.SPECIAL_STARTS.isdisjoint([name[0] for name in self.names])
            or not skips.SYSTEM_NAMES.isdisjoint(self.names)
        )


def list_directory(fd: int, policy: FolderPolicy | None = None) -> DirectoryEntries:
    """Return the entries of an open directory; the descriptor must stay open while their status is read.

    What the policy in it hides is left out.
    """
    files: list[Entry] = []
    directories: list[Entry] = []
    others: list[Entry] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if policy is not None and policy.hides(entry.name):
                continue
            if entry.is_file(follow_symlinks=False):
                files.append(entry)
            elif entry.is_dir(follow_symlinks=False):
                directories.append(entry)
            else:
                others.append(entry)
    files.sort(key=attrgetter("name"))
    names = frozenset([entry.name for entry in (*files, *directories, *others)])
    return DirectoryEntries(files, directories, others, names, units.suffixes_of(names))


class DirectoryScanner:
    """Adds directories, one after the other, to a recorder."""

    def __init__(self, recorder: ScanRecorder, options: ScanOptions) -> None:
        self._recorder, self._options = recorder, options

    def add_as_whole(self, fd: int, relative: str, entries: DirectoryEntries) -> bool:
        """Add a directory that is a unit, or skip one because of its content; False if its entries are to be added.

        `relative` ends in `/`, and is empty for the scanned folder.
        """
        names, path = entries.names, relative.rstrip("/")
        if not path:
            unit = units.unit_of_scanned_folder(names, entries.suffixes)
            if unit is not None:
                self._recorder.skip(".", SkipReason.WHOLE, unit.value)
            return unit is not None
        reason = skips.reason_by_content(names)
        if reason is not None:
            self._recorder.skip(path, reason)
            return True
        unit = units.unit_of_directory(path.rpartition("/")[2], names, entries.suffixes)
        if unit is not None:
            directory = self._recorder.scanned_file(path, os.fstat(fd), FileType.DIRECTORY)
            self._recorder.add(directory._replace(size=0, unit=unit))
        return unit is not None

    def add_entries(self, relative: str, entries: DirectoryEntries, below: list[str]) -> Iterator[None]:
        """Add a directory's entries, pausing after every batch; `below` gets the directories to walk, last first."""
        directories: dict[str, Entry] = {}
        for entry in entries.directories:
            reason = skips.reason_for_directory(entry.name, include_hidden=self._options.include_hidden)
            if reason is None:
                directories[entry.name] = entry
            else:
                self._recorder.skip(relative + entry.name, reason)
        for entry in entries.others:
            self._add_other(relative, entry)
        special = [entry for entry in entries.files if _is_special(entry.name)] if entries.has_special_names() else []
        handled = self._add_special(relative, special, entries, directories) if special else frozenset()
        plain = [entry for entry in entries.files if entry.name not in handled] if handled else entries.files
        for start in range(0, len(plain), BATCH_SIZE):
            self._add_plain(relative, plain[start : start + BATCH_SIZE])
            yield
        below.extend(sorted(directories, reverse=True))

    def _add_other(self, relative: str, entry: Entry) -> None:
        """Add or skip a link; skip a pipe, a socket or a device."""
        path = relative + entry.name
        try:
            if not entry.is_symlink():
                self._recorder.skip(path, SkipReason.SPECIAL)
            elif not self._options.allow_symlinks:
                self._recorder.skip(path, SkipReason.LINK)
            else:
                status = entry.stat(follow_symlinks=False)
                self._recorder.add(self._recorder.scanned_file(path, status, FileType.LINK))
        except OSError as error:
            self._recorder.skip_unreadable(path, error)

    def _add_special(
        self, relative: str, special: Sequence[Entry], entries: DirectoryEntries, directories: dict[str, Entry]
    ) -> frozenset[str]:
        """Skip files because of their names or their neighbours, add units, and return the names that are handled.

        The folder of a saved page goes with the page, so it is removed from the directories to walk.
        """
        reasons = self._skip_reasons(special, entries)
        by_name = {entry.name: entry for entry in special} | directories
        handled: set[str] = set()
        groups = units.find_groups([entry.name for entry in special if units.may_be_grouped(entry.name)], directories)
        for unit, members in groups:
            handled.update(members)
            reason = next((reasons[name] for name in members if name in reasons), None)
            if reason is None:
                self._add_unit(relative, unit, [by_name[name] for name in members])
            else:
                reasons.update(dict.fromkeys(members, reason))
            for name in members:
                directories.pop(name, None)
        for name, reason in reasons.items():
            self._recorder.skip(relative + name, reason)
        return frozenset(handled | reasons.keys())

    def _skip_reasons(self, special: Sequence[Entry], entries: DirectoryEntries) -> dict[str, SkipReason]:
        reasons: dict[str, SkipReason] = {}
        if any(skips.affects_neighbours(entry.name) for entry in special):
            reasons = skips.reasons_by_neighbours(entry.name for entry in entries.files)
        for entry in special:
            reason = skips.reason_for_file(entry.name, include_hidden=self._options.include_hidden)
            if reason is not None:
                reasons[entry.name] = reason
        return reasons

    def _add_unit(self, relative: str, unit: Unit, entries: Sequence[Entry]) -> None:
        try:
            statuses = [(entry, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            self._recorder.skip_unreadable(relative + entries[0].name, error)
            return
        if self._is_any_placeholder([status for entry, status in statuses if entry.is_file(follow_symlinks=False)]):
            self._recorder.skip(relative + entries[0].name, SkipReason.PLACEHOLDER)
            return
        main, *members = [
            self._recorder.scanned_file(
                relative + entry.name,
                status,
                FileType.DIRECTORY if entry.is_dir(follow_symlinks=False) else FileType.FILE,
            )
            for entry, status in statuses
        ]
        self._recorder.add(main._replace(unit=unit, members=tuple(members)))

    def _is_any_placeholder(self, statuses: Sequence[os.stat_result]) -> bool:
        """Return whether data is missing; having no blocks counts only on a disk where other files have some."""
        devices = self._recorder.devices_with_blocks
        devices.update(status.st_dev for status in statuses if status.st_blocks)
        return any(_is_dataless(status) and (status.st_dev in devices or status.st_blocks) for status in statuses)

    def _add_plain(self, relative: str, entries: Sequence[Entry]) -> None:
        """Add ordinary files; this is the hot path of a scan, so it builds the tuples without calling the class."""
        files, base, new, file_type = (
            self._recorder.batch.files,
            self._recorder.base + relative,
            tuple.__new__,
            FileType.FILE,
        )
        dataless: list[tuple[ScannedFile, os.stat_result]] = []
        with_blocks: ScannedFile | None = None
        for entry in entries:
            name = entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._recorder.skip_unreadable(relative + name, error)
                continue
            file = new(
                ScannedFile,
                (base + name, relative + name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_dev,
                 status.st_ino, file_type, None, ()),
            )  # fmt: skip
            if status.st_blocks and not _HAS_FLAGS:
                with_blocks = file
            elif _is_dataless(status):
                dataless.append((file, status))
                continue
            files.append(file)
        self._recorder.entry_count += len(entries) - len(dataless)
        if with_blocks is not None:
            self._recorder.devices_with_blocks.add(with_blocks.device)
        for file, status in dataless:
            if self._is_any_placeholder([status]):
                self._recorder.skip(file.relative, SkipReason.PLACEHOLDER)
            else:
                self._recorder.add(file)


def _is_special(name: str) -> bool:
    """Return whether a file may belong to a unit or be skipped because of its name; most files need no further checks."""
    return (
        _is_special_suffix(name[name.rfind(".") + 1 :]) or name[0] in skips.SPECIAL_STARTS or name in skips.SYSTEM_NAMES
    )


@functools.lru_cache(maxsize=4096)
def _is_special_suffix(suffix: str) -> bool:
    lower = suffix.lower()
    return lower in skips.SPECIAL_SUFFIXES or lower in units.GROUP_SUFFIXES or lower[-1:].isdigit()


def _is_dataless(status: os.stat_result) -> bool:
    return skips.is_dataless(status.st_size, status.st_blocks, getattr(status, "st_flags", 0))
