"""How one file's content becomes another: swap, look at what came out, and swap back if it was not what was read.

An outside program that saves between our read and our swap keeps its save: it is put back, and the caller is told.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.changes.disk.files import (
    has_writer,
    hash_bytes,
    hash_file,
    open_file,
    open_regular,
    read_all,
    remove_if_present,
    stat_entry,
    sync_directory,
    temp_name,
)
from holdfast.changes.disk.images import Images
from holdfast.changes.model import Abandoned, Image, Item, ItemStatus, Op, Outcome, Plan
from holdfast.changes.ports import Journal
from holdfast.changes.single.new_content import NewContent, closer
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.clock import utc_now
from holdfast.errors import Conflict, HoldfastError, PermissionDenied
from holdfast.folders.access.jail import Place
from holdfast.folders.access.roots import Identity, identity_of
from holdfast.folders.access.syscalls import rename_exchange, rename_noreplace

SMALL_BYTES = 1 << 20
"""Up to here a file that is about to be replaced is held in memory; of a larger one only the hash."""

_WRITER_PATIENCE_SECONDS = 2.0
_SWAPS = 100


@dataclass(frozen=True, slots=True)
class Base:
    """The file as it was read: descriptor, status, hash, and the bytes where they were wanted."""

    fd: int
    status: os.stat_result
    hash: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class ContentResult:
    """What a change of content left: its id and the hash of the new bytes."""

    change_id: str
    hash: str


@contextmanager
def read_base(
    place: Place, *, with_data: bool, max_bytes: int | None = None, admit: Callable[[int, str], object] | None = None
) -> Iterator[Base]:
    """Open the file at a place and read or hash it. PermissionDenied when it may not be written.

    `admit` is given the file's size and path before a byte is read, and may refuse it.
    """
    fd = open_regular(place.parent_fd, place.name, place.path)
    try:
        status = os.fstat(fd)
        if not os.access(place.name, os.W_OK, dir_fd=place.parent_fd):
            raise PermissionDenied(f"{place.path} is read-only.")
        if admit is not None:
            admit(status.st_size, place.path)
        if with_data and (max_bytes is None or status.st_size <= max_bytes):
            data = read_all(fd)
            yield Base(fd, status, hash_bytes(data), data)
        else:
            yield Base(fd, status, hash_file(fd), None)
    finally:
        closer.close(fd)


class ContentChanges:
    """Creates and replaces single files."""

    def __init__(self, journal: Journal, images: Images, recorder: Recorder) -> None:
        self._journal = journal
        self._images = images
        self._recorder = recorder

    def put(self, place: Place, base: Base | None, data: bytes, intent: ChangeRequest) -> ContentResult:
        """Make the file at a place hold the data; `base` is what is there, None when nothing is.

        Raises Conflict when something else is there at the moment of the swap; then that stays.
        """
        after = hash_bytes(data)
        kept = [] if base is None else self._image_of(base, place.path)
        plan = new_plan(intent, place.root.path, [_item(place, base, after)], temp_name())
        draft = NewContent(place.parent_fd, data, None if base is None else base.fd)
        try:
            work = _Swap(self, place, base, draft, after, plan)
            self._recorder.carry_out(plan, kept, work.run, lambda unfinished: self.settle(unfinished, place))
        finally:
            draft.close()
        return ContentResult(plan.id, after)

    def settle(self, plan: Plan, place: Place) -> Outcome:
        """Say by what is on the disk whether a plan took effect, and tidy its helper file away."""
        item, temp = plan.first, plan.temp_name or ""
        now, helper = self._hash_at(place, place.name), self._hash_at(place, temp)
        if helper is not None and helper not in (item.before_hash, item.after_hash) and now == item.after_hash:
            rename_exchange(place.parent_fd, temp, place.parent_fd, place.name)
            now, helper = helper, now
        kept = None
        if helper is not None:
            kept = self._set_aside(place, temp, helper, item)
        sync_directory(place.parent_fd)
        if now == item.after_hash:
            return Outcome.done()
        if now == item.before_hash:
            return Outcome.failed("It was interrupted before it took effect.", kept)
        return Outcome.failed("It was interrupted, and another program has changed the file since.", kept)

    def keep_file(self, dir_fd: int, name: str, path: str) -> Item | None:
        """Save the bytes of a file that is not ours under the plan that met it; None when they cannot be kept."""
        with open_file(dir_fd, name, path) as fd:
            size = os.fstat(fd).st_size
            if not self._images.fits(size):
                return None
            image = self._images.from_file(fd)
            if not self._journal.keep(image, utc_now()) and image.file:
                self._images.remove_files([image.file])
            return Item(Op.KEPT, path, before_hash=image.hash, size_bytes=size, status=ItemStatus.DONE)

    def _image_of(self, base: Base, path: str) -> list[Image]:
        if not self._images.admit(base.status.st_size, path):
            return []
        return [self._images.from_file(base.fd) if base.data is None else self._images.from_bytes(base.data)]

    def _hash_at(self, place: Place, name: str) -> str | None:
        if not name or stat_entry(place.parent_fd, name) is None:
            return None
        try:
            with open_file(place.parent_fd, name, place.path) as fd:
                return hash_file(fd)
        except (OSError, HoldfastError):
            return "unreadable"

    def _set_aside(self, place: Place, temp: str, helper: str, item: Item) -> Item | None:
        """Remove a helper file; bytes in it that are neither the old nor the new ones are saved first.

        Where nothing was to be replaced nothing can have come out, so the file is a part of ours.
        """
        kept = None
        if item.before_hash is not None and helper not in (item.before_hash, item.after_hash):
            kept = self.keep_file(place.parent_fd, temp, place.path)
            if kept is None:
                return None
        remove_if_present(place.parent_fd, temp)
        return kept


class _Swap:
    """One change of content under way."""

    def __init__(
        self, commits: ContentChanges, place: Place, base: Base | None, draft: NewContent, after: str, plan: Plan
    ) -> None:
        self.commits = commits
        self.place = place
        self.base = base
        self.draft = draft
        self.after = after
        self.temp = plan.temp_name or ""
        self.dir_fd = place.parent_fd

    def run(self) -> Outcome:
        try:
            new = self.draft.named(self.temp)
        except BaseException:
            self._drop_helper()
            raise
        if self.base is None:
            self._create()
        else:
            self._replace(self.base, new)
        sync_directory(self.dir_fd)
        return Outcome.done(f"{new[0]}:{new[1]}")

    def _drop_helper(self) -> None:
        """Take our own content away before its failure is told, so that no power cut brings it back."""
        remove_if_present(self.dir_fd, self.temp)
        sync_directory(self.dir_fd)

    def _create(self) -> None:
        try:
            rename_noreplace(self.dir_fd, self.temp, self.dir_fd, self.place.name)
        except FileExistsError:
            self._drop_helper()
            raise Abandoned(_changed(self.place.path)) from None

    def _replace(self, base: Base, new: Identity) -> None:
        try:
            rename_exchange(self.dir_fd, self.temp, self.dir_fd, self.place.name)
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._drop_helper()
                raise Abandoned(_changed(self.place.path)) from None
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            self._replace_without_exchange(base)
            return
        out = stat_entry(self.dir_fd, self.temp)
        came_out_is_base = out is not None and identity_of(out) == identity_of(base.status)
        if came_out_is_base and not has_writer(base.fd, self.dir_fd) and self._unchanged(base):
            os.unlink(self.temp, dir_fd=self.dir_fd)
            return
        self._put_back(new)

    def _unchanged(self, base: Base) -> bool:
        if base.data is not None:
            return os.fstat(base.fd).st_size == len(base.data) and read_all(base.fd) == base.data
        return hash_file(base.fd) == base.hash

    def _replace_without_exchange(self, base: Base) -> None:
        """Where the file system cannot swap, look last and replace at once: the gap is small, not nil."""
        now = stat_entry(self.dir_fd, self.place.name)
        same = now is not None and identity_of(now) == identity_of(base.status)
        if not same or has_writer(base.fd, self.dir_fd) or not self._unchanged(base):
            self._drop_helper()
            raise Abandoned(_changed(self.place.path))
        os.replace(self.temp, self.place.name, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd)

    def _put_back(self, new: Identity) -> None:
        """Swap until what comes out is what was put in last: then the outside program's newest save is in place."""
        placed: Identity | None = new
        for _ in range(_SWAPS):
            going_in = self._identity(self.temp)
            try:
                rename_exchange(self.dir_fd, self.temp, self.dir_fd, self.place.name)
            except FileNotFoundError:
                self._give_back_to_empty_place()
                break
            if self._identity(self.temp) == placed:
                break
            placed = going_in
        kept = self._clear_helper(new)
        sync_directory(self.dir_fd)
        raise Abandoned(_changed(self.place.path), kept)

    def _give_back_to_empty_place(self) -> None:
        try:
            rename_noreplace(self.dir_fd, self.temp, self.dir_fd, self.place.name)
        except (FileExistsError, FileNotFoundError):
            return

    def _identity(self, name: str) -> Identity | None:
        status = stat_entry(self.dir_fd, name)
        return None if status is None else identity_of(status)

    def _clear_helper(self, new: Identity) -> Item | None:
        """Remove the helper file; if it is not our own untouched one, its bytes are saved first."""
        if stat_entry(self.dir_fd, self.temp) is None:
            return None
        with open_file(self.dir_fd, self.temp, self.place.path) as fd:
            ours = identity_of(os.fstat(fd)) == new
            quiet = _wait_for_writer(fd, self.dir_fd)
            if ours and quiet and hash_file(fd) == self.after:
                os.unlink(self.temp, dir_fd=self.dir_fd)
                return None
        kept = self.commits.keep_file(self.dir_fd, self.temp, self.place.path)
        if kept is not None and quiet:
            os.unlink(self.temp, dir_fd=self.dir_fd)
        return kept


def _wait_for_writer(fd: int, dir_fd: int) -> bool:
    give_up_at = time.monotonic() + _WRITER_PATIENCE_SECONDS
    while has_writer(fd, dir_fd):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.002)
    return True


def _item(place: Place, base: Base | None, after: str) -> Item:
    if base is None:
        return Item(Op.REPLACE, place.path, after_hash=after)
    status = base.status
    return Item(
        Op.REPLACE,
        place.path,
        before_hash=base.hash,
        after_hash=after,
        size_bytes=status.st_size,
        mode=status.st_mode & 0o7777,
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
    )


def _changed(path: str) -> Conflict:
    return Conflict(
        f"Another program changed {path} at the same moment; its version was kept and yours was not written. "
        "Read the file again and repeat.",
        error=True,
        error_type="conflict",
        hint="Read the file again, then repeat the change.",
    )
