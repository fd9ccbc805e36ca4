"""The person's tools of review: list the open reviews, show one, decide. No agent can list or call them."""

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.review.decide import encode_for
from holdfast.review.model import Channel, Choice, Decision
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.review.shapes import (
    DecideReview,
    DecideReviewAnswer,
    PendingReview,
    PendingReviewsAnswer,
    ShowReview,
    ShowReviewAnswer,
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
    rows = [PendingReview.of(summary) for summary in app.reviews.person.list_open()]
    return Answer.of(f"{quantity(len(rows), 'open review')}.", data=PendingReviewsAnswer(reviews=rows))


@tool(
    "show_review",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Show a review",
    output=ShowReviewAnswer,
    audience=CallerKind.PERSON,
)
def show_review(app: App, call: Call, args: ShowReview) -> Answer:
    """Show what a review would change, in hunks, and the hash that an approval names."""
    return Answer.of("", data=ShowReviewAnswer.of(app.reviews.person.show(args.review_id)))


@tool(
    "decide_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="Decide on a review",
    output=DecideReviewAnswer,
    audience=CallerKind.PERSON,
)
def decide_review(app: App, call: Call, args: DecideReview) -> Answer:
    """Approve a review, reject it, or ask for another version; the first decision counts."""
    text = None
    if args.text is not None:
        text = encode_for(app.reviews.person.show(args.review_id).review, args.text)
    decision = Decision(
        Choice(args.decision),
        Channel(args.channel),
        args.shown_hash,
        text,
        None if args.hunks is None else tuple(args.hunks),
        args.reason,
    )
    review = app.reviews.person.decide(args.review_id, decision)
    return Answer.of(review.action.value, data=DecideReviewAnswer.of(review))
