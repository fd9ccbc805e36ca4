"""The jail: opens a caller's path beneath an allowed directory and hands out the descriptor, or refuses.

No method returns a checked string: check and open are one step. On Linux the kernel resolves a path without links
(`openat2` with RESOLVE_BENEATH). Any other path is resolved here, one component at a time, and a link is followed only after
it was read through the descriptor of the directory that holds it: no link leads to what is hidden.
"""

import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from holdfast.errors import (
    AccessDenied,
    InvalidPath,
    IsDirectory,
    NotFound,
    PermissionDenied,
)
from holdfast.folders.access.path_syntax import (
    QUARANTINE,
    check_syntax,
    names_quarantine,
    raise_for_errno,
    split_path,
    without_quarantine,
)
from holdfast.folders.access.policy import FolderPolicy, Policy, PolicyRule
from holdfast.folders.access.roots import Identity, Root, identity_of
from holdfast.folders.access.syscalls import has_openat2, openat2_beneath
from holdfast.text.display import display_name

MAX_LINKS = 40
_CHANGED = frozenset({errno.EINVAL, errno.ENOENT, errno.ELOOP, errno.ENOTDIR})
"""Errors for a name that stopped being a link or a directory between two system calls."""

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class JailedPath:
    """A path with valid syntax beneath a known root; nothing is known about what is there.

    `display_path` is the path as the caller gave it, for messages.
    """

    root: Root
    parts: tuple[str, ...]
    display_path: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open regular file: descriptor, status at opening, and the path as the caller gave it."""

    fd: int
    status: os.stat_result
    display_path: str

    @property
    def identity(self) -> Identity:
        """Return the file's device and inode."""
        return identity_of(self.status)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is or would be: the open parent directory and the one name in it.

    `status` is that of the entry itself (a link is not followed), None when nothing is there.
    `path` is the absolute path, beginning with the path of the root: the form that is journalled and shown.
    """

    root: Root
    parent_fd: int
    name: str
    path: str
    status: os.stat_result | None

    @property
    def lock_key(self) -> tuple[Identity, str]:
        """Return a lock key that is equal for every spelling of the same place."""
        return (identity_of(os.fstat(self.parent_fd)), self.name)


class HiddenByPolicy(NotFound):
    """A path that does not exist for this client, whether it is there or not; to change it is AccessDenied."""

    @classmethod
    def at(cls, path: str, display_path: str = "") -> "HiddenByPolicy":
        """Return the error that any missing path gives."""
        return cls(NotFound.at(path, display_path).message, path=path)


class Jail:
    """Opens files beneath the roots of one caller. Safe to share between threads.

    `policy` holds the rules that bind the caller's client, None when there are none; `common_rules` bind every client.
    With `is_approved` a person has agreed to the changes that are made through this jail.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        hidden: Iterable[Identity] = (),
        policy: Policy | None = None,
        common_rules: tuple[PolicyRule, ...] = (),
    ) -> None:
        self.roots = tuple(roots)
        self.hidden = frozenset(hidden)
        self.policy = policy
        self.common_rules = common_rules
        self.is_approved = False
        self._approved_from: Jail | None = None

    @property
    def allowed_paths(self) -> list[str]:
        """Return the real paths of the allowed directories, the first being where relative paths start."""
        return [root.path for root in self.roots]

    def parse(self, path: str) -> JailedPath:
        """Find the root that a path belongs to. InvalidPath on bad syntax, AccessDenied when it belongs to none."""
        check_syntax(path)
        if not path.startswith("/"):
            return JailedPath(self.roots[0], without_quarantine(split_path(path), path), path)
        root, rest = self._root_of(path)
        return JailedPath(root, without_quarantine(split_path(rest), path), path)

    @contextmanager
    def open_file(self, path: str) -> Iterator[OpenFile]:
        """Open a regular file for reading. FIFOs, sockets and devices are refused without waiting."""
        jailed = self.parse(path)
        fd = self._open(jailed, _READ)
        try:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                raise IsDirectory(f"{display_name(path)} is a directory. Use list_directory or directory_tree.")
            if not stat.S_ISREG(status.st_mode):
                raise PermissionDenied(f"{path} is not a regular file (a FIFO, socket or device).")
            yield OpenFile(fd, status, path)
        finally:
            os.close(fd)

    @contextmanager
    def open_directory(self, path: str) -> Iterator[int]:
        """Open a directory, for listing or for walking beneath it."""
        jailed = self.parse(path)
        fd = self._open(jailed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)

    def directory_at(self, jailed: JailedPath) -> Identity:
        """Return the identity of the directory that a path leads to at this moment."""
        fd = self._open(jailed, _DIRECTORY | _O_PATH)
        try:
            return identity_of(os.fstat(fd))
        finally:
            os.close(fd)

    @contextmanager
    def place(self, path: str, *, follow: bool) -> Iterator[Place]:
        """Open the parent directory of a path's last component; it must exist.

        With `follow` a link at the end is resolved, if it stays beneath the roots, to the file it names;
        without it the place is the link itself. A root has no place: InvalidPath.
        """
        place = self._walk_to_place(self.parse(path), follow=follow)
        try:
            yield place
        finally:
            os.close(place.parent_fd)

    def locate(self, path: str) -> tuple[Root, tuple[str, ...]]:
        """Resolve every link in a path; return its root and the names beneath it, which are empty for the root itself."""
        place = self._walk_to_place(self.parse(path), follow=True, root_as_self=True)
        os.close(place.parent_fd)
        return place.root, split_path(place.path[len(place.root.path.rstrip("/")) :])

    def approved(self) -> "Jail":
        """Return the same jail for changes that a person approved; hidden and read-only paths stay what they are."""
        jail = Jail(self.roots, self.hidden, self.policy, self.common_rules)
        jail.is_approved = True
        jail._approved_from = self  # keeps the roots open
        return jail

    def policy_in(self, root: Root, folder: str) -> FolderPolicy | None:
        """Return the policy in a directory by its path beneath a root; None when nothing in it or below may be hidden."""
        if self.policy is None:
            return None
        policy = self.policy.folder(f"{root.path.rstrip('/')}/{folder}".rstrip("/"))
        return policy if policy.may_deny else None

    def hides(self, path: str) -> bool:
        """Return whether a real absolute path does not exist for the client."""
        return self.policy is not None and self.policy.hides(path)

    def is_hidden(self, identity: Identity) -> bool:
        """Return whether a directory is the state folder, which no caller sees."""
        return identity in self.hidden

    def absolute(self, path: str) -> str:
        """Return the absolute path, beginning with the path of its root, for display; it is never opened."""
        jailed = self.parse(path)
        return "/".join([jailed.root.path.rstrip("/"), *jailed.parts]) or "/"

    def _root_of(self, path: str) -> tuple[Root, str]:
        best: tuple[Root, str] | None = None
        longest = -1
        for root in self.roots:
            for name in (root.path, root.given_path):
                prefix = name.rstrip("/") + "/"
                if (path == name or path.startswith(prefix)) and len(prefix) > longest:
                    best, longest = (root, path[len(prefix) :]), len(prefix)
        if best is None:
            raise AccessDenied.outside(path)
        return best

    def _open(self, jailed: JailedPath, flags: int) -> int:
        root = jailed.root
        if has_openat2() and not root.walk_only and self._is_visible(jailed):
            try:
                return openat2_beneath(root.fd, "/".join(jailed.parts) or ".", flags)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.ELOOP, errno.ENOSYS):
                    raise_for_errno(error, jailed.display_path)
        try:
            return self._walk_open(jailed, flags)
        except OSError as error:
            raise_for_errno(error, jailed.display_path)

    def _is_visible(self, jailed: JailedPath) -> bool:
        """Return whether a path that has no links may be opened as it is written; any other is walked."""
        if self.policy is None:
            return True
        path = "/".join([jailed.root.path.rstrip("/"), *jailed.parts]) or "/"
        return ".." not in jailed.parts and not self.policy.hides(path)

    def _walk_open(self, jailed: JailedPath, flags: int) -> int:
        if not jailed.parts and self.policy is None:
            return os.open(".", flags, dir_fd=jailed.root.fd)
        for _ in range(8):
            place = self._walk_to_place(jailed, follow=not flags & os.O_NOFOLLOW, root_as_self=True)
            try:
                fd = os.open(place.name, flags | os.O_NOFOLLOW, dir_fd=place.parent_fd)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                continue
            finally:
                os.close(place.parent_fd)
            if self.hidden and identity_of(os.fstat(fd)) in self.hidden:
                os.close(fd)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            return fd
        raise OSError(errno.EXDEV, "the path kept changing")

    def _walk_to_place(self, jailed: JailedPath, *, follow: bool, root_as_self: bool = False) -> Place:
        walk = _Walk(self, jailed)
        try:
            return walk.run(follow=follow, root_as_self=root_as_self)
        except OSError as error:
            walk.close()
            raise_for_errno(error, jailed.display_path)
        except BaseException:
            walk.close()
            raise


