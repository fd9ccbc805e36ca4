"""Finds the moves of a plan whose sources are not what they were when the plan was made; their bytes are not read."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.changes.disk.identity import has_planned_status
from holdfast.changes.model import Item, ItemStatus, Op
from holdfast.changes.plans.parents import Parents
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail

_MAX_OPEN = 64
_CHECK_EVERY = 256


@dataclass(frozen=True, slots=True)
class OutdatedMoves:
    """The waiting moves whose source is gone, and those whose source is another file or was written to."""

    missing: tuple[Item, ...]
    changed: tuple[Item, ...]


def find_outdated(jail: Jail, call: Call, items: Sequence[Item]) -> OutdatedMoves:
    """Return the outdated moves among those that wait; an execution would leave these where they are."""
    missing: list[Item] = []
    changed: list[Item] = []
    waiting = [item for item in items if item.op is Op.MOVE and item.status is ItemStatus.PENDING]
    with Parents(jail, _MAX_OPEN) as parents:
        for number, item in enumerate(waiting):
            if number % _CHECK_EVERY == 0:
                call.check()
            try:
                status = parents.place(item.src_path).status
            except HoldfastError:
                status = None
            if status is None:
                missing.append(item)
            elif not has_planned_status(item, status):
                changed.append(item)
    return OutdatedMoves(tuple(missing), tuple(changed))
