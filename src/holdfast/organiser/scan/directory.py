"""Tells of the entries of one open directory: what stands alone, what belongs together, what is left alone.

Most files have a name that says nothing special; they take the short way, one look at their status and no more.
"""

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from holdfast.organiser.model import FileType, ScannedFile, SkipReason, Unit
from holdfast.organiser.scan import skips, units
from holdfast.organiser.scan.batch import BATCH, ScanRecorder

_HAS_FLAGS = hasattr(os.stat_result, "st_flags")

Entry = os.DirEntry[str]


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What a scan looks at besides the files that everybody sees."""

    include_hidden: bool = False
    allow_symlinks: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryEntries:
    """One directory's entries by what they are, files in the order of their names, and every name and suffix in it."""

    files: list[Entry]
    directories: list[Entry]
    others: list[Entry]
    names: frozenset[str]
    suffixes: frozenset[str]

    def has_odd_files(self) -> bool:
        """Return whether a name in the directory can say something special; in most directories none does."""
        return (
            any(map(_is_telling, self.suffixes))
            or not skips.TELLING_STARTS.isdisjoint([name[0] for name in self.names])
            or not skips.SYSTEM_NAMES.isdisjoint(self.names)
        )


def listed(fd: int) -> DirectoryEntries:
    """Return the entries of an open directory, whose descriptor must stay open while they are looked at."""
    files: list[Entry] = []
    directories: list[Entry] = []
    others: list[Entry] = []
    with os.scandir(fd) as entries:
        for entry in entries:
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
    """Tells of directories, one after the other, into a tally."""

    def __init__(self, tally: ScanRecorder, options: ScanOptions) -> None:
        self._tally, self._options = tally, options

    def is_one_thing(self, fd: int, relative: str, listing: DirectoryEntries) -> bool:
        """Tell of a directory as a whole when it is a unit or is left alone for what is in it; `relative` ends in `/`."""
        names, path = listing.names, relative.rstrip("/")
        if not path:
            unit = units.of_start(names, listing.suffixes)
            if unit is not None:
                self._tally.leave(".", SkipReason.WHOLE, unit.value)
            return unit is not None
        reason = skips.of_content(names)
        if reason is not None:
            self._tally.leave(path, reason)
            return True
        unit = units.of_directory(path.rpartition("/")[2], names, listing.suffixes)
        if unit is not None:
            whole = self._tally.look(path, os.fstat(fd), FileType.DIRECTORY)
            self._tally.add(whole._replace(size=0, unit=unit))
        return unit is not None

    def tell(self, relative: str, listing: DirectoryEntries, below: list[str]) -> Iterator[None]:
        """Tell of a directory's entries, pausing after every thousand; `below` gets the directories to walk, last first."""
        directories = {entry.name: entry for entry in listing.directories if self._is_walked(relative, entry.name)}
        for entry in listing.others:
            self._other(relative, entry)
        odd = [entry for entry in listing.files if _is_odd(entry.name)] if listing.has_odd_files() else []
        settled = self._odd(relative, odd, listing, directories) if odd else frozenset()
        plain = [entry for entry in listing.files if entry.name not in settled] if settled else listing.files
        for at in range(0, len(plain), BATCH):
            self._plain(relative, plain[at : at + BATCH])
            yield
        below.extend(sorted(directories, reverse=True))

    def _is_walked(self, relative: str, name: str) -> bool:
        reason = skips.of_directory(name, include_hidden=self._options.include_hidden)
        if reason is not None:
            self._tally.leave(relative + name, reason)
        return reason is None

    def _other(self, relative: str, entry: Entry) -> None:
        path = relative + entry.name
        try:
            if not entry.is_symlink():
                self._tally.leave(path, SkipReason.SPECIAL)
            elif not self._options.allow_symlinks:
                self._tally.leave(path, SkipReason.LINK)
            else:
                self._tally.add(self._tally.look(path, entry.stat(follow_symlinks=False), FileType.LINK))
        except OSError as error:
            self._tally.fail(path, error)

    def _odd(
        self, relative: str, odd: Sequence[Entry], listing: DirectoryEntries, directories: dict[str, Entry]
    ) -> frozenset[str]:
        """Leave alone what its name or its neighbours tell, and tell of units; returns the names that are settled.

        The folder of a saved page goes with the page, so it is taken out of the directories to walk.
        """
        reasons = self._reasons(odd, listing)
        entries = {entry.name: entry for entry in odd} | directories
        settled: set[str] = set()
        groups = units.groups([entry.name for entry in odd if units.may_group(entry.name)], directories)
        for unit, members in groups:
            settled.update(members)
            reason = next((reasons[name] for name in members if name in reasons), None)
            if reason is None:
                self._unit(relative, unit, [entries[name] for name in members])
            else:
                reasons.update(dict.fromkeys(members, reason))
            for name in members:
                directories.pop(name, None)
        for name, reason in reasons.items():
            self._tally.leave(relative + name, reason)
        return frozenset(settled | reasons.keys())

    def _reasons(self, odd: Sequence[Entry], listing: DirectoryEntries) -> dict[str, SkipReason]:
        reasons: dict[str, SkipReason] = {}
        if any(skips.may_speak(entry.name) for entry in odd):
            reasons = skips.by_neighbours(entry.name for entry in listing.files)
        for entry in odd:
            reason = skips.of_file(entry.name, include_hidden=self._options.include_hidden)
            if reason is not None:
                reasons[entry.name] = reason
        return reasons

    def _unit(self, relative: str, unit: Unit, entries: Sequence[Entry]) -> None:
        try:
            looked = [(entry, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            self._tally.fail(relative + entries[0].name, error)
            return
        files = [status for entry, status in looked if entry.is_file(follow_symlinks=False)]
        if self._are_placeholders(files):
            self._tally.leave(relative + entries[0].name, SkipReason.PLACEHOLDER)
            return
        members = [
            self._tally.look(
                relative + entry.name,
                status,
                FileType.DIRECTORY if entry.is_dir(follow_symlinks=False) else FileType.FILE,
            )
            for entry, status in looked
        ]
        self._tally.add(members[0]._replace(unit=unit, members=tuple(members[1:])))

    def _are_placeholders(self, statuses: Sequence[os.stat_result]) -> bool:
        """Return whether data is missing; having no blocks counts only on a disk where other files have some."""
        known = self._tally.devices_with_blocks
        known.update(status.st_dev for status in statuses if status.st_blocks)
        return any(_is_dataless(status) and (status.st_dev in known or status.st_blocks) for status in statuses)

    def _plain(self, relative: str, entries: Sequence[Entry]) -> None:
        found, base, new, file = self._tally.batch.found, self._tally.base + relative, tuple.__new__, FileType.FILE
        doubtful: list[tuple[ScannedFile, os.stat_result]] = []
        solid: ScannedFile | None = None
        for entry in entries:
            name = entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._tally.fail(relative + name, error)
                continue
            one = new(
                ScannedFile,
                (base + name, relative + name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_dev,
                 status.st_ino, file, None, ()),
            )  # fmt: skip
            if status.st_blocks and not _HAS_FLAGS:
                solid = one
            elif _is_dataless(status):
                doubtful.append((one, status))
                continue
            found.append(one)
        self._tally.seen += len(entries) - len(doubtful)
        if solid is not None:
            self._tally.devices_with_blocks.add(solid.device)
        for one, status in doubtful:
            if self._are_placeholders([status]):
                self._tally.leave(one.relative, SkipReason.PLACEHOLDER)
            else:
                self._tally.add(one)


def _is_odd(name: str) -> bool:
    """Return whether a name may belong to a unit or be left alone; every other one needs no second look."""
    return _is_telling(name[name.rfind(".") + 1 :]) or name[0] in skips.TELLING_STARTS or name in skips.SYSTEM_NAMES


@functools.lru_cache(maxsize=4096)
def _is_telling(suffix: str) -> bool:
    lower = suffix.lower()
    return lower in skips.TELLING_SUFFIXES or lower in units.GROUP_SUFFIXES or lower[-1:].isdigit()


def _is_dataless(status: os.stat_result) -> bool:
    return skips.is_dataless(status.st_size, status.st_blocks, getattr(status, "st_flags", 0))
