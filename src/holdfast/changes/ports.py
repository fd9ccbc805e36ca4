"""What the changes need from a database: intents that are durable before anything moves, and outcomes after."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.changes.model import (
    Change,
    Image,
    Item,
    ItemOutcome,
    Outcome,
    Plan,
    PlanOverview,
    PlanStatus,
    QuarantinedFile,
)


class PlanJournal(Protocol):
    """The plans that are carried out in batches. What a plan's status does not allow is a Conflict and changes nothing."""

    def create(self, plan: Plan) -> None:
        """Write a plan with all of its items, as one."""

    def revise(self, plan_id: str, items: Sequence[Item]) -> None:
        """Replace the items of a CREATED plan."""

    def approve(self, plan_id: str, plan_hash: str, by: str, at: str) -> None:
        """Turn CREATED into APPROVED, for this content."""

    def cancel(self, plan_id: str) -> None:
        """Close a plan that has not ended and none of whose items was begun."""

    def start(self, plan_id: str) -> None:
        """Make an APPROVED or FAILED plan RUNNING and the newest change, its ERROR items PENDING again.

        One that is RUNNING already was interrupted and goes on.
        """

    def advance(self, plan_id: str, steps: Sequence[ItemOutcome], intents: Sequence[Item], at: str) -> PlanStatus:
        """Make outcomes and the next intents durable, as one; returns the plan's status, which follows its items.

        What an undo's items took back becomes UNDONE in the same act, and what that had taken back DONE again.
        """

    def skip_rest(self, plan_id: str, why: str, at: str) -> PlanStatus:
        """End a plan: what is PENDING becomes SKIPPED."""

    def interrupted(self) -> list[Plan]:
        """Return undos without an outcome and plans with intents that have none, oldest first."""

    def lines(self, roots: Sequence[str], limit: int, before_seq: int | None) -> list[PlanOverview]:
        """Return plans whose roots all lie beneath the given ones, newest first."""

    def expired_quarantine(self, kept_since: str) -> list[QuarantinedFile]:
        """Return what was set aside by plans that ended before that time."""

    def forget_quarantine(self, files: Sequence[QuarantinedFile]) -> None:
        """Record that they are gone."""


class Journal(Protocol):
    """The record of every change on this machine. Safe to use from any thread."""

    @property
    def plans(self) -> PlanJournal:
        """Return the plans that are carried out in batches."""

    def begin(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Make a plan and its before-images durable, as one; returns the images that were already kept."""

    def resume(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Begin an approved plan that is in the journal already, as the newest change and with these items.

        Conflict when it is not approved, under way or done.
        """

    def keep(self, image: Image, at: str) -> bool:
        """Make one more image durable for a plan under way; False when it was already kept."""

    def finish(self, plan_id: str, outcome: Outcome, at: str) -> None:
        """Record how a plan ended. What it undoes becomes UNDONE, and what that had undone is in effect again."""

    def find(self, plan_id: str) -> Plan | None:
        """Return a plan with its items, None when there is none of that id."""

    def unfinished(self) -> list[Plan]:
        """Return the plans that began and have no outcome, oldest first."""

    def changes(self, roots: Sequence[str], limit: int, before_seq: int | None) -> list[Change]:
        """Return finished changes whose roots all lie beneath the given ones, newest first."""

    def latest_on(self, path: str, after_seq: int) -> str | None:
        """Return the id of the newest change in effect that touched a path later than `after_seq`."""

    def image(self, hash_: str) -> Image | None:
        """Return kept bytes, or the file that holds them; None when they are gone."""

    def image_files(self) -> set[str]:
        """Return the names of all files of the image store that are in use."""

    def expire(self, max_bytes: int, kept_since: str) -> list[str]:
        """Let the oldest images go until the rest fits; returns the files to remove. Plans under way keep theirs."""

    def checkpoint(self) -> None:
        """Tidy the database; never called while a caller waits."""

    def close(self) -> None:
        """Give up the database."""
