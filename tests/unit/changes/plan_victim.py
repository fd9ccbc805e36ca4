"""A process that executes or undoes a plan and is killed, by its own hand, just before or after a chosen act."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.adapters.sqlite.state.journal_plans import SqlitePlanJournal
from holdfast.changes.disk import files
from tests.unit.changes.world import opened_world


def arm(act: str, count: int, *, after: bool) -> None:
    """Replace one act, of the disk or of the journal, by one that ends the process at its n-th use."""
    owner: Any = SqlitePlanJournal if act == "advance" else files
    real: Callable[..., object] = getattr(owner, act)
    uses = iter(range(1, count + 1))

    def deadly(*args: Any, **named: Any) -> object:
        last = next(uses, None) == count
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, act, deadly)


def main() -> None:
    state, verb, plan_id, act, count, when, *roots = sys.argv[1:]
    with opened_world([Path(root) for root in roots], Path(state)) as world:
        arm(act, int(count), after=when == "after")
        if verb == "execute":
            world.execute(world.changes.plans.find(world.folders, plan_id))
        else:
            world.undo(plan_id)


if __name__ == "__main__":
    main()
