"""Moving a file, link or tree to a free place: by one rename, or across devices by copy, comparison and publication."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from holdfast.call import Call
from holdfast.changes.disk import chunks, copy_xattrs, hash_file, look, opened, sync_directory, temp_name
from holdfast.changes.model import Item, Node, Op, Outcome, Plan
from holdfast.changes.record import Abandoned, Intent, Recorder, new_plan, unhurried
from holdfast.changes.tree import Stocktaking, build, digest, entered, erase, erase_ours, mend, same_tree, take_stock
from holdfast.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from holdfast.folders.jail import Jail, Place
from holdfast.folders.roots import identity_of
from holdfast.folders.syscalls import rename_noreplace

_HASHED_BYTES = 16 << 20


class Moves:
    """Moves that never replace anything."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def move(self, jail: Jail, source: Place, target: Place, call: Call, intent: Intent) -> str:
        """Move what is at the source to the target; returns the id of the change.

        AlreadyExists when the target is there, even if it appears at the last moment; both stay as they are.
        """
        if target.path.startswith(source.path + "/"):
            raise InvalidArgument(f"{source.path} cannot be moved into itself.")
        if target.status is not None:
            raise _exists(target)
        status = look(source.parent_fd, source.name)
        if status is None:
            raise NotFound(f"No such file or directory: {source.path}")
        source = replace(source, status=status)
        same_device = os.fstat(source.parent_fd).st_dev == os.fstat(target.parent_fd).st_dev
        stock = None if same_device else take_stock(source.parent_fd, source.name, source.path, _hashes(jail, call))
        if same_device and source.root.walk_only:
            take_stock(source.parent_fd, source.name, source.path, _names(jail, call))
        item = _item(source, target, stock)
        plan = new_plan(
            intent, source.root.path, [item], None if stock is None else temp_name(), other_root=target.root.path
        )
        self._recorder.carry_out(
            plan,
            [],
            lambda: self._rename(jail, source, target, plan, stock, call),
            lambda unfinished: self.settle(jail, unfinished, source, target),
        )
        return plan.id

    def settle(self, jail: Jail, plan: Plan, source: Place, target: Place) -> Outcome:
        """Say by what is on the disk whether a move took effect, finish one that was published, and tidy up."""
        temp = plan.temp_name
        if temp is None:
            return _settle_rename(source, target, plan.first.identity)
        if look(target.parent_fd, temp) is not None and look(source.parent_fd, source.name) is not None:
            erase_ours(target.parent_fd, temp)
            return Outcome.failed("It was interrupted before it took effect.")
        at_target = look(target.parent_fd, target.name)
        at_source = look(source.parent_fd, source.name)
        hidden = look(source.parent_fd, temp)
        if at_target is None:
            if hidden is not None and at_source is None:
                rename_noreplace(source.parent_fd, temp, source.parent_fd, source.name)
            return Outcome.failed("It was interrupted before it took effect.")
        if at_source is None and hidden is None:
            _sync_both(source, target)
            return Outcome.done(_identity(at_target))
        return self._finish_copy(jail, plan, source, target, _identity(at_target))

    def _rename(
        self, jail: Jail, source: Place, target: Place, plan: Plan, stock: Sequence[Item] | None, call: Call
    ) -> Outcome:
        try:
            if stock is None:
                rename_noreplace(source.parent_fd, source.name, target.parent_fd, target.name)
                _sync_both(source, target)
                return Outcome.done(plan.first.identity)
            self._copy(jail, source, target, plan.temp_name or "", stock, call)
            rename_noreplace(target.parent_fd, plan.temp_name or "", target.parent_fd, target.name)
        except FileExistsError:
            if plan.temp_name and look(target.parent_fd, plan.temp_name) is not None:
                erase_ours(target.parent_fd, plan.temp_name)
            raise Abandoned(_exists(target)) from None
        except FileNotFoundError:
            if stock is None:
                raise Abandoned(NotFound(f"No such file or directory: {source.path}")) from None
            raise
        except OSError as error:
            if error.errno == errno.EXDEV and stock is None:
                raise Abandoned(
                    InvalidArgument(f"{source.path} and {target.path} cannot be joined by a move.")
                ) from None
            raise
        sync_directory(target.parent_fd)
        return self._finish_copy(jail, plan, source, target, _identity(look(target.parent_fd, target.name)))

    def _copy(self, jail: Jail, source: Place, target: Place, temp: str, stock: Sequence[Item], call: Call) -> None:
        """Build the copy, read it back, and compare it with what was counted at the source."""
        build(target.parent_fd, temp, stock, lambda item: _source_bytes(source, item), call)
        if stock[0].node is Node.FILE:
            with (
                opened(source.parent_fd, source.name, source.path) as ours,
                opened(target.parent_fd, temp, target.path) as copy,
            ):
                copy_xattrs(ours, copy)
        copied = take_stock(target.parent_fd, temp, source.path, _hashes(jail, call))
        if not same_tree(copied, stock):
            erase_ours(target.parent_fd, temp)
            raise Abandoned(Conflict(f"{source.path} changed while it was copied; it stays where it is."))

    def _finish_copy(self, jail: Jail, plan: Plan, source: Place, target: Place, identity: str | None) -> Outcome:
        """Take the source away once the copy is in place and both are seen to be the same."""
        temp = plan.temp_name or ""
        how = Stocktaking(unhurried(), jail.is_hidden, refuse_writers=True)
        at_target = take_stock(target.parent_fd, target.name, target.path, how)
        if digest(at_target) != plan.first.before_hash:
            return Outcome.failed("Something else stands at the destination; the source was left where it is.")
        if look(source.parent_fd, temp) is None:
            rename_noreplace(source.parent_fd, source.name, source.parent_fd, temp)
            sync_directory(source.parent_fd)
        left = take_stock(source.parent_fd, temp, source.path, how)
        if digest(left) != plan.first.before_hash:
            rename_noreplace(source.parent_fd, temp, source.parent_fd, source.name)
            return Outcome.failed("The source changed after it was copied; both versions were left in place.")
        try:
            erase(source.parent_fd, temp, left)
        except OSError:
            mend(source.parent_fd, temp, left, lambda item: _source_bytes(target, _at(item, source, target)), how.call)
            rename_noreplace(source.parent_fd, temp, source.parent_fd, source.name)
            return Outcome.failed("The source cannot be removed after it was copied; both versions were left in place.")
        sync_directory(source.parent_fd)
        return Outcome.done(identity)


