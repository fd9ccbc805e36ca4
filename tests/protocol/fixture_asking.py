"""Tools that ask the person, as entries of our own table: those of the conformance suite, and ours to look closer."""

import asyncio
import json
from typing import Any

from pydantic import Field

from holdfast.app import App
from holdfast.call import Call, Question, Reply
from holdfast.errors import PermissionDenied
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, RunAsync, Runner, Tool

Form = dict[str, dict[str, Any]]

NAME: dict[str, Any] = {"type": "string"}
DEFAULTS: Form = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_THREE = ["option1", "option2", "option3"]
ENUMS: Form = {
    "untitledSingle": {"type": "string", "enum": _THREE},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second"), 1)],
    },
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _THREE}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [
                {"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(("First", "Second"), 1)
            ]
        },
    },
}
DECISION: Form = {
    "decision": {"type": "string", "enum": ["approve", "reject", "revise"]},
    "comment": {"type": "string", "maxLength": 200},
}
_ENDINGS: dict[str, "asyncio.Future[str]"] = {}


class Nothing(Arguments):
    """No arguments."""


class Message(Arguments):
    """What to ask."""

    message: str = Field(description="The question.")


class Ask(Arguments):
    """Which question it is, and how long to wait for its answer."""

    label: str = Field(description="A name to recognise the call by.")
    patience: float = Field(30.0, description="Seconds until the tool gives its question up.")


class Label(Arguments):
    """Which call is meant."""

    label: str = Field(description="A name to recognise the call by.")


def question(key: str, message: str, form: Form, required: list[str] | None = None) -> Question:
    """Return a question, every field required unless said otherwise."""
    needed = list(form) if required is None else required
    return Question(key, message, {"type": "object", "properties": form, "required": needed})


async def elicit_reply(call: Call, asked_question: Question) -> Reply:
    """Ask, or refuse when there is nobody to ask."""
    if call.elicit is None:
        raise PermissionDenied("This client cannot be asked.")
    return await call.elicit(asked_question)


def to_answer(reply: Reply) -> Answer:
    """Return what the person said."""
    return Answer.of(f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}")


async def elicitation(_app: App, call: Call, args: Message, _runner: Runner) -> Answer:
    """Ask for a name and an address."""
    return to_answer(await elicit_reply(call, question("person", args.message, {"username": NAME, "email": NAME})))


async def defaults(_app: App, call: Call, _args: Nothing, _runner: Runner) -> Answer:
    """Ask with every field filled in beforehand."""
    return to_answer(await elicit_reply(call, question("defaults", "Fill in or keep what is there", DEFAULTS)))


async def enums(_app: App, call: Call, _args: Nothing, _runner: Runner) -> Answer:
    """Ask for choices of every kind."""
    return to_answer(await elicit_reply(call, question("choices", "Choose", ENUMS)))


async def greet(_app: App, call: Call, _args: Nothing, _runner: Runner) -> Answer:
    """Greet the person by the name that was asked for."""
    reply = await elicit_reply(call, question("user_name", "What is your name?", {"name": NAME}))
    return Answer.of(f"Hello, {reply.content.get('name')}!")


async def confirm(_app: App, call: Call, _args: Nothing, _runner: Runner) -> Answer:
    """Ask for a yes, so that the state goes through the client."""
    await elicit_reply(call, question("confirm", "Please confirm", {"ok": {"type": "boolean"}}))
    return Answer.of("state-ok")


async def two_rounds(_app: App, call: Call, _args: Nothing, _runner: Runner) -> Answer:
    """Ask one thing after the other."""
    name = await elicit_reply(call, question("step1", "Step 1: What is your name?", {"name": NAME}))
    color = await elicit_reply(call, question("step2", "Step 2: What is your favorite color?", {"color": NAME}))
    return Answer.of(f"{name.content.get('name')} likes {color.content.get('color')}")


async def ask_person(_app: App, call: Call, args: Ask, _runner: Runner) -> Answer:
    """Ask for a decision, and note how the question ended."""
    ending = _ending(args.label)
    asked_question = question("decision", f"May it be? ({args.label})", DECISION, ["decision"])
    call.progress(1.0, None, "asking")
    try:
        async with asyncio.timeout(args.patience):
            reply = await elicit_reply(call, asked_question)
    except TimeoutError:
        return _note(ending, "given up")
    except asyncio.CancelledError:
        _note(ending, "cancelled")
        raise
    _note(ending, reply.action)
    return to_answer(reply)


async def ask_and_forget(_app: App, call: Call, args: Ask, _runner: Runner) -> Answer:
    """Ask, and end without waiting for the answer."""
    assert call.elicit is not None
    waiting = asyncio.ensure_future(call.elicit(question("decision", f"Never mind ({args.label})", DECISION)))
    waiting.add_done_callback(lambda done: _note(_ending(args.label), "cancelled" if done.cancelled() else "replied"))
    await asyncio.sleep(0.2)
    return Answer.of("done")


async def how_it_ended(_app: App, _call: Call, args: Label, _runner: Runner) -> Answer:
    """Say how the question of that label ended, waiting a little for it."""
    async with asyncio.timeout(8):
        return Answer.of(await asyncio.shield(_ending(args.label)))


def _ending(label: str) -> "asyncio.Future[str]":
    if label not in _ENDINGS:
        _ENDINGS[label] = asyncio.get_running_loop().create_future()
    return _ENDINGS[label]


def _note(ending: "asyncio.Future[str]", how: str) -> Answer:
    if not ending.done():
        ending.set_result(how)
    return Answer.of(how)


def _entry(name: str, run_async: RunAsync, arguments: type[Arguments], seconds: float = 60.0) -> Tool:
    return Tool(
        name=name,
        group=Group.FILES,
        effect=Effect.READ,
        title=name.replace("_", " "),
        run=None,
        arguments=arguments,
        timeout_seconds=seconds,
        run_async=run_async,
    )


ASKING = (
    _entry("test_elicitation", elicitation, Message),
    _entry("test_elicitation_sep1034_defaults", defaults, Nothing),
    _entry("test_elicitation_sep1330_enums", enums, Nothing),
    _entry("test_input_required_result_elicitation", greet, Nothing),
    _entry("test_input_required_result_request_state", confirm, Nothing),
    _entry("test_input_required_result_tampered_state", confirm, Nothing),
    _entry("test_input_required_result_multi_round", two_rounds, Nothing),
    _entry("test_streaming_elicitation", greet, Nothing),
    _entry("ask_person", ask_person, Ask),
    _entry("ask_person_in_two_seconds", ask_person, Ask, seconds=2.0),
    _entry("ask_and_forget", ask_and_forget, Ask),
    _entry("how_it_ended", how_it_ended, Label),
)
