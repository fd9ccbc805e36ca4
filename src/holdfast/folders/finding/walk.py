"""Walks a directory tree by descriptors, so that a link swapped in meanwhile cannot lead out of the root.

Links are reported and never followed, the state folder is left out, and entries that cannot be opened or are gone are
skipped. Entries come in the order of their names' bytes, the content of a directory right after it.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import NamedTuple

from holdfast.call import Call
from holdfast.errors import NotDirectory
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.folders.access.policy import FolderPolicy
from holdfast.folders.access.roots import Root, identity_of
from holdfast.folders.access.syscalls import READ_DIRECTORY, READ_FILE
from holdfast.folders.finding.ignore import NO_RULES, REPOSITORY, IgnoreRules, rules_in
from holdfast.text.decode import has_lone_surrogate
from holdfast.text.display import quantity

OPEN_DIRECTORIES = 64
_MAX_RUN = 512
_PROGRESS_SECONDS = 0.5


PathKey = tuple[bytes, ...]


class EntryType(Enum):
    """What an entry is, links not followed."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class WalkStart:
    """An open directory to walk from: its root, its real names beneath it, and the ignore rules of the directories above."""

    root: Root
    parts: tuple[str, ...]
    fd: int
    rules: IgnoreRules

    @property
    def folder(self) -> str:
        """Return its path beneath the root, ending in `/`, empty for the root itself."""
        return "".join(f"{part}/" for part in self.parts)

    @property
    def path(self) -> str:
        """Return its absolute path, for showing."""
        return "/".join([self.root.path.rstrip("/"), *self.parts]) or "/"


@dataclass(slots=True)
class WalkFolder:
    """A directory that a walk is in. `relative` is its path from the start, ending in `/`, empty for the start."""

    relative: str
    name: str
    rules: IgnoreRules
    entries: list[tuple[str, EntryType]]
    fd: int
    at: int = 0

    def next_run(self) -> list[tuple[str, EntryType]]:
        """Return the entries up to the next directory and go past them; empty at the end."""
        first = self.at
        for _, kind in self.entries[first : first + _MAX_RUN]:
            self.at += 1
            if kind is EntryType.DIRECTORY:
                break
        return self.entries[first : self.at]


class EntryRun(NamedTuple):
    """Consecutive entries of one folder; only the last may be a directory."""

    folder: WalkFolder
    entries: list[tuple[str, EntryType]]


@contextmanager
def open_start(jail: Jail, path: str, *, ignore: bool) -> Iterator[WalkStart]:
    """Open a directory as the start of a walk, reading the ignore rules between its root and it.

    Raises what the jail raises; NotDirectory when something else is there.
    """
    root, parts = jail.locate(path)
    fd = os.open(".", READ_DIRECTORY, dir_fd=root.fd)
    rules = NO_RULES
    try:
        for depth, name in enumerate(parts):
            if ignore:
                rules = rules_in(rules, fd, "".join(f"{part}/" for part in parts[:depth]), list_names(fd))
            deeper = open_directory(jail, fd, name, jail.policy_in(root, "/".join(parts[:depth])))
            if deeper is None:
                with jail.open_directory(path):
                    raise NotDirectory(f"{path} changed while it was opened, or cannot be listed.")
            os.close(fd)
            fd = deeper
        yield WalkStart(root, parts, fd, rules)
    finally:
        os.close(fd)


def path_key(relative: str) -> PathKey:
    """Return a key that sorts paths in the order of a walk."""
    return tuple(os.fsencode(relative).split(b"/"))


def open_beneath(jail: Jail, start: WalkStart, folder: str) -> int | None:
    """Open a directory some levels below a start, a level at a time, so that no link is followed on the way."""
    child_fd: int | None = os.dup(start.fd)
    above = ""
    for name in folder.split("/")[:-1]:
        assert child_fd is not None
        deeper = open_directory(jail, child_fd, name, jail.policy_in(start.root, start.folder + above))
        above += f"{name}/"
        os.close(child_fd)
        child_fd = deeper
        if child_fd is None:
            break
    return child_fd


def list_names(fd: int) -> list[str]:
    """Return the names in an open directory, none when it cannot be read."""
    try:
        return os.listdir(fd)
    except OSError:
        return []


def open_directory(jail: Jail, fd: int, name: str, policy: FolderPolicy | None) -> int | None:
    """Open a directory that lies in another, in which a policy holds; None when it is gone, unreadable, a link or hidden."""
    if policy is not None and policy.hides(name):
        return None
    try:
        child_fd = os.open(name, READ_DIRECTORY, dir_fd=fd)
    except OSError:
        return None
    if name == QUARANTINE or (jail.hidden and jail.is_hidden(identity_of(os.fstat(child_fd)))):
        os.close(child_fd)
        return None
    return child_fd


