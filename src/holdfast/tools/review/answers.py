"""Answers for an agent whose change a person decides on: where the review stands, and what to do next."""

from collections.abc import Iterator

from holdfast.app import App
from holdfast.review.model import Review, ReviewKind, ReviewState, UserAction, as_text
from holdfast.text.budget import cut_to_budget
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.diff import DIFF_CUT, unified_diff
from holdfast.text.display import display_name
from holdfast.tools.answer import Answer
from holdfast.tools.review.shapes import ReviewAnswer

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
_NEXT_OF_PATHS = {
    **_NEXT,
    UserAction.APPROVE: "The user approved it. Nothing is changed yet: call commit_review with the session_path and "
    "original_path below.",
    UserAction.REVIEW: "The user wants something else; nothing is changed. Read the comment, then ask for that with the tool "
    "that does it.",
    UserAction.REJECT: "The user rejected it. The review is closed and nothing is changed.",
    UserAction.EXPIRED: "Nobody decided in time and nothing is changed. To ask again, repeat the call.",
}


def answer_review(app: App, review: Review, path: str) -> Answer:
    """Return where a review stands, as data and text; `path` is what the agent called it."""
    data = describe_review(app, review)
    return Answer.of(*review_texts(review, data, path, app.settings.folders.max_answer_tokens), data=data)


def describe_review(app: App, review: Review) -> ReviewAnswer:
    """Return where a review stands, as data."""
    return ReviewAnswer(
        user_action=review.action.value,
        kind=review.kind.value,
        session_path=app.reviews.agent.session_path(review.session),
        user_feedback_diff=_feedback(review, app.settings.folders.max_answer_tokens * 3 // 4),
        reason=_comment(review),
        decided_by=review.decided_by,
        expires_at=review.expires_at if review.is_open else None,
        change_id=review.id if review.state is ReviewState.COMMITTED else None,
    )


def review_texts(review: Review, data: ReviewAnswer, path: str, budget: int) -> Iterator[str]:
    """Yield where a review stands and what to do next, what the person wrote, and how the person's text differs."""
    by = f" (by {review.decided_by})" if review.decided_by else ""
    until = f"\nopen until: {review.expires_at}" if review.is_open else ""
    if review.state is ReviewState.COMMITTED:
        yield f"APPROVE: It is already committed, as change {review.id}."
    else:
        what = f"{summary}. " if (summary := summary_of(review)) else ""
        name = "original_path" if review.action is UserAction.APPROVE else "path"
        handle = (
            f"{name}: {display_name(path)}\nsession_path: {display_name(data.session_path)}\nkind: {review.kind}{until}"
        )
        yield f"{data.user_action}{by}: {what}{_next(review)}\n{handle}"
    if data.reason:
        comment, is_cut = cut_to_budget(data.reason, budget // 4)
        yield f"The user's comment: {comment}{_CUT_COMMENT if is_cut else ''}"
    if data.user_feedback_diff:
        yield f"How the user's text differs from your proposal:\n{data.user_feedback_diff}"
    elif review.action is UserAction.REVIEW and review.kind is ReviewKind.EDIT:
        yield "The user left the text as you proposed it."


def _comment(review: Review) -> str | None:
    """Return what the person said with a decision; a proposal that waits again holds what was said of the one before."""
    return None if review.state is ReviewState.PENDING else review.reason


def _next(review: Review) -> str:
    return (_NEXT if review.kind is ReviewKind.EDIT else _NEXT_OF_PATHS)[review.action]


def summary_of(review: Review) -> str:
    """Return what an open review of paths asks for, in one line; empty for an edit, which is known by its path."""
    return "" if review.path_change is None else replace_lone_surrogates(review.path_change.summary)


def _feedback(review: Review, budget: int) -> str | None:
    """Return how the person's text differs from the proposal; None when there is none or it is the same."""
    if review.kind is not ReviewKind.EDIT:
        return None
    if review.answered is None or review.answered == review.proposed:
        return "" if review.action is UserAction.REVIEW else None
    encoding = review.encoding
    diff = unified_diff(as_text(review.proposed, encoding), as_text(review.answered, encoding), review.path)
    text, is_cut = cut_to_budget(diff, budget)
    return f"{text}[{DIFF_CUT}]\n" if is_cut else text
