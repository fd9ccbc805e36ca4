"""A process that dies in the middle of writing an approved review."""

import os
import sys
from pathlib import Path

from holdfast.changes.model import Outcome
from holdfast.changes.single.content import _Swap
from tests.unit.review.desk import opened_desk

_DEAD = 9
_swap = _Swap.run


def _before(_self: _Swap) -> Outcome:
    os._exit(_DEAD)


def _after(self: _Swap) -> Outcome:
    _swap(self)
    os._exit(_DEAD)


if __name__ == "__main__":
    root, state, review_id, moment = sys.argv[1:]
    setattr(_Swap, "run", {"before": _before, "after": _after}[moment])  # noqa: B010
    with opened_desk(Path(root), Path(state)) as desk:
        found = desk.book.find(review_id)
        assert found is not None
        desk.commit(found, "a.txt")
