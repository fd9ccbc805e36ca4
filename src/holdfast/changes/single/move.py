"""Moves a file, link or tree to a free place: by one rename, or to another device by `CrossDeviceMove`."""

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import replace

from holdfast.call import Call
from holdfast.changes.disk import files
from holdfast.changes.disk.cross_device import CrossDeviceMove
from holdfast.changes.disk.files import hash_file, open_file, stat_entry, temp_name
from holdfast.changes.disk.identity import is_same_entry
from holdfast.changes.disk.policy_gate import check_tree
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.disk.tree import TreeOptions, read_tree, tree_digest
from holdfast.changes.model import ChangeAbandoned, Item, NodeType, Op, Outcome, Plan
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Jail, Place
from holdfast.folders.access.roots import identity_of

_MAX_HASHED_BYTES = 16 << 20


class Moves:
    """Moves that never replace anything."""

    def __init__(self, recorder: Recorder, quarantine: Quarantine) -> None:
        self._recorder = recorder
        self._quarantine = quarantine

    def move(self, jail: Jail, source: Place, target: Place, call: Call, request: ChangeRequest) -> str:
        """Move the entry at the source to the target; returns the id of the change.

        AlreadyExists when the target exists, even if it appears at the last moment; both stay as they are.
        """
        source = self.check(jail, source, target, call)
        same_device = _is_same_device(source, target)
        tree = (
            None
            if same_device
            else read_tree(source.parent_fd, source.name, source.path, TreeOptions(call, jail.is_hidden))
        )
        item = _item(source, target, tree)
        plan = new_plan(request, source.root.path, [item], None, other_root=target.root.path)
        if tree is not None:
            quarantine_path = f"{self._quarantine.folder_for(jail, source)}/{plan.id}.0"
            item = plan.first._replace(quarantine_path=quarantine_path, temp_name=temp_name())
            plan = replace(plan, items=(item,))
        self._recorder.run(
            plan,
            [],
            lambda: self._move(jail, source, target, plan, tree, call, request),
            lambda unfinished: self.recover(jail, unfinished, source, target),
        )
        return plan.id

    def check(self, jail: Jail, source: Place, target: Place, call: Call) -> Place:
        """Return the source as it is now, when it may move to the target; raises what the move would."""
        if target.path.startswith(source.path + "/"):
            raise InvalidArgument(f"{source.path} cannot be moved into itself.")
        if target.status is not None:
            raise _exists(target)
        status = stat_entry(source.parent_fd, source.name)
        if status is None:
            raise NotFound(f"No such file or directory: {source.path}")
        source = replace(source, status=status)
        check_tree(jail, call, source, target.path)
        if _is_same_device(source, target) and source.root.walk_only:
            read_tree(source.parent_fd, source.name, source.path, TreeOptions.without_hashes(call, jail.is_hidden))
        return source

    def recover(self, jail: Jail, plan: Plan, source: Place, target: Place) -> Outcome:
        """Return whether an interrupted move took effect, by what is on the disk; a published copy is finished."""
        if plan.first.quarantine_path is None:
            return _recover_rename(source, target, plan.first.identity)
        try:
            identity = self._cross_device_move(jail, plan, source, target).recover()
        except Conflict as conflict:
            return Outcome.failed(conflict.message)
        if identity is None:
            return Outcome.failed("It was interrupted before it took effect.")
        return Outcome.done(identity)

    def _cross_device_move(self, jail: Jail, plan: Plan, source: Place, target: Place) -> CrossDeviceMove:
        first = plan.first
        return CrossDeviceMove(
            jail, self._quarantine, source, target, first.temp_name or "", first.quarantine_path or ""
        )

    def _move(
        self,
        jail: Jail,
        source: Place,
        target: Place,
        plan: Plan,
        tree: Sequence[Item] | None,
        call: Call,
        request: ChangeRequest,
    ) -> Outcome:
        request.confirm()
        if tree is not None:
            return Outcome.done(self._cross_device_move(jail, plan, source, target).run(tree, call))
        try:
            files.move_entry(source.parent_fd, source.name, target.parent_fd, target.name)
        except FileExistsError:
            raise ChangeAbandoned(_exists(target)) from None
        except FileNotFoundError:
            raise ChangeAbandoned(NotFound(f"No such file or directory: {source.path}")) from None
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise ChangeAbandoned(
                    InvalidArgument(
                        f"{source.path} cannot be moved to {target.path}: the system allows no rename between their folders."
                    )
                ) from None
            raise
        _sync_both(source, target)
        return Outcome.done(plan.first.identity)


def _is_same_device(source: Place, target: Place) -> bool:
    return os.fstat(source.parent_fd).st_dev == os.fstat(target.parent_fd).st_dev


def _recover_rename(source: Place, target: Place, identity: str | None) -> Outcome:
    at_target = stat_entry(target.parent_fd, target.name)
    if stat_entry(source.parent_fd, source.name) is not None or not is_same_entry(_identity(at_target), identity):
        return Outcome.failed("It was interrupted before it took effect.")
    _sync_both(source, target)
    return Outcome.done(identity)


def _item(source: Place, target: Place, tree: Sequence[Item] | None) -> Item:
    status = source.status
    size, mode = (0, 0) if status is None else (status.st_size, status.st_mode & 0o7777)
    hash_ = _small_file_hash(source) if tree is None else tree_digest(tree)
    return Item(
        Op.MOVE,
        source.path,
        target.path,
        node=NodeType.DIRECTORY if status is not None and stat.S_ISDIR(status.st_mode) else NodeType.FILE,
        before_hash=hash_,
        after_hash=hash_,
        size_bytes=size,
        mode=mode,
        identity=_identity(status),
    )


def _small_file_hash(source: Place) -> str | None:
    """Return the hash by which an undo recognises the file, None for one that is too large to read for that."""
    status = source.status
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_HASHED_BYTES:
        return None
    with open_file(source.parent_fd, source.name, source.path) as fd:
        return hash_file(fd)


def _identity(status: os.stat_result | None) -> str | None:
    return None if status is None else identity_text(status)


def _sync_both(source: Place, target: Place) -> None:
    files.sync_directory(target.parent_fd)
    if identity_of(os.fstat(source.parent_fd)) != identity_of(os.fstat(target.parent_fd)):
        files.sync_directory(source.parent_fd)


def _exists(target: Place) -> AlreadyExists:
    return AlreadyExists(f"{target.path} exists already; nothing was moved. Choose another name, or delete it first.")
