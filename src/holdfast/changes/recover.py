"""Recovers from a crash: every intent without an outcome gets one, decided by what is on the disk."""

import logging
from contextlib import ExitStack

from holdfast.changes.disk.quarantine import open_jail
from holdfast.changes.model import Op, Outcome, Plan
from holdfast.changes.plans.execute import Executor
from holdfast.changes.ports import Journal
from holdfast.changes.single.content import ContentChanges
from holdfast.changes.single.directories import Directories
from holdfast.changes.single.move import Moves
from holdfast.changes.single.record import Recorder
from holdfast.changes.single.remove import Removals
from holdfast.errors import AccessDenied, HoldfastError, NotDirectory, NotFound
from holdfast.folders.access.jail import Jail

_log = logging.getLogger(__name__)


class Recovery:
    """Recovers unfinished changes with the code that makes changes."""

    def __init__(
        self,
        contents: ContentChanges,
        removals: Removals,
        moves: Moves,
        directories: Directories,
        executor: Executor,
        state_dir: str,
    ) -> None:
        self._contents = contents
        self._removals = removals
        self._moves = moves
        self._directories = directories
        self._executor = executor
        self._state_dir = state_dir

    def run(self, journal: Journal, recorder: Recorder) -> int:
        """Recover all changes that can be; returns how many. One whose folder is missing waits for the next start."""
        recovered = 0
        for plan in journal.find_unfinished():
            try:
                with open_jail(_roots(plan), self._state_dir) as jail:
                    outcome = self._recover(jail, plan)
            except (OSError, HoldfastError) as error:
                _log.warning("change %s could not be recovered: %s", plan.id, type(error).__name__)
                continue
            recorder.finish(plan, outcome)
            recovered += 1
        return recovered + sum(self._recover_batch(plan) for plan in journal.plans.find_interrupted())

    def _recover_batch(self, plan: Plan) -> bool:
        """Recover the last batch of a plan; the items after it wait for the next execution."""
        try:
            with open_jail(_roots(plan), self._state_dir) as jail:
                self._executor.recover(jail, plan)
        except (OSError, HoldfastError) as error:
            _log.warning("plan %s could not be recovered: %s", plan.id, type(error).__name__)
            return False
        return True

    def _recover(self, jail: Jail, plan: Plan) -> Outcome:
        first = plan.first
        if first.op in (Op.MKDIR, Op.RMDIR):
            return self._directories.recover(jail, plan)
        with ExitStack() as stack:
            try:
                place = stack.enter_context(jail.place(first.src_path, follow=False))
                if first.op is Op.MOVE:
                    target = stack.enter_context(jail.place(first.dest_path or "", follow=False))
                    return self._moves.recover(jail, plan, place, target)
            except (AccessDenied, NotDirectory, NotFound):
                return Outcome.failed("It was interrupted, and its directory is gone.")
            if first.op is Op.REPLACE:
                return self._contents.recover(plan, place)
            return self._removals.recover(jail, plan, place)


def _roots(plan: Plan) -> list[str]:
    return [plan.root_dir] if plan.other_root is None else [plan.root_dir, plan.other_root]
