"""The person's entries of the table: see what waits, look at it, decide. No agent can list or call them."""

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.review.decide import encoded
from holdfast.review.model import Channel, Decision, Verdict
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.review.shapes import (
    DecidedReview,
    DecideReview,
    PendingReview,
    PendingReviewsAnswer,
    ShownReview,
    ShowReview,
)


@tool(
    "pending_reviews",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Open reviews",
    output=PendingReviewsAnswer,
    audience=CallerKind.PERSON,
)
def pending_reviews(app: App, call: Call, _args: NoArguments) -> Answer:
    """List every open review of this machine, newest first."""
    found = [PendingReview.of(listed) for listed in app.reviews.pending()]
    return Answer.of(f"{len(found)} open reviews.", data=PendingReviewsAnswer(reviews=found))


@tool(
    "show_review",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Show a review",
    output=ShownReview,
    audience=CallerKind.PERSON,
)
def show_review(app: App, call: Call, arguments: ShowReview) -> Answer:
    """Show what a review would change, in hunks, and the hash that an approval names."""
    shown = app.reviews.show(arguments.review_id)
    return Answer.of("", data=ShownReview.of(shown))


@tool(
    "decide_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="Decide on a review",
    output=DecidedReview,
    audience=CallerKind.PERSON,
)
def decide_review(app: App, call: Call, arguments: DecideReview) -> Answer:
    """Approve a review, reject it, or ask for another version; the first decision counts."""
    text = None
    if arguments.text is not None:
        text = encoded(app.reviews.show(arguments.review_id).review, arguments.text)
    verdict = Verdict(
        Decision(arguments.decision),
        Channel(arguments.channel),
        arguments.shown_hash,
        text,
        None if arguments.hunks is None else tuple(arguments.hunks),
        arguments.reason,
    )
    review = app.reviews.decide(arguments.review_id, verdict)
    return Answer.of(review.action.value, data=DecidedReview.of(review))
