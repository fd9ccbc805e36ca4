"""Waiting for a person without holding a thread: by news of a decision, and by asking through the client."""

import asyncio
from contextlib import suppress

from holdfast.call import Call, Question, Reply
from holdfast.errors import HoldfastError
from holdfast.review.model import Action, Channel, Decision, Review, Verdict
from holdfast.review.service import Reviews
from holdfast.text.diff import fence_diff
from holdfast.text.display import display_name
from holdfast.tools.registry import Runner

_PROGRESS_SECONDS = 2.0
_SCHEMA = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve writes the change; reject drops it; revise asks the agent for another version.",
            "enum": ["approve", "reject", "revise"],
        },
        "comment": {"type": "string", "title": "Comment", "description": "What the agent is told."},
    },
    "required": ["decision"],
}


async def decision_on(reviews: Reviews, call: Call, review: Review, runner: Runner) -> Review:
    """Return the review when a person has decided, or as it stands when the time to wait is over."""
    wait = _Wait(reviews, call, review, runner)
    with reviews.news.heard_by(wait.hear):
        try:
            return await wait.run()
        finally:
            wait.stop_asking()


class _Wait:
    def __init__(self, reviews: Reviews, call: Call, review: Review, runner: Runner) -> None:
        self.reviews = reviews
        self.call = call
        self.review = review
        self.runner = runner
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.asking: asyncio.Task[Reply] | None = None
        self.shown_hash = ""

    def hear(self, review_id: str) -> None:
        """Take notice, from any thread; an empty id means everybody."""
        if review_id in (self.review.id, ""):
            self.loop.call_soon_threadsafe(self.changed.set)

    async def run(self) -> Review:
        limit = self.reviews.settings.wait_seconds
        started = self.loop.time()
        await self.look()
        await self.ask()
        while self.review.action is Action.PENDING and not self.reviews.is_ending:
            passed = self.loop.time() - started
            if passed >= limit:
                break
            self.call.progress(passed, limit, "Waiting for the user to decide, for instance with `holdfast review`.")
            await self.next_event(min(limit - passed, _PROGRESS_SECONDS))
        return self.review

    async def next_event(self, seconds: float) -> None:
        """Wait for news, an answer or the time, and act on what came."""
        hearing = asyncio.create_task(self.changed.wait())
        waits: set[asyncio.Task[bool] | asyncio.Task[Reply]] = {hearing}
        if self.asking is not None:
            waits.add(self.asking)
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hearing.cancel()
        if self.asking is not None and self.asking.done():
            reply, self.asking = self.asking.result(), None
            await self.take(reply)
        if self.changed.is_set():
            await self.look()

    async def look(self) -> None:
        self.changed.clear()
        self.review = await self.runner.in_thread(self.reviews.current, self.review.id)

    async def ask(self) -> None:
        """Let the client ask its user, if it can, may, and what is asked can be shown in full."""
        elicit = self.call.elicit
        if elicit is None or self.review.action is not Action.PENDING or not self.reviews.may_ask(self.review):
            return
        diff = await self.runner.in_thread(self.reviews.readable_diff, self.review)
        if len(diff) > self.reviews.settings.max_question_chars:
            return
        self.shown_hash = self.review.shown_hash
        self.asking = asyncio.ensure_future(elicit(_question(self.review, diff)))

    async def take(self, reply: Reply) -> None:
        """Turn the client's reply into a decision; one that says nothing leaves it to the other ways."""
        verdict = _verdict(reply, self.shown_hash)
        if verdict is None:
            self.reviews.asked_in_vain(self.review)
            return
        with suppress(HoldfastError):
            await self.runner.in_thread(self.reviews.decide, self.review.id, verdict)
        await self.look()

    def stop_asking(self) -> None:
        if self.asking is not None and not self.asking.cancel() and not self.asking.cancelled():
            self.asking.exception()  # a question that ended beside a decision has nothing to say any more


def _question(review: Review, diff: str) -> Question:
    kind = "create" if review.base is None else "change"
    message = f"An agent proposes to {kind} {display_name(review.path)}:\n\n{fence_diff(diff)}"
    return Question(f"review-{review.shown_hash[:32]}", message, _SCHEMA)


def _verdict(reply: Reply, shown_hash: str) -> Verdict | None:
    if reply.action == "decline":
        return Verdict(Decision.REJECT, Channel.ELICITATION, shown_hash, reason="The user declined.")
    words = {one.value: one for one in Decision}
    decision = words.get(str(reply.content.get("decision"))) if reply.action == "accept" else None
    if decision is None:
        return None
    comment = reply.content.get("comment")
    reason = comment if isinstance(comment, str) and comment else None
    if decision is Decision.REVISE and reason is None:
        reason = "The user wants another version and gave no comment."
    return Verdict(decision, Channel.ELICITATION, shown_hash, reason=reason)
