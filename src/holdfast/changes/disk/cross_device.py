"""Moves one entry to another device: copy, sync, compare, publish, sync, and only then quarantine the source.

The source is never unlinked, so after a crash or a disk error a look at both ends says what happened.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

from holdfast.call import Call, uncancellable_call
from holdfast.changes.disk import files
from holdfast.changes.disk.files import hash_bytes, open_file, read_chunks, stat_entry
from holdfast.changes.disk.links import Links, link_target
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.disk.tree import (
    TreeOptions,
    build_tree,
    erase_tree,
    is_same_tree,
    open_directory,
    read_tree,
    tree_digest,
)
from holdfast.changes.model import ChangeAbandoned, Item, NodeType
from holdfast.errors import AlreadyExists, Conflict, HoldfastError
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Jail, Place


@dataclass(frozen=True, slots=True)
class CrossDeviceMove:
    """One move from `source` to `target`.

    `temp_name` is the copy's temporary name beside the target, `quarantine_path` the path that the source gets.
    With `links` the entry is a link: its copy gets the text that leads where the source led, and the two count as equal.
    """

    jail: Jail
    quarantine: Quarantine
    source: Place
    target: Place
    temp_name: str
    quarantine_path: str
    links: Links | None = None

    def read_source(self, call: Call) -> list[Item]:
        """Return the tree at the source."""
        return read_tree(self.source.parent_fd, self.source.name, self.source.path, self._options(self.source, call))

    def run(self, tree: Sequence[Item], call: Call) -> str:
        """Move a source that was read as `tree`; returns the identity of the copy at the target.

        Raises ChangeAbandoned when the target is taken or the source changed: then the source is where it was and no copy
        is left. After any other error call `recover`.
        """
        source, target = self.source, self.target
        self._copy(tree, call)
        try:
            files.publish(target.parent_fd, self.temp_name, target.parent_fd, target.name)
        except FileExistsError:
            erase_tree(target.parent_fd, self.temp_name)
            raise ChangeAbandoned(AlreadyExists(f"{target.path} exists already; nothing was moved.")) from None
        try:
            files.sync_directory(target.parent_fd)
        except OSError:
            self._withdraw_copy(tree_digest(tree))
            raise
        with self._open_quarantine() as quarantine_fd:
            self._quarantine_source(quarantine_fd, tree_digest(tree))
            self._check_quarantined(quarantine_fd, tree_digest(tree))
            files.sync_directory(quarantine_fd)
        files.sync_directory(source.parent_fd)
        return _identity(stat_entry(target.parent_fd, target.name))

    def recover(self) -> str | None:
        """Finish or clean up an interrupted move; returns the identity at the target, None when nothing moved.

        Nothing that exists only once is removed. Conflict when the two ends differ and a person has to look at them.
        """
        source, target = self.source, self.target
        if stat_entry(target.parent_fd, self.temp_name) is not None:
            erase_tree(target.parent_fd, self.temp_name)
            files.sync_directory(target.parent_fd)
        at_source, at_target = stat_entry(source.parent_fd, source.name), stat_entry(target.parent_fd, target.name)
        with self._open_quarantine() as quarantine_fd:
            if stat_entry(quarantine_fd, self._quarantine_name) is not None:
                return self._recover_quarantined(quarantine_fd, at_source, at_target)
            if at_source is None or at_target is None or not self._is_our_copy(at_source, at_target):
                return None
            files.sync_directory(target.parent_fd)
            self._quarantine_source(quarantine_fd, None)
            files.sync_directory(quarantine_fd)
        files.sync_directory(source.parent_fd)
        return _identity(at_target)

    @property
    def _quarantine_name(self) -> str:
        return os.path.basename(self.quarantine_path)

    def _open_quarantine(self) -> AbstractContextManager[int]:
        return self.quarantine.open_folder(self.jail, os.path.dirname(self.quarantine_path))

    def _recover_quarantined(
        self, quarantine_fd: int, at_source: os.stat_result | None, at_target: os.stat_result | None
    ) -> str | None:
        source, target = self.source, self.target
        if at_target is not None and self._is_same_as_quarantined(quarantine_fd):
            for directory in (target.parent_fd, quarantine_fd, source.parent_fd):
                files.sync_directory(directory)
            return _identity(at_target)
        if at_source is not None:
            raise Conflict(f"{source.path} is there again; what was moved from it is kept as {self.quarantine_path}.")
        files.move_entry(quarantine_fd, self._quarantine_name, source.parent_fd, source.name)
        for directory in (source.parent_fd, quarantine_fd):
            files.sync_directory(directory)
        if at_target is not None:
            raise Conflict(f"{source.path} and {target.path} differ; both were left in place.")
        return None

    def _copy(self, tree: Sequence[Item], call: Call) -> None:
        """Build the copy, read it back, compare it, and check that the source is still the one that was read."""
        source, target = self.source, self.target
        build_tree(target.parent_fd, self.temp_name, tree, self._read_content, call)
        copied = read_tree(target.parent_fd, self.temp_name, source.path, self._options(target, call))
        now = stat_entry(source.parent_fd, source.name)
        same_source = now is not None and (tree[0].node is not NodeType.FILE or now.st_mtime_ns == tree[0].mtime_ns)
        if not same_source or not is_same_tree(copied, tree):
            erase_tree(target.parent_fd, self.temp_name)
            raise ChangeAbandoned(_changed_meanwhile(source.path))

    def _quarantine_source(self, quarantine_fd: int, copy_digest: str | None) -> None:
        """Move the source to quarantine; where the system refuses, the copy is erased and the source stays."""
        try:
            files.quarantine_source(self.source.parent_fd, self.source.name, quarantine_fd, self._quarantine_name)
        except OSError:
            self._withdraw_copy(copy_digest or tree_digest(self.read_source(uncancellable_call())))
            raise

    def _check_quarantined(self, quarantine_fd: int, expected: str) -> None:
        """Check that the quarantined source is what was copied; otherwise it goes back, and the copy is erased."""
        try:
            is_same = self._has_digest(self.source, quarantine_fd, self._quarantine_name, expected)
        except OSError:
            self._restore_source(quarantine_fd, expected)
            raise
        if not is_same:
            self._restore_source(quarantine_fd, expected)
            raise ChangeAbandoned(_changed_meanwhile(self.source.path))

    def _restore_source(self, quarantine_fd: int, copy_digest: str) -> None:
        files.move_entry(quarantine_fd, self._quarantine_name, self.source.parent_fd, self.source.name)
        self._withdraw_copy(copy_digest)

    def _withdraw_copy(self, copy_digest: str) -> None:
        """Erase our copy at the target, unless another program has put something else there."""
        target = self.target
        files.move_entry(target.parent_fd, target.name, target.parent_fd, self.temp_name)
        try:
            is_ours = self._has_digest(target, target.parent_fd, self.temp_name, copy_digest)
        except OSError:
            is_ours = False
        if is_ours:
            erase_tree(target.parent_fd, self.temp_name)
        else:
            files.move_entry(target.parent_fd, self.temp_name, target.parent_fd, target.name)

    def _has_digest(self, end: Place, dir_fd: int, name: str, expected: str) -> bool:
        """Return whether the entry under a name, which belongs to one of the two ends, has the expected digest."""
        options = self._options(end, uncancellable_call(), refuse_writers=True)
        try:
            return tree_digest(read_tree(dir_fd, name, end.path, options)) == expected
        except HoldfastError:
            return False

    def _is_same_as_quarantined(self, quarantine_fd: int) -> bool:
        source, target, call = self.source, self.target, uncancellable_call()
        at_target = read_tree(target.parent_fd, target.name, target.path, self._options(target, call))
        in_quarantine = read_tree(quarantine_fd, self._quarantine_name, source.path, self._options(source, call))
        return is_same_tree(at_target, in_quarantine)

    def _is_our_copy(self, at_source: os.stat_result, at_target: os.stat_result) -> bool:
        """Return whether the target is our copy of the source: the same bytes, and the mtime that only a copy has."""
        if at_source.st_mtime_ns != at_target.st_mtime_ns or at_source.st_mode != at_target.st_mode:
            return False
        ends = (self.source, self.target)
        try:
            source_tree, target_tree = (
                read_tree(
                    end.parent_fd, end.name, end.path, self._options(end, uncancellable_call(), refuse_writers=True)
                )
                for end in ends
            )
            return is_same_tree(source_tree, target_tree)
        except (HoldfastError, OSError):
            return False

    def _options(self, end: Place, call: Call, *, refuse_writers: bool = False) -> TreeOptions:
        """Return how to read an entry that belongs to one of the two ends, wherever it is meanwhile."""
        hash_link = hash_bytes if self.links is None else partial(self._hash_link, self.links, end)
        return TreeOptions(call, self.jail.is_hidden, hash_link=hash_link, refuse_writers=refuse_writers)

    def _hash_link(self, links: Links, end: Place, text: bytes) -> str:
        resolve = links.target_after_moves if end is self.source else link_target
        return hash_bytes(os.fsencode(resolve(end.path, os.fsdecode(text))))

    def _read_content(self, item: Item) -> Iterator[bytes]:
        """Yield the bytes of a file, or the text that a link gets at the target."""
        if self.links is None:
            yield from read_entry(self.source, item)
            return
        text = os.fsdecode(b"".join(read_entry(self.source, item)))
        yield os.fsencode(self.links.rewrite(self.source.path, text, self.target.path))


def read_entry(top: Place, item: Item) -> Iterator[bytes]:
    """Yield the bytes of a file, or the text of a link, of a tree whose top is at a place."""
    below = item.src_path[len(top.path) + 1 :]
    names = [top.name, *below.split("/")] if below else [top.name]
    with ExitStack() as stack:
        fd = top.parent_fd
        for name in names[:-1]:
            fd = stack.enter_context(open_directory(fd, name))
        if item.node is NodeType.LINK:
            yield os.fsencode(os.readlink(names[-1], dir_fd=fd))
            return
        yield from read_chunks(stack.enter_context(open_file(fd, names[-1], item.src_path)))


def _identity(status: os.stat_result | None) -> str:
    return "" if status is None else identity_text(status)


def _changed_meanwhile(path: str) -> Conflict:
    return Conflict(f"{path} changed while it was copied; it stays where it is.")
