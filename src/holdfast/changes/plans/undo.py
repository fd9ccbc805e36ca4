"""Builds the plan that undoes a plan: moves go back, newest first, and directories that it made go if they are empty."""

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
    """Return the plan that undoes a stepwise plan, or only the moves at these positions with their units.

    A move whose file is not as the plan left it is SKIPPED, with the reason. None when everything is undone already;
    Conflict when nothing can be undone.
    """
    done_items = [item for item in sort_items(plan.items) if item.status is ItemStatus.DONE]
    moves = _select_moves([item for item in done_items if item.op is Op.MOVE], positions)
    with Parents(jail, _OPEN_DIRECTORIES) as parents:
        back = _skip_torn_units([_reverse_move(journal, plan, item, parents, call) for item in reversed(moves)])
    if moves and all(item.status is ItemStatus.SKIPPED for item in back):
        raise Conflict(f"Nothing of plan {plan.id} can be undone. {explain_failures(back)}")
    is_unfinished = any(item.status is ItemStatus.PENDING for item in plan.items)
    directories = [
        Item(
            Op.RMDIR if item.op is Op.MKDIR else Op.MKDIR,
            item.src_path,
            node=NodeType.DIRECTORY,
            reverses=item.position,
        )
        for item in reversed(done_items)
        if item.op is not Op.MOVE and not is_unfinished and _belongs_to(item, moves, positions)
    ]
    items = [*back, *directories]
    items += _missing_directories(jail, items)
    if not items and is_undone(plan, positions):
        return None
    if not items:
        raise Conflict(f"Change {plan.id} left nothing that could be undone.")
    numbered = tuple(item._replace(position=position) for position, item in enumerate(items))
    request = ChangeRequest(ChangeKind.UNDO, call.caller.client, jail, plan.id)
    undo_plan = new_plan(request, plan.root_dir, numbered, None, other_root=plan.other_root)
    return replace(undo_plan, stepwise=True, folder=plan.folder)


def is_undone(plan: Plan, positions: Collection[int] | None) -> bool:
    """Return whether every selected move that was made is undone."""
    selected = _select_moves([item for item in plan.items if item.op is Op.MOVE], positions)
    statuses = {item.status for item in selected}
    return ItemStatus.UNDONE in statuses and statuses.isdisjoint({ItemStatus.DONE, ItemStatus.PENDING})


def explain_failures(items: Sequence[Item]) -> str:
    """Return why the first of the items could not be undone and how many others could not; moves come first."""
    moves_or_all = [item for item in items if item.op is Op.MOVE] or items
    reasons = [f"{item.src_path}: {item.error_msg}" for item in moves_or_all if item.error_msg]
    more = f" And {len(reasons) - 1} more." if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _select_moves(moves: list[Item], positions: Collection[int] | None) -> list[Item]:
    if positions is None:
        return moves
    units = {item.unit for item in moves if item.position in positions} - {None}
    return [item for item in moves if item.position in positions or item.unit in units]


def _skip_torn_units(back: list[Item]) -> list[Item]:
    """Return the items with all of a unit SKIPPED where one of it is."""
    skipped = {item.unit: item for item in reversed(back) if item.unit and item.status is ItemStatus.SKIPPED}
    return [
        item._replace(
            status=ItemStatus.SKIPPED,
            error_msg=stays_with(skipped[item.unit].src_path, skipped[item.unit].error_msg),
        )
        if item.unit in skipped and item.status is not ItemStatus.SKIPPED
        else item
        for item in back
    ]


def _reverse_move(journal: Journal, plan: Plan, item: Item, parents: Parents, call: Call) -> Item:
    call.check()
    source, dest = item.dest_path or "", item.src_path
    skipped = Item(
        Op.MOVE, source, dest, node=item.node, reverses=item.position, unit=item.unit, status=ItemStatus.SKIPPED
    )
    try:
        place = parents.place(source)
        move = describe_source(place)
    except (AccessDenied, NotDirectory, NotFound):
        return skipped._replace(error_msg="It no longer exists.")
    except (HoldfastError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.message
        return skipped._replace(error_msg=f"It could not be read: {reason}")
    if not was_moved_to(item, place) and not _was_restored(journal, plan, source, place):
        return skipped._replace(error_msg="It is not what was moved there, or it was changed since; it was left alone.")
    return move._replace(dest_path=dest, reverses=item.position, unit=item.unit)


def _was_restored(journal: Journal, plan: Plan, path: str, place: Place) -> bool:
    """Return whether a later undo of ours put the entry there: another file on the disk, the same one to a person."""
    later = journal.find_latest_on(path, plan.seq)
    undo = journal.find(later) if later else None
    if undo is None or undo.kind is not ChangeKind.UNDO:
        return False
    written = [item.after_hash for item in undo.items if item.op is Op.REPLACE and item.src_path == path]
    return not written or _hash_at(place) == written[0]


def _hash_at(place: Place) -> str | None:
    """Return the hash of a file, None for what cannot be read or is not a file."""
    try:
        with open_file(place.parent_fd, place.name, place.path) as fd:
            return hash_file(fd)
    except (HoldfastError, OSError):
        return None


def _belongs_to(directory: Item, moves: list[Item], positions: Collection[int] | None) -> bool:
    """Return whether a directory is undone with these moves: any with a whole plan, else those above a move."""
    if positions is None:
        return True
    ends = [path for move in moves for path in (move.src_path, move.dest_path) if path]
    return any(is_beneath(path, [directory.src_path]) for path in ends)


def _missing_directories(jail: Jail, items: list[Item]) -> list[Item]:
    """Return MKDIR items for directories that were removed since and that files go back to."""
    new_directories = {item.src_path for item in items if item.op is Op.MKDIR}
    to_make: dict[str, None] = {}
    folders = {parent_of(item.dest_path) for item in items if item.dest_path and item.status is ItemStatus.PENDING}
    for folder in sorted(folders - set(jail.allowed_paths)):
        try:
            missing, _, real = missing_directories(jail, folder)
        except (HoldfastError, OSError):
            continue
        if real == os.path.normpath(folder):
            to_make.update(dict.fromkeys(path for path in missing if path not in new_directories))
    return [Item(Op.MKDIR, path, node=NodeType.DIRECTORY) for path in to_make]
