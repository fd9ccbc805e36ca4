"""Questions to the person: the official Python client in both eras, through the relay and over HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import mcp_types as types
import pytest

from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.protocol.conftest import Served
from tests.protocol.http_agent import HttpAgent
from tests.protocol.person import LEAVE_OPEN, Parrot, Person, accept

each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])
each_door = pytest.mark.parametrize("door", ["stdio", "http"])

pytestmark = pytest.mark.timeout(60)


@contextmanager
def connect(served: Served, door: str, era: str, person: Person | None) -> Iterator[Agent]:
    """Give a client with that person behind it, whose first request was no call: those take the short way."""
    http, roots = door == "http", [served.root]
    client = HttpAgent(served, mode=era, elicit=person) if http else Agent(roots, served.state, mode=era, elicit=person)
    with client as agent:
        agent.tools()
        yield agent


@pytest.mark.req("SV-04.c")
@each_door
@each_era
def test_a_person_accepts_declines_or_cancels(conformance_build: Served, door: str, era: str) -> None:
    replies = [
        accept(decision="approve", comment="gern ☕"),
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="cancel"),
    ]
    person = Person(*replies)
    with connect(conformance_build, door, era, person) as agent:
        texts = [agent.call("ask_person", label=uuid4().hex).ok().text for _reply in replies]
    assert texts == [
        f"Elicitation completed: action={action}, content={json.dumps(content)}"
        for action, content in [
            ("accept", {"decision": "approve", "comment": "gern ☕"}),
            ("decline", {}),
            ("cancel", {}),
        ]
    ]
    assert person.questions[0].message.startswith("May it be? (")
    assert person.questions[0].requested_schema["properties"]["decision"]["enum"] == ["approve", "reject", "revise"]


@pytest.mark.req("SV-04.c")
@each_door
@each_era
def test_two_questions_of_one_call_are_asked_one_after_the_other(
    conformance_build: Served, door: str, era: str
) -> None:
    person = Person(accept(name="Ada"), accept(color="blau"))
    with connect(conformance_build, door, era, person) as agent:
        assert agent.call("test_input_required_result_multi_round").text == "Ada likes blau"
    assert [question.message[:6] for question in person.questions] == ["Step 1", "Step 2"]


@pytest.mark.req("SV-04.c")
@each_door
@each_era
def test_a_client_that_shows_no_forms_is_not_asked(conformance_build: Served, door: str, era: str) -> None:
    with connect(conformance_build, door, era, None) as agent:
        assert agent.call("ask_person", label=uuid4().hex).code == "PERMISSION_DENIED"


@pytest.mark.req("SV-04.c")
@each_door
@each_era
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"decision": "approved"}, "'decision' must be one of approve, reject, revise"),
        ({"comment": "yes"}, "'decision' is missing"),
        ({"decision": True}, "'decision' must be one of approve, reject, revise"),
        ({"decision": "approve", "comment": "x" * 201}, "'comment' must be at most 200 characters"),
        (None, "accepted without content"),
    ],
)
def test_a_reply_that_does_not_fit_the_form_is_an_error_and_no_approval(
    conformance_build: Served, door: str, era: str, content: dict[str, str] | None, problem: str
) -> None:
    person = Person(types.ElicitResult(action="accept", content=content))
    with connect(conformance_build, door, era, person) as agent:
        reply = agent.call("ask_person", label=uuid4().hex)
    assert reply.code == "INVALID_ARGUMENT"
    assert reply.error["message"] == f"The answer to the question 'decision' does not fit its form: {problem}."


@pytest.mark.req("SV-04.c")
@each_door
def test_an_error_of_the_client_is_a_cancelled_question(conformance_build: Served, door: str) -> None:
    person = Person(types.ErrorData(code=-32000, message="the window is broken"))
    with connect(conformance_build, door, LEGACY, person) as agent:
        assert "action=cancel" in agent.call("ask_person", label=uuid4().hex).ok().text


@pytest.mark.req("SV-04.c")
@each_door
def test_questions_of_calls_side_by_side_get_their_own_replies(conformance_build: Served, door: str) -> None:
    labels = [f"{uuid4().hex} {number}" for number in range(9)]
    with connect(conformance_build, door, LEGACY, Parrot(together=len(labels))) as agent:
        replies = agent.parallel([("ask_person", {"label": label}) for label in labels])
    comments = [json.loads(reply.text.partition("content=")[2])["comment"] for reply in replies]
    assert comments == [f"May it be? ({label})" for label in labels]


@pytest.mark.req("SV-04.c")
@each_door
def test_cancelling_a_call_withdraws_its_question(conformance_build: Served, door: str) -> None:
    person, label = Person(LEAVE_OPEN), uuid4().hex
    with connect(conformance_build, door, LEGACY, person) as agent:
        working = agent.start("ask_person", {"label": label})
        assert person.is_asked.wait(20)
        working.cancel()
        assert agent.call("how_it_ended", label=label).text == "cancelled"
        assert person.saw_withdrawal.wait(10)


@pytest.mark.req("SV-04.c")
@each_door
def test_a_tool_that_gives_its_question_up_withdraws_it_and_goes_on(conformance_build: Served, door: str) -> None:
    person, label = Person(LEAVE_OPEN), uuid4().hex
    with connect(conformance_build, door, LEGACY, person) as agent:
        assert agent.call("ask_person", label=label, patience=0.3).ok().text == "given up"
        assert person.saw_withdrawal.wait(10)


@pytest.mark.req("SV-04.c")
@each_door
def test_a_question_ends_at_the_deadline_of_its_call(conformance_build: Served, door: str) -> None:
    person = Person(LEAVE_OPEN)
    with connect(conformance_build, door, LEGACY, person) as agent:
        assert agent.call("ask_person_in_two_seconds", label=uuid4().hex).code == "TIMEOUT"
        assert person.saw_withdrawal.wait(10)


@pytest.mark.req("SV-04.c")
@each_door
def test_a_question_does_not_outlive_its_call(conformance_build: Served, door: str) -> None:
    person, label = Person(LEAVE_OPEN), uuid4().hex
    with connect(conformance_build, door, LEGACY, person) as agent:
        assert agent.call("ask_and_forget", label=label).ok().text == "done"
        assert person.is_asked.wait(10)
        assert person.saw_withdrawal.wait(10)
        assert agent.call("how_it_ended", label=label).text in {"cancelled", "replied"}


@pytest.mark.req("SV-04.c")
@each_door
@each_era
def test_a_step_of_a_pipe_asks_nobody(conformance_build: Served, door: str, era: str) -> None:
    person = Person(accept(decision="approve"))
    steps = [{"id": "ask", "tool": "ask_person", "arguments": {"label": uuid4().hex}}]
    with connect(conformance_build, door, era, person) as agent:
        outcome = agent.call("mcp_pipe", steps=steps).ok().data["steps"][0]
    assert outcome["error"]["code"] == "PERMISSION_DENIED"
    assert person.questions == []
