"""Ports of review: a durable record of reviews, and ways to show one to a person."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.review.model import Review, ReviewSummary


class ReviewTable(Protocol):
    """The record of every review on this machine. Safe to use from any thread; what returns is on the disk."""

    def add(self, review: Review) -> None:
        """Keep a new review together with its plan."""

    def find(self, review_id: str) -> Review | None:
        """Return a review by its id, which is that of its plan."""

    def find_by_session(self, session: str) -> Review | None:
        """Return a review by the name of its session."""

    def find_equal_proposal(self, proposal_hash: str, rejected_since: str) -> Review | None:
        """Return the newest review of an equal proposal that is open, or was rejected since then."""

    def list_open(self, roots: Sequence[str] | None, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return the open reviews beneath the roots, of all roots for None, newest first."""

    def list_closed(self, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return the reviews of all roots that have ended, the last one first."""

    def replace(self, before: Review, after: Review) -> bool:
        """Store what a review became; False, and nothing stored, when it is not as `before` any more.

        False also for a step that is not in TRANSITIONS, and while the review is being committed.
        """


class Presenter(Protocol):
    """Shows a review in a program of the person. It may fail; then the other ways remain."""

    def show(self, review_id: str, current: str, future: str) -> None:
        """Open the two files of a review side by side."""

    def close(self, review_id: str) -> None:
        """Say that a review is decided; one that was never shown is no error."""

    def end(self) -> None:
        """Release everything that was opened."""
