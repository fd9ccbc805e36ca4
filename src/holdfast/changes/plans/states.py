"""Pure: which status may follow which, for plans and items, and the status of a plan by those of its items."""

from collections.abc import Mapping

from holdfast.changes.model import ItemStatus, Op, PlanStatus

PLAN_NEXT: Mapping[PlanStatus, frozenset[PlanStatus]] = {
    PlanStatus.CREATED: frozenset({PlanStatus.APPROVED, PlanStatus.CANCELLED}),
    PlanStatus.APPROVED: frozenset({PlanStatus.RUNNING, PlanStatus.CANCELLED}),
    PlanStatus.RUNNING: frozenset({PlanStatus.EXECUTED, PlanStatus.FAILED, PlanStatus.UNDONE, PlanStatus.CANCELLED}),
    PlanStatus.EXECUTED: frozenset({PlanStatus.UNDONE}),
    PlanStatus.FAILED: frozenset({PlanStatus.RUNNING, PlanStatus.UNDONE}),
    PlanStatus.CANCELLED: frozenset(),
    PlanStatus.UNDONE: frozenset({PlanStatus.EXECUTED, PlanStatus.FAILED}),
}
"""A failed plan is RUNNING again while the next execution retries it; a plan is cancelled only before its first item
was begun; an undo that is undone brings a plan back."""

ITEM_NEXT: Mapping[ItemStatus, frozenset[ItemStatus]] = {
    ItemStatus.PENDING: frozenset({ItemStatus.DONE, ItemStatus.SKIPPED, ItemStatus.ERROR}),
    ItemStatus.DONE: frozenset({ItemStatus.UNDONE}),
    ItemStatus.SKIPPED: frozenset(),
    ItemStatus.ERROR: frozenset({ItemStatus.PENDING}),
    ItemStatus.UNDONE: frozenset({ItemStatus.DONE}),
}

Counts = Mapping[tuple[Op, ItemStatus], int]


def plan_may_become(present: PlanStatus, target: PlanStatus) -> bool:
    """Return whether a plan may go from one status to the other."""
    return target in PLAN_NEXT[present]


def item_may_become(present: ItemStatus, target: ItemStatus) -> bool:
    """Return whether an item may go from one status to the other."""
    return target in ITEM_NEXT[present]


def status_of(counts: Counts) -> PlanStatus:
    """Return the status of a plan that was started, by how many of its items have which status.

    Directories do not count while there are moves: a plan all of whose moves are undone is UNDONE, even when one of
    its directories has other entries by now and stays.
    """
    if any(count for (_, status), count in counts.items() if status is ItemStatus.PENDING):
        return PlanStatus.RUNNING
    moves = {status: count for (op, status), count in counts.items() if op is Op.MOVE and count}
    counted = moves or {status: count for (_, status), count in counts.items() if count}
    if ItemStatus.UNDONE in counted and ItemStatus.DONE not in counted:
        return PlanStatus.UNDONE
    has_errors = any(count for (_, status), count in counts.items() if status is ItemStatus.ERROR)
    return PlanStatus.FAILED if has_errors else PlanStatus.EXECUTED
