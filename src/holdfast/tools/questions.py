"""Gives a call its questions to the person, for as long as it runs, and withdraws those that are open when it ends."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio

from holdfast.call import Call, Elicit, Question, Reply
from holdfast.errors import TimedOut

_WITHDRAW_SECONDS = 1.0


@asynccontextmanager
async def open_questions(call: Call, elicit: Elicit | None) -> AsyncIterator[None]:
    """Give the call its `elicit`, if its door has one, for as long as the context is open."""
    if elicit is None:
        yield
        return
    questions = _Questions(call, elicit)
    call.elicit = questions.ask
    try:
        yield
    finally:
        call.elicit = None
        await _withdraw(questions.open)


class _Questions:
    def __init__(self, call: Call, elicit: Elicit) -> None:
        self.open: set[asyncio.Task[Reply]] = set()
        self._call = call
        self._elicit = elicit

    async def ask(self, question: Question) -> Reply:
        """Ask in a task of its own: withdrawing a question tells the client, which no impatience above may cut short."""
        self._call.check()
        task = asyncio.ensure_future(self._elicit(question))
        self.open.add(task)
        task.add_done_callback(self.open.discard)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._call.remaining())
        finally:
            await _withdraw({task})
        if not done:
            raise TimedOut(f"Nobody answered within the {self._call.timeout_seconds:g} s that the call may take.")
        return Reply("cancel") if task.cancelled() else task.result()


async def _withdraw(questions: Iterable["asyncio.Task[Reply]"]) -> None:
    """Give questions up, and let the client be told of it before it is told anything else.

    Shielded: a scope of anyio that is being cancelled would cut every wait short.
    """
    waiting = [task for task in questions if not task.done()]
    for task in waiting:
        task.cancel()
    if waiting:
        with anyio.move_on_after(_WITHDRAW_SECONDS, shield=True):
            await asyncio.wait(waiting)
