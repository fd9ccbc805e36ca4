"""Waits for a person's decision on a review without holding a thread: by notifications, and by asking through the client."""

import asyncio
from contextlib import suppress

from holdfast.call import Call, Question, Reply
from holdfast.errors import HoldfastError
from holdfast.review.model import Channel, Choice, Decision, Review, ReviewKind, ReviewState
from holdfast.review.person import readable_change
from holdfast.review.service import Reviews
from holdfast.text.diff import fence_diff
from holdfast.text.display import display_name, escape_invisible
from holdfast.tools.registry import Runner

WAIT_TIMEOUT_SECONDS = 86_400.0
"""A call that waits for a person has its end in the setting review.wait_seconds."""
_PROGRESS_SECONDS = 2.0
_SCHEMA = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve lets the agent make the change; reject drops it; revise asks for another version.",
            "enum": ["approve", "reject", "revise"],
        },
        "comment": {"type": "string", "title": "Comment", "description": "What to tell the agent."},
    },
    "required": ["decision"],
}


_VERBS = {
    ReviewKind.MOVE: "move",
    ReviewKind.DELETE: "delete",
    ReviewKind.CREATE_DIRECTORY: "create the directory",
    ReviewKind.UNDO: "undo a change of",
}


async def wait_for_decision(reviews: Reviews, call: Call, review: Review, runner: Runner, seconds: float) -> Review:
    """Return the review when a person has decided, or as it stands when the time is over; a step of a pipe never waits."""
    wait = _Wait(reviews, call, review, runner, seconds if call.may_wait else 0.0)
    with reviews.records.notifications.subscribe(wait.on_change):
        try:
            return await wait.run()
        finally:
            wait.stop_asking()


class _Wait:
    def __init__(self, reviews: Reviews, call: Call, review: Review, runner: Runner, seconds: float) -> None:
        self.reviews = reviews
        self.call = call
        self.review = review
        self.runner = runner
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.question: asyncio.Task[Reply] | None = None
        self.shown_hash = ""

    def on_change(self, review_id: str) -> None:
        """Take notice, from any thread; an empty id stands for every review."""
        if review_id in (self.review.id, ""):
            self.loop.call_soon_threadsafe(self.changed.set)

    async def run(self) -> Review:
        limit = self.seconds
        started = self.loop.time()
        await self.reload()
        await self.ask()
        while self.review.state is ReviewState.PENDING and not self.reviews.is_ending:
            passed = self.loop.time() - started
            if passed >= limit:
                break
            self.call.progress(passed, limit, "Waiting for the user to decide, for instance with `holdfast review`.")
            await self.next_event(min(limit - passed, _PROGRESS_SECONDS))
        return self.review

    async def next_event(self, seconds: float) -> None:
        """Wait for a notification, a reply or the time, and act on what came."""
        change = asyncio.create_task(self.changed.wait())
        waits: set[asyncio.Task[bool] | asyncio.Task[Reply]] = {change}
        if self.question is not None:
            waits.add(self.question)
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
        if self.question is not None and self.question.done():
            reply, self.question = self.question.result(), None
            await self.take_reply(reply)
        if self.changed.is_set():
            await self.reload()

    async def reload(self) -> None:
        self.changed.clear()
        self.review = await self.runner.in_thread(self.reviews.records.current, self.review.id)

    async def ask(self) -> None:
        """Let the client ask its user, if it can and may, and all of the question can be shown."""
        elicit = self.call.elicit
        is_pending = self.review.state is ReviewState.PENDING
        if elicit is None or not is_pending or not self.reviews.records.may_ask(self.review, self.call.caller):
            return
        text = await self.runner.in_thread(readable_change, self.review)
        if len(text) > self.reviews.settings.max_question_chars:
            return
        self.shown_hash = self.review.shown_hash
        self.question = asyncio.ensure_future(elicit(_question(self.review, text)))

    async def take_reply(self, reply: Reply) -> None:
        """Turn the client's reply into a decision; a reply without one leaves it to the other ways."""
        decision = _decision_from_reply(reply, self.shown_hash)
        if decision is None:
            await self.runner.in_thread(self.reviews.records.note_unanswered, self.review)
            return
        with suppress(HoldfastError):
            await self.runner.in_thread(self.reviews.person.decide, self.review.id, decision)
        await self.reload()

    def stop_asking(self) -> None:
        if self.question is not None and not self.question.cancel() and not self.question.cancelled():
            self.question.exception()  # a question that ended beside a decision: mark its error as retrieved


def _question(review: Review, text: str) -> Question:
    verb = _VERBS.get(review.kind) or ("create" if review.base is None else "change")
    note = f"\n\nIts reason, in its own words: {escape_invisible(review.note)}" if review.note else ""
    message = f"An agent proposes to {verb} {display_name(review.path)}:{note}\n\n{fence_diff(text)}"
    return Question(f"review-{review.shown_hash[:32]}", message, _SCHEMA)


def _decision_from_reply(reply: Reply, shown_hash: str) -> Decision | None:
    if reply.action == "decline":
        return Decision(Choice.REJECT, Channel.ELICITATION, shown_hash, reason="The user declined.")
    value = reply.content.get("decision")
    if reply.action != "accept" or value not in list(Choice):
        return None
    comment = reply.content.get("comment")
    reason = comment if isinstance(comment, str) and comment else None
    if value == Choice.REVISE and reason is None:
        reason = "The user wants another version and gave no comment."
    return Decision(Choice(value), Channel.ELICITATION, shown_hash, reason=reason)
