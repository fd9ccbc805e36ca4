"""What the changes need from a database: intents that are durable before anything moves, and outcomes after."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.changes.model import Change, Image, Outcome, Plan


class Journal(Protocol):
    """The record of every change on this machine. Safe to use from any thread."""

    def begin(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Make a plan and its before-images durable, as one; returns the images that were already kept."""

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
