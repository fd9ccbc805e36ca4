"""One move to another device: copy, sync, read back, compare, publish, sync, and only then set the source aside.

The source is never unlinked, so whatever a crash or a failing disk leaves is told by looking at the two of them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.changes import disk
from holdfast.changes.disk import chunks, look, opened
from holdfast.changes.model import Item, Node
from holdfast.changes.quarantine import Quarantine
from holdfast.changes.record import Abandoned, unhurried
from holdfast.changes.tree import Stocktaking, build, digest, entered, erase_ours, same_tree, take_stock
from holdfast.errors import AlreadyExists, Conflict, HoldfastError
from holdfast.folders.jail import Jail, Place
from holdfast.folders.roots import identity_of


@dataclass(frozen=True, slots=True)
class Crossing:
    """From one place to another; `temp` is the copy's name beside the target, `aside` the path its source gets."""

    jail: Jail
    quarantine: Quarantine
    source: Place
    target: Place
    temp: str
    aside: str

    def run(self, stock: Sequence[Item], call: Call) -> str:
        """Carry it out for a source that was found as `stock`; returns the identity of what stands at the target.

        Raises Abandoned when the target is taken or the source changed: then the source is where it was and no copy
        is left. After any other error `settle` says what is true.
        """
        source, target = self.source, self.target
        self._copy(stock, call)
        try:
            disk.publish(target.parent_fd, self.temp, target.parent_fd, target.name)
        except FileExistsError:
            erase_ours(target.parent_fd, self.temp)
            raise Abandoned(AlreadyExists(f"{target.path} exists already; nothing was moved.")) from None
        try:
            disk.sync_directory(target.parent_fd)
        except OSError:
            self._withdraw(digest(stock))
            raise
        with self._shelf() as shelf:
            self._set_aside(shelf, digest(stock))
            self._check_aside(shelf, digest(stock))
            disk.sync_directory(shelf)
        disk.sync_directory(source.parent_fd)
        return _identity(look(target.parent_fd, target.name))

    def settle(self) -> str | None:
        """Finish or clear away what was interrupted; returns the identity at the target, None when nothing moved.

        Nothing that exists only once is removed. Conflict when both ends hold something that has to be looked at.
        """
        source, target = self.source, self.target
        if look(target.parent_fd, self.temp) is not None:
            erase_ours(target.parent_fd, self.temp)
            disk.sync_directory(target.parent_fd)
        at_source, at_target = look(source.parent_fd, source.name), look(target.parent_fd, target.name)
        with self._shelf() as shelf:
            if look(shelf, self._name) is not None:
                return self._settle_aside(shelf, at_source, at_target)
            if at_source is None or at_target is None or not self._are_the_same(at_source, at_target):
                return None
            disk.sync_directory(target.parent_fd)
            self._set_aside(shelf, None)
            disk.sync_directory(shelf)
        disk.sync_directory(source.parent_fd)
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
                disk.sync_directory(directory)
            return _identity(at_target)
        if at_source is not None:
            raise Conflict(f"{source.path} is there again; what was moved from it is kept as {self.aside}.")
        disk.move_entry(shelf, self._name, source.parent_fd, source.name)
        for directory in (source.parent_fd, shelf):
            disk.sync_directory(directory)
        if at_target is not None:
            raise Conflict(f"{source.path} and {target.path} differ; both were left in place.")
        return None

    def _copy(self, stock: Sequence[Item], call: Call) -> None:
        """Build the copy, read it back, compare it, and see that the source is still the one that was read."""
        source, target = self.source, self.target
        build(target.parent_fd, self.temp, stock, lambda item: entry_bytes(source, item), call)
        copied = take_stock(target.parent_fd, self.temp, source.path, Stocktaking(call, self.jail.is_hidden))
        now = look(source.parent_fd, source.name)
        same_source = now is not None and (stock[0].node is not Node.FILE or now.st_mtime_ns == stock[0].mtime_ns)
        if not same_source or not same_tree(copied, stock):
            erase_ours(target.parent_fd, self.temp)
            raise Abandoned(_changed(source.path))

    def _set_aside(self, shelf: int, published: str | None) -> None:
        """Take the source away; where the system refuses, the copy goes and the source stays."""
        try:
            disk.set_aside(self.source.parent_fd, self.source.name, shelf, self._name)
        except OSError:
            self._withdraw(published or self._digest_at_source())
            raise

    def _check_aside(self, shelf: int, expected: str) -> None:
        """See that what was taken away is what was copied; else it goes back, and the copy goes."""
        try:
            same = self._is(shelf, self._name, self.source.path, expected)
        except OSError:
            self._bring_back(shelf, expected)
            raise
        if not same:
            self._bring_back(shelf, expected)
            raise Abandoned(_changed(self.source.path))

    def _bring_back(self, shelf: int, published: str) -> None:
        disk.move_entry(shelf, self._name, self.source.parent_fd, self.source.name)
        self._withdraw(published)

    def _digest_at_source(self) -> str:
        how = Stocktaking(unhurried(), self.jail.is_hidden)
        return digest(take_stock(self.source.parent_fd, self.source.name, self.source.path, how))

    def _withdraw(self, published: str) -> None:
        """Take our copy back out of the target, unless somebody has put something else there."""
        target = self.target
        disk.move_entry(target.parent_fd, target.name, target.parent_fd, self.temp)
        try:
            ours = self._is(target.parent_fd, self.temp, target.path, published)
        except OSError:
            ours = False
        if ours:
            erase_ours(target.parent_fd, self.temp)
        else:
            disk.move_entry(target.parent_fd, self.temp, target.parent_fd, target.name)

    def _is(self, dir_fd: int, name: str, path: str, expected: str) -> bool:
        how = Stocktaking(unhurried(), self.jail.is_hidden, refuse_writers=True)
        try:
            return digest(take_stock(dir_fd, name, path, how)) == expected
        except HoldfastError:
            return False

    def _same_bytes(self, shelf: int) -> bool:
        how = Stocktaking(unhurried(), self.jail.is_hidden)
        there = take_stock(self.target.parent_fd, self.target.name, self.target.path, how)
        return same_tree(there, take_stock(shelf, self._name, self.source.path, how))

    def _are_the_same(self, at_source: os.stat_result, at_target: os.stat_result) -> bool:
        """Return whether the target is our copy of the source: the same bytes, with the time that only a copy has."""
        if at_source.st_mtime_ns != at_target.st_mtime_ns or at_source.st_mode != at_target.st_mode:
            return False
        how = Stocktaking(unhurried(), self.jail.is_hidden, refuse_writers=True)
        try:
            ours = take_stock(self.source.parent_fd, self.source.name, self.source.path, how)
            return same_tree(ours, take_stock(self.target.parent_fd, self.target.name, self.target.path, how))
        except (HoldfastError, OSError):
            return False


def entry_bytes(top: Place, item: Item) -> Iterator[bytes]:
    """Yield the bytes of a file, or the target of a link, of a tree that stands at a place."""
    below = item.src_path[len(top.path) + 1 :]
    names = [top.name, *below.split("/")] if below else [top.name]
    with ExitStack() as stack:
        fd = top.parent_fd
        for name in names[:-1]:
            fd = stack.enter_context(entered(fd, name))
        if item.node is Node.LINK:
            yield os.fsencode(os.readlink(names[-1], dir_fd=fd))
            return
        yield from chunks(stack.enter_context(opened(fd, names[-1], item.src_path)))


def _identity(status: os.stat_result | None) -> str:
    return "" if status is None else "{}:{}".format(*identity_of(status))


def _changed(path: str) -> Conflict:
    return Conflict(f"{path} changed while it was copied; it stays where it is.")