def open_regular(fd: int, name: str) -> int | None:
    """Open a regular file that lies in a directory; None when it is anything else, gone or unreadable."""
    try:
        file_fd = os.open(name, READ_FILE, dir_fd=fd)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file_fd).st_mode):
        return file_fd
    os.close(file_fd)
    return None


def list_entries(jail: Jail, fd: int, policy: FolderPolicy | None) -> list[tuple[str, EntryType]]:
    """Return the entries of an open directory in byte order; those that cannot be examined are left out, and hidden ones."""
    hidden = {inode for _, inode in jail.hidden}
    listed: list[tuple[str, EntryType]] = []
    file = EntryType.FILE
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                try:
                    kind = file if entry.is_file(follow_symlinks=False) else _entry_type(entry)
                    if entry.name == QUARANTINE:
                        continue
                    if hidden and entry.inode() in hidden and _is_hidden(jail, fd, entry.name):
                        continue
                except OSError:
                    continue
                listed.append((entry.name, kind))
    except OSError:
        return []
    if policy is not None and (denied := policy.hidden_among([name for name, _ in listed])):
        listed = [entry for entry in listed if entry[0] not in denied]
    return _sort_by_bytes(listed)


def _sort_by_bytes(entries: list[tuple[str, EntryType]]) -> list[tuple[str, EntryType]]:
    """Sort by the names' bytes, which is the order of their characters unless a name is not UTF-8."""
    if has_lone_surrogate("".join([name for name, _ in entries])):
        return sorted(entries, key=lambda entry: os.fsencode(entry[0]))
    return sorted(entries, key=itemgetter(0))


def _entry_type(entry: "os.DirEntry[str]") -> EntryType:
    if entry.is_dir(follow_symlinks=False):
        return EntryType.DIRECTORY
    return EntryType.LINK if entry.is_symlink() else EntryType.OTHER


def _is_hidden(jail: Jail, fd: int, name: str) -> bool:
    return jail.is_hidden(identity_of(os.stat(name, dir_fd=fd, follow_symlinks=False)))


def list_unignored(
    jail: Jail, fd: int, root: Root, folder: str, rules: IgnoreRules
) -> tuple[list[tuple[str, EntryType]], IgnoreRules]:
    """Return the entries of a directory that are not ignored, and the ignore rules of the directory.

    `folder` is its path beneath the root. The `.git` directory is left out as well.
    """
    entries = list_entries(jail, fd, jail.policy_in(root, folder))
    rules = rules_in(rules, fd, folder, [name for name, _ in entries if name[0] == "."])
    maybe_ignored = rules.maybe_ignored(entries)
    if not maybe_ignored:
        return entries, rules
    unignored = [
        (name, kind)
        for name, kind in entries
        if name not in maybe_ignored
        or (name != REPOSITORY and not rules.ignores(folder, name, is_directory=kind is EntryType.DIRECTORY))
    ]
    return unignored, rules


class IgnoreChecker:
    """Checks single paths beneath a start: whether they, or a directory above them, are ignored."""

    def __init__(self, jail: Jail, start: WalkStart) -> None:
        self._jail, self._start = jail, start
        self._rules_by_folder: dict[str, IgnoreRules | None] = {"": self._read_rules(start.rules, "")}

    def ignores(self, relative: str) -> bool:
        """Return whether a file is ignored."""
        *folders, name = relative.split("/")
        rules, folder = self._rules_by_folder[""], ""
        for part in folders:
            if rules is None or rules.ignores(self._start.folder + folder, part, is_directory=True):
                return True
            folder += f"{part}/"
            if folder not in self._rules_by_folder:
                self._rules_by_folder[folder] = self._read_rules(rules, folder)
            rules = self._rules_by_folder[folder]
        return rules is None or rules.ignores(self._start.folder + folder, name, is_directory=False)

    def _read_rules(self, above: IgnoreRules, folder: str) -> IgnoreRules | None:
        fd = open_beneath(self._jail, self._start, folder)
        if fd is None:
            return None
        try:
            return rules_in(above, fd, self._start.folder + folder, list_names(fd))
        finally:
            os.close(fd)


class WalkProgress:
    """Checks the call during a long walk, reports progress, and holds the deadline of the walk."""

    def __init__(self, call: Call, seconds: float | None) -> None:
        self._call = call
        self._reported_at = time.monotonic()
        self._deadline = None if seconds is None else self._reported_at + seconds

    def is_overdue(self, entries: int) -> bool:
        """Return whether the deadline has passed. Raises Cancelled or TimedOut as the call does."""
        self._call.check()
        now = time.monotonic()
        if now - self._reported_at > _PROGRESS_SECONDS:
            self._reported_at = now
            self._call.progress(entries, None, f"{quantity(entries, 'entry', 'entries')} looked at")
        return self._deadline is not None and now > self._deadline


