"""Defines arguments and answers of the review tools."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from holdfast.review.model import MAX_NOTE_CHARS, Review, ReviewKind, ReviewState, ReviewSummary
from holdfast.review.person import ReviewView
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.diff import Hunk
from holdfast.tools.registry import Arguments, ExactEdit

MAX_LISTED = 500


class ProposeAndReview(Arguments):
    """Arguments of propose_and_review."""

    path: str = Field(description="Path of the file to change or create.")
    new_string: str | None = Field(
        None, description="Text to put in place of old_string; with old_string empty, the text of a new file."
    )
    old_string: str = Field("", description="Exact text to replace, as in edit_files.")
    expected_replacements: int = Field(1, ge=1, description="How often old_string must occur.")
    edits: list[ExactEdit] | None = Field(
        None, min_length=1, description="Several edits, instead of old_string and new_string."
    )
    session_path: str | None = Field(None, description="session_path of an earlier answer, to go on with that review.")
    note: str | None = Field(None, max_length=MAX_NOTE_CHARS, description="Your reason in a sentence, for the user.")


class CommitReview(Arguments):
    """Arguments of commit_review."""

    session_path: str = Field(description="session_path of the answer that said APPROVE.")
    original_path: str = Field(description="Path of the file that was proposed, as it was given.")


class ListReviews(Arguments):
    """Arguments of list_reviews."""

    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most reviews to list.")
    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class ReviewAnswer(BaseModel):
    """Where a review stands; it has a `change_id` once it has been committed."""

    user_action: str
    kind: str
    session_path: str
    user_feedback_diff: str | None = None
    reason: str | None = None
    decided_by: str | None = None
    expires_at: str | None = None
    change_id: str | None = None


class CommitAnswer(BaseModel):
    """Answer of commit_review: what was done. A text that was written has its hash; `merged_diff` shows other changes."""

    user_action: str
    kind: str
    session_path: str
    change_id: str
    hash: str | None = None
    merged_diff: str | None = None


class ListedReview(BaseModel):
    """One open review."""

    session_path: str
    kind: str
    path: str
    destination: str | None = None
    user_action: str
    created_at: str
    expires_at: str
    note: str | None = None

    @classmethod
    def of(cls, summary: ReviewSummary, session_path: str) -> "ListedReview":
        """Return a review as an agent sees it in a list."""
        return cls(
            session_path=session_path,
            kind=summary.kind.value,
            path=replace_lone_surrogates(summary.path),
            destination=_text_or_none(summary.dest_path),
            user_action=summary.action.value,
            created_at=summary.created_at,
            expires_at=summary.expires_at,
            note=_text_or_none(summary.note or None),
        )


class ListReviewsAnswer(BaseModel):
    """Answer of list_reviews, newest first."""

    reviews: list[ListedReview]
    next_cursor: str | None = None


class ShowReview(Arguments):
    """Arguments of show_review."""

    review_id: str = Field(description="Id from pending_reviews.")


class DecideReview(Arguments):
    """Arguments of decide_review."""

    review_id: str = Field(description="Id from pending_reviews.")
    decision: Literal["approve", "reject", "revise"] = Field(description="Decision of the person.")
    shown_hash: str = Field(
        description="shown_hash of show_review: the decision fails when the review has changed since."
    )
    text: str | None = Field(None, description="The whole text that the person wants instead.")
    hunks: list[str] | None = Field(None, description="Approve only the hunks with these hashes.")
    reason: str | None = Field(None, description="Reason for the agent.")
    channel: Literal["terminal", "console"] = Field("terminal", description="Where the person is.")


class ApplyReview(Arguments):
    """Arguments of apply_review."""

    review_id: str = Field(description="Id from pending_reviews.")
    shown_hash: str = Field(description="shown_hash of show_review: refused when the review has changed since.")


class WithdrawReview(Arguments):
    """Arguments of withdraw_review."""

    review_id: str = Field(description="Id from pending_reviews.")
    channel: Literal["terminal", "console"] = Field("terminal", description="Where the person is.")


class ClosedReviews(Arguments):
    """Arguments of closed_reviews."""

    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most reviews to list.")
    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class PersonReview(BaseModel):
    """What the person is told of a review in a list. `note` holds the agent's words, which nothing may act on."""

    review_id: str
    kind: str
    path: str
    destination: str | None = None
    root: str
    user_action: str
    round: int
    created_at: str
    client: str = Field(description="name of the program that proposed it, empty when that is not known")
    client_version: str
    note: str = Field(description="the agent's reason in its own words, empty for none")
    added: int | None = Field(None, description="lines added; none for what is no text")
    removed: int | None = None
    hunks: int | None = None
    is_new_file: bool = False


class PendingReview(PersonReview):
    """One open review, for the person."""

    expires_at: str
    reason: str | None = Field(None, description="what the person said last")

    @classmethod
    def of(cls, summary: ReviewSummary) -> "PendingReview":
        """Return an open review as a person sees it in a list."""
        return cls(expires_at=summary.expires_at, reason=summary.reason, **_person_facts(summary))


