"""The official Python client in both eras, through the relay and over HTTP."""

import threading
from pathlib import Path
from uuid import uuid4

import pytest

from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.protocol.conftest import Served
from tests.protocol.http_agent import HttpAgent

MUCH = 400_000
"""Characters of two bytes; the client takes a mebibyte in one event."""

each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])
each_door = pytest.mark.parametrize("door", ["stdio", "http"])


def connect(served: Served, door: str, era: str) -> Agent:
    """Return a client of that door, not yet connected."""
    return HttpAgent(served, mode=era) if door == "http" else Agent([served.root], served.state, mode=era)


@pytest.mark.req("SV-04.a", "SV-01.a")
@each_door
@each_era
def test_a_python_client_reads_edits_and_is_told_of_a_missing_file(served: Served, door: str, era: str) -> None:
    file: Path = served.root / f"заметка {door} {era}.txt"
    file.write_text("снаружи\n")
    with connect(served, door, era) as agent:
        assert {"read_text_file", "edit_file"} <= {tool.name for tool in agent.tools()}
        assert agent.call("read_text_file", path=file.name).text == "снаружи\n"
        edits = [{"oldText": "снаружи", "newText": "внутри 🎉"}]
        agent.call("edit_file", path=file.name, edits=edits).ok()
        assert agent.call("read_text_file", path=file.name).text == file.read_text() == "внутри 🎉\n"
        assert agent.call("read_text_file", path="none.txt").code == "NOT_FOUND"
        assert agent.call("no_such_tool").code == "NOT_FOUND"
        assert agent.call("read_text_file", path=file.name, heads=1).code == "INVALID_ARGUMENT"


@pytest.mark.req("SV-04.a")
@each_door
@each_era
def test_a_tool_knows_which_client_calls(conformance_build: Served, door: str, era: str) -> None:
    with connect(conformance_build, door, era) as agent:
        agent.tools()
        assert agent.call("calling_client").text == "mcp 0.1.0"


@pytest.mark.req("SV-04.a", "FS-19")
@each_door
@each_era
def test_a_python_client_sees_progress_stops_work_and_takes_a_large_answer(
    conformance_build: Served, door: str, era: str
) -> None:
    label, reports, has_begun = uuid4().hex, [], threading.Event()
    with connect(conformance_build, door, era) as agent:
        assert "work_for_long" in {tool.name for tool in agent.tools()}
        agent.call_with("test_tool_with_progress", {}, lambda done, _total, _message: reports.append(done)).ok()
        assert reports == [0, 50, 100]
        working = agent.start("work_for_long", {"label": label}, lambda *_notice: has_begun.set())
        assert has_begun.wait(20)
        working.cancel()
        assert agent.call("has_stopped", label=label).text == "stopped"
        assert len(agent.call("say_much", characters=MUCH).text) == MUCH


@pytest.mark.req("SV-04.a")
@each_door
def test_a_call_may_be_the_first_message_of_a_stateless_client(served: Served, door: str) -> None:
    (served.root / "first.txt").write_text("at once\n")
    with connect(served, door, MODERN) as agent:
        assert agent.call("read_text_file", path="first.txt").text == "at once\n"


@pytest.mark.req("SV-04.a")
@each_door
@each_era
def test_a_lone_surrogate_in_an_answer_is_replaced_and_never_silence(
    conformance_build: Served, door: str, era: str
) -> None:
    with connect(conformance_build, door, era) as agent:
        agent.tools()
        assert agent.call("say_no_text", refuse=False).text == "grüß \ufffd"
        refused = agent.call("say_no_text", refuse=True)
        assert (refused.code, refused.error["message"]) == ("CONFLICT", "grüß \ufffd")


@pytest.mark.req("SV-04.a")
@each_era
def test_a_lone_surrogate_in_data_is_replaced_and_never_silence(conformance_build: Served, era: str) -> None:
    with connect(conformance_build, "stdio", era) as agent:
        agent.tools()
        assert agent.call("say_no_data").data == {"half": "\ufffd"}
        assert not agent.call("test_simple_text").is_error
