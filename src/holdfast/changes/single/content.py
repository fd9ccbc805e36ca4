"""Replaces the content of one file: exchanges new and old, checks what came out, exchanges again if it is not what was read.

When another program saves between our read and our exchange, its save is put back and the caller gets a Conflict.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from holdfast.changes.disk.files import (
    NewContent,
    closer,
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
from holdfast.changes.disk.policy_gate import check_paths
from holdfast.changes.model import ChangeAbandoned, Image, Item, ItemStatus, Op, Outcome, Plan
from holdfast.changes.ports import Journal
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.errors import Conflict, EditRejected, HoldfastError, PermissionDenied
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Place
from holdfast.folders.access.roots import Identity, identity_of
from holdfast.folders.access.syscalls import rename_exchange, rename_noreplace

HASH_PREFIX = "sha256:"

SMALL_BYTES = 1 << 20
"""Up to this size a file that is about to be replaced is read into memory; a larger one is only hashed."""

_WRITER_TIMEOUT_SECONDS = 2.0
_MAX_EXCHANGES = 100


@dataclass(frozen=True, slots=True)
class BaseFile:
    """The file as it was read: descriptor, status, hash, and the bytes if they were wanted."""

    fd: int
    status: os.stat_result
    hash: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class ContentResult:
    """The id of a change of content and the hash of the new bytes."""

    change_id: str
    hash: str


@dataclass(frozen=True, slots=True)
class EditPreview:
    """What edits would write: the real path and root of the file, its bytes (None when it is missing), the new bytes.

    `directory` is the identity of the directory that the file is in.
    """

    path: str
    root: str
    base: bytes | None
    data: bytes
    directory: str


@contextmanager
def read_base(
    place: Place, *, with_data: bool, max_bytes: int | None = None, admit: Callable[[int, str], object] | None = None
) -> Iterator[BaseFile]:
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
            yield BaseFile(fd, status, hash_bytes(data), data)
        else:
            yield BaseFile(fd, status, hash_file(fd), None)
    finally:
        closer.close(fd)


def size_check(limit: int) -> Callable[[int, str], None]:
    """Return a check that refuses to edit a file larger than the limit."""

    def check(size_bytes: int, path: str) -> None:
        if size_bytes > limit:
            raise EditRejected(
                "validation_error",
                f"{path} has {size_bytes} bytes; files up to {limit} bytes can be edited.",
                "Use a smaller file, or raise folders.max_edit_bytes.",
            )

    return check


class ContentChanges:
    """Creates and replaces single files."""

    def __init__(self, journal: Journal, images: Images, recorder: Recorder) -> None:
        self._journal = journal
        self._images = images
        self._recorder = recorder

    def put(self, place: Place, base: BaseFile | None, data: bytes, request: ChangeRequest) -> ContentResult:
        """Give the file at a place this content; `base` is the present file, None when there is none.

        Conflict when another program changes the file at the same moment; then its version stays.
        """
        check_paths(request.jail, [place.path])
        after = hash_bytes(data)
        images = [] if base is None else self._make_image(base, place.path)
        item = _item(place, base, after)
        if request.proposed is not None:
            item = item._replace(source_directory=identity_text(os.fstat(place.parent_fd)))
        plan = new_plan(request, place.root.path, [item], temp_name())
        content = NewContent(place.parent_fd, data, None if base is None else base.fd)
        try:
            swap = _Swap(self, place, base, content, after, plan)
            self._recorder.run(plan, images, swap.run, lambda unfinished: self.recover(unfinished, place))
        finally:
            content.close()
        return ContentResult(plan.id, after)

    def recover(self, plan: Plan, place: Place) -> Outcome:
        """Return whether an interrupted change took effect, by what is on the disk, and remove its temporary file."""
        item, temp = plan.first, plan.temp_name or ""
        present, temp_hash = self._hash_at(place, place.name), self._hash_at(place, temp)
        is_foreign = temp_hash is not None and temp_hash not in (item.before_hash, item.after_hash)
        if temp_hash is not None and is_foreign and present == item.after_hash:
            rename_exchange(place.parent_fd, temp, place.parent_fd, place.name)
            present, temp_hash = temp_hash, present
        saved = None
        if temp_hash is not None:
            saved = self._remove_temp_file(place, temp, temp_hash, item)
        sync_directory(place.parent_fd)
        if present == item.after_hash:
            return Outcome.done()
        if present == item.before_hash:
            return Outcome.failed("It was interrupted before it took effect.", saved)
        return Outcome.failed("It was interrupted, and another program has changed the file since.", saved)

    def save_foreign_file(self, dir_fd: int, name: str, path: str) -> Item | None:
        """Save the bytes of another program's file with the change that found it; None when they cannot be kept."""
        with open_file(dir_fd, name, path) as fd:
            size = os.fstat(fd).st_size
            if not self._images.room.fits(size):
                return None
            image = self._images.from_file(fd)
            if not self._journal.keep_image(image) and image.file:
                self._images.remove_files([image.file])
            return Item(Op.SAVE, path, before_hash=image.hash, size_bytes=size, status=ItemStatus.DONE)

    def _make_image(self, base: BaseFile, path: str) -> list[Image]:
        if not self._images.room.admit(base.status.st_size, path):
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

    def _remove_temp_file(self, place: Place, temp: str, temp_hash: str, item: Item) -> Item | None:
        """Remove a temporary file; bytes in it that are neither the old nor the new ones are saved first.

        Where nothing was to be replaced nothing can have come out, so the file is an incomplete one of ours.
        """
        saved = None
        if item.before_hash is not None and temp_hash not in (item.before_hash, item.after_hash):
            saved = self.save_foreign_file(place.parent_fd, temp, place.path)
            if saved is None:
                return None
        remove_if_present(place.parent_fd, temp)
        return saved


