"""Removes and restores a file, link or tree: renamed to a temporary name, compared with its images, then erased."""

import errno
import os
from collections.abc import Iterator, Sequence

from holdfast.call import Call, uncancellable_call
from holdfast.changes.disk.files import stat_entry, sync_directory, temp_name
from holdfast.changes.disk.images import Images
from holdfast.changes.disk.policy_gate import check_tree
from holdfast.changes.disk.tree import (
    TreeOptions,
    build_tree,
    content_hash,
    erase_known,
    erase_tree,
    is_same_tree,
    read_tree,
    repair_tree,
    tree_digest,
)
from holdfast.changes.model import ChangeAbandoned, Image, Item, NodeType, Op, Outcome, Plan
from holdfast.changes.single.record import ChangeRequest, Recorder, new_plan
from holdfast.errors import Conflict, HoldfastError, NotEmpty, NotFound, PermissionDenied
from holdfast.folders.access.jail import Jail, Place
from holdfast.folders.access.syscalls import READ_DIRECTORY, rename_noreplace
from holdfast.text.display import quantity


class Removals:
    """Removes and restores the entry at one place."""

    def __init__(self, images: Images, recorder: Recorder) -> None:
        self._images = images
        self._recorder = recorder

    def remove(
        self, jail: Jail, place: Place, call: Call, request: ChangeRequest, expected: Sequence[Item] = ()
    ) -> str:
        """Remove the entry at a place, with an image of every byte; returns the id of the change.

        With `expected`, Conflict unless the tree is exactly that.
        """
        check_tree(jail, call, place)
        images: dict[str, Image] = {}
        try:
            items = self._read_with_images(jail, place, call, images)
            if expected and not is_same_tree(items, expected):
                raise Conflict(f"{place.path} is not as this change left it.")
            call.check()
        except BaseException:
            self._images.remove_files(image.file for image in images.values() if image.file)
            raise
        plan = new_plan(request, place.root.path, items, temp_name())
        self._recorder.run(
            plan,
            list(images.values()),
            lambda: self._remove(jail, place, plan, request),
            lambda unfinished: self.recover(jail, unfinished, place),
        )
        return plan.id

    def restore(self, jail: Jail, place: Place, items: Sequence[Item], call: Call, request: ChangeRequest) -> str:
        """Restore a tree at a free place; returns the id of the change."""
        if place.status is not None:
            raise Conflict(f"{place.path} exists again; it is not overwritten.")
        missing = [item for item in items if item.after_hash and not self._images.has(item.after_hash)]
        if missing:
            raise NotFound("The bytes from before this change are no longer kept, so it cannot be undone any more.")
        plan = new_plan(request, place.root.path, items, temp_name())
        self._recorder.run(
            plan, [], lambda: self._restore(place, plan, call), lambda unfinished: self.recover(jail, unfinished, place)
        )
        return plan.id

    def recover(self, jail: Jail, plan: Plan, place: Place) -> Outcome:
        """Return whether an interrupted removal or restoration took effect, by what is on the disk, and clean up."""
        if plan.first.op is Op.REMOVE:
            return self._recover_removal(jail, plan, place)
        return self._recover_restoration(jail, plan, place)

    def _read_with_images(self, jail: Jail, place: Place, call: Call, images: dict[str, Image]) -> list[Item]:
        sizes = read_tree(place.parent_fd, place.name, place.path, TreeOptions.without_hashes(call, jail.is_hidden))
        if not self._images.room.admit(sum(item.size_bytes for item in sizes), place.path):
            return read_tree(place.parent_fd, place.name, place.path, TreeOptions(call, jail.is_hidden))

        def keep(image: Image) -> str:
            if image.hash in images and image.file:
                self._images.remove_files([image.file])
            images.setdefault(image.hash, image)
            return image.hash

        options = TreeOptions(
            call,
            jail.is_hidden,
            hash_file=lambda fd: keep(self._images.from_file(fd)),
            hash_link=lambda target: keep(self._images.from_bytes(target)),
        )
        return read_tree(place.parent_fd, place.name, place.path, options)

    def _remove(self, jail: Jail, place: Place, plan: Plan, request: ChangeRequest) -> Outcome:
        request.confirm()
        try:
            rename_noreplace(place.parent_fd, place.name, place.parent_fd, plan.temp_name or "")
        except FileNotFoundError:
            raise ChangeAbandoned(NotFound(f"No such file or directory: {place.path}")) from None
        if not self._matches_plan(jail, place, plan):
            self._put_back(place, plan)
            raise ChangeAbandoned(
                Conflict(f"Another program changed {place.path} at the same moment; it was left in place.")
            )
        error = self._erase(place, plan)
        if error is not None:
            self._put_back(place, plan)
            raise ChangeAbandoned(_not_removable(place.path, error))
        return Outcome.done()

    def _erase(self, place: Place, plan: Plan) -> OSError | None:
        """Erase the renamed tree; where the system refuses, repair it and return the error."""
        try:
            erase_known(place.parent_fd, plan.temp_name or "", plan.items)
        except OSError as error:
            self._repair(place, plan)
            return error
        sync_directory(place.parent_fd)
        return None

    def _repair(self, place: Place, plan: Plan) -> None:
        restorable = [
            item for item in plan.items if item.node is NodeType.DIRECTORY or self._images.has(content_hash(item) or "")
        ]
        if restorable:
            repair_tree(place.parent_fd, plan.temp_name or "", restorable, self._read_image, uncancellable_call())

    def _put_back(self, place: Place, plan: Plan) -> None:
        """Rename a tree back; where its name was taken meanwhile, the tree stays under the temporary name."""
        temp = plan.temp_name or ""
        try:
            rename_noreplace(place.parent_fd, temp, place.parent_fd, place.name)
        except FileExistsError:
            temp_path = f"{place.path.rpartition('/')[0]}/{temp}"
            raise ChangeAbandoned(
                Conflict(f"Another entry now has the name {place.path}; the original is kept as {temp_path}.")
            ) from None
        finally:
            sync_directory(place.parent_fd)

    def _read_image(self, item: Item) -> Iterator[bytes]:
        return self._images.read(content_hash(item) or "")

    def _matches_plan(self, jail: Jail, place: Place, plan: Plan) -> bool:
        options = TreeOptions(uncancellable_call(), jail.is_hidden, refuse_writers=True)
        try:
            tree = read_tree(place.parent_fd, plan.temp_name or "", place.path, options)
        except (HoldfastError, OSError):
            return False
        return is_same_tree(tree, plan.items)

    def _restore(self, place: Place, plan: Plan, call: Call) -> Outcome:
        temp = plan.temp_name or ""
        build_tree(place.parent_fd, temp, plan.items, self._read_image, call)
        try:
            rename_noreplace(place.parent_fd, temp, place.parent_fd, place.name)
        except FileExistsError:
            erase_tree(place.parent_fd, temp)
            raise ChangeAbandoned(Conflict(f"{place.path} exists again; it is not overwritten.")) from None
        sync_directory(place.parent_fd)
        return Outcome.done()

    def _recover_removal(self, jail: Jail, plan: Plan, place: Place) -> Outcome:
        temp = plan.temp_name or ""
        if stat_entry(place.parent_fd, temp) is None:
            is_gone = stat_entry(place.parent_fd, place.name) is None
            return Outcome.done() if is_gone else Outcome.failed("It was interrupted before it took effect.")
        if self._has_all_images(jail, plan, place):
            if self._erase(place, plan) is None:
                return Outcome.done()
        else:
            self._repair(place, plan)
        try:
            self._put_back(place, plan)
        except ChangeAbandoned as abandoned:
            return Outcome.failed(abandoned.error.message)
        return Outcome.failed("It was interrupted and could not be finished; what is left is in place.")

    def _has_all_images(self, jail: Jail, plan: Plan, place: Place) -> bool:
        """Return whether every entry that is left of a renamed tree is one of the plan and has an image."""
        known = {(item.src_path, item.node, item.before_hash) for item in plan.items}
        options = TreeOptions(uncancellable_call(), jail.is_hidden)
        try:
            left = read_tree(place.parent_fd, plan.temp_name or "", place.path, options)
        except (HoldfastError, OSError):
            return False
        has_images = all(item.node is NodeType.DIRECTORY or self._images.has(item.before_hash or "") for item in left)
        return has_images and all((item.src_path, item.node, item.before_hash) in known for item in left)

    def _recover_restoration(self, jail: Jail, plan: Plan, place: Place) -> Outcome:
        temp = plan.temp_name or ""
        if stat_entry(place.parent_fd, temp) is not None:
            erase_tree(place.parent_fd, temp)
            sync_directory(place.parent_fd)
            return Outcome.failed("It was interrupted before it took effect.")
        if stat_entry(place.parent_fd, place.name) is None:
            return Outcome.failed("It was interrupted before it took effect.")
        options = TreeOptions(uncancellable_call(), jail.is_hidden)
        tree = read_tree(place.parent_fd, place.name, place.path, options)
        if tree_digest(tree) == tree_digest(plan.items):
            return Outcome.done()
        return Outcome.failed("It was interrupted, and something else is in its place.")


def check_empty(place: Place) -> None:
    """Raise NotEmpty for a directory that holds something."""
    fd = os.open(place.name, READ_DIRECTORY, dir_fd=place.parent_fd)
    try:
        entries = len(os.listdir(fd))
    finally:
        os.close(fd)
    if entries:
        count = quantity(entries, "entry", "entries")
        raise NotEmpty(f"{place.path} holds {count}. Set recursive to delete it with everything in it.")


def _not_removable(path: str, error: OSError) -> HoldfastError:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return Conflict(f"Another program put something into {path} at the same moment; it was left in place.")
    return PermissionDenied(f"{path} cannot be removed whole ({error.strerror}); all of it was left in place.")
