"""Changes of paths that a person decides on: what each would do, as the person is shown it, and doing exactly that."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from holdfast.call import Call
from holdfast.changes.disk.files import hash_bytes, open_file, read_all
from holdfast.changes.disk.images import Images
from holdfast.changes.disk.places import (
    Locks,
    check_directory,
    is_directory,
    lock_entry,
    lock_move,
    translate_os_errors,
)
from holdfast.changes.disk.policy_gate import ReviewNeeded, check_paths, check_tree, is_visible
from holdfast.changes.disk.tree import TreeOptions, read_tree
from holdfast.changes.disk.tree_listing import MAX_LISTED, TreeListing, check_listing, list_tree
from holdfast.changes.model import ChangeKind, Item, NodeType, Op, Plan, PlanStatus, reverse_items
from holdfast.changes.path_change import PathChange
from holdfast.changes.ports import Journal
from holdfast.changes.single.content import SMALL_BYTES
from holdfast.changes.single.directories import Directories, lock_missing_directories, missing_directories
from holdfast.changes.single.move import Moves
from holdfast.changes.single.record import ChangeRequest
from holdfast.changes.single.remove import Removals, check_empty
from holdfast.changes.single.undo import Undo
from holdfast.errors import AlreadyExists, Conflict, NotDirectory, NotFound
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import HiddenByPolicy, Jail, Place
from holdfast.folders.service import Folders
from holdfast.text.decode import decode, detect_encoding
from holdfast.text.diff import unified_diff
from holdfast.text.display import display_name, format_size, quantity

_NOT_AS_APPROVED = (AlreadyExists, NotDirectory, NotFound)


@dataclass(frozen=True)
class Proposals:
    """Describes changes of paths and makes those that a person approved, with the parts that make any other change."""

    journal: Journal
    images: Images
    removals: Removals
    moves: Moves
    directories: Directories
    undo: Undo
    locks: Locks

    def describe_move(self, folders: Folders, call: Call, source: str, destination: str) -> PathChange:
        """Return what a move would do, refused as the move would be; nothing moves."""
        jail = folders.jail.approved()
        with translate_os_errors(source), lock_move(jail, self.locks, call, source, destination) as (old, new):
            self.moves.check(jail, old, new, call)
            listing = list_tree(old.parent_fd, old.name, call)
            return PathChange(
                ChangeKind.MOVE,
                old.path,
                old.root.path,
                f"move {display_name(old.path)} → {display_name(new.path)}: {listing.summary}\n",
                listing.fingerprint,
                _directory_of(old),
                new.path,
                new.root.path,
                _directory_of(new),
            )

    def describe_delete(self, folders: Folders, call: Call, path: str, *, recursive: bool) -> PathChange:
        """Return what a deletion would take, refused as the deletion would be; nothing goes."""
        jail = folders.jail.approved()
        with translate_os_errors(path), lock_entry(jail, self.locks, call, path) as place:
            check_tree(jail, call, place)
            if is_directory(place.status) and not recursive:
                check_empty(place)
            options = TreeOptions.without_hashes(call, jail.is_hidden)
            items = read_tree(place.parent_fd, place.name, place.path, options)
            self.images.room.admit(sum(item.size_bytes for item in items), place.path)
            listing = list_tree(place.parent_fd, place.name, call)
            return PathChange(
                ChangeKind.DELETE,
                place.path,
                place.root.path,
                _with_listing(f"delete {display_name(place.path)}: {listing.summary}", listing),
                listing.fingerprint,
                _directory_of(place),
            )

    def preview_delete(self, folders: Folders, call: Call, path: str) -> tuple[str, TreeListing, bool]:
        """Return the real path, what a deletion would take, and whether that can be kept for an undo; nothing goes."""
        with translate_os_errors(path), folders.jail.place(path, follow=False) as place:
            if place.status is None:
                raise NotFound.at(path, display_name(path))
            listing = list_tree(place.parent_fd, place.name, call)
            return place.path, listing, self.images.room.fits(listing.size_bytes)

    def describe_directory(self, folders: Folders, call: Call, path: str) -> PathChange:
        """Return which directories would be made. AlreadyExists when there is nothing to make."""
        jail = folders.jail.approved()
        with translate_os_errors(path), lock_missing_directories(jail, self.locks, call, path) as missing:
            _, root, final = missing_directories(jail, path)
            if not missing:
                raise AlreadyExists(f"{path} exists already.")
            check_paths(jail, missing)
            lines = [f"create directory {display_name(final)}", *(f"  {display_name(each)}" for each in missing[:-1])]
            if len(missing) > 1:
                lines.insert(1, "and those above it:")
            with jail.place(missing[0], follow=False) as place:
                directory = _directory_of(place)
            return PathChange(ChangeKind.MKDIR, final, root, "\n".join([*lines, ""]), _fingerprint(missing), directory)

    def describe_undo(self, folders: Folders, call: Call, change_id: str) -> PathChange:
        """Return what undoing a change would do. ReviewNeeded for one that only the person's own command takes back."""
        plan = self.journal.find(change_id)
        if plan is None or not is_visible(plan, folders.jail):
            raise NotFound(f"There is no change {change_id!r}. list_changes shows those that can be undone.")
        if plan.stepwise or plan.status is not PlanStatus.EXECUTED:
            command = f"holdfast organise undo {plan.id[:8]}" if plan.stepwise else f"holdfast undo {plan.id[:8]}"
            raise ReviewNeeded(
                f"Change {plan.id} touches what changes only with the user's approval. Nothing was changed.",
                hint=f"The user can undo it: `{command}`.",
            )
        items = reverse_items(plan.items)
        if not items:
            raise Conflict(f"Change {plan.id} left nothing that could be undone.")
        jail = folders.jail.approved()
        with translate_os_errors(items[0].src_path):
            check_paths(jail, [path for item in items for path in (item.src_path, item.dest_path) if path])
            statement, fingerprint = self._describe_steps(jail, plan, items, call)
        path, dest_path = items[0].src_path, items[0].dest_path
        dest_root = plan.other_root or (plan.root_dir if dest_path else None)
        statement = f"undo the {plan.kind} of change {plan.id[:8]}: {statement}"
        return PathChange(
            ChangeKind.UNDO, path, plan.root_dir, statement, fingerprint, None, dest_path, dest_root, None, plan.id
        )

    def make_approved(self, folders: Folders, call: Call, plan: Plan, change: PathChange) -> str:
        """Make a change that a person approved, under the id of its plan, and return that.

        Conflict, and nothing changed, unless what is there is what the person was shown.
        """
        jail = folders.jail.approved()
        with translate_os_errors(change.path), _refuse_what_differs():
            if change.kind is ChangeKind.MOVE:
                self._move(jail, call, plan, change)
            elif change.kind is ChangeKind.DELETE:
                self._delete(jail, call, plan, change)
            elif change.kind is ChangeKind.MKDIR:
                self._make_directories(jail, call, plan, change)
            else:
                self._undo(jail, call, plan, change)
        return plan.id

    def _move(self, jail: Jail, call: Call, plan: Plan, change: PathChange) -> None:
        dest_path = change.dest_path or ""
        with lock_move(jail, self.locks, call, change.path, dest_path) as (old, new):
            check_directory(old, change.path, change.directory)
            check_directory(new, dest_path, change.dest_directory)
            check = partial(check_listing, old.parent_fd, old.name, old.path, change.fingerprint, call)
            check()
            self.moves.move(jail, old, new, call, _request(jail, call, plan, check))

    def _delete(self, jail: Jail, call: Call, plan: Plan, change: PathChange) -> None:
        with lock_entry(jail, self.locks, call, change.path) as place:
            check_directory(place, change.path, change.directory)
            check = partial(check_listing, place.parent_fd, place.name, place.path, change.fingerprint, call)
            check()
            self.removals.remove(jail, place, call, _request(jail, call, plan, check))

    def _make_directories(self, jail: Jail, call: Call, plan: Plan, change: PathChange) -> None:
        with lock_missing_directories(jail, self.locks, call, change.path) as missing:
            if not missing or _fingerprint(missing) != change.fingerprint:
                raise Conflict(
                    f"The directories above {change.path} are not those that were there when it was proposed. "
                    "Nothing was changed.",
                    hint="Look at what is there, and call create_directory again where it is still needed.",
                )
            with jail.place(missing[0], follow=False) as place:
                check_directory(place, missing[0], change.directory)
            self.directories.make(jail, change.path, _request(jail, call, plan))

    def _undo(self, jail: Jail, call: Call, plan: Plan, change: PathChange) -> None:
        undone = self.journal.find(change.undoes or "")
        if undone is None or undone.status is not PlanStatus.EXECUTED:
            raise Conflict(f"Change {change.undoes} is not in effect any more. Nothing was changed.")
        check = partial(self._check_undo, jail, undone, change, call)
        check()
        self.undo.run(jail, undone, call, proposed=plan, check=check)

    def _check_undo(self, jail: Jail, undone: Plan, change: PathChange, call: Call) -> None:
        """Raise Conflict when what an undo moves back or removes is not what was shown; of the rest the undo makes sure."""
        item = reverse_items(undone.items)[0]
        if item.op in (Op.MOVE, Op.REMOVE):
            with jail.place(item.src_path, follow=False) as place:
                check_listing(place.parent_fd, place.name, item.src_path, change.fingerprint, call)

    def _describe_steps(self, jail: Jail, plan: Plan, items: Sequence[Item], call: Call) -> tuple[str, str]:
        """Return what an undo would do, and the fingerprint of what it would move back or remove."""
        first, path = items[0], display_name(items[0].src_path)
        if first.op is Op.REPLACE:
            return f"{path} gets back its earlier content\n{self._diff(jail, first)}", plan.id
        if first.op in (Op.MKDIR, Op.RMDIR):
            verb = "create" if first.op is Op.MKDIR else "remove, where it is empty,"
            return "\n".join(f"{verb} directory {display_name(item.src_path)}" for item in items) + "\n", plan.id
        if first.op is Op.RESTORE:
            files = [item for item in items if item.node is not NodeType.DIRECTORY]
            size = format_size(sum(item.size_bytes for item in files))
            names = [f"  {display_name(item.src_path)}" for item in items[1 : MAX_LISTED + 1]]
            more = [f"  and {len(items) - 1 - MAX_LISTED:,} more"] if len(items) - 1 > MAX_LISTED else []
            head = f"{path} comes back ({quantity(len(files), 'file', separator=',')}, {size})"
            return "\n".join([head, *names, *more, ""]), plan.id
        with jail.place(first.src_path, follow=False) as place:
            listing = list_tree(place.parent_fd, place.name, call)
        if first.op is Op.MOVE:
            return f"move {path} → {display_name(first.dest_path or '')}: {listing.summary}\n", listing.fingerprint
        return _with_listing(f"delete {path}: {listing.summary}", listing), listing.fingerprint

    def _diff(self, jail: Jail, item: Item) -> str:
        """Return the difference that an undo makes to a text; for any other file a sentence."""
        with jail.place(item.src_path, follow=False) as place, open_file(place.parent_fd, place.name, place.path) as fd:
            present = read_all(fd) if os.fstat(fd).st_size <= SMALL_BYTES else b""
        if hash_bytes(present) != item.before_hash:
            return ""
        earlier = b"".join(self.images.read(item.after_hash or ""))
        before, after = detect_encoding(present), detect_encoding(earlier)
        if before is None or after is None or len(earlier) > SMALL_BYTES:
            return f"It is no text that can be shown: {format_size(len(present))} become {format_size(len(earlier))}.\n"
        return unified_diff(decode(present, before), decode(earlier, after), item.src_path)


@contextmanager
def _refuse_what_differs() -> Iterator[None]:
    """Turn what is missing, or in the way, into a Conflict: it was another when a person approved the change."""
    try:
        yield
    except HiddenByPolicy:
        raise
    except _NOT_AS_APPROVED as error:
        raise Conflict(
            f"{error.message} It is not as the user approved it. Nothing was changed.",
            hint="Look at it again, and ask again with the same tool.",
        ) from None


def _request(jail: Jail, call: Call, plan: Plan, check: Callable[[], None] | None = None) -> ChangeRequest:
    return ChangeRequest(plan.kind, call.caller.client, jail, None, plan, check)


def _directory_of(place: Place) -> str:
    return identity_text(os.fstat(place.parent_fd))


def _with_listing(headline: str, listing: TreeListing) -> str:
    return "\n".join([headline, *(f"  {line}" for line in listing.lines), ""])


def _fingerprint(paths: Sequence[str]) -> str:
    return hash_bytes(os.fsencode("\0".join(paths)))
