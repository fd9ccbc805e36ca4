"""The undo of a plan, as a plan: what was moved goes back newest first, and directories it made go while they are empty."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.call import Call
from holdfast.changes.disk.files import hash_file, open_file
from holdfast.changes.disk.identity import describe_source, was_moved_to
from holdfast.changes.model import ChangeKind, Item, ItemStatus, NodeType, Op, Plan, is_beneath
from holdfast.changes.names import parent_of
from holdfast.changes.plans.batch import stays_with
from holdfast.changes.plans.layout import sort_items
from holdfast.changes.plans.parents import Parents
from holdfast.changes.ports import Journal
from holdfast.changes.single.directories import missing_directories
from holdfast.changes.single.record import ChangeRequest, new_plan
from holdfast.errors import AccessDenied, Conflict, HoldfastError, NotDirectory, NotFound
from holdfast.folders.access.jail import Jail, Place

_OPEN_DIRECTORIES = 200


def build_undo_plan(
    journal: Journal, jail: Jail, plan: Plan, positions: Collection[int] | None, call: Call
) -> Plan | None:
    """Return the plan that takes a stepwise plan back, or only the moves at these positions and what belongs to them.

    What is not as the plan left it is in it as SKIPPED, with the reason. None when all of it is back already; Conflict
    when nothing can be taken back.
    """
    done = [item for item in sort_items(plan.items) if item.status is ItemStatus.DONE]
    moves = _meant([item for item in done if item.op is Op.MOVE], positions)
    with Parents(jail, _OPEN_DIRECTORIES) as parents:
        back = _together([_moved_back(journal, plan, item, parents, call) for item in reversed(moves)])
    if moves and all(item.status is ItemStatus.SKIPPED for item in back):
        raise Conflict(f"Nothing of plan {plan.id} can be taken back. {explain_failures(back)}")
    waiting = any(item.status is ItemStatus.PENDING for item in plan.items)
    folders = [] if waiting else [item for item in done if item.op is not Op.MOVE and _concerns(item, moves, positions)]
    reversed_folders = [_reversed_directory(item) for item in reversed(folders)]
    items = [*back, *reversed_folders]
    items += _missing(jail, items)
    if not items and is_back(plan, positions):
        return None
    if not items:
        raise Conflict(f"Change {plan.id} left nothing that could be taken back.")
    numbered = tuple(item._replace(position=position) for position, item in enumerate(items))
    made = new_plan(ChangeRequest(ChangeKind.UNDO, plan.id), plan.root_dir, numbered, None, other_root=plan.other_root)
    return replace(made, stepwise=True, folder=plan.folder)


def is_back(plan: Plan, positions: Collection[int] | None) -> bool:
    """Return whether every move that is meant and was made has been taken back."""
    meant = _meant([item for item in plan.items if item.op is Op.MOVE], positions)
    statuses = {item.status for item in meant}
    return ItemStatus.UNDONE in statuses and statuses.isdisjoint({ItemStatus.DONE, ItemStatus.PENDING})


def explain_failures(items: Sequence[Item]) -> str:
    """Return why the first of some items could not be taken back, and how many others could not; moves before all."""
    told_of = [item for item in items if item.op is Op.MOVE] or items
    reasons = [f"{item.src_path}: {item.error_msg}" for item in told_of if item.error_msg]
    more = f" And {len(reasons) - 1} more." if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _meant(moves: list[Item], positions: Collection[int] | None) -> list[Item]:
    if positions is None:
        return moves
    units = {item.unit for item in moves if item.position in positions} - {None}
    return [item for item in moves if item.position in positions or item.unit in units]


def _together(back: list[Item]) -> list[Item]:
    """Return the items with those of a unit that stays in part all left."""
    left = {item.unit: item for item in reversed(back) if item.unit and item.status is ItemStatus.SKIPPED}
    return [_left(item, left[item.unit]) if item.unit in left else item for item in back]


def _left(item: Item, other: Item) -> Item:
    if item.status is ItemStatus.SKIPPED:
        return item
    return item._replace(status=ItemStatus.SKIPPED, error_msg=stays_with(other.src_path, other.error_msg))


def _moved_back(journal: Journal, plan: Plan, item: Item, parents: Parents, call: Call) -> Item:
    call.check()
    here, back = item.dest_path or "", item.src_path
    gone = Item(Op.MOVE, here, back, node=item.node, reverses=item.position, unit=item.unit, status=ItemStatus.SKIPPED)
    try:
        place = parents.place(here)
        found = describe_source(place)
    except (AccessDenied, NotDirectory, NotFound):
        return gone._replace(error_msg="It is not there any more.")
    except (HoldfastError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        return gone._replace(error_msg=f"It could not be looked at: {why}")
    if not was_moved_to(item, place) and not _was_brought_back(journal, plan, here, place):
        return gone._replace(error_msg="It is not what was moved there, or it was changed since; it was left alone.")
    return found._replace(dest_path=back, reverses=item.position, unit=item.unit)


def _was_brought_back(journal: Journal, plan: Plan, path: str, place: Place) -> bool:
    """Return whether an undo of ours put it at a path since: another file on the disk, the same one to a person."""
    later = journal.latest_on(path, plan.seq)
    found = journal.find(later) if later else None
    if found is None or found.kind is not ChangeKind.UNDO:
        return False
    written = [item.after_hash for item in found.items if item.op is Op.REPLACE and item.src_path == path]
    return not written or _hash_at(place) == written[0]


def _hash_at(place: Place) -> str | None:
    """Return the hash of a file, None for what cannot be read or is none."""
    try:
        with open_file(place.parent_fd, place.name, place.path) as fd:
            return hash_file(fd)
    except (HoldfastError, OSError):
        return None


def _concerns(directory: Item, moves: list[Item], positions: Collection[int] | None) -> bool:
    """Return whether a directory goes with these moves: any of a whole plan, of single moves those above them."""
    if positions is None:
        return True
    ends = [path for move in moves for path in (move.src_path, move.dest_path) if path]
    return any(is_beneath(path, [directory.src_path]) for path in ends)


def _reversed_directory(item: Item) -> Item:
    op = Op.RMDIR if item.op is Op.MKDIR else Op.MKDIR
    return Item(op, item.src_path, node=NodeType.DIRECTORY, reverses=item.position)


def _missing(jail: Jail, items: list[Item]) -> list[Item]:
    """Return directories that somebody removed since and that things go back to."""
    made = {item.src_path for item in items if item.op is Op.MKDIR}
    found: dict[str, None] = {}
    folders = {parent_of(item.dest_path) for item in items if item.dest_path and item.status is ItemStatus.PENDING}
    for folder in sorted(folders - set(jail.allowed_paths)):
        try:
            missing, _, real = missing_directories(jail, folder)
        except (HoldfastError, OSError):
            continue
        if real == os.path.normpath(folder):
            found.update(dict.fromkeys(path for path in missing if path not in made))
    return [Item(Op.MKDIR, path, node=NodeType.DIRECTORY) for path in found]
