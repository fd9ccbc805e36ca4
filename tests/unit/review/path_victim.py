"""A process that dies in the middle of an approved move, deletion, new directory or undo."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.changes.model import Image, Outcome, Plan
from holdfast.changes.single.record import Recorder
from holdfast.changes.single.remove import Removals
from tests.unit.review.desk import opened_desk

_DEAD = 9
_run = Recorder.run


def run_to_death(moment: str) -> Callable[..., None]:
    """Return a `Recorder.run` whose work dies before it begins, or once it is done."""

    def run(
        self: Recorder,
        plan: Plan,
        images: Sequence[Image],
        work: Callable[[], Outcome],
        recover: Callable[[Plan], Outcome],
    ) -> None:
        def die() -> Outcome:
            if moment == "after":
                work()
            os._exit(_DEAD)

        _run(self, plan, images, die, recover)

    return run


def die_after_rename(*_arguments: object) -> bool:
    """Stand in for the comparison that follows the rename of a removed tree."""
    os._exit(_DEAD)


if __name__ == "__main__":
    root, state, review_id, moment = sys.argv[1:]
    if moment == "renamed":
        setattr(Removals, "_matches_plan", die_after_rename)  # noqa: B010
    else:
        setattr(Recorder, "run", run_to_death(moment))  # noqa: B010
    with opened_desk(Path(root), Path(state)) as desk:
        found = desk.book.find(review_id)
        assert found is not None
        desk.commit(found, found.path)