class _Swap:
    """One exchange of old and new content."""

    def __init__(
        self, changes: ContentChanges, place: Place, base: BaseFile | None, content: NewContent, after: str, plan: Plan
    ) -> None:
        self.changes = changes
        self.place = place
        self.base = base
        self.content = content
        self.after = after
        self.temp = plan.temp_name or ""
        self.dir_fd = place.parent_fd

    def run(self) -> Outcome:
        try:
            new = self.content.link_as(self.temp)
        except BaseException:
            self._drop_temp_file()
            raise
        if self.base is None:
            self._create()
        else:
            self._replace(self.base, new)
        sync_directory(self.dir_fd)
        return Outcome.done(f"{new[0]}:{new[1]}")

    def _drop_temp_file(self) -> None:
        """Remove our own content durably before the failure is reported, so that no power cut brings it back."""
        remove_if_present(self.dir_fd, self.temp)
        sync_directory(self.dir_fd)

    def _create(self) -> None:
        try:
            rename_noreplace(self.dir_fd, self.temp, self.dir_fd, self.place.name)
        except FileExistsError:
            self._drop_temp_file()
            raise ChangeAbandoned(_changed_meanwhile(self.place.path)) from None

    def _replace(self, base: BaseFile, new: Identity) -> None:
        try:
            rename_exchange(self.dir_fd, self.temp, self.dir_fd, self.place.name)
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._drop_temp_file()
                raise ChangeAbandoned(_changed_meanwhile(self.place.path)) from None
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            self._replace_without_exchange(base)
            return
        out = stat_entry(self.dir_fd, self.temp)
        came_out_is_base = out is not None and identity_of(out) == identity_of(base.status)
        if came_out_is_base and not has_writer(base.fd, self.dir_fd) and self._is_unchanged(base):
            os.unlink(self.temp, dir_fd=self.dir_fd)
            return
        self._put_back(new)

    def _is_unchanged(self, base: BaseFile) -> bool:
        if base.data is not None:
            return os.fstat(base.fd).st_size == len(base.data) and read_all(base.fd) == base.data
        return hash_file(base.fd) == base.hash

    def _replace_without_exchange(self, base: BaseFile) -> None:
        """Check and replace where the file system cannot exchange: between the two a save can be lost."""
        present = stat_entry(self.dir_fd, self.place.name)
        is_same = present is not None and identity_of(present) == identity_of(base.status)
        if not is_same or has_writer(base.fd, self.dir_fd) or not self._is_unchanged(base):
            self._drop_temp_file()
            raise ChangeAbandoned(_changed_meanwhile(self.place.path))
        os.replace(self.temp, self.place.name, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd)

    def _put_back(self, new: Identity) -> None:
        """Exchange until what comes out is what was put in last: then the other program's newest save is in place."""
        put_in: Identity | None = new
        for _ in range(_MAX_EXCHANGES):
            going_in = self._identity(self.temp)
            try:
                rename_exchange(self.dir_fd, self.temp, self.dir_fd, self.place.name)
            except FileNotFoundError:
                with suppress(FileExistsError, FileNotFoundError):
                    rename_noreplace(self.dir_fd, self.temp, self.dir_fd, self.place.name)
                break
            if self._identity(self.temp) == put_in:
                break
            put_in = going_in
        saved = self._clear_temp_file(new)
        sync_directory(self.dir_fd)
        raise ChangeAbandoned(_changed_meanwhile(self.place.path), saved)

    def _identity(self, name: str) -> Identity | None:
        status = stat_entry(self.dir_fd, name)
        return None if status is None else identity_of(status)

    def _clear_temp_file(self, new: Identity) -> Item | None:
        """Remove the temporary file; if it is not our own unchanged one, its bytes are saved first."""
        if stat_entry(self.dir_fd, self.temp) is None:
            return None
        with open_file(self.dir_fd, self.temp, self.place.path) as fd:
            is_ours = identity_of(os.fstat(fd)) == new
            is_quiet = _wait_for_writer(fd, self.dir_fd)
            if is_ours and is_quiet and hash_file(fd) == self.after:
                os.unlink(self.temp, dir_fd=self.dir_fd)
                return None
        saved = self.changes.save_foreign_file(self.dir_fd, self.temp, self.place.path)
        if saved is not None and is_quiet:
            os.unlink(self.temp, dir_fd=self.dir_fd)
        return saved


def _wait_for_writer(fd: int, dir_fd: int) -> bool:
    """Wait until no program has the file open for writing; False when one still has after the timeout."""
    deadline = time.monotonic() + _WRITER_TIMEOUT_SECONDS
    while has_writer(fd, dir_fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _item(place: Place, base: BaseFile | None, after: str) -> Item:
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


def _changed_meanwhile(path: str) -> Conflict:
    return Conflict(
        f"Another program changed {path} at the same moment; its version was kept and yours was not written. "
        "Read the file again and repeat.",
        error=True,
        error_type="conflict",
        hint="Read the file again, then repeat the change.",
    )


def check_hash(present: str | None, expected: str | None, path: str) -> None:
    """Raise Conflict when a file has not the hash that a caller expects; None expects nothing."""
    if expected is None or (present is not None and expected.lower().removeprefix(HASH_PREFIX) == present):
        return
    raise Conflict(
        f"{path} has changed: it is not the file that expected_hash describes. Nothing was written.",
        error=True,
        error_type="conflict",
        hint="Read the file again and repeat the edit with its new hash.",
        **({} if present is None else {"present_hash": HASH_PREFIX + present}),
    )
