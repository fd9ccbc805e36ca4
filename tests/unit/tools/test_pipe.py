"""mcp_pipe: steps by the one path of every call, in parallel where they can, each with an outcome."""

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any, cast

import anyio
import pytest
from pydantic import BaseModel, Field, model_serializer

from holdfast.adapters.counters import MemoryCounters
from holdfast.app import App
from holdfast.auth.context import AuthContext, Caller, CallerKind
from holdfast.auth.limits import Admission
from holdfast.call import Call
from holdfast.changes.service import Changes
from holdfast.config.server_settings import ServerSettings
from holdfast.config.settings import (
    FolderSettings,
    LimitSettings,
    McpSettings,
    RateSettings,
    Settings,
    Switch,
)
from holdfast.errors import HoldfastError, Internal, InvalidArgument, NotFound
from holdfast.folders.service import Folders
from holdfast.observe.observer import Observer
from holdfast.organiser.service import Organiser
from holdfast.review.service import Reviews
from holdfast.search.folders.service import FolderSearch
from holdfast.search.service import Search
from holdfast.store.service import Store
from holdfast.text.budget import estimate_tokens
from holdfast.tools.answer import Answer, Media, Text
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.pipe.answer import PipeAnswer, StepOutcome
from holdfast.tools.pipe.entry import MAX_PARALLEL, mcp_pipe
from holdfast.tools.registry import Arguments, Effect, Group, Registry, tool
from tests.helpers import sample

pytestmark = pytest.mark.anyio

_lock = threading.Lock()
NOW: list[int] = [0]
MOST: list[int] = [0]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Nothing(Arguments):
    """No arguments."""


class Size(Arguments):
    """How much to say."""

    tokens: int = Field(description="Estimated tokens.")
    cut: bool = Field(False, description="Whether to call it a part.")


