"""Ports of the journal: intents are durable before anything on the disk changes, outcomes are recorded after."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.auth.context import ClientInfo
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
    RootUsage,
)
from holdfast.changes.selection import ChangeFilter, PrunedImages, PruneSelection

ANY_CHANGE = ChangeFilter()


class PlanJournal(Protocol):
    """The stepwise plans. What a plan's status does not allow is a Conflict and changes nothing."""

    def create(self, plan: Plan) -> None:
        """Write a plan with all of its items, in one transaction."""

    def revise(self, plan_id: str, items: Sequence[Item]) -> None:
        """Replace the items of a CREATED plan."""

    def approve(self, plan_id: str, plan_hash: str, by: str, at: str) -> None:
        """Turn CREATED into APPROVED, for the content with this hash."""

    def cancel(self, plan_id: str) -> None:
        """Close a plan that has not ended and none of whose items was begun."""

    def start(self, plan_id: str, client: ClientInfo) -> None:
        """Make an APPROVED or FAILED plan RUNNING and the newest change, of that client, its ERROR items PENDING again.

        One that is RUNNING already was interrupted and goes on.
        """

    def advance(self, plan_id: str, outcomes: Sequence[ItemOutcome], intents: Sequence[Item], at: str) -> PlanStatus:
        """Make outcomes and the next intents durable, in one transaction; returns the status, which follows the items.

        What an undo's items reversed becomes UNDONE in the same transaction, and what that had reversed DONE again.
        """

    def skip_rest(self, plan_id: str, reason: str, at: str) -> PlanStatus:
        """End a RUNNING plan: PENDING items become SKIPPED."""

    def find_interrupted(self) -> list[Plan]:
        """Return RUNNING undos, and RUNNING plans with intents that have no outcome, oldest first."""

    def list_plans(self, roots: Sequence[str], limit: int, before_seq: int | None) -> list[PlanOverview]:
        """Return plans whose roots are all beneath the given ones, newest first."""

    def find_expired_quarantine(self, kept_since: str) -> list[QuarantinedFile]:
        """Return what plans that ended before that time left in quarantine."""

    def forget_quarantine(self, files: Sequence[QuarantinedFile]) -> None:
        """Record that they are gone."""


class ImageTable(Protocol):
    """The before-images, and which changes of which paths use them. The oldest of a path is never removed for others."""

    def find(self, hash_: str) -> Image | None:
        """Return kept bytes, or the file that holds them; None when they are gone."""

    def files(self) -> set[str]:
        """Return the names of all files of the image store that are in use."""

    def usage(self) -> dict[str, RootUsage]:
        """Return what each root takes up; from memory, so it costs nothing."""

    def has_oldest(self, path: str) -> bool:
        """Return whether an earlier content of a path is kept."""

    def expire(self, cap_bytes: int, kept_since: str) -> list[str]:
        """Remove images past their days and, over the cap, those that are not the oldest of a path; returns their files.

        The oldest changes go first, and only those of roots over their share. RUNNING changes keep theirs.
        """

    def forget_unused(self) -> list[str]:
        """Remove images that no change uses, as a crash leaves them; returns their files. For the start of a server."""

    def list_unpacked(self) -> list[str]:
        """Return the hashes of some images that were not tried for packing yet."""

    def base_for(self, hash_: str) -> str | None:
        """Return the image that another one may be kept as a difference from."""

    def pack(self, hash_: str, packed: Image | None) -> str | None:
        """Store an image in less space, or note that it stays as it is; returns the file that is no longer in use."""


class Journal(Protocol):
    """The record of every change on this machine. Safe to use from any thread."""

    @property
    def plans(self) -> PlanJournal:
        """Return the stepwise plans."""

    @property
    def images(self) -> ImageTable:
        """Return the before-images."""

    def begin(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Make a plan and its before-images durable, in one transaction; returns the images that were kept already."""

    def resume(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Begin a proposal that is in the journal already, as the newest change and with these items.

        Conflict unless it is APPROVED or FAILED.
        """

    def keep_image(self, image: Image) -> bool:
        """Make one more image durable for a RUNNING plan; False when it was kept already."""

    def finish(self, plan_id: str, outcome: Outcome, at: str) -> None:
        """Record how a plan ended. What it undoes becomes UNDONE, and what that had undone is in effect again."""

    def find(self, plan_id: str) -> Plan | None:
        """Return a plan with its items, None when no plan has that id."""

    def find_unfinished(self) -> list[Plan]:
        """Return the single changes that are RUNNING, oldest first."""

    def list_changes(
        self, roots: Sequence[str] | None, limit: int, before_seq: int | None, change_filter: ChangeFilter = ANY_CHANGE
    ) -> list[Change]:
        """Return finished changes whose roots are all beneath the given ones, newest first; None stands for any roots."""

    def list_clients(self) -> list[ClientInfo]:
        """Return the programs that made changes and said their names, the last one to make one first."""

    def list_recent_roots(self) -> list[str]:
        """Return the directories in which the last changes and plans were made, the last one first."""

    def find_ids(self, prefix: str) -> list[str]:
        """Return the ids of changes that begin with a text, newest first, at most twenty."""

    def find_undo_of(self, plan_id: str) -> str | None:
        """Return the id of the newest undo of a change that is in effect."""

    def find_latest_on(self, path: str, after_seq: int) -> str | None:
        """Return the id of the newest change in effect that touched a path later than `after_seq`."""

    def prune(self, selection: PruneSelection, *, dry_run: bool) -> tuple[PrunedImages, list[str]]:
        """Delete the oldest images that a person lets go, or only count them; returns the files to remove.

        RUNNING changes keep theirs.
        """

    def checkpoint(self) -> None:
        """Checkpoint the database; never called while a caller waits."""

    def close(self) -> None:
        """Close the database."""
