"""The one path of every call: who may call what, what is refused, and what an error says."""

import logging
from dataclasses import replace

import anyio
import pytest

from holdfast.auth.context import AuthContext, Caller, CallerKind
from holdfast.config.settings import FolderSettings, GroupSwitch, McpSettings, Settings, Switch
from holdfast.errors import HoldfastError, Internal, InvalidArgument, NotFound, PermissionDenied
from tests.helpers import sample

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def refusal(
    caller: Caller, name: str, arguments: dict[str, object], settings: Settings | None = None
) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        await sample.dispatcher(settings).call(caller, name, arguments)
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "echo: argument 'text' is missing"),
        ({"text": 5}, "echo: argument 'text': input should be a valid string"),
        ({"text": "x", "tims": 2}, "echo: unknown argument 'tims' (did you mean 'times'?)"),
        ({"text": "x", "times": 99}, "echo: argument 'times': input should be less than or equal to 9"),
        ({"text": "x", "times": "many"}, "echo: argument 'times': input should be a valid integer"),
    ],
)
async def test_bad_arguments_are_named(arguments: dict[str, object], sentence: str) -> None:
    error = await refusal(sample.CALLER, "echo", arguments)
    assert isinstance(error, InvalidArgument)
    assert error.message.startswith(sentence)


async def test_an_argument_error_never_repeats_what_was_sent() -> None:
    error = await refusal(sample.CALLER, "echo", {"text": ["CANARY-1"], "times": "CANARY-2"})
    assert "CANARY" not in error.message


async def test_an_unknown_tool_names_the_nearest() -> None:
    error = await refusal(sample.CALLER, "ecko", {})
    assert isinstance(error, NotFound)
    assert error.message == "There is no tool 'ecko'. Did you mean 'echo'?"


@pytest.mark.parametrize(
    "caller",
    [
        replace(sample.CALLER, kind=CallerKind.PERSON),
        replace(sample.CALLER, roots=()),
        replace(sample.CALLER, auth=AuthContext("f" * 64, "tenant")),
    ],
)
async def test_a_tool_does_not_exist_for_those_it_is_not_for(caller: Caller) -> None:
    assert sample.dispatcher().list_tools(caller) == []
    assert isinstance(await refusal(caller, "echo", {"text": "x"}), NotFound)


async def test_single_tools_and_groups_can_be_switched_off() -> None:
    without_echo = Settings(mcp=McpSettings(tools={"echo": Switch(enabled=False)}))
    without_files = Settings(mcp=McpSettings(groups={"files": GroupSwitch(enabled=False)}))
    names = [entry.name for entry in sample.dispatcher(without_echo).list_tools(sample.CALLER)]
    assert "echo" not in names
    assert "echo_data" in names
    assert isinstance(await refusal(sample.CALLER, "echo", {"text": "x"}, without_echo), NotFound)
    assert sample.dispatcher(without_files).list_tools(sample.CALLER) == []


async def test_read_only_mode_refuses_what_changes_and_nothing_else() -> None:
    settings = Settings(folders=FolderSettings(read_only=True))
    assert isinstance(await refusal(sample.CALLER, "lose", {"text": "x"}, settings), PermissionDenied)
    answer = await sample.dispatcher(settings).call(sample.CALLER, "echo", {"text": "x"})
    assert answer.blocks


async def test_a_fault_keeps_its_message_to_itself_and_names_its_place_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        error = await refusal(sample.CALLER, "crash", {"text": "CANARY-3"})
    assert isinstance(error, Internal)
    assert "CANARY" not in error.message + caplog.text
    assert "RuntimeError" in caplog.text
    assert "sample.py" in caplog.text


async def test_cancelling_stops_the_thread_below() -> None:
    with anyio.move_on_after(0.2):
        await sample.dispatcher().call(sample.CALLER, "wait", {"seconds": 10, "label": "dispatch"})
    with anyio.fail_after(5):
        while "dispatch" not in sample.STOPPED:
            await anyio.sleep(0.01)
