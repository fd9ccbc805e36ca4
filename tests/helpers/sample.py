"""A few tools that touch no file, to show what doors and dispatcher do with any tool."""

import time
from typing import cast

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import Settings
from holdfast.errors import NotFound
from holdfast.tools.answer import Answer, Media
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool

CALLER = Caller(LOCAL_USER, roots=("/",))
STARTED: list[str] = []
STOPPED: list[str] = []


class Echo(Arguments):
    """Arguments of echo."""

    text: str = Field(description="What to say.")
    times: int = Field(1, ge=1, le=9, description="How often.")


class EchoAnswer(BaseModel):
    """What echo_data answers."""

    text: str
    times: int


class Wait(Arguments):
    """Arguments of wait."""

    seconds: float = Field(description="How long.")
    label: str = Field("", description="A name to recognise it by.")


@tool("echo", group=Group.FILES, effect=Effect.READ, title="Echo")
def echo(_app: App, _call: Call, args: Echo) -> Answer:
    """Say a text."""
    return Answer.of(args.text * args.times)


@tool("echo_data", group=Group.FILES, effect=Effect.READ, title="Echo as data", output=EchoAnswer)
def echo_data(_app: App, _call: Call, args: Echo) -> Answer:
    """Say a text as typed data."""
    return Answer.of(args.text, data=EchoAnswer(text=args.text, times=args.times))


@tool("picture", group=Group.FILES, effect=Effect.READ, title="Picture")
def picture(_app: App, _call: Call, args: Echo) -> Answer:
    """Send bytes of each kind."""
    data = args.text.encode()
    return Answer(
        (
            Media("image", data, "image/png"),
            Media("audio", data, "audio/wav"),
            Media("blob", data, "application/zip", "file:///a.zip"),
        )
    )


@tool("wait", group=Group.FILES, effect=Effect.READ, title="Wait", timeout_seconds=20)
def wait(_app: App, call: Call, args: Wait) -> Answer:
    """Wait, telling progress, until the time is over or the call is cancelled."""
    STARTED.append(args.label)
    until = time.monotonic() + args.seconds
    try:
        while time.monotonic() < until:
            call.check()
            call.progress(1.0, 2.0, "half way")
            time.sleep(0.005)
        call.progress(2.0, 2.0, "done")
    finally:
        STOPPED.append(args.label)
    return Answer.of("waited")


@tool("lose", group=Group.FILES, effect=Effect.CHANGE, title="Lose")
def lose(_app: App, _call: Call, args: Echo) -> Answer:
    """Fail with an error of ours."""
    raise NotFound(f"No such thing: {args.text}")


@tool("measure", group=Group.FILES, effect=Effect.READ, title="Measure")
def measure(_app: App, _call: Call, args: Echo) -> Answer:
    """Say how many bytes a text has."""
    return Answer.of(str(len(args.text.encode())))


@tool("crash", group=Group.FILES, effect=Effect.READ, title="Crash")
def crash(_app: App, _call: Call, args: Echo) -> Answer:
    """Fail with a fault whose message holds content."""
    raise RuntimeError(args.text)


def dispatcher(settings: Settings | None = None) -> Dispatcher:
    """Return a dispatcher over the sample tools; they need no app."""
    registry = Registry([echo, echo_data, picture, wait, lose, measure, crash])
    return Dispatcher(cast(App, None), registry, settings or Settings())
