"""The questions of one call: its deadline, its end, and what passes through untouched."""

import asyncio
from typing import Any, cast

import pytest

from holdfast.app import App
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call, Elicit, InputNeeded, Question, Reply
from holdfast.config.settings import Settings
from holdfast.errors import Cancelled, Internal, TimedOut
from holdfast.tools.answer import Answer
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.questions import open_questions
from holdfast.tools.registry import Arguments, Effect, Group, Registry, Runner, Tool

pytestmark = pytest.mark.anyio

CALLER = Caller(LOCAL_USER, roots=("/r",))
MAY_IT = Question("may", "May it be?", {"type": "object", "properties": {}})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Open:
    """A question that stays open, and a note of how it was given up."""

    def __init__(self) -> None:
        self.withdrawn = 0

    async def __call__(self, _question: Question) -> Reply:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            self.withdrawn += 1
        return Reply("accept")


async def _yes(_question: Question) -> Reply:
    return Reply("accept", {"ok": True})


async def _once_more(question: Question) -> Reply:
    raise InputNeeded(question, "state")


async def test_a_call_has_no_questions_unless_its_door_has() -> None:
    call = Call(CALLER)
    async with open_questions(call, None):
        assert call.elicit is None


async def test_a_reply_comes_back_and_the_end_of_the_call_takes_the_asking_away() -> None:
    call = Call(CALLER)
    async with open_questions(call, _yes):
        assert call.elicit is not None
        kept = call.elicit
        assert await kept(MAY_IT) == Reply("accept", {"ok": True})
    assert call.elicit is None
    call.cancel()
    with pytest.raises(Cancelled):
        await kept(MAY_IT)


async def test_a_question_ends_at_the_deadline_and_is_withdrawn_before_anything_else_is_said() -> None:
    call, still_open = Call(CALLER, timeout_seconds=0.05), Open()
    async with open_questions(call, still_open):
        assert call.elicit is not None
        with pytest.raises(TimedOut, match=r"Nobody answered within the 0\.05 s"):
            await call.elicit(MAY_IT)
        assert still_open.withdrawn == 1


async def test_a_question_that_the_tool_gives_up_is_withdrawn_before_the_tool_goes_on() -> None:
    call, still_open = Call(CALLER), Open()
    async with open_questions(call, still_open):
        assert call.elicit is not None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call.elicit(MAY_IT)
        assert still_open.withdrawn == 1


async def test_a_question_that_the_tool_forgot_ends_with_the_call() -> None:
    call, still_open = Call(CALLER), Open()
    async with open_questions(call, still_open):
        assert call.elicit is not None
        forgotten = asyncio.ensure_future(call.elicit(MAY_IT))
        await asyncio.sleep(0.01)
    assert still_open.withdrawn == 1
    assert await forgotten == Reply("cancel")


def dispatcher_of(function: Any) -> Dispatcher:
    entry = Tool("ask", Group.FILES, Effect.READ, "Ask", None, Arguments, run_async=function)
    return Dispatcher(cast("App", None), Registry([entry]), Settings())


async def test_the_need_for_input_passes_through_whoever_catches_faults() -> None:
    async def function(_app: App, call: Call, _args: Arguments, _runner: Runner) -> Answer:
        assert call.elicit is not None
        try:
            await asyncio.create_task(cast("Any", call.elicit(MAY_IT)))
        except Exception as fault:
            raise AssertionError("taken for a fault") from fault
        return Answer.of("not reached")

    with pytest.raises(InputNeeded) as needed:
        await dispatcher_of(function).call(CALLER, "ask", {}, None, _once_more)
    assert (needed.value.question, needed.value.state) == (MAY_IT, "state")


@pytest.mark.parametrize("elicit", [None, _yes])
async def test_a_fault_beside_a_question_is_a_fault(elicit: Elicit | None) -> None:
    async def function(_app: App, _call: Call, _args: Arguments, _runner: Runner) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(Internal):
        await dispatcher_of(function).call(CALLER, "ask", {}, None, elicit)
