"""The tools of review: an agent proposes, lists and commits; the person lists, looks and decides."""

from dataclasses import replace
from datetime import datetime

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.auth.panel_tokens import PanelSubject
from holdfast.call import Call
from holdfast.clock import format_age, utc_clock
from holdfast.errors import InvalidArgument
from holdfast.review.decide import encode_for
from holdfast.review.model import UNDECIDED_STATES, Channel, Choice, Decision, Review, UserAction, tidy_note
from holdfast.review.records import may_show_panels
from holdfast.text.budget import cut_to_budget, estimate_tokens, first_page, read_position, take_rows
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import display_name, quantity
from holdfast.text.edit import Edit
from holdfast.tools.answer import Answer
from holdfast.tools.panel_token import with_panel_token
from holdfast.tools.registry import Effect, Group, NoArguments, Panel, Runner, tool
from holdfast.tools.review.answers import answer_review, summary_of
from holdfast.tools.review.shapes import (
    AppliedReview,
    ApplyReview,
    ClosedReview,
    ClosedReviews,
    ClosedReviewsAnswer,
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
    WithdrawReview,
)
from holdfast.tools.review.wait import WAIT_TIMEOUT_SECONDS, wait_for_decision

_WORK_SECONDS = 120.0


@tool(
    "propose_and_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="On disk: propose an edit to the user",
    output=ReviewAnswer,
    idempotent=True,
    timeout_seconds=WAIT_TIMEOUT_SECONDS,
    allowed_in_pipe=False,
    panel=Panel.REVIEW,
)
async def propose_and_review(app: App, call: Call, args: ProposeAndReview, runner: Runner) -> Answer:
    """On disk: propose an edit to the user, who approves, revises or rejects it; only commit_review writes.

    user_action: APPROVE, REVIEW (propose again with session_path, on the user's text: user_feedback_diff), REJECT,
    EXPIRED, or PENDING: call again with path and session_path alone.
    """
    review = await runner.in_thread(_open_review, app, call.within(_WORK_SECONDS), args)
    if not _edits(args) or not may_show_panels(app.settings.review, call.caller):
        # A panel learns nothing before the call has an answer, so a proposal that is shown in one is answered at once.
        review = await wait_for_decision(app.reviews, call, review, runner, app.reviews.settings.wait_seconds)
    answer = await runner.in_thread(answer_review, app, review, args.path)
    if review.state not in UNDECIDED_STATES:
        return answer
    return with_panel_token(app, call.caller, answer, PanelSubject.REVIEW, review.id, review.shown_hash)


@tool(
    "commit_review",
    group=Group.REVIEW,
    effect=Effect.DESTROY,
    title="On disk: make an approved change",
    output=CommitAnswer,
)
def commit_review(app: App, call: Call, args: CommitReview) -> Answer:
    """On disk: make an approved change. Changes made to the file meanwhile are merged, or it is a CONFLICT."""
    folders = app.folders_of(call.caller)
    committed = app.reviews.agent.commit(folders, call, args.session_path, args.original_path)
    merged, _ = cut_to_budget(committed.merged_diff, folders.settings.max_answer_tokens)
    review, written = committed.review, committed.written
    data = CommitAnswer(
        user_action=UserAction.APPROVE.value,
        session_path=args.session_path,
        kind=review.kind.value,
        change_id=review.id,
        hash=None if written is None else written.hash,
        merged_diff=merged or None,
    )
    undo = f'undo_change with change_id="{review.id}" undoes it.'
    done = [f"Wrote {display_name(written.path)}", written.hash] if written else [f"Done: {summary_of(review)}"]
    lines = [*done, f"change {review.id}", f"kind: {review.kind}", undo]
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


