"""Runs one change between journal entries: durable intent, work, and an outcome that is true whatever went wrong."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.auth.context import ClientInfo
from holdfast.bulletin import Bulletin, NewsKind
from holdfast.changes.disk.files import error_from_os
from holdfast.changes.disk.images import Images
from holdfast.changes.disk.policy_gate import check_paths
from holdfast.changes.model import ChangeAbandoned, ChangeKind, Image, Item, Outcome, Plan, PlanStatus
from holdfast.changes.ports import Journal
from holdfast.clock import utc_now
from holdfast.errors import Conflict, HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.observe.metrics import Metrics
from holdfast.observe.spans import add_part


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Why a change is made: its kind, the program that asks for it, through which jail, and which change it undoes.

    `proposed` is an approved proposal, which becomes the change under its own id; `check` raises when what is there is
    not what was approved.
    """

    kind: ChangeKind
    client: ClientInfo
    jail: Jail
    undoes: str | None = None
    proposed: Plan | None = None
    check: Callable[[], None] | None = None

    def confirm(self) -> None:
        """Look once more at what is about to move or go; ChangeAbandoned when it is not what was approved."""
        try:
            if self.check is not None:
                self.check()
        except (HoldfastError, OSError) as error:
            fault = (
                error
                if isinstance(error, HoldfastError)
                else Conflict(f"It cannot be read any more: {error.strerror}.")
            )
            raise ChangeAbandoned(fault) from None


class Recorder:
    """Begins and finishes changes in the journal; calls `on_change` after each, and tells of it in the bulletin."""

    def __init__(
        self,
        journal: Journal,
        images: Images,
        on_change: Callable[[], None],
        metrics: Metrics,
        bulletin: Bulletin | None = None,
    ) -> None:
        self._metrics = metrics
        self._bulletin = bulletin or Bulletin()
        self._journal = journal
        self._images = images
        self._on_change = on_change

    def run(
        self,
        plan: Plan,
        images: Sequence[Image],
        work: Callable[[], Outcome],
        recover: Callable[[Plan], Outcome],
    ) -> None:
        """Make the intent durable, do the work, record the outcome.

        When the work fails half way, `recover` looks at the disk, cleans up and returns what is true.
        Raises what went wrong, as a HoldfastError wherever the cause is the system's.
        """
        images, started_at = self._make_room(plan, images), time.perf_counter()
        try:
            kept_before = self._journal.resume(plan, images) if plan.seq else self._journal.begin(plan, images)
        except BaseException:
            self._images.remove_files(image.file for image in images if image.file)
            raise
        commit_ms = (time.perf_counter() - started_at) * 1000
        self._metrics.journal_committed(commit_ms)
        add_part("commit of the journal", commit_ms)
        self._metrics.change_began(plan.kind.value, len(images), sum(image.size_bytes for image in images))
        self._images.remove_files(image.file for image in kept_before if image.file)
        try:
            outcome = work()
        except ChangeAbandoned as abandoned:
            self.finish(plan, Outcome.failed(abandoned.error.message, abandoned.saved))
            raise abandoned.error from None
        except OSError as error:
            self.finish(plan, recover(plan))
            raise (error_from_os(error, plan.first.src_path) or error) from error
        except BaseException:
            self.finish(plan, recover(plan))
            raise
        self.finish(plan, outcome)
        if outcome.status is PlanStatus.FAILED:
            raise Conflict(outcome.message or "Nothing was changed.")

    def _make_room(self, plan: Plan, images: Sequence[Image]) -> Sequence[Image]:
        """Return the images that the change keeps, none where it may go on without; the files of all others are removed."""
        has_room = False
        try:
            has_room = self._images.room.has_room(plan, images)
        finally:
            if not has_room:
                self._images.remove_files(image.file for image in images if image.file)
        return images if has_room else ()

    def finish(self, plan: Plan, outcome: Outcome) -> None:
        """Record the outcome of a change."""
        self._journal.finish(plan.id, outcome, utc_now())
        self._on_change()
        self._bulletin.tell(
            NewsKind.CHANGE_MADE, id=plan.id, status=outcome.status.value, kind=plan.kind.value, undoes=plan.undoes
        )


def new_plan(
    request: ChangeRequest, root: str, items: Sequence[Item], temp_name: str | None, other_root: str | None = None
) -> Plan:
    """Return a RUNNING plan with a random id, or an approved proposal with its new items.

    Raises what the policy says against one of the items.
    """
    check_paths(request.jail, (path for item in items for path in (item.src_path, item.dest_path) if path))
    if request.proposed is not None:
        return replace(
            request.proposed,
            items=tuple(items),
            temp_name=temp_name,
            status=PlanStatus.RUNNING,
            client=request.client,
            other_root=other_root if other_root != root else None,
            undoes=request.undoes,
        )
    return Plan(
        id=secrets.token_hex(16),
        kind=request.kind,
        root_dir=root,
        items=tuple(items),
        created_at=utc_now(),
        other_root=other_root if other_root != root else None,
        temp_name=temp_name,
        undoes=request.undoes,
        client=request.client,
    )
