"""One move to another device: copy, sync, read back, compare, publish, sync, and only then set the source aside.

The source is never unlinked, so whatever a crash or a failing disk leaves is told by looking at the two of them.
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
    TreeReader,
    build_tree,
    erase_tree,
    is_same_tree,
    open_directory,
    read_tree,
    tree_digest,
)
from holdfast.changes.model import Abandoned, Item, NodeType
from holdfast.errors import AlreadyExists, Conflict, HoldfastError
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Jail, Place


@dataclass(frozen=True, slots=True)
class CrossDeviceMove:
    """From one place to another; `temp` is the copy's name beside the target, `aside` the path its source gets.

    With `links` it is a link that moves: its copy says what leads where the source led, and they count as the same.
    """

    jail: Jail
    quarantine: Quarantine
    source: Place
    target: Place
    temp: str
    aside: str
    links: Links | None = None

    def stock(self, call: Call) -> list[Item]:
        """Return what stands at the source."""
        return read_tree(self.source.parent_fd, self.source.name, self.source.path, self._how(self.source, call))

    def run(self, stock: Sequence[Item], call: Call) -> str:
        """Carry it out for a source that was found as `stock`; returns the identity of what stands at the target.

        Raises Abandoned when the target is taken or the source changed: then the source is where it was and no copy
        is left. After any other error `settle` says what is true.
        """
        source, target = self.source, self.target
        self._copy(stock, call)
        try:
            files.publish(target.parent_fd, self.temp, target.parent_fd, target.name)
        except FileExistsError:
            erase_tree(target.parent_fd, self.temp)
            raise Abandoned(AlreadyExists(f"{target.path} exists already; nothing was moved.")) from None
        try:
            files.sync_directory(target.parent_fd)
        except OSError:
            self._withdraw(tree_digest(stock))
            raise
        with self._shelf() as shelf:
            self._set_aside(shelf, tree_digest(stock))
            self._check_aside(shelf, tree_digest(stock))
            files.sync_directory(shelf)
        files.sync_directory(source.parent_fd)
        return _identity(stat_entry(target.parent_fd, target.name))

    def settle(self) -> str | None:
        """Finish or clear away what was interrupted; returns the identity at the target, None when nothing moved.

        Nothing that exists only once is removed. Conflict when both ends hold something that has to be looked at.
        """
        source, target = self.source, self.target
        if stat_entry(target.parent_fd, self.temp) is not None:
            erase_tree(target.parent_fd, self.temp)
            files.sync_directory(target.parent_fd)
        at_source, at_target = stat_entry(source.parent_fd, source.name), stat_entry(target.parent_fd, target.name)
        with self._shelf() as shelf:
            if stat_entry(shelf, self._name) is not None:
                return self._settle_aside(shelf, at_source, at_target)
            if at_source is None or at_target is None or not self._are_the_same(at_source, at_target):
                return None
            files.sync_directory(target.parent_fd)
            self._set_aside(shelf, None)
            files.sync_directory(shelf)
        files.sync_directory(source.parent_fd)
        return _identity(at_target)

    @property
    def _name(self) -> str:
        return os.path.basename(self.aside)

    def _shelf(self) -> AbstractContextManager[int]:
        return self.quarantine.opened(self.jail, os.path.dirname(self.aside))

    def _settle_aside(
        self, shelf: int, at_source: os.stat_result | None, at_target: os.stat_result | None
    ) -> str | None:
        source, target = self.source, self.target
        if at_target is not None and self._same_bytes(shelf):
            for directory in (target.parent_fd, shelf, source.parent_fd):
                files.sync_directory(directory)
            return _identity(at_target)
        if at_source is not None:
            raise Conflict(f"{source.path} is there again; what was moved from it is kept as {self.aside}.")
        files.move_entry(shelf, self._name, source.parent_fd, source.name)
        for directory in (source.parent_fd, shelf):
            files.sync_directory(directory)
        if at_target is not None:
            raise Conflict(f"{source.path} and {target.path} differ; both were left in place.")
        return None

    def _copy(self, stock: Sequence[Item], call: Call) -> None:
        """Build the copy, read it back, compare it, and see that the source is still the one that was read."""
        source, target = self.source, self.target
        build_tree(target.parent_fd, self.temp, stock, self._bytes_of, call)
        copied = read_tree(target.parent_fd, self.temp, source.path, self._how(target, call))
        now = stat_entry(source.parent_fd, source.name)
        same_source = now is not None and (stock[0].node is not NodeType.FILE or now.st_mtime_ns == stock[0].mtime_ns)
        if not same_source or not is_same_tree(copied, stock):
            erase_tree(target.parent_fd, self.temp)
            raise Abandoned(_changed(source.path))

    def _set_aside(self, shelf: int, published: str | None) -> None:
        """Take the source away; where the system refuses, the copy goes and the source stays."""
        try:
            files.set_aside(self.source.parent_fd, self.source.name, shelf, self._name)
        except OSError:
            self._withdraw(published or self._digest_at_source())
            raise

    def _check_aside(self, shelf: int, expected: str) -> None:
        """See that what was taken away is what was copied; else it goes back, and the copy goes."""
        try:
            same = self._is(self.source, shelf, self._name, expected)
        except OSError:
            self._bring_back(shelf, expected)
            raise
        if not same:
            self._bring_back(shelf, expected)
            raise Abandoned(_changed(self.source.path))

    def _bring_back(self, shelf: int, published: str) -> None:
        files.move_entry(shelf, self._name, self.source.parent_fd, self.source.name)
        self._withdraw(published)

    def _digest_at_source(self) -> str:
        return tree_digest(self.stock(uncancellable_call()))

    def _withdraw(self, published: str) -> None:
        """Take our copy back out of the target, unless somebody has put something else there."""
        target = self.target
        files.move_entry(target.parent_fd, target.name, target.parent_fd, self.temp)
        try:
            ours = self._is(target, target.parent_fd, self.temp, published)
        except OSError:
            ours = False
        if ours:
            erase_tree(target.parent_fd, self.temp)
        else:
            files.move_entry(target.parent_fd, self.temp, target.parent_fd, target.name)

    def _is(self, end: Place, dir_fd: int, name: str, expected: str) -> bool:
        """Return whether what is under a name, on its way from or to one of the two ends, is what is expected there."""
        how = self._how(end, uncancellable_call(), refuse_writers=True)
        try:
            return tree_digest(read_tree(dir_fd, name, end.path, how)) == expected
        except HoldfastError:
            return False

    def _same_bytes(self, shelf: int) -> bool:
        source, target, call = self.source, self.target, uncancellable_call()
        there = read_tree(target.parent_fd, target.name, target.path, self._how(target, call))
        return is_same_tree(there, read_tree(shelf, self._name, source.path, self._how(source, call)))

    def _are_the_same(self, at_source: os.stat_result, at_target: os.stat_result) -> bool:
        """Return whether the target is our copy of the source: the same bytes, with the time that only a copy has."""
        if at_source.st_mtime_ns != at_target.st_mtime_ns or at_source.st_mode != at_target.st_mode:
            return False
        ends = (self.source, self.target)
        hows = [self._how(end, uncancellable_call(), refuse_writers=True) for end in ends]
        try:
            one, other = (
                read_tree(end.parent_fd, end.name, end.path, how) for end, how in zip(ends, hows, strict=True)
            )
            return is_same_tree(one, other)
        except (HoldfastError, OSError):
            return False

    def _how(self, end: Place, call: Call, *, refuse_writers: bool = False) -> TreeReader:
        """Return how to look at what belongs to one of the two ends, wherever it stands meanwhile."""
        of_link = hash_bytes if self.links is None else partial(self._hash_of_link, self.links, end)
        return TreeReader(call, self.jail.is_hidden, of_link=of_link, refuse_writers=refuse_writers)

    def _hash_of_link(self, links: Links, end: Place, text: bytes) -> str:
        read = links.will_lead if end is self.source else link_target
        return hash_bytes(os.fsencode(read(end.path, os.fsdecode(text))))

    def _bytes_of(self, item: Item) -> Iterator[bytes]:
        """Yield the bytes of a file, or what a link is to say at the target."""
        if self.links is None:
            yield from entry_bytes(self.source, item)
            return
        text = os.fsdecode(b"".join(entry_bytes(self.source, item)))
        yield os.fsencode(self.links.rewritten(self.source.path, text, self.target.path))


def entry_bytes(top: Place, item: Item) -> Iterator[bytes]:
    """Yield the bytes of a file, or the target of a link, of a tree that stands at a place."""
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


def _changed(path: str) -> Conflict:
    return Conflict(f"{path} changed while it was copied; it stays where it is.")