def _listed_text(row: ListedReview, now: datetime) -> str:
    path, session = display_name(row.path), display_name(row.session_path)
    times = f"proposed {format_age(row.created_at, now)} ({row.created_at}), open until {row.expires_at}"
    what = f"{row.kind} {path}" + (f" → {display_name(row.destination)}" if row.destination else "")
    note = f"\n  note: {display_name(row.note)}" if row.note else ""
    return f"{row.user_action} {what}: {times}\n  session_path: {session}{note}"


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
    lines = [f"{row.user_action} {row.kind} {display_name(row.path)}" for row in rows]
    return Answer.of(
        "\n".join([f"{quantity(len(rows), 'open review')}.", *lines]), data=PendingReviewsAnswer(reviews=rows)
    )


@tool(
    "show_review",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Show a review",
    output=ShowReviewAnswer,
    audience=CallerKind.PERSON,
)
def show_review(app: App, call: Call, args: ShowReview) -> Answer:
    """Show what a review would change, an edit in hunks, and the hash that an approval names."""
    view = app.reviews.person.show(args.review_id)
    return Answer.of(f"{view.review.kind} {display_name(view.review.path)}", data=ShowReviewAnswer.of(view))


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
    outcome = f"{review.action}: {review.kind} {display_name(review.path)}"
    return Answer.of(outcome, data=DecideReviewAnswer.of(review))


@tool(
    "closed_reviews",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Closed reviews",
    output=ClosedReviewsAnswer,
    audience=CallerKind.PERSON,
)
def closed_reviews(app: App, call: Call, args: ClosedReviews) -> Answer:
    """List the reviews that have ended, the last one first, with what became of each."""
    before = read_position(args.cursor, "closed", "closed_reviews")
    page, next_cursor = first_page(app.reviews.person.list_closed(args.limit + 1, before), args.limit, "closed")
    rows = [ClosedReview.of(summary) for summary in page]
    lines = [f"{row.outcome} {row.kind} {display_name(row.path)}" for row in rows]
    data = ClosedReviewsAnswer(reviews=rows, next_cursor=next_cursor)
    return Answer.of("\n".join([f"{quantity(len(rows), 'closed review')}.", *lines]), data=data)


@tool(
    "apply_review",
    group=Group.REVIEW,
    effect=Effect.DESTROY,
    title="Make an approved change",
    output=AppliedReview,
    audience=CallerKind.PERSON,
)
def apply_review(app: App, call: Call, args: ApplyReview) -> Answer:
    """Make an approved change in place of an agent that left, as commit_review would."""
    review = app.reviews.person.find(args.review_id)
    change = review.path_change
    roots = [review.root, *filter(None, [None if change is None else change.dest_root])]
    folders = app.folders_of(replace(call.caller, roots=tuple(dict.fromkeys(roots))))
    committed = app.reviews.person.apply(folders, call, args.review_id, args.shown_hash)
    written = committed.written
    data = AppliedReview(
        review_id=review.id,
        change_id=review.id,
        path=replace_lone_surrogates(review.path),
        hash=None if written is None else written.hash,
        merged_diff=replace_lone_surrogates(committed.merged_diff) or None,
    )
    return Answer.of(f"Done: {review.kind} {display_name(review.path)}", data=data)


@tool(
    "withdraw_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="Close a review",
    output=DecideReviewAnswer,
    audience=CallerKind.PERSON,
)
def withdraw_review(app: App, call: Call, args: WithdrawReview) -> Answer:
    """Close an open review, also one that is approved and not yet made; nothing can come of it any more."""
    review = app.reviews.person.withdraw(args.review_id, Channel(args.channel))
    return Answer.of(f"Closed: {review.kind} {display_name(review.path)}", data=DecideReviewAnswer.of(review))


def _open_review(app: App, call: Call, args: ProposeAndReview) -> Review:
    folders = app.folders_of(call.caller)
    edits = _edits(args)
    if args.session_path is None:
        if not edits:
            raise InvalidArgument("propose_and_review needs new_string or edits; session_path alone goes on waiting.")
        return app.reviews.agent.propose(folders, call, args.path, edits, note=tidy_note(args.note))
    if edits:
        note = tidy_note(args.note)
        return app.reviews.agent.propose_again(folders, call, args.session_path, args.path, edits, note)
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
