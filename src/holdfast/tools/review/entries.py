"""The tools of review: an agent proposes, lists and commits; the person lists, looks and decides."""

from collections.abc import Iterator
from datetime import datetime

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.clock import format_age, utc_clock
from holdfast.errors import InvalidArgument
from holdfast.review.decide import encode_for
from holdfast.review.model import Channel, Choice, Decision, Review, ReviewState, UserAction, as_text
from holdfast.text.budget import cut_to_budget, estimate_tokens, first_page, read_position, take_rows
from holdfast.text.diff import DIFF_CUT, unified_diff
from holdfast.text.display import display_name, quantity
from holdfast.text.edit import Edit
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, Runner, tool
from holdfast.tools.review.shapes import (
    CommitAnswer,
    CommitReview,
    DecideReview,
    DecideReviewAnswer,
    ListedReview,
    ListReviews,
    ListReviewsAnswer,
    PendingReview,
    PendingReviewsAnswer,
    ProposeAndReview,
    ReviewAnswer,
    ShowReview,
    ShowReviewAnswer,
)
from holdfast.tools.review.wait import wait_for_decision

_TIMEOUT_SECONDS = 86_400.0
_WORK_SECONDS = 120.0

_CUT_COMMENT = "[The comment is longer than an answer may be; the rest was left out.]"
_NEXT = {
    UserAction.APPROVE: "The user approved it. Nothing is written yet: call commit_review with the session_path and "
    "original_path below.",
    UserAction.REVIEW: "The user wants another text; nothing is written. Call propose_and_review again with this path and "
    "session_path, and with edits of the user's text.",
    UserAction.REJECT: "The user rejected it. The review is closed and the file is as it was.",
    UserAction.PENDING: "The user has not decided yet (`holdfast review` in a terminal shows it). To go on waiting, call "
    "propose_and_review with this path and session_path alone.",
    UserAction.CONFLICT: "The file changed since the proposal. Nothing was written.",
    UserAction.EXPIRED: "Nobody decided in time and nothing was written. To ask again, propose it without session_path.",
}


@tool(
    "propose_and_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="On disk: propose an edit to the user",
    output=ReviewAnswer,
    idempotent=True,
    timeout_seconds=_TIMEOUT_SECONDS,
    allowed_in_pipe=False,
)
async def propose_and_review(app: App, call: Call, args: ProposeAndReview, runner: Runner) -> Answer:
    """On disk: propose an edit to the user, who approves, revises or rejects it; only commit_review writes.

    user_action: APPROVE, REVIEW (propose again with session_path, on the user's text: user_feedback_diff), REJECT,
    EXPIRED, or PENDING: call again with path and session_path alone.
    """
    review = await runner.in_thread(_open_review, app, call.within(_WORK_SECONDS), args)
    review = await wait_for_decision(app.reviews, call, review, runner)
    data = await runner.in_thread(_review_answer, app, review)
    return Answer.of(*_review_texts(review, data, args.path, app.settings.folders.max_answer_tokens), data=data)


@tool(
    "commit_review",
    group=Group.REVIEW,
    effect=Effect.DESTROY,
    title="On disk: write an approved edit",
    output=CommitAnswer,
)
def commit_review(app: App, call: Call, args: CommitReview) -> Answer:
    """On disk: write an approved proposal. Changes made to the file meanwhile are merged, or it is a CONFLICT."""
    folders = app.folders_of(call.caller)
    content, written = app.reviews.agent.commit(folders, call, args.session_path, args.original_path)
    merged, _ = cut_to_budget(content.merged_diff, folders.settings.max_answer_tokens)
    data = CommitAnswer(
        user_action=UserAction.APPROVE.value,
        session_path=args.session_path,
        change_id=written.change_id,
        hash=written.hash,
        merged_diff=merged or None,
    )
    undo = f'undo_change with change_id="{written.change_id}" undoes it.'
    lines = [f"Wrote {display_name(written.path)}", written.hash, f"change {written.change_id}", undo]
    note = "Other changes to the file were merged. What is written differs from the approved text by:" if merged else ""
    return Answer.of("\n".join(lines), note, merged, data=data)