def _settle_rename(source: Place, target: Place, identity: str | None) -> Outcome:
    at_target = look(target.parent_fd, target.name)
    if look(source.parent_fd, source.name) is not None or _identity(at_target) != identity:
        return Outcome.failed("It was interrupted before it took effect.")
    _sync_both(source, target)
    return Outcome.done(identity)


def _source_bytes(source: Place, item: Item) -> Iterator[bytes]:
    names = (
        [source.name, *item.src_path[len(source.path) + 1 :].split("/")]
        if item.src_path != source.path
        else [source.name]
    )
    with ExitStack() as stack:
        fd = source.parent_fd
        for name in names[:-1]:
            fd = stack.enter_context(entered(fd, name))
        if item.node is Node.LINK:
            yield os.fsencode(os.readlink(names[-1], dir_fd=fd))
            return
        yield from chunks(stack.enter_context(opened(fd, names[-1], item.src_path)))


def _at(item: Item, source: Place, target: Place) -> Item:
    """Return an entry of the source as its copy is called."""
    return replace(item, src_path=target.path + item.src_path[len(source.path) :])


def _hashes(jail: Jail, call: Call) -> Stocktaking:
    return Stocktaking(call, jail.is_hidden)


def _names(jail: Jail, call: Call) -> Stocktaking:
    return Stocktaking(call, jail.is_hidden, of_file=lambda _fd: "", of_link=lambda _target: "")


def _item(source: Place, target: Place, stock: Sequence[Item] | None) -> Item:
    status = source.status
    size, mode = (0, 0) if status is None else (status.st_size, status.st_mode & 0o7777)
    hash_ = _small_file_hash(source) if stock is None else digest(stock)
    return Item(
        Op.MOVE,
        source.path,
        target.path,
        node=Node.DIRECTORY if status is not None and stat.S_ISDIR(status.st_mode) else Node.FILE,
        before_hash=hash_,
        after_hash=hash_,
        size_bytes=size,
        mode=mode,
        identity=_identity(status),
    )


def _small_file_hash(source: Place) -> str | None:
    """Return the hash by which an undo knows the file again, where reading it costs little."""
    status = source.status
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _HASHED_BYTES:
        return None
    with opened(source.parent_fd, source.name, source.path) as fd:
        return hash_file(fd)


def _identity(status: os.stat_result | None) -> str | None:
    if status is None:
        return None
    device, inode = identity_of(status)
    return f"{device}:{inode}"


def _sync_both(source: Place, target: Place) -> None:
    sync_directory(target.parent_fd)
    if identity_of(os.fstat(source.parent_fd)) != identity_of(os.fstat(target.parent_fd)):
        sync_directory(source.parent_fd)


def _exists(target: Place) -> AlreadyExists:
    return AlreadyExists(f"{target.path} exists already; nothing was moved. Choose another name, or delete it first.")
