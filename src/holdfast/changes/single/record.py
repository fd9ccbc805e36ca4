"""The frame around every change: intent first, then the work, then an outcome that is true whatever went wrong."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.changes.disk.files import error_from_os
from holdfast.changes.disk.images import Images
from holdfast.changes.model import Abandoned, ChangeKind, Image, Item, Outcome, Plan, PlanStatus
from holdfast.changes.ports import Journal
from holdfast.clock import utc_now
from holdfast.errors import Conflict


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Why a change is made: what the caller asked for, and which change it takes back if it is an undo.

    `proposed` is the approved proposal that is carried out by it; it becomes the change, under its own id.
    """

    kind: ChangeKind
    undoes: str | None = None
    proposed: Plan | None = None


class Recorder:
    """Begins plans and ends them. `noticed` is told about every finished change."""

    def __init__(self, journal: Journal, images: Images, noticed: Callable[[], None]) -> None:
        self._journal = journal
        self._images = images
        self._noticed = noticed

    def carry_out(
        self,
        plan: Plan,
        images: Sequence[Image],
        work: Callable[[], Outcome],
        settle: Callable[[Plan], Outcome],
    ) -> None:
        """Make the intent durable, do the work, record the outcome.

        When the work fails half way, `settle` looks at the disk, tidies up and says what is true.
        Raises what went wrong, in the words of a HoldfastError wherever the cause is the system's.
        """
        known = self._journal.resume(plan, images) if plan.seq else self._journal.begin(plan, images)
        self._images.remove_files(image.file for image in known if image.file)
        try:
            outcome = work()
        except Abandoned as abandoned:
            self.finish(plan, Outcome.failed(abandoned.error.message, abandoned.kept))
            raise abandoned.error from None
        except OSError as error:
            self.finish(plan, settle(plan))
            told = error_from_os(error, plan.first.src_path)
            raise (told or error) from error
        except BaseException:
            self.finish(plan, settle(plan))
            raise
        self.finish(plan, outcome)
        if outcome.status is PlanStatus.FAILED:
            raise Conflict(outcome.message or "Nothing was changed.")

    def finish(self, plan: Plan, outcome: Outcome) -> None:
        """Record an outcome."""
        self._journal.finish(plan.id, outcome, utc_now())
        self._noticed()


def new_plan(
    intent: ChangeRequest, root: str, items: Sequence[Item], temp_name: str | None, other_root: str | None = None
) -> Plan:
    """Return a plan that is about to be carried out, under a fresh random id unless it was proposed before."""
    if intent.proposed is not None:
        return replace(intent.proposed, items=tuple(items), temp_name=temp_name)
    return Plan(
        id=secrets.token_hex(16),
        kind=intent.kind,
        root_dir=root,
        items=tuple(items),
        created_at=utc_now(),
        other_root=other_root if other_root != root else None,
        temp_name=temp_name,
        undoes=intent.undoes,
    )
