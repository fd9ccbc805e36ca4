"""Questions to the person as they look on the wire: who is asked, whose reply counts, and what happens when a client goes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.helpers.agent import Agent
from tests.helpers.pipe import Pipe
from tests.protocol.conftest import Served
from tests.protocol.test_websocket import connect_with_key

FORMS: dict[str, Any] = {"elicitation": {}}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
APPROVAL = {"action": "accept", "content": {"decision": "approve"}}

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]


def opening(version: str = "2025-11-25", capabilities: Json | None = None) -> Json:
    """Return the parameters of a handshake, with forms unless said otherwise."""
    offered = FORMS if capabilities is None else capabilities
    return {"protocolVersion": version, "capabilities": offered, "clientInfo": {"name": "raw", "version": "1"}}


def meta(capabilities: Json | None = None) -> Json:
    """Return the envelope of a stateless request, with forms unless said otherwise."""
    return {VERSION: "2026-07-28", CAPABILITIES: FORMS if capabilities is None else capabilities}


@contextmanager
def shaken(served: Served, version: str = "2025-11-25", capabilities: Json | None = None) -> Iterator[Pipe]:
    """Give a relay with a handshake behind it."""
    with Pipe([served.root], served.state) as pipe:
        pipe.ask("init", "initialize", opening(version, capabilities))
        pipe.send(INITIALIZED)
        yield pipe


@contextmanager
def stateless(served: Served) -> Iterator[Pipe]:
    """Give a relay whose first request was no call."""
    with Pipe([served.root], served.state) as pipe:
        pipe.ask("first", "server/discover", {"_meta": meta()})
        yield pipe


def calling(label: str, **more: Any) -> Json:
    """Return the parameters of a stateless call that asks."""
    return {"name": "ask_person", "arguments": {"label": label}, "_meta": meta(), **more}


def ask_of(pipe: Pipe, label: str) -> Json:
    """Begin a call and return the question that it asks."""
    pipe.request(label, "tools/call", {"name": "ask_person", "arguments": {"label": label}})
    question = pipe.receive()
    assert question["method"] == "elicitation/create", question
    return question


def how_it_ended(served: Served, label: str) -> str:
    """Return how the question ended, asked by another client."""
    with Agent([served.root], served.state, mode="legacy") as other:
        return other.call("how_it_ended", label=label).text


@pytest.mark.req("SV-04.c")
@pytest.mark.parametrize(
    ("version", "capabilities", "is_asked"),
    [
        ("2024-11-05", FORMS, False),
        ("2025-03-26", FORMS, False),
        ("2025-06-18", FORMS, True),
        ("2025-11-25", {"elicitation": {"form": {}}}, True),
        ("2025-11-25", {"elicitation": {"form": {}, "url": {}}}, True),
        ("2025-11-25", {"elicitation": {"url": {}}}, False),
        ("2025-11-25", {"elicitation": None}, False),
        ("2025-11-25", {}, False),
    ],
)
def test_a_handshake_client_is_asked_when_it_said_that_it_shows_forms(
    conformance_build: Served, version: str, capabilities: Json, is_asked: bool
) -> None:
    with shaken(conformance_build, version, capabilities) as pipe:
        pipe.request(1, "tools/call", {"name": "ask_person", "arguments": {"label": uuid4().hex, "patience": 5}})
        message = pipe.receive()
    if is_asked:
        assert message["method"] == "elicitation/create"
        assert message["params"]["requestedSchema"]["required"] == ["decision"]
    else:
        assert message["result"]["structuredContent"]["code"] == "PERMISSION_DENIED"


@pytest.mark.req("SV-04.c")
@pytest.mark.parametrize(
    ("capabilities", "kind"),
    [(FORMS, "input_required"), ({"elicitation": {"url": {}}}, "complete"), ({"sampling": {}}, "complete")],
)
def test_a_stateless_call_is_asked_back_when_it_says_that_its_client_shows_forms(
    conformance_build: Served, capabilities: Json, kind: str
) -> None:
    params = {"name": "ask_person", "arguments": {"label": uuid4().hex}, "_meta": meta(capabilities)}
    with stateless(conformance_build) as pipe:
        result = pipe.ask(1, "tools/call", params)["result"]
    assert result["resultType"] == kind
    assert ("inputRequests" in result) == (kind == "input_required")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "holdfast"


@pytest.mark.req("SV-04.d")
def test_a_stateless_reply_counts_once_its_question_was_asked(conformance_build: Served) -> None:
    label = uuid4().hex
    with stateless(conformance_build) as pipe:
        unasked = pipe.ask(1, "tools/call", calling(label, inputResponses={"decision": APPROVAL}))["result"]
        assert unasked["resultType"] == "input_required"
        state = unasked["requestState"]
        other_key = calling(label, inputResponses={"other": APPROVAL}, requestState=state)
        assert pipe.ask(2, "tools/call", other_key)["result"]["resultType"] == "input_required"
        fitting = calling(label, inputResponses={"decision": APPROVAL}, requestState=state)
        done = pipe.ask(3, "tools/call", fitting)["result"]
    assert done["resultType"] == "complete"
    assert "action=accept" in done["content"][0]["text"]


@pytest.mark.req("SV-04.d")
def test_a_state_that_was_tampered_with_or_belongs_to_another_call_is_refused(conformance_build: Served) -> None:
    label, replies = uuid4().hex, {"decision": APPROVAL}
    with stateless(conformance_build) as pipe:
        state = pipe.ask(1, "tools/call", calling(label))["result"]["requestState"]
        payload, _, seal = state.partition(".")
        wrong = [
            calling(label, inputResponses=replies, requestState=f"{state}x"),
            calling(label, inputResponses=replies, requestState=f"{payload[:-4]}AAA=.{seal}"),
            calling(label, inputResponses=replies, requestState=f"{payload}.\u00e9"),
            calling(label, inputResponses=replies, requestState=""),
            calling(uuid4().hex, inputResponses=replies, requestState=state),
            {**calling(label, inputResponses=replies, requestState=state), "name": "ask_person_in_two_seconds"},
        ]
        answers = [pipe.ask(number, "tools/call", params) for number, params in enumerate(wrong, 2)]
    assert [answer["error"]["code"] for answer in answers] == [-32602] * len(wrong)
    assert all("requestState" in answer["error"]["message"] for answer in answers)


@pytest.mark.req("SV-04.d")
def test_a_state_of_another_caller_is_refused(conformance_build: Served) -> None:
    label = uuid4().hex
    with stateless(conformance_build) as pipe:
        state = pipe.ask(1, "tools/call", calling(label))["result"]["requestState"]
    with Pipe([conformance_build.root], conformance_build.state, cwd=conformance_build.state) as elsewhere:
        elsewhere.ask("first", "server/discover", {"_meta": meta()})
        repeated = calling(label, inputResponses={"decision": APPROVAL}, requestState=state)
        assert elsewhere.ask(2, "tools/call", repeated)["error"]["code"] == -32602


@pytest.mark.req("SV-04.d")
@pytest.mark.parametrize("name", ["inputResponses", "requestState", "decision"])
def test_a_reply_among_the_arguments_is_refused(conformance_build: Served, name: str) -> None:
    arguments = {"label": uuid4().hex, name: {"decision": APPROVAL}}
    with stateless(conformance_build) as pipe:
        params = {"name": "ask_person", "arguments": arguments, "_meta": meta()}
        result = pipe.ask(1, "tools/call", params)["result"]
    assert result["structuredContent"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.req("SV-04.d")
def test_a_step_of_a_pipe_carries_no_reply(conformance_build: Served) -> None:
    label = uuid4().hex
    with stateless(conformance_build) as pipe:
        state = pipe.ask(1, "tools/call", calling(label))["result"]["requestState"]
        step = {"id": "ask", "tool": "ask_person", "arguments": {"label": label}}
        reply = {"inputResponses": {"decision": APPROVAL}}
        params = {"name": "mcp_pipe", "arguments": {"steps": [step]}, "_meta": meta()}
        beside = pipe.ask(2, "tools/call", {**params, **reply})["result"]["structuredContent"]
        stolen = pipe.ask(3, "tools/call", {**params, **reply, "requestState": state})
        inside = {"name": "mcp_pipe", "arguments": {"steps": [{**step, **reply}]}, "_meta": meta()}
        refused = pipe.ask(4, "tools/call", inside)["result"]["structuredContent"]
    assert beside["steps"][0]["error"]["code"] == "PERMISSION_DENIED"
    assert stolen["error"]["code"] == -32602
    assert refused["code"] == "INVALID_ARGUMENT"


@pytest.mark.req("SV-04.d")
def test_a_handshake_call_is_not_answered_by_what_comes_with_it(conformance_build: Served) -> None:
    label = uuid4().hex
    params = {"name": "ask_person", "arguments": {"label": label}, "inputResponses": {"decision": APPROVAL}}
    with shaken(conformance_build) as pipe:
        pipe.request(1, "tools/call", params)
        assert pipe.receive()["method"] == "elicitation/create"


@pytest.mark.req("SV-04.d")
def test_an_answer_under_any_other_id_answers_no_question(conformance_build: Served) -> None:
    label = uuid4().hex
    with shaken(conformance_build) as pipe:
        question = ask_of(pipe, label)
        for forged in ("ask-0", 1, label, None, "ask-1", True):
            pipe.send(json.dumps({"jsonrpc": "2.0", "id": forged, "result": APPROVAL}).encode() + b"\n")
        refusal = {"action": "decline"}
        pipe.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": refusal}).encode() + b"\n")
        messages: list[Json] = []
        while not messages or messages[-1].get("id") != label:
            messages.append(pipe.receive())
    assert "action=decline" in messages[-1]["result"]["content"][0]["text"]


@pytest.mark.req("SV-04.c")
def test_a_large_answer_reaches_its_question(conformance_build: Served) -> None:
    with shaken(conformance_build) as pipe:
        question = ask_of(pipe, label := uuid4().hex)
        content = {"decision": "revise", "other": 'a "method" of its own ' * 8_000}
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
        pipe.send(json.dumps(answer).encode() + b"\n")
        result = pipe.receive()
    assert result["id"] == label
    assert result["result"]["content"][0]["text"].endswith('content={"decision": "revise"}')


@pytest.mark.req("SV-04.c")
def test_a_relay_that_goes_leaves_no_question_behind(conformance_build: Served) -> None:
    with shaken(conformance_build) as pipe:
        ask_of(pipe, label := uuid4().hex)
        pipe.process.kill()
    assert how_it_ended(conformance_build, label) == "cancel"


@pytest.mark.req("SV-04.c")
def test_the_end_of_a_clients_input_ends_its_question(conformance_build: Served) -> None:
    with shaken(conformance_build) as pipe:
        ask_of(pipe, label := uuid4().hex)
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert "action=cancel" in pipe.receive()["result"]["content"][0]["text"]
    assert how_it_ended(conformance_build, label) == "cancel"


@pytest.mark.req("SV-04.c", "SV-01.b")
def test_a_websocket_client_is_asked_and_may_go(conformance_build: Served) -> None:
    label, other = uuid4().hex, uuid4().hex
    with connect_with_key(conformance_build) as line:
        line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening()}))
        line.recv(timeout=20)
        line.send(INITIALIZED.decode())
        for number, name in ((1, label), (2, other)):
            params = {"name": "ask_person", "arguments": {"label": name}}
            line.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}))
        questions = [json.loads(line.recv(timeout=20)) for _question in range(2)]
        first = next(question for question in questions if label in question["params"]["message"])
        line.send(json.dumps({"jsonrpc": "2.0", "id": first["id"], "result": APPROVAL}))
        assert "action=accept" in json.loads(line.recv(timeout=20))["result"]["content"][0]["text"]
    assert how_it_ended(conformance_build, other) == "cancel"


@pytest.mark.req("SV-04.c")
def test_an_http_client_that_goes_leaves_no_question_behind(conformance_build: Served) -> None:
    label, url = uuid4().hex, f"{conformance_build.url}/mcp"
    headers = {
        "authorization": f"Bearer {conformance_build.key}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    with httpx2.Client(timeout=30, headers=headers) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening()}
        answer = http.post(url, content=json.dumps(body))
        http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        http.headers["mcp-protocol-version"] = "2025-11-25"
        http.post(url, content=INITIALIZED)
        params = {"name": "ask_person", "arguments": {"label": label}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        with http.stream("POST", url, content=json.dumps(call)) as stream:
            for line in stream.iter_lines():
                if "elicitation/create" in line:
                    break
    assert how_it_ended(conformance_build, label) == "cancel"