@tool("crowd", group=Group.FILES, effect=Effect.READ, title="Crowd")
def crowd(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Count how many run at once."""
    with _lock:
        NOW[0] += 1
        MOST[0] = max(MOST[0], NOW[0])
    time.sleep(0.05)
    with _lock:
        NOW[0] -= 1
    return Answer.of("counted")


@tool("long_text", group=Group.FILES, effect=Effect.READ, title="Long text")
def long_text(_app: App, _call: Call, args: Size) -> Answer:
    """Say much."""
    return Answer((Text("abc\n" * args.tokens), Text("[note]")), is_cut=args.cut)


@tool("ask_person", group=Group.FILES, effect=Effect.READ, title="Ask", allowed_in_pipe=False)
def ask_person(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Wait for a person."""
    return Answer.of("never here")


@tool("decide", group=Group.FILES, effect=Effect.CHANGE, title="Decide", audience=CallerKind.PERSON)
def decide(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Decide as a person."""
    return Answer.of("decided")


class Unsayable(BaseModel):
    """Data that cannot be written down."""

    @model_serializer
    def _fail(self) -> dict[str, Any]:
        raise RuntimeError("CANARY")


@tool("unsayable", group=Group.FILES, effect=Effect.READ, title="Unsayable", output=Unsayable)
def unsayable(_app: App, _call: Call, _args: Nothing) -> Answer:
    """Answer with data that cannot be written down."""
    return Answer.of(data=Unsayable())


TABLE = [
    sample.echo, sample.echo_data, sample.picture, sample.wait, sample.lose, sample.crash,
    crowd, long_text, ask_person, decide, unsayable, mcp_pipe,
]  # fmt: skip


def dispatcher(settings: Settings | None = None, admission: Admission | None = None) -> Dispatcher:
    chosen = settings or Settings()
    app = App(
        chosen,
        cast("Any", lambda _caller: cast(Folders, None)),
        cast(Changes, None),
        cast(Store, None),
        cast(Search, None),
        cast(FolderSearch, None),
        cast(Reviews, None),
        cast(Organiser, None),
        cast(Observer, None),
    )
    return Dispatcher(app, Registry(TABLE), chosen, admission)


def step(name: str, tool: str = "echo", after: list[str] | None = None, **arguments: Any) -> dict[str, Any]:
    return {"id": name, "tool": tool, "arguments": arguments, "after": after or []}


def ref(source: str, path: str = "/text") -> dict[str, str]:
    return {"$from": source, "path": path}


async def run(
    *steps: dict[str, Any], settings: Settings | None = None, caller: Caller = sample.CALLER, **more: Any
) -> dict[str, StepOutcome]:
    answer = await dispatcher(settings, more.pop("admission", None)).call(
        caller, "mcp_pipe", {"steps": list(steps), **more}
    )
    assert isinstance(answer.data, PipeAnswer)
    assert [outcome.id for outcome in answer.data.steps] == [asked["id"] for asked in steps]
    return {outcome.id: outcome for outcome in answer.data.steps}


async def refusal(*steps: dict[str, Any], settings: Settings | None = None) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        await run(*steps, settings=settings)
    return caught.value


def statuses(outcomes: dict[str, StepOutcome]) -> dict[str, str]:
    return {name: outcome.status for name, outcome in outcomes.items()}


async def test_a_step_uses_the_text_and_the_data_of_earlier_ones() -> None:
    found = await run(
        step("last", text=ref("data", "/text"), times=ref("data", "/times")),
        step("data", "echo_data", text=ref("first"), times=2),
        step("first", text="ha"),
    )
    assert found["first"].result == {"text": "ha"}
    assert found["data"].result == {"text": "ha", "times": 2}
    assert found["last"].result == {"text": "haha"}


async def test_independent_steps_run_side_by_side_and_never_more_than_eight() -> None:
    MOST[0] = 0
    found = await run(*(step(f"s{number}", "crowd") for number in range(20)))
    assert set(statuses(found).values()) == {"ok"}
    assert MOST[0] == MAX_PARALLEL


async def test_pipes_hold_no_thread_so_one_thread_is_enough_for_many() -> None:
    one = dispatcher(Settings(server=ServerSettings(max_parallel_calls=1)))
    steps = [step("a", text="x"), step("b", text=ref("a")), step("c", text=ref("b"))]
    with anyio.fail_after(20):
        answers = await asyncio.gather(*(one.call(sample.CALLER, "mcp_pipe", {"steps": steps}) for _ in range(20)))
    assert all(cast(PipeAnswer, answer.data).steps[-1].status == "ok" for answer in answers)


async def test_a_failure_stops_what_has_not_begun_and_names_itself() -> None:
    found = await run(step("a", "lose", text="x"), step("b", text=ref("a")), step("c", after=["b"], text="y"))
    assert found["a"].error == {"code": "NOT_FOUND", "message": "No such thing: x", "retryable": False}
    assert found["b"] == StepOutcome(id="b", status="skipped", because="a")
    assert found["c"] == StepOutcome(id="c", status="skipped", because="a")


async def test_going_on_after_an_error_skips_only_what_needed_the_failed_step() -> None:
    found = await run(
        step("bad", "lose", text="x"),
        step("needs", text=ref("bad")),
        step("needs_that", after=["needs"], text="y"),
        step("slow", "wait", seconds=0.05),
        step("free", after=["slow"], text="z"),
        continue_on_error=True,
    )
    assert statuses(found) == {"bad": "error", "needs": "skipped", "needs_that": "skipped", "slow": "ok", "free": "ok"}
    assert found["needs_that"].because == "bad"


async def test_without_going_on_a_free_step_that_has_not_begun_is_skipped_too() -> None:
    found = await run(
        step("bad", "lose", text="x"), step("slow", "wait", seconds=0.1), step("free", after=["slow"], text="z")
    )
    assert statuses(found) == {"bad": "error", "slow": "ok", "free": "skipped"}
    assert found["free"].because == "bad"


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([step("a", "ecko")], "step 'a': There is no tool 'ecko'. Did you mean 'echo'?"),
        ([step("a", text="x"), step("p", "mcp_pipe", steps=[])], "step 'p': 'mcp_pipe' can only be called by itself"),
        ([step("a", "ask_person")], "step 'a': 'ask_person' can only be called by itself"),
        ([step("a", "decide")], "step 'a': There is no tool 'decide'."),
        ([step("a", text=ref("b")), step("b", text=ref("a"))], "step 'a': dependency cycle"),
        (
            [step(f"s{number}", text="x") for number in range(51)],
            "mcp_pipe: argument 'steps': list should have at most 50",
        ),
        ([], "mcp_pipe: argument 'steps': list should have at least 1"),
        ([{"id": "a", "tool": "echo", "args": {}}], "mcp_pipe: unknown argument 'steps.0.args'"),
        ([step("x" * 65, text="x")], "mcp_pipe: argument 'steps.0.id'"),
    ],
)
async def test_a_pipe_that_cannot_work_is_refused_before_anything_runs(
    steps: list[dict[str, Any]], sentence: str
) -> None:
    sample.STARTED.clear()
    error = (
        await refusal(step("early", "wait", seconds=0, label="early"), *steps)
        if steps and len(steps) < 50
        else await refusal(*steps)
    )
    assert isinstance(error, InvalidArgument)
    assert error.message.startswith(sentence.replace("steps.0", "steps.1"))
    assert sample.STARTED == []


async def test_a_wrong_argument_or_a_fault_is_the_error_of_its_step() -> None:
    found = await run(
        step("a", text=5), step("b", "crash", text="CANARY"), step("c", text="x"), step("d", text=ref("c", "/nope")),
        continue_on_error=True,
    )  # fmt: skip
    codes = {name: outcome.error["code"] for name, outcome in found.items() if outcome.error}
    assert codes == {"a": "INVALID_ARGUMENT", "b": "INTERNAL", "d": "INVALID_ARGUMENT"}
    assert "CANARY" not in str(found["b"])


async def test_a_fault_of_the_pipe_itself_ends_it_as_any_fault_does() -> None:
    with anyio.fail_after(5):
        error = await refusal(step("a", "unsayable"))
    assert isinstance(error, Internal)
    assert "CANARY" not in error.message


async def test_every_step_is_permitted_or_not_as_if_it_came_alone() -> None:
    read_only = Settings(folders=FolderSettings(read_only=True))
    found = await run(step("a", "lose", text="x"), settings=read_only)
    assert found["a"].error is not None and found["a"].error["code"] == "PERMISSION_DENIED"
    off = Settings(mcp=McpSettings(tools={"echo": Switch(enabled=False)}))
    assert (await refusal(step("a", text="x"), settings=off)).message.startswith("step 'a': There is no tool 'echo'")


async def test_every_step_counts_against_the_limit() -> None:
    limits = LimitSettings(local=RateSettings(read_per_minute=4))
    admission = Admission(limits, MemoryCounters(), MemoryCounters())
    found = await run(*(step(f"s{n}", text="x") for n in range(5)), continue_on_error=True, admission=admission)
    limited = [outcome.error for outcome in found.values() if outcome.error]
    assert len(limited) == 2, "the pipe itself is a call, so three steps are left"
    assert {error["code"] for error in limited} == {"RATE_LIMITED"}
    assert all(0 < error["retry_after_seconds"] <= 60 for error in limited)


async def test_nobody_has_a_pipe_without_tools_to_put_into_it() -> None:
    assert dispatcher().list_tools(replace(sample.CALLER, auth=AuthContext("f" * 64, "tenant"))) == []
    assert "mcp_pipe" in [entry.name for entry in dispatcher().list_tools(sample.CALLER)]


async def test_a_person_has_no_pipe() -> None:
    with pytest.raises(NotFound):
        await run(step("a", "decide"), caller=replace(sample.CALLER, kind=CallerKind.PERSON))


async def test_a_part_of_a_text_never_passes_for_the_whole() -> None:
    found = await run(
        step("a", "long_text", tokens=3, cut=True),
        step("b", text=ref("a")),
        step("c", after=["a"], text="x"),
        continue_on_error=True,
    )
    assert statuses(found) == {"a": "ok", "b": "error", "c": "ok"}
    assert found["b"].error is not None and "was cut by the token budget" in found["b"].error["message"]


async def test_the_answer_stays_within_its_budget_and_small_results_are_whole() -> None:
    settings = Settings(folders=FolderSettings(max_answer_tokens=1000))
    found = await run(
        step("big", "long_text", tokens=5000), step("large", "long_text", tokens=5000), step("small", text="ha"),
        step("copy", "echo_data", text=ref("big")), settings=settings,
    )  # fmt: skip
    assert found["small"] == StepOutcome(id="small", status="ok", result={"text": "ha"})
    assert found["big"].truncated and found["large"].truncated and found["copy"].truncated
    said = "".join(outcome.model_dump_json(exclude_none=True) for outcome in found.values())
    assert 700 < estimate_tokens(said) < 1000
    assert found["big"].result is not None and found["big"].result["text"].endswith("abc\n")


async def test_a_reference_takes_the_whole_text_though_the_answer_shows_a_part() -> None:
    settings = Settings(folders=FolderSettings(max_answer_tokens=500))
    found = await run(
        step("big", "long_text", tokens=5000), step("copy", text=ref("big", "/text"), times=2), step("note", text=ref("big", "/more/0")),
        settings=settings,
    )  # fmt: skip
    assert found["big"].truncated and found["copy"].status == "ok"
    assert found["note"].result == {"text": "[note]"}


async def test_a_lone_surrogate_in_a_text_does_not_lose_the_answer() -> None:
    found = await run(step("a", text="half \udc80"), step("b", "echo_data", text=ref("a")))
    assert found["a"].result == {"text": "half \ufffd"}
    assert found["b"].model_dump_json()


async def test_media_pass_through_beneath_the_name_of_their_step() -> None:
    answer = await dispatcher().call(
        sample.CALLER, "mcp_pipe", {"steps": [step("p", "picture", text="bytes"), step("t", text="x")]}
    )
    first, *rest = answer.blocks
    assert first == Text("2 steps: 2 ok.")
    words = [block.text[7:] if isinstance(block, Text) else block.kind for block in rest]
    assert words == [" 1/2] step p: ok", "image", "audio", "blob", " 2/2] step t: ok\nx"]
    assert cast(PipeAnswer, answer.data).steps[0].result == {"media": ["image/png", "audio/wav", "application/zip"]}


async def test_media_beyond_what_a_message_may_carry_are_left_out_and_missed() -> None:
    settings = Settings(server=ServerSettings(max_body_bytes=100))
    steps = [step("small", "picture", text="b" * 10), step("large", "picture", text="b" * 90)]
    answer = await dispatcher(settings).call(sample.CALLER, "mcp_pipe", {"steps": steps})
    assert len([block for block in answer.blocks if isinstance(block, Media)]) == 3
    assert [outcome.truncated for outcome in cast(PipeAnswer, answer.data).steps] == [None, True]


async def test_cancelling_a_pipe_stops_its_steps() -> None:
    labels = {f"pipe-{number}" for number in range(3)}
    with anyio.move_on_after(0.2):
        await run(
            *(step(label, "wait", seconds=10, label=label) for label in labels),
            step("next", after=list(labels), text="x"),
        )
    with anyio.fail_after(5):
        while not labels <= set(sample.STOPPED):
            await anyio.sleep(0.01)


async def test_a_pipe_tells_its_progress_and_that_of_its_steps() -> None:
    told: list[tuple[float, float | None, str]] = []
    steps = [step("a", "wait", seconds=0.05), step("b", after=["a"], text="x")]
    await dispatcher().call(sample.CALLER, "mcp_pipe", {"steps": steps}, lambda *notice: told.append(notice))
    amounts = [done for done, _, _ in told]
    assert amounts == sorted(amounts)
    assert (0.5, 2.0, "a: half way") in told
    assert told[-1] == (2.0, 2.0, "b: ok")


async def test_a_pipe_out_of_time_says_which_steps_were_under_way() -> None:
    hasty = replace(mcp_pipe, name="hasty_pipe", timeout_seconds=0.2)
    table = Dispatcher(
        App(
            Settings(),
            cast("Any", None),
            cast(Changes, None),
            cast(Store, None),
            cast(Search, None),
            cast(FolderSearch, None),
            cast(Reviews, None),
            cast(Organiser, None),
            cast(Observer, None),
        ),
        Registry([*TABLE, hasty]),
        Settings(),
    )
    steps = [step("quick", text="x"), step("slow", "wait", seconds=10, label="hasty"), step("never", text=ref("slow"))]
    answer = await table.call(sample.CALLER, "hasty_pipe", {"steps": steps})
    quick, slow, never = cast(PipeAnswer, answer.data).steps
    assert quick.status == "ok"
    assert slow.error is not None and slow.error["code"] == "TIMEOUT"
    assert (never.status, never.because) == ("skipped", "slow")
    with anyio.fail_after(5):
        while "hasty" not in sample.STOPPED:
            await anyio.sleep(0.01)
