"""What a crash left: every intent without an outcome is decided by what is on the disk."""

import logging
import os
from contextlib import ExitStack

from holdfast.changes.commit import Commits
from holdfast.changes.directories import Directories
from holdfast.changes.model import Op, Outcome, Plan
from holdfast.changes.move import Moves
from holdfast.changes.ports import Journal
from holdfast.changes.record import Recorder
from holdfast.changes.remove import Removals
from holdfast.errors import AccessDenied, HoldfastError, InvalidArgument, NotDirectory, NotFound
from holdfast.folders.jail import Jail
from holdfast.folders.roots import close_roots, identity_of, open_roots

_log = logging.getLogger(__name__)


class Recovery:
    """Settles unfinished plans with the code that carries plans out."""

    def __init__(
        self, commits: Commits, removals: Removals, moves: Moves, directories: Directories, state_dir: str
    ) -> None:
        self._commits = commits
        self._removals = removals
        self._moves = moves
        self._directories = directories
        self._state_dir = state_dir

    def run(self, journal: Journal, recorder: Recorder) -> int:
        """Settle all that can be; returns how many. A plan whose folder is not there stays for the next start."""
        settled = 0
        for plan in journal.unfinished():
            try:
                outcome = self._settle(plan)
            except (OSError, HoldfastError) as error:
                _log.warning("change %s could not be settled: %s", plan.id, type(error).__name__)
                continue
            recorder.finish(plan, outcome)
            settled += 1
        return settled

    def _settle(self, plan: Plan) -> Outcome:
        given = [plan.root_dir] if plan.other_root is None else [plan.root_dir, plan.other_root]
        try:
            roots = open_roots(given, "/", self._state_dir)
        except InvalidArgument:
            raise NotFound("the folder is not there") from None
        try:
            return self._settle_in(Jail(roots, [identity_of(os.stat(self._state_dir))]), plan)
        finally:
            close_roots(roots)

    def _settle_in(self, jail: Jail, plan: Plan) -> Outcome:
        first = plan.first
        if first.op in (Op.MKDIR, Op.RMDIR):
            return self._directories.settle(jail, plan)
        with ExitStack() as stack:
            try:
                place = stack.enter_context(jail.place(first.src_path, follow=False))
                if first.op is Op.MOVE:
                    target = stack.enter_context(jail.place(first.dest_path or "", follow=False))
                    return self._moves.settle(jail, plan, place, target)
            except (AccessDenied, NotDirectory, NotFound):
                return Outcome.failed("It was interrupted, and its directory is gone.")
            if first.op is Op.REPLACE:
                return self._commits.settle(plan, place)
            return self._removals.settle(jail, plan, place)