@tool(
    "list_reviews", group=Group.REVIEW, effect=Effect.READ, title="On disk: list open reviews", output=ListReviewsAnswer
)
def list_reviews(app: App, call: Call, args: ListReviews) -> Answer:
    """On disk: list the open reviews, newest first, with the session_path to go on with."""
    before = read_position(args.cursor, "review", "list_reviews")
    folders = app.folders_of(call.caller)
    reviews = app.reviews.agent.list_open(folders, args.limit + 1, before)
    rows = [ListedReview.of(summary, app.reviews.agent.session_path(summary.session)) for summary in reviews]
    now = utc_clock()
    lines = [_listed_text(row, now) for row in rows]
    count = len(take_rows(lines[: args.limit], folders.settings.max_answer_tokens, estimate_tokens))
    _, next_cursor = first_page(reviews, count, "review")
    data = ListReviewsAnswer(reviews=rows[:count], next_cursor=next_cursor)
    more = "" if next_cursor is None else f'[More: repeat the call with cursor="{next_cursor}"]'
    return Answer.of(f"{quantity(count, 'open review')}.", "\n".join(lines[:count]), more, data=data)


def _review_texts(review: Review, data: ReviewAnswer, path: str, budget: int) -> Iterator[str]:
    """Yield where a review stands and what to do next, what the person wrote, and how the person's text differs."""
    by = f" (by {review.decided_by})" if review.decided_by else ""
    until = f"\nopen until: {review.expires_at}" if review.is_open else ""
    if review.state is ReviewState.COMMITTED:
        yield f"APPROVE: It is already committed, as change {review.id}."
    else:
        name = "original_path" if review.action is UserAction.APPROVE else "path"
        handle = f"{name}: {display_name(path)}\nsession_path: {display_name(data.session_path)}{until}"
        yield f"{data.user_action}{by}: {_NEXT[review.action]}\n{handle}"
    if review.reason:
        comment, is_cut = cut_to_budget(review.reason, budget // 4)
        yield f"The user's comment: {comment}{_CUT_COMMENT if is_cut else ''}"
    if data.user_feedback_diff:
        yield f"How the user's text differs from your proposal:\n{data.user_feedback_diff}"
    elif review.action is UserAction.REVIEW:
        yield "The user left the text as you proposed it."


def _listed_text(row: ListedReview, now: datetime) -> str:
    path, session = display_name(row.path), display_name(row.session_path)
    times = f"proposed {format_age(row.created_at, now)} ({row.created_at}), open until {row.expires_at}"
    return f"{row.user_action} {path}: {times}\n  session_path: {session}"


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


def _open_review(app: App, call: Call, args: ProposeAndReview) -> Review:
    folders = app.folders_of(call.caller)
    edits = _edits(args)
    if args.session_path is None:
        if not edits:
            raise InvalidArgument("propose_and_review needs new_string or edits; session_path alone goes on waiting.")
        return app.reviews.agent.propose(folders, call, args.path, edits)
    if edits:
        return app.reviews.agent.propose_again(folders, call, args.session_path, args.path, edits)
    return app.reviews.agent.find(folders, args.session_path, args.path)


def _edits(args: ProposeAndReview) -> list[Edit]:
    if args.edits is None:
        if args.new_string is None:
            if args.old_string:
                raise InvalidArgument("old_string needs new_string; an empty one deletes the text.")
            return []
        return [Edit(args.old_string, args.new_string, args.expected_replacements)]
    if args.new_string is not None or args.old_string:
        raise InvalidArgument("Give either edits, or old_string and new_string.")
    return [edit.as_edit() for edit in args.edits]


def _review_answer(app: App, review: Review) -> ReviewAnswer:
    return ReviewAnswer(
        user_action=review.action.value,
        session_path=app.reviews.agent.session_path(review.session),
        user_feedback_diff=_feedback(review, app.settings.folders.max_answer_tokens * 3 // 4),
        reason=review.reason,
        decided_by=review.decided_by,
        expires_at=review.expires_at if review.is_open else None,
        change_id=review.id if review.state is ReviewState.COMMITTED else None,
    )


def _feedback(review: Review, budget: int) -> str | None:
    """Return how the person's text differs from the proposal; None when there is none or it is the same."""
    if review.answered is None or review.answered == review.proposed:
        return "" if review.action is UserAction.REVIEW else None
    encoding = review.encoding
    diff = unified_diff(as_text(review.proposed, encoding), as_text(review.answered, encoding), review.path)
    text, is_cut = cut_to_budget(diff, budget)
    return f"{text}[{DIFF_CUT}]\n" if is_cut else text
