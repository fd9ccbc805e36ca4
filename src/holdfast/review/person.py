"""Lists, shows and decides reviews for the person."""

from dataclasses import dataclass

from holdfast.call import Call
from holdfast.clock import seconds_since, utc_in, utc_now
from holdfast.errors import Conflict, NotFound, PermissionDenied
from holdfast.folders.service import Folders
from holdfast.review.agent import AgentReviews, Committed
from holdfast.review.decide import decide
from holdfast.review.model import UNDECIDED_STATES, Channel, Decision, Review, ReviewState, ReviewSummary, as_text
from holdfast.review.records import ReviewRecords
from holdfast.text.diff import Hunk, compute_hunks
from holdfast.text.display import escape_lines

_WITHDRAWN = "The user closed this review; nothing of it is to be made."


@dataclass(frozen=True, slots=True)
class ReviewView:
    """A review as a person sees it: both texts and the hunks between them, or the statement of a change of paths."""

    review: Review
    before: str
    after: str
    hunks: tuple[Hunk, ...]
    statement: str = ""


def view_of(review: Review) -> ReviewView:
    """Return a review with its texts and hunks; one that has ended has none."""
    if review.path_change is not None:
        return ReviewView(review, "", "", (), review.path_change.statement)
    before, after = as_text(review.base, review.encoding), as_text(review.text, review.encoding)
    return ReviewView(review, before, after, tuple(compute_hunks(before, after)))


class PersonReviews:
    """All reviews of this machine."""

    def __init__(self, records: ReviewRecords, agent: AgentReviews) -> None:
        self._records = records
        self._agent = agent

    def list_open(self) -> list[ReviewSummary]:
        """Return every open review, newest first."""
        return self._records.book.list_open(None, -1, None)

    def show(self, review_id: str) -> ReviewView:
        """Return a review as a person sees it. NotFound when there is none of that id, or it is closed."""
        review = self._records.current(review_id)
        if not review.is_open:
            raise NotFound(f"The review {review_id} is closed.")
        return view_of(review)

    def list_closed(self, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return the reviews that have ended, the last one first."""
        return self._records.book.list_closed(limit, before_seq)

    def find(self, review_id: str) -> Review:
        """Return a review as it stands. NotFound when there is none of that id."""
        return self._records.current(review_id)

    def apply(self, folders: Folders, call: Call, review_id: str, shown_hash: str) -> Committed:
        """Make an approved change in place of an agent that left.

        Conflict, and nothing changed, when it is not approved, is not what was shown, or cannot be made as approved.
        """
        review = self._records.current(review_id)
        if review.state is ReviewState.APPROVED and review.shown_hash != shown_hash:
            raise Conflict("This review has changed since it was shown. Look at it again.")
        return self._agent.apply(folders, call, review)

    def withdraw(self, review_id: str, channel: Channel) -> Review:
        """Close an open review, also an approved one, so that nothing can come of it. Conflict when it has ended."""
        records = self._records
        with records.lock:
            review = records.current(review_id)
            if not review.is_open:
                raise Conflict(f"This review has ended already: {review.action}.", change_id=review_id)
            fields = {"decided_by": channel.value, "decided_at": utc_now(), "reason": _WITHDRAWN}
            after = review.become(ReviewState.REJECTED, **fields)
            records.save(review, after)
        return after

    def decide(self, review_id: str, decision: Decision) -> Review:
        """Take a decision; the first one counts. Conflict when it comes second, or is about something else than shown."""
        records, channel = self._records, decision.channel
        if not getattr(records.settings.channels, channel.value):
            raise PermissionDenied(f"The channel {channel} is switched off (review.channels.{channel}).")
        with records.lock:
            review = records.load(review_id)
            if records.expire_if_due(review):
                raise Conflict(f"The review {review_id} has expired.")
            after = decide(review, decision, utc_now(), utc_in(records.settings.expires_hours * 3600.0))
            records.save(review, after, is_on_disk=channel is Channel.VSCODE)
        waited = seconds_since(review.created_at)
        records.metrics.review_decided(decision.choice.value.lower(), channel.value, waited)
        if after.is_open and after.state not in UNDECIDED_STATES:
            records.close_presentation(review_id)
        return after


def readable_change(review: Review) -> str:
    """Return the hunks of what a review would write, or what else it would do, with nothing that could deceive a reader."""
    if review.path_change is not None:
        return "\n".join([*escape_lines(review.path_change.statement), ""])
    pieces = compute_hunks(as_text(review.base, review.encoding), as_text(review.text, review.encoding))
    return "".join("\n".join([hunk.header.rstrip(), *escape_lines(hunk.body), ""]) for hunk in pieces)