class Walk:
    """Yields runs of entries; `prune()` right after a run that ends in a directory skips that directory.

    When `seconds` have passed the walk ends early: then `timed_out` is true and `last` is the path of the last entry.
    `unreadable` are the paths from the start of directories that may not be opened.
    """

    def __init__(self, jail: Jail, call: Call, start: WalkStart, *, ignore: bool, seconds: float | None = None) -> None:
        self._jail, self._start, self._ignore = jail, start, ignore
        self._above = start.folder
        self._stack: list[WalkFolder] = []
        self._pruned = False
        self._progress = WalkProgress(call, seconds)
        self.entry_count = 0
        self.timed_out = False
        self.last = ""
        self.unreadable: list[str] = []

    def prune(self) -> None:
        """Do not enter the directory that was yielded last."""
        self._pruned = True

    def open_file(self, folder: WalkFolder, name: str) -> int | None:
        """Open a regular file of the run that was yielded last; None when it is anything else. The caller closes it."""
        fd = self._fd_of(folder)
        return None if fd is None else open_regular(fd, name)

    def stat(self, folder: WalkFolder, name: str) -> os.stat_result | None:
        """Return the status of an entry of the run that was yielded last, links not followed; None when it is gone."""
        fd = self._fd_of(folder)
        try:
            return None if fd is None else os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return None

    def __iter__(self) -> Iterator[EntryRun]:
        try:
            self._enter(os.dup(self._start.fd), "", "", self._start.rules)
            while self._stack:
                folder = self._stack[-1]
                entries = folder.next_run()
                if not entries:
                    _close(self._stack.pop())
                    continue
                self.entry_count += len(entries)
                self._pruned = False
                yield EntryRun(folder, entries)
                name, kind = entries[-1]
                if self._progress.is_overdue(self.entry_count):
                    self.timed_out = True
                    self.last = folder.relative + name
                    return
                if kind is EntryType.DIRECTORY and not self._pruned:
                    self._descend(folder, name)
        finally:
            for folder in self._stack:
                _close(folder)

    def _descend(self, folder: WalkFolder, name: str) -> None:
        fd = self._fd_of(folder)
        policy = self._policy_in(folder)
        child_fd = None if fd is None else open_directory(self._jail, fd, name, policy)
        if child_fd is not None:
            self._enter(child_fd, f"{folder.relative}{name}/", name, folder.rules)
        elif fd is not None and _is_unreadable(fd, name):
            self.unreadable.append(folder.relative + name)

    def _enter(self, fd: int, relative: str, name: str, rules: IgnoreRules) -> None:
        if self._ignore:
            entries, rules = list_unignored(self._jail, fd, self._start.root, self._above + relative, rules)
        else:
            policy = self._jail.policy_in(self._start.root, self._above + relative)
            entries = [entry for entry in list_entries(self._jail, fd, policy) if entry[0] != REPOSITORY]
        self._stack.append(WalkFolder(relative, name, rules, entries, fd))
        if len(self._stack) > OPEN_DIRECTORIES:
            _close(self._stack[-OPEN_DIRECTORIES - 1])

    def _policy_in(self, folder: WalkFolder) -> FolderPolicy | None:
        return self._jail.policy_in(self._start.root, self._above + folder.relative)

    def _fd_of(self, folder: WalkFolder) -> int | None:
        return folder.fd if folder.fd >= 0 else self._reopen()

    def _reopen(self) -> int | None:
        """Open the current folder again, from the start down; the nearest folders above it stay open for the way back."""
        fd = os.dup(self._start.fd)
        keep_from = len(self._stack) - OPEN_DIRECTORIES
        for depth, folder in enumerate(self._stack):
            if depth:
                deeper = open_directory(self._jail, fd, folder.name, self._policy_in(self._stack[depth - 1]))
                if depth - 1 < keep_from:
                    os.close(fd)
                if deeper is None:
                    return None
                fd = deeper
            if depth >= keep_from:
                _close(folder)
                folder.fd = fd
        return fd


def _is_unreadable(fd: int, name: str) -> bool:
    try:
        os.close(os.open(name, READ_DIRECTORY, dir_fd=fd))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _close(folder: WalkFolder) -> None:
    if folder.fd >= 0:
        with suppress(OSError):
            os.close(folder.fd)
        folder.fd = -1
