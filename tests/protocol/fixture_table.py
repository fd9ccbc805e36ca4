"""The conformance suite's plain tools as entries of our own tool table, so that they take the path of every call."""

import base64
import threading
import time
from itertools import count
from types import SimpleNamespace
from typing import cast

from pydantic import BaseModel, Field

from holdfast.app import App, ConsoleAddress
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import Settings
from holdfast.errors import Conflict
from holdfast.tools.answer import Answer, Media, Text
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.pipe.entry import mcp_pipe
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool
from tests.protocol.fixture_asking import ASKING

CALLER = Caller(LOCAL_USER, roots=("/",))
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
_MORE_THAN_A_TENTH = 0.12


_STOPPED: dict[str, threading.Event] = {}


class Nothing(Arguments):
    """No arguments."""


class Label(Arguments):
    """Which of several calls is meant."""

    label: str = Field(description="A name to recognise the call by.")


class Refusal(Arguments):
    """Whether the call is to fail."""

    refuse: bool = Field(description="Fail.")


class Amount(Arguments):
    """How much is wanted."""

    characters: int = Field(description="How many.")


@tool("calling_client", group=Group.FILES, effect=Effect.READ, title="Client")
def calling_client(_app: App, call: Call, _args: Nothing) -> Answer:
    """Answer with the name and version that the calling client declared."""
    return Answer.of(str(call.caller.client))


@tool("test_simple_text", group=Group.FILES, effect=Effect.READ, title="Text")
def simple_text(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with one text."""
    return Answer.of("This is a simple text response for testing.")


@tool("test_image_content", group=Group.FILES, effect=Effect.READ, title="Image")
def image_content(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with one image."""
    return Answer((Media("image", PNG, "image/png"),))


@tool("test_audio_content", group=Group.FILES, effect=Effect.READ, title="Audio")
def audio_content(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with one sound."""
    return Answer((Media("audio", WAV, "audio/wav"),))


@tool("test_embedded_resource", group=Group.FILES, effect=Effect.READ, title="Embedded resource")
def embedded_resource(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with bytes as an embedded resource."""
    return Answer((Media("blob", b"This is an embedded resource content.", "text/plain", "test://embedded-resource"),))


@tool("test_multiple_content_types", group=Group.FILES, effect=Effect.READ, title="Mixed content")
def multiple_content_types(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with text, image and embedded resource."""
    return Answer(
        (
            Text("Multiple content types test:"),
            Media("image", PNG, "image/png"),
            Media("blob", b'{"test":"data","value":123}', "application/json", "test://mixed-content-resource"),
        )
    )


@tool("test_error_handling", group=Group.FILES, effect=Effect.READ, title="Error")
def error_handling(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Fail with an error of ours."""
    raise Conflict("This tool intentionally returns an error for testing")


@tool("test_tool_with_progress", group=Group.FILES, effect=Effect.READ, title="Progress")
def tool_with_progress(_app: App, call: Call, _args: Nothing) -> Answer:
    """Tell progress three times, further apart than the server's own pace."""
    for done in (0, 50, 100):
        call.check()
        call.progress(float(done), 100.0, f"{done} of 100")
        time.sleep(_MORE_THAN_A_TENTH)
    return Answer.of("Progress was told.")


@tool("work_for_long", group=Group.FILES, effect=Effect.READ, title="Work for long", timeout_seconds=30)
def work_for_long(_app: App, call: Call, args: Label) -> Answer:
    """Work until cancelled, telling how much is done of nobody knows how much."""
    has_ended = _STOPPED.setdefault(args.label, threading.Event())
    try:
        for done in count(1):
            call.check()
            call.progress(float(done), None, "more")
            time.sleep(0.01)
    finally:
        has_ended.set()
    raise AssertionError("counting has no end")


@tool("has_stopped", group=Group.FILES, effect=Effect.READ, title="Has it stopped?")
def has_stopped(_app: App, _call: Call, args: Label) -> Answer:
    """Say whether the work of that label ended, waiting a little for it."""
    has_ended = _STOPPED.setdefault(args.label, threading.Event())
    return Answer.of("stopped" if has_ended.wait(5) else "still working")


@tool("say_much", group=Group.FILES, effect=Effect.READ, title="Say much")
def say_much(_app: App, _call: Call, args: Amount) -> Answer:
    """Answer with that many characters of two bytes each."""
    return Answer.of("ß" * args.characters)


@tool("say_no_text", group=Group.FILES, effect=Effect.READ, title="Say no text")
def say_no_text(_app: App, _call: Call, args: Refusal) -> Answer:
    """Answer or refuse with half of a character, which JSON cannot hold."""
    if args.refuse:
        raise Conflict("grüß \ud83c", where="\ud83c")
    return Answer.of("grüß \ud83c")


class Half(BaseModel):
    """Data that JSON cannot hold."""

    half: str


@tool("say_no_data", group=Group.FILES, effect=Effect.READ, title="Say no data", output=Half)
def say_no_data(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with data that holds a lone surrogate."""
    return Answer.of("half", data=Half.model_construct(half="\ud83c"))


TABLE = (
    calling_client,
    simple_text,
    image_content,
    audio_content,
    embedded_resource,
    multiple_content_types,
    error_handling,
    tool_with_progress,
    work_for_long,
    has_stopped,
    say_much,
    say_no_text,
    say_no_data,
)


def dispatcher() -> Dispatcher:
    """Return a dispatcher over these tools; of an app they need the settings at most."""
    settings = Settings()
    app = cast("App", SimpleNamespace(settings=settings, console=ConsoleAddress()))
    return Dispatcher(app, Registry((*TABLE, *ASKING, mcp_pipe)), settings)
