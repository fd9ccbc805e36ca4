"""The agent's tools of review: propose, list, and commit what a person approved."""

from holdfast.app import App
from holdfast.call import Call
from holdfast.changes.model import PlanStatus
from holdfast.errors import InvalidArgument
from holdfast.review.model import Action, Review, as_text
from holdfast.text.budget import cut_to_budget, decode_cursor, encode_cursor
from holdfast.text.diff import unified_diff
from holdfast.text.display import display_name
from holdfast.text.edit import Edit
from holdfast.tools.answer import Answer
from holdfast.tools.edits import to_edits
from holdfast.tools.registry import Effect, Group, Runner, tool
from holdfast.tools.review.shapes import (
    Commit,
    CommitAnswer,
    ListedReview,
    ListReviews,
    ListReviewsAnswer,
    Propose,
    ReviewAnswer,
)
from holdfast.tools.review.wait import decision_on

_MAX_SEQ = 2**63 - 1
_TIMEOUT_SECONDS = 86_400.0
_WORK_SECONDS = 120.0

_NEXT = {
    Action.APPROVE: "Approved. Call commit_review with this session_path to write it.",
    Action.REVIEW: "The person wants it otherwise. Propose again with this session_path, on the person's text.",
    Action.REJECT: "Rejected. The review is closed and the file is as it was.",
    Action.PENDING: "No decision yet; the user can decide with `holdfast review`. "
    "Call propose_and_review with path and session_path alone to go on waiting.",
    Action.CONFLICT: "The file changed in between. Nothing was written.",
    Action.EXPIRED: "The review has expired. Nothing was written.",
}


@tool(
    "propose_and_review",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="Propose to the user",
    output=ReviewAnswer,
    idempotent=True,
    timeout_seconds=_TIMEOUT_SECONDS,
    allowed_in_pipe=False,
)
async def propose_and_review(app: App, call: Call, args: Propose, runner: Runner) -> Answer:
    """Propose an edit to the user, who approves, revises or rejects it; only commit_review writes.

    user_action: APPROVE, REVIEW (propose again with session_path, on the user's text: user_feedback_diff), REJECT,
    EXPIRED, or PENDING: call again with path and session_path alone.
    """
    review = await runner.in_thread(_opened, app, call.within(_WORK_SECONDS), args)
    review = await decision_on(app.reviews, call, review, runner)
    data = await runner.in_thread(_standing, app, review)
    return Answer.of(f"{data.user_action}: {_NEXT[review.action]}", data.user_feedback_diff or "", data=data)


@tool("commit_review", group=Group.REVIEW, effect=Effect.DESTROY, title="Commit review", output=CommitAnswer)
def commit_review(app: App, call: Call, arguments: Commit) -> Answer:
    """Write an approved proposal. Changes made to the file meanwhile are merged, or it is a CONFLICT."""
    folders = app.folders_of(call.caller)
    applied, written = app.reviews.commit(folders, call, arguments.session_path, arguments.original_path)
    merged, _ = cut_to_budget(applied.merged_diff, folders.settings.max_answer_tokens)
    data = CommitAnswer(
        user_action=Action.APPROVE.value,
        session_path=arguments.session_path,
        change_id=applied.review.id,
        hash=written.hash,
        merged_diff=merged or None,
    )
    note = "Other changes of the file were merged:" if merged else ""
    return Answer.of(f"Wrote {display_name(written.path)}\n{written.hash}\nchange {written.change_id}", note, data=data)


@tool("list_reviews", group=Group.REVIEW, effect=Effect.READ, title="List reviews", output=ListReviewsAnswer)
def list_reviews(app: App, call: Call, arguments: ListReviews) -> Answer:
    """List the open reviews, newest first."""
    before = _position(arguments.cursor)
    found = app.reviews.listed(app.folders_of(call.caller), arguments.limit + 1, before)
    shown = found[: arguments.limit]
    following = encode_cursor({"review": shown[-1].seq}) if len(found) > len(shown) else None
    data = ListReviewsAnswer(reviews=[ListedReview.of(app.reviews, one) for one in shown], next_cursor=following)
    return Answer.of(f"{len(shown)} open reviews.", data=data)


def _opened(app: App, call: Call, args: Propose) -> Review:
    folders = app.folders_of(call.caller)
    edits = _edits(args)
    if args.session_path is None:
        if not edits:
            raise InvalidArgument("propose_and_review needs new_string or edits; session_path alone goes on waiting.")
        return app.reviews.propose(folders, call, args.path, edits)
    if edits:
        return app.reviews.go_on(folders, call, args.session_path, args.path, edits)
    return app.reviews.find(folders, args.session_path, args.path)


def _edits(args: Propose) -> list[Edit]:
    if args.edits is None:
        if args.new_string is None:
            if args.old_string:
                raise InvalidArgument("old_string needs new_string; an empty one deletes the text.")
            return []
        return [Edit(args.old_string, args.new_string, args.expected_replacements)]
    if args.new_string is not None or args.old_string:
        raise InvalidArgument("Give either edits, or old_string and new_string.")
    return to_edits(args.edits)


def _standing(app: App, review: Review) -> ReviewAnswer:
    is_applied = review.status in (PlanStatus.EXECUTED, PlanStatus.UNDONE)
    return ReviewAnswer(
        user_action=review.action.value,
        session_path=app.reviews.session_path(review.session),
        user_feedback_diff=_feedback(review, app.settings.folders.max_answer_tokens),
        reason=review.reason,
        decided_by=review.decided_by,
        expires_at=review.expires_at if review.is_open else None,
        change_id=review.id if is_applied else None,
    )


def _feedback(review: Review, budget: int) -> str | None:
    """Return how the person's text differs from the proposal; None when there is none or it is the same."""
    if review.answered is None or review.answered == review.proposed:
        return "" if review.action is Action.REVIEW else None
    encoding = review.encoding
    diff = unified_diff(as_text(review.proposed, encoding), as_text(review.answered, encoding), review.path)
    shown, is_cut = cut_to_budget(diff, budget)
    return f"{shown}[The diff is longer than an answer may be; the rest was left out.]\n" if is_cut else shown


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    seq = decode_cursor(cursor).get("review")
    if not isinstance(seq, int) or not 0 <= seq <= _MAX_SEQ:
        raise InvalidArgument("The cursor is not one of list_reviews.")
    return seq
