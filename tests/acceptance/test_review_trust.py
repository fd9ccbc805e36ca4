"""Nobody approves but a person: what an agent tries with every tool and at every door."""

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.doors import MODERN_META, Pipes
from tests.helpers.reviewer import TEXT, Host, Reviewer, reviewing, with_settings

pytestmark = pytest.mark.timeout(120)

EDIT = {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}
PERSONS = ("pending_reviews", "show_review", "decide_review")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder that lies inside a folder which agents may be given as a root."""
    settings = {
        "server": {"port": 0},
        "review": {"wait_seconds": 0.2, "channels": {"vscode": True}, "vscode": {"command": ["true"]}},
    }
    folder = with_settings(tmp_path_factory.mktemp("home") / "state", settings)
    yield folder
    stop_server(folder)


@pytest.fixture
def desk(root: Path, state: Path) -> Iterator[Reviewer]:
    with reviewing(root, state) as reviewer:
        yield reviewer


def pending(desk: Reviewer) -> tuple[str, dict[str, Any]]:
    """Propose something; return its session and what the person would send to approve it."""
    desk.write()
    session = str(desk.propose(**EDIT)["session_path"])
    (review,) = desk.waiting()
    shown = desk.show(review)
    decision = {"review_id": review["review_id"], "decision": "approve", "shown_hash": shown["shown_hash"]}
    return session, decision


def still_pending(desk: Reviewer, session: str) -> bool:
    """Return whether nothing was decided, and nothing written."""
    answer = desk.propose(path="a.txt", session_path=session)
    return answer["user_action"] == "PENDING" and (desk.root / "a.txt").read_text() == TEXT


@pytest.mark.req("RV-10.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_no_agent_sees_or_calls_what_decides(root: Path, state: Path, mode: str) -> None:
    with reviewing(root, state, mode=mode) as desk:
        session, decision = pending(desk)
        assert not set(PERSONS) & {tool.name for tool in desk.agent.tools()}
        for tool in PERSONS:
            assert desk.agent.call(tool, **decision).code == "NOT_FOUND"
            piped = desk.agent.call("mcp_pipe", steps=[{"id": "x", "tool": tool, "arguments": decision}])
            assert piped.code == "INVALID_ARGUMENT"
        for more in ({"kind": "person"}, {"audience": "person"}, {"_meta": {"kind": "person"}}, {"person": True}):
            assert desk.agent.call("decide_review", **decision, **more).code == "NOT_FOUND"
        assert still_pending(desk, session)


@pytest.mark.req("RV-10.a")
def test_no_argument_of_a_proposal_is_a_decision(desk: Reviewer) -> None:
    session, decision = pending(desk)
    for more in (
        {"decision": "approve"},
        {"user_action": "APPROVE"},
        {"inputResponses": {"x": {"action": "accept", "content": {"decision": "approve"}}}},
        {"requestState": "x"},
        decision,
    ):
        reply = desk.agent.call("propose_and_review", path="a.txt", session_path=session, **more)
        assert reply.code == "INVALID_ARGUMENT"
        assert desk.commit(session).code == "CONFLICT"
    assert still_pending(desk, session)


@pytest.mark.req("RV-10.a")
def test_a_pipe_cannot_wait_for_a_person(desk: Reviewer) -> None:
    desk.write()
    piped = desk.agent.call("mcp_pipe", steps=[{"id": "x", "tool": "propose_and_review", "arguments": EDIT}])
    assert piped.code == "INVALID_ARGUMENT"


@pytest.mark.req("RV-10.a")
def test_a_connection_is_a_persons_only_with_the_persons_key(desk: Reviewer) -> None:
    session, decision = pending(desk)
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "decide_review", "arguments": decision, "_meta": MODERN_META},
    }
    agents_token = (desk.state / "agent.token").read_text().strip()
    hellos: list[list[dict[str, Any]]] = [
        [
            {
                "version": "0",
                "kind": "agent",
                "roots": [str(desk.root)],
                "cwd": "/",
                "person": True,
                "proof": agents_token,
            }
        ],
        [{"version": "0", "kind": "person", "roots": [], "cwd": "/"}, {"proof": ""}],
        [{"version": "0", "kind": "person", "roots": [], "cwd": "/"}, {"proof": agents_token}],
        [{"version": "0", "kind": "person", "roots": [], "cwd": "/"}, request],
        [{"version": "0", "kind": "control", "roots": [], "cwd": "/"}, {"proof": agents_token}],
        [{"version": "0", "kind": ["person"], "roots": [], "cwd": "/"}],
        [{"version": "0", "kind": "Person", "roots": [], "cwd": "/"}],
    ]
    for lines in hellos:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(20)
            line.connect(str(desk.state / "server.sock"))
            for message in [*lines, request]:
                try:
                    line.sendall(json.dumps(message).encode() + b"\n")
                except BrokenPipeError:
                    break
            line.shutdown(socket.SHUT_WR)
            with line.makefile("rb") as answers:
                try:
                    heard = answers.read().decode()
                except ConnectionResetError:
                    heard = ""
        assert '"user_action"' not in heard
    assert still_pending(desk, session)


@pytest.mark.req("RV-10.a")
def test_the_agents_token_opens_no_persons_door(desk: Reviewer) -> None:
    session, decision = pending(desk)
    port = json.loads((desk.state / "server.json").read_text())["port"]
    token = (desk.state / "agent.token").read_text().strip()
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "decide_review", "arguments": decision, "_meta": MODERN_META},
    }
    for extra in ({}, {"X-Kind": "person", "X-Holdfast-Kind": "person"}):
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "decide_review",
            **extra,
        }
        request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                heard = response.read().decode()
        except urllib.error.HTTPError as error:
            heard = error.read().decode()
        assert "NOT_FOUND" in heard
    assert still_pending(desk, session)


REFUSALS = {"NOT_FOUND", "ACCESS_DENIED", "PERMISSION_DENIED"}

ATTEMPTS: list[tuple[str, dict[str, Any]]] = [
    ("read_text_file", {"path": "{file}"}),
    ("read_media_file", {"path": "{file}"}),
    ("read_files", {"files": [{"path": "{file}"}]}),
    ("read_multiple_files", {"paths": ["{file}"]}),
    ("get_file_info", {"path": "{file}"}),
    ("write_file", {"path": "{file}", "content": "approved\n\n\n"}),
    ("append_text", {"path": "{file}", "content": "\n\n\n"}),
    ("edit_file", {"path": "{file}", "edits": [{"oldText": "line 1\n", "newText": "x\n\n"}]}),
    ("edit_files", {"files": [{"path": "{file}", "edits": [{"old_string": "APPEND_TO_FILE", "new_string": "\n\n"}]}]}),
    ("delete_file", {"path": "{file}"}),
    ("move_file", {"source": "{file}", "destination": "{root}/stolen"}),
    ("move_file", {"source": "{root}/mine.txt", "destination": "{file}.new"}),
    ("create_directory", {"path": "{folder}/mcp_review_mine"}),
    ("list_directory", {"path": "{folder}"}),
    ("list_directory_with_sizes", {"path": "{folder}"}),
    ("directory_tree", {"path": "{folder}"}),
    ("search_files", {"path": "{folder}", "pattern": "*"}),
    ("grep_content", {"pattern": "line", "search_path": "{folder}"}),
    ("query_json", {"file_path": "{file}", "expression": "."}),
    ("propose_and_review", {"path": "{file}", "old_string": "APPEND_TO_FILE", "new_string": "\n\n"}),
]


def filled(value: Any, names: dict[str, str]) -> Any:
    """Return the arguments with the names put in."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    return [filled(one, names) for one in value] if isinstance(value, list) else value