class _Walk:
    """Resolves one path component by component: the stack of real names so far, and the components still pending."""

    def __init__(self, jail: Jail, jailed: JailedPath) -> None:
        self.jail = jail
        self.display_path = jailed.display_path
        self.pending = deque(jailed.parts)
        self.links = 0
        self.fd = -1
        self._enter(jailed.root)

    def _enter(self, root: Root) -> None:
        self.policy = None if self.jail.policy is None else self.jail.policy.folder(root.path)
        if self.policy is not None and self.policy.is_denied:
            self._hide()
        fd = os.dup(root.fd)
        self.close()
        self.root = root
        self.stack: list[str] = []
        self.fd = fd

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def run(self, *, follow: bool, root_as_self: bool) -> Place:
        while self.pending:
            name = self.pending.popleft()
            if name == "..":
                self._up()
                continue
            if self.policy is not None and self.policy.hides(name):
                self._hide()
            status = self._stat(name)
            is_link = status is not None and stat.S_ISLNK(status.st_mode)
            if not self.pending and not (is_link and follow):
                return self._place(name, status)
            if status is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            try:
                if is_link:
                    self._follow(name)
                else:
                    self._down(name)
            except OSError as error:
                self._retry_if_changed(name, status, error)
        if not self.stack:
            if not root_as_self:
                raise InvalidPath(f"{self.display_path} is an allowed directory itself; name something in it.")
            return Place(self.root, self.fd, ".", self.root.path, os.fstat(self.fd))
        name = self.stack[-1]
        self._up()
        return self._place(name, self._stat(name))

    def _place(self, name: str, status: os.stat_result | None) -> Place:
        path = "/".join([self.root.path.rstrip("/"), *self.stack, name])
        return Place(self.root, self.fd, name, path, status)

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return None if name == QUARANTINE or self.jail.is_hidden(identity_of(status)) else status

    def _down(self, name: str) -> None:
        below = os.open(name, _DIRECTORY | _O_PATH, dir_fd=self.fd)
        if name == QUARANTINE or (self.jail.hidden and self.jail.is_hidden(identity_of(os.fstat(below)))):
            os.close(below)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        os.close(self.fd)
        self.fd = below
        self.stack.append(name)
        if self.policy is not None:
            self.policy = self.policy.enter(name)

    def _hide(self) -> NoReturn:
        raise HiddenByPolicy.at(self.display_path, display_name(self.display_path))

    def _up(self) -> None:
        """Go one up by walking down again from the root: the kernel's own `..` may leave it after a rename."""
        if not self.stack:
            raise AccessDenied.outside(self.display_path)
        names = self.stack[:-1]
        self._enter(self.root)
        for name in names:
            self._down(name)

    def _retry_if_changed(self, name: str, before: os.stat_result, error: OSError) -> None:
        """Put a name back to pending when it changed between stat and open; otherwise raise the error."""
        if error.errno not in _CHANGED or not (stat.S_ISLNK(before.st_mode) or stat.S_ISDIR(before.st_mode)):
            raise error
        self._count_link()
        self.pending.appendleft(name)

    def _count_link(self) -> None:
        self.links += 1
        if self.links > MAX_LINKS:
            raise AccessDenied.outside(self.display_path)

    def _follow(self, name: str) -> None:
        self._count_link()
        target = os.readlink(name, dir_fd=self.fd)
        if target.startswith("/"):
            try:
                root, target = self.jail._root_of(target)
            except AccessDenied:
                raise AccessDenied.outside(self.display_path) from None
            self._enter(root)
        parts = split_path(target)
        if names_quarantine(parts, target):
            raise NotFound.at(self.display_path, display_name(self.display_path))
        self.pending.extendleft(reversed(parts))


if sys.platform not in {"linux", "darwin"}:
    raise ImportError("Folder tools need Linux or macOS.")
