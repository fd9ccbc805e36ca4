"""Where the sources of moves to other devices go: out of sight on their own device, until the undo window is over."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from holdfast.changes.disk.files import make_state_folder, stat_entry, sync_directory
from holdfast.changes.disk.tree import erase_tree
from holdfast.changes.model import QuarantinedFile
from holdfast.changes.ports import PlanJournal
from holdfast.errors import HoldfastError, InvalidArgument, NotFound
from holdfast.folders.access.descriptors import READ_DIRECTORY
from holdfast.folders.access.jail import QUARANTINE, Jail, Place
from holdfast.folders.access.roots import close_roots, identity_of, open_roots

_log = logging.getLogger(__name__)
_FOLDER = "quarantine"


class Quarantine:
    """`quarantine/` of the state folder, or one in the topmost directory of the device beneath the root."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._folder = make_state_folder(state_dir, _FOLDER)
        self._device = os.stat(self._folder).st_dev
        self._out_of_reach: set[str] = set()

    def shelf_of(self, jail: Jail, place: Place) -> str:
        """Return the folder that takes what stands at a place, on the same device; `opened` makes it when needed."""
        device = os.fstat(place.parent_fd).st_dev
        if device == self._device:
            return self._folder
        return f"{_topmost(jail, place, device).rstrip('/')}/{QUARANTINE}"

    @contextmanager
    def opened(self, jail: Jail, shelf: str) -> Iterator[int]:
        """Open a shelf, made anew when it is not there; HoldfastError when the directory above it is gone."""
        if shelf == self._folder:
            fd = os.open(self._folder, READ_DIRECTORY)
        else:
            with jail.open_directory(os.path.dirname(shelf)) as above:
                with suppress(FileExistsError):
                    os.mkdir(QUARANTINE, 0o700, dir_fd=above)
                    sync_directory(above)
                fd = os.open(QUARANTINE, READ_DIRECTORY, dir_fd=above)
        try:
            yield fd
        finally:
            os.close(fd)

    def purge(self, book: PlanJournal, kept_since: str) -> int:
        """Let go of what was set aside before that time; returns how many. What cannot be reached waits for the next start."""
        expired = book.expired_asides(kept_since)
        gone = [aside for aside in expired if aside.plan_id not in self._out_of_reach and self._let_go(aside)]
        if gone:
            book.forget_asides(gone)
        return len(gone)

    def _let_go(self, aside: QuarantinedFile) -> bool:
        try:
            with self._jail(aside.roots) as jail:
                self._erase(jail, aside.path)
        except (OSError, HoldfastError) as error:
            _log.warning("what change %s set aside stays: %s", aside.plan_id, type(error).__name__)
            self._out_of_reach.add(aside.plan_id)
            return False
        return True

    def _erase(self, jail: Jail, path: str) -> None:
        shelf, name = os.path.split(path)
        try:
            with self.opened(jail, shelf) as fd:
                if stat_entry(fd, name) is not None:
                    erase_tree(fd, name)
        except (FileNotFoundError, NotFound):
            return
        if shelf != self._folder:
            with jail.open_directory(os.path.dirname(shelf)) as above, suppress(OSError):
                os.rmdir(QUARANTINE, dir_fd=above)

    @contextmanager
    def _jail(self, given: Sequence[str]) -> Iterator[Jail]:
        with open_jail(given, self._state_dir) as jail:
            yield jail


@contextmanager
def open_jail(given: Sequence[str], state_dir: str) -> Iterator[Jail]:
    """Open the roots of a plan when no caller is there. NotFound when one of them is not."""
    try:
        roots = open_roots(given, "/", state_dir)
    except InvalidArgument:
        raise NotFound("the folder is not there") from None
    try:
        if len(roots) < len(set(given)):
            raise NotFound("one of the folders is not there")
        yield Jail(roots, [identity_of(os.stat(state_dir))])
    finally:
        close_roots(roots)


def _topmost(jail: Jail, place: Place, device: int) -> str:
    """Return the first directory on the way down from the root to a place that lies on its device."""
    path = place.root.path.rstrip("/")
    names = place.path[len(path) + 1 :].split("/")[:-1]
    for name in (None, *names):
        path = path if name is None else f"{path}/{name}"
        with jail.open_directory(path or "/") as fd:
            if os.fstat(fd).st_dev == device:
                return path or "/"
    return os.path.dirname(place.path)