@pytest.mark.req("RV-10.a")
@pytest.mark.parametrize("way", ["a root around the state folder", "a link to it", "a plain root"])
def test_no_tool_reaches_the_state_folder(desk: Reviewer, tmp_path_factory: pytest.TempPathFactory, way: str) -> None:
    session, _ = pending(desk)
    inside = desk.root
    if way == "a root around the state folder":
        inside = desk.state.parent
    elif way == "a link to it":
        (desk.root / "way").symlink_to(desk.state)
    (inside / "mine.txt").write_text("mine\n")
    entrance = desk.root / "way" if way == "a link to it" else desk.state
    targets = {
        str(entrance / "reviews" / os.path.basename(session) / "future_a.txt"): str(
            entrance / "reviews" / os.path.basename(session)
        ),
        str(entrance / "state.db"): str(entrance),
        str(entrance / "person.key"): str(entrance / "reviews"),
        str(entrance / "settings.yml"): str(entrance),
        str(entrance / "server.sock"): str(entrance),
    }
    secrets = [(desk.state / name).read_text().strip() for name in ("person.key", "agent.token")]
    before = {name: (desk.state / name).read_bytes() for name in ("person.key", "agent.token", "settings.yml")}
    with Agent([inside], desk.state) as attacker:
        for file, folder in targets.items():
            for tool, arguments in ATTEMPTS:
                reply = attacker.call(tool, **filled(arguments, {"file": file, "folder": folder, "root": str(inside)}))
                told = reply.text + json.dumps(reply.result.structured_content)
                assert len(reply.refusals) == 1, (tool, file, told[:500])
                assert reply.refusals[0] in REFUSALS, (tool, file, told[:500])
                assert not any(secret in told for secret in secrets)
    assert {name: (desk.state / name).read_bytes() for name in before} == before
    assert sorted(os.listdir(session)) == ["current_a.txt", "future_a.txt"]
    assert still_pending(desk, session)


