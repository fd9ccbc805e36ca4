"""The quarantine: keeps the sources of moves to other devices on their own device until the undo window is over."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from holdfast.changes.disk.files import make_state_folder, stat_entry, sync_directory
from holdfast.changes.disk.tree import erase_tree
from holdfast.changes.model import QuarantinedFile
from holdfast.changes.ports import PlanJournal
from holdfast.errors import HoldfastError, InvalidArgument, NotFound
from holdfast.folders.access.jail import Jail, Place
from holdfast.folders.access.path_syntax import QUARANTINE
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.access.syscalls import READ_DIRECTORY

_log = logging.getLogger(__name__)
_STATE_FOLDER = "quarantine"


class Quarantine:
    """Uses `quarantine/` of the state folder, or on another device a folder in its topmost directory beneath the root."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._state_quarantine = make_state_folder(state_dir, _STATE_FOLDER)
        self._state_device = os.stat(self._state_quarantine).st_dev
        self._unreachable_plans: set[str] = set()

    def folder_for(self, jail: Jail, place: Place) -> str:
        """Return the quarantine folder on the device of a place; `open_folder` makes it when needed."""
        device = os.fstat(place.parent_fd).st_dev
        if device == self._state_device:
            return self._state_quarantine
        return f"{_topmost_directory(jail, place, device).rstrip('/')}/{QUARANTINE}"

    @contextmanager
    def open_folder(self, jail: Jail, folder: str) -> Iterator[int]:
        """Open a quarantine folder, made if it is missing; HoldfastError when the directory above it is gone."""
        if folder == self._state_quarantine:
            fd = os.open(folder, READ_DIRECTORY)
        else:
            with jail.open_directory(os.path.dirname(folder)) as parent_fd:
                with suppress(FileExistsError):
                    os.mkdir(QUARANTINE, 0o700, dir_fd=parent_fd)
                    sync_directory(parent_fd)
                fd = os.open(QUARANTINE, READ_DIRECTORY, dir_fd=parent_fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def purge(self, plans: PlanJournal, kept_since: str) -> int:
        """Erase what plans that ended before that time left here; returns how many entries.

        A plan whose folder cannot be reached is tried again after the next start.
        """
        erased = [
            file
            for file in plans.find_expired_quarantine(kept_since)
            if file.plan_id not in self._unreachable_plans and self._erase(file)
        ]
        if erased:
            plans.forget_quarantine(erased)
        return len(erased)

    def _erase(self, file: QuarantinedFile) -> bool:
        folder, name = os.path.split(file.path)
        try:
            with open_jail(file.roots, self._state_dir) as jail, suppress(FileNotFoundError, NotFound):
                with self.open_folder(jail, folder) as fd:
                    if stat_entry(fd, name) is not None:
                        erase_tree(fd, name)
                if folder != self._state_quarantine:
                    with jail.open_directory(os.path.dirname(folder)) as parent_fd, suppress(OSError):
                        os.rmdir(QUARANTINE, dir_fd=parent_fd)
        except (OSError, HoldfastError) as error:
            _log.warning("what change %s left in quarantine stays: %s", file.plan_id, type(error).__name__)
            self._unreachable_plans.add(file.plan_id)
            return False
        return True


@contextmanager
def open_jail(paths: Sequence[str], state_dir: str) -> Iterator[Jail]:
    """Open the roots of a plan without a caller. NotFound when one of them is missing."""
    try:
        roots = open_roots(paths, "/", state_dir)
    except InvalidArgument:
        raise NotFound("the folder does not exist") from None
    try:
        if len(roots) < len(set(paths)):
            raise NotFound("one of the folders does not exist")
        yield Jail(roots, [identity_of(os.stat(state_dir))])
    finally:
        close_roots(roots)


def _topmost_directory(jail: Jail, place: Place, device: int) -> str:
    """Return the first directory on the way from the root down to a place that is on its device."""
    path = place.root.path.rstrip("/")
    names = place.path[len(path) + 1 :].split("/")[:-1]
    for name in (None, *names):
        path = path if name is None else f"{path}/{name}"
        with jail.open_directory(path or "/") as fd:
            if os.fstat(fd).st_dev == device:
                return path or "/"
    return os.path.dirname(place.path)
