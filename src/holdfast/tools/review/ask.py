"""Puts a change before the person instead of making it, where the policy says so; the call then answers as a review does."""

from collections.abc import Callable

from holdfast.app import App
from holdfast.call import Call
from holdfast.changes.disk.policy_gate import ReviewNeeded
from holdfast.review.model import Review
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Group, PersonNeeded, Runner
from holdfast.tools.review.answers import answer_review
from holdfast.tools.review.wait import WAIT_TIMEOUT_SECONDS, wait_for_decision

_COMMIT = "commit_review"


def open_review(app: App, call: Call, needed: ReviewNeeded, propose: Callable[[], Review]) -> Review:
    """Open the review that a change needs. Raises `needed` itself for a client that has no tool to go on with a review."""
    groups = call.caller.restrictions.groups
    if not app.settings.mcp.permits(_COMMIT, Group.REVIEW) or (groups is not None and Group.REVIEW not in groups):
        raise needed
    return propose()


def person_needed(
    app: App, call: Call, needed: ReviewNeeded, propose: Callable[[], Review], path: str | None = None
) -> PersonNeeded:
    """Open the review that a change needs; return what the tool raises, so that the call waits for the decision.

    `path` is what the agent called it; without one the review's own.
    """
    review = open_review(app, call, needed, propose)

    async def wait(call: Call, runner: Runner) -> Answer:
        call.timeout_seconds = WAIT_TIMEOUT_SECONDS
        decided = await wait_for_decision(app.reviews, call, review, runner, app.reviews.settings.wait_seconds)
        return await runner.in_thread(answer_review, app, decided, path or review.path)

    return PersonNeeded(wait)
