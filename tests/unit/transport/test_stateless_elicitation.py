"""Questions that end a call, and the state that travels through the client."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.auth.context import LOCAL_USER, AuthContext, Caller, CallerKind
from holdfast.call import InputNeeded, Question, Reply
from holdfast.errors import InvalidArgument
from holdfast.transport.mcp import stateless_elicitation
from holdfast.transport.mcp.stateless_elicitation import BadState, StatelessElicitation

pytestmark = pytest.mark.anyio

CALLER = Caller(LOCAL_USER, roots=("/r",))
FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
MAY_IT = Question("may", "May it be?", FORM)
REALLY = Question("really", "Really?", FORM)
YES = {"action": "accept", "content": {"ok": True}}
CALL: dict[str, Any] = {"name": "change", "arguments": {"path": "a", "text": "half \ud83c"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def state_after(question: Question, **brought: Any) -> str:
    """Return the state with which a round ends by asking that question."""
    with pytest.raises(InputNeeded) as ended:
        await StatelessElicitation(CALLER, {**CALL, **brought}).ask(question)
    assert ended.value.question == question
    return ended.value.state


def again(state: str, **replies: Any) -> StatelessElicitation:
    return StatelessElicitation(CALLER, {**CALL, "requestState": state, "inputResponses": replies})


async def test_the_reply_is_there_when_the_call_is_made_again() -> None:
    assert await again(await state_after(MAY_IT), may=YES).ask(MAY_IT) == Reply("accept", {"ok": True})


async def test_a_reply_of_an_earlier_round_is_remembered_by_the_state() -> None:
    second = again(await state_after(MAY_IT), may=YES)
    await second.ask(MAY_IT)
    with pytest.raises(InputNeeded) as ended:
        await second.ask(REALLY)
    third = again(ended.value.state, really={"action": "decline"}, may={"action": "decline"})
    assert await third.ask(MAY_IT) == Reply("accept", {"ok": True})
    assert await third.ask(REALLY) == Reply("decline")


async def test_a_reply_that_nobody_asked_for_is_not_taken() -> None:
    await state_after(MAY_IT, inputResponses={"may": YES})
    state = await state_after(MAY_IT)
    with pytest.raises(InputNeeded):
        await again(state, may=YES, really=YES).ask(REALLY)


@pytest.mark.parametrize("changed", [{"message": "May something else be?"}, {"schema": {**FORM, "required": []}}])
async def test_a_question_that_has_changed_is_asked_again(changed: dict[str, Any]) -> None:
    state = await state_after(MAY_IT)
    with pytest.raises(InputNeeded):
        await again(state, may=YES).ask(replace(MAY_IT, **changed))


async def test_a_reply_that_does_not_fit_is_an_error_and_not_remembered() -> None:
    state = await state_after(MAY_IT)
    with pytest.raises(InvalidArgument):
        await again(state, may={"action": "accept", "content": {}}).ask(MAY_IT)
    with pytest.raises(InvalidArgument):
        await again(state, may=12345).ask(MAY_IT)


@pytest.mark.parametrize(
    "other",
    [
        replace(CALLER, auth=AuthContext("0" * 64, "someone else")),
        replace(CALLER, kind=CallerKind.PERSON),
        replace(CALLER, roots=("/other",)),
        replace(CALLER, cwd="/r"),
    ],
)
async def test_a_state_holds_for_its_caller_alone(other: Caller) -> None:
    state = await state_after(MAY_IT)
    with pytest.raises(BadState):
        StatelessElicitation(other, {**CALL, "requestState": state})


@pytest.mark.parametrize("other", [{"name": "delete"}, {"arguments": {"path": "b"}}, {"arguments": None}])
async def test_a_state_holds_for_its_call_alone(other: dict[str, Any]) -> None:
    state = await state_after(MAY_IT)
    with pytest.raises(BadState):
        StatelessElicitation(CALLER, {**CALL, **other, "requestState": state})


async def test_a_state_that_is_not_ours_is_refused() -> None:
    payload, _, seal = (await state_after(MAY_IT)).partition(".")
    for wrong in (
        "",
        ".",
        payload,
        f"{payload}.",
        f".{seal}",
        f"{payload}.{seal[:-1]}",
        f"A{payload}.{seal}",
        "\ud83c.ß",
    ):
        with pytest.raises(BadState):
            StatelessElicitation(CALLER, {**CALL, "requestState": wrong})


async def test_a_state_of_another_process_or_of_yesterday_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = await state_after(MAY_IT)
    with monkeypatch.context() as patched:
        patched.setattr(stateless_elicitation, "_KEY", b"another key")
        with pytest.raises(BadState):
            again(state)
    monkeypatch.setattr(stateless_elicitation, "_LIFETIME_SECONDS", -1.0)
    with pytest.raises(BadState):
        again(await state_after(MAY_IT))