@pytest.mark.req("RV-10.a")
def test_nothing_of_the_state_folder_shows_beneath_a_root_around_it(desk: Reviewer) -> None:
    session, _ = pending(desk)
    home = desk.state.parent
    with Agent([home], desk.state) as attacker:
        looks: list[tuple[str, dict[str, Any]]] = [
            ("list_directory", {"path": "."}),
            ("directory_tree", {"path": "."}),
            ("search_files", {"path": ".", "pattern": "**/*"}),
            ("grep_content", {"pattern": "seven", "include_ignored": True}),
        ]
        seen = "".join(attacker.call(tool, **arguments).text for tool, arguments in looks)
    assert not any(word in seen for word in ("state.db", "future_", "mcp_review_", "person.key"))
    assert session.startswith(str(desk.state))


@pytest.mark.req("RV-10.a")
def test_the_state_folder_cannot_be_a_root(desk: Reviewer) -> None:
    session, _ = pending(desk)
    for root in (desk.state, desk.state / "reviews", Path(session)):
        environment = {**os.environ, "HOLDFAST_STATE_DIR": str(desk.state)}
        with Pipes(["stdio", str(root)], environment, "/") as relay:
            assert "error" in relay.initialize()
    assert still_pending(desk, session)


@pytest.mark.req("RV-10.b")
def test_each_channel_can_be_switched_off(root: Path, tmp_path: Path) -> None:
    channels = {"console": False, "terminal": False, "elicitation": False, "vscode": False}
    settings = {"server": {"port": 0}, "review": {"wait_seconds": 1, "channels": channels}}
    state = with_settings(tmp_path / "closed", settings)
    host = Host(decision="approve")
    try:
        with Agent([root], state, elicit=host) as agent:
            desk = Reviewer(agent, root, state)
            session, decision = pending(desk)
            (Path(session) / "future_a.txt").write_text("saved\n\n\n")
            for channel in ("console", "terminal"):
                refused = desk.person("decide_review", **decision, channel=channel)
                assert refused["code"] == "PERMISSION_DENIED"
            assert host.questions == []
            assert still_pending(desk, session)
    finally:
        stop_server(state)


@pytest.mark.req("RV-10.b")
def test_saving_a_file_decides_nothing_unless_the_person_switched_it_on(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "plain", {"server": {"port": 0}, "review": {"wait_seconds": 1.5}})
    try:
        with reviewing(root, state) as desk:
            session, _ = pending(desk)
            (Path(session) / "future_a.txt").write_text("saved\n\n\n")
            assert still_pending(desk, session)
    finally:
        stop_server(state)


@pytest.mark.req("RV-10.a")
def test_an_approval_is_of_what_was_shown_and_not_of_what_came_after(desk: Reviewer) -> None:
    session, decision = pending(desk)
    desk.decide(desk.waiting()[0], "revise", reason="otherwise")
    desk.propose(path="a.txt", session_path=session, old_string="seven", new_string="something else")
    refused = desk.person("decide_review", **decision)
    assert refused["code"] == "CONFLICT"
    assert still_pending(desk, session)