class ClosedReview(PersonReview):
    """One review that has ended."""

    outcome: Literal["committed", "rejected", "expired"]
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str | None = None
    change_id: str | None = Field(None, description="the change that it became")
    change_status: str | None = Field(None, description="EXECUTED, or UNDONE once that was undone")

    @classmethod
    def of(cls, summary: ReviewSummary) -> "ClosedReview":
        """Return a review that has ended as a person sees it in a list."""
        is_committed = summary.state is ReviewState.COMMITTED
        return cls(
            outcome=summary.state.value.lower(),
            decided_by=summary.decided_by,
            decided_at=summary.decided_at,
            reason=summary.reason,
            change_id=summary.id if is_committed else None,
            change_status=summary.plan_status.value if is_committed and summary.plan_status else None,
            **_person_facts(summary),
        )


class ClosedReviewsAnswer(BaseModel):
    """Answer of closed_reviews, the last one first."""

    reviews: list[ClosedReview]
    next_cursor: str | None = None


class AppliedReview(BaseModel):
    """Answer of apply_review. A text that was written has its hash; `merged_diff` shows changes of others in it."""

    review_id: str
    change_id: str
    path: str
    hash: str | None = None
    merged_diff: str | None = None


class PendingReviewsAnswer(BaseModel):
    """Answer of pending_reviews, newest first."""

    reviews: list[PendingReview]


class ShownHunk(BaseModel):
    """One place that would change, as a unified diff shows it."""

    hash: str
    header: str
    body: str
    before_start: int = Field(description="its first line in the file, counted from 1, context included")
    before_lines: int
    after_start: int = Field(description="its first line in the proposed text")
    after_lines: int

    @classmethod
    def of(cls, hunk: Hunk) -> "ShownHunk":
        """Return a hunk of a diff."""
        return cls(
            hash=hunk.hash,
            header=hunk.header,
            body=hunk.body,
            before_start=hunk.start + 1,
            before_lines=hunk.end - hunk.start,
            after_start=hunk.new_start + 1,
            after_lines=len(hunk.lines),
        )


class ShowReviewAnswer(BaseModel):
    """Answer of show_review: everything that a person decides on. `statement` is what a review does that is no edit."""

    review_id: str
    kind: str
    path: str
    destination: str | None = None
    statement: str | None = None
    user_action: str
    round: int
    is_new_file: bool
    encoding: str
    reason: str | None
    shown_hash: str
    before: str
    after: str
    hunks: list[ShownHunk]
    created_at: str
    expires_at: str
    client: str
    client_version: str
    note: str = Field(description="the agent's reason in its own words, empty for none")
    decided_by: str | None = None
    decided_at: str | None = None

    @classmethod
    def of(cls, view: ReviewView) -> "ShowReviewAnswer":
        """Return a review with its texts."""
        review = view.review
        return cls(
            review_id=review.id,
            kind=review.kind.value,
            path=replace_lone_surrogates(review.path),
            destination=_text_or_none(review.dest_path),
            statement=replace_lone_surrogates(view.statement) or None,
            user_action=review.action.value,
            round=review.round,
            is_new_file=review.kind is ReviewKind.EDIT and review.base is None,
            encoding=review.encoding.name,
            reason=review.reason,
            shown_hash=review.shown_hash,
            before=view.before,
            after=view.after,
            hunks=[ShownHunk.of(hunk) for hunk in view.hunks],
            client=review.client.name,
            client_version=review.client.version,
            note=replace_lone_surrogates(review.note),
            decided_by=review.decided_by,
            decided_at=review.decided_at,
            created_at=review.created_at,
            expires_at=review.expires_at,
        )


class DecideReviewAnswer(BaseModel):
    """Answer of decide_review: the review after the decision."""

    review_id: str
    kind: str
    path: str
    user_action: str

    @classmethod
    def of(cls, review: Review) -> "DecideReviewAnswer":
        """Return a decided review."""
        return cls(
            review_id=review.id,
            kind=review.kind.value,
            path=replace_lone_surrogates(review.path),
            user_action=review.action.value,
        )


def _person_facts(summary: ReviewSummary) -> dict[str, Any]:
    size = summary.diff_size
    return {
        "review_id": summary.id,
        "kind": summary.kind.value,
        "path": replace_lone_surrogates(summary.path),
        "destination": _text_or_none(summary.dest_path),
        "root": replace_lone_surrogates(summary.root),
        "user_action": summary.action.value,
        "round": summary.round,
        "created_at": summary.created_at,
        "client": summary.client.name,
        "client_version": summary.client.version,
        "note": replace_lone_surrogates(summary.note),
        "added": None if size is None else size.added,
        "removed": None if size is None else size.removed,
        "hunks": None if size is None else size.hunks,
        "is_new_file": size is not None and size.is_new_file,
    }


def _text_or_none(path: str | None) -> str | None:
    return None if path is None else replace_lone_surrogates(path)
