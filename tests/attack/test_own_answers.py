"""An agent that is itself the client at a port: it cannot approve by answering its own question, unless the settings let it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.helpers.agent import LEGACY, MODERN
from tests.helpers.doors import INITIALIZE, MODERN_META, House
from tests.helpers.organising import HOUSE
from tests.helpers.reviewer import TEXT, Host
from tests.helpers.trees import harvest, plant
from tests.protocol.conftest import Served
from tests.protocol.http_agent import HttpAgent

pytestmark = pytest.mark.timeout(120)

EDIT = {"path": "a.txt", "old_string": "line 7\n", "new_string": "os.system('evil')\n"}
FORMS: dict[str, Any] = {"elicitation": {}}
YES = {"action": "accept", "content": {"decision": "approve"}}

each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])
each_door = pytest.mark.parametrize("door", ["http", "websocket"])


@contextmanager
def served(folder: Path, channels: dict[str, bool]) -> Iterator[House]:
    """Run a server with one root, which an agent with agent.token may change."""
    house = House(folder)
    house.settings(json.dumps({"settings": {"review": {"wait_seconds": 0.2, "channels": channels}}}))
    plant(house.root, {**HOUSE, "a.txt": TEXT})
    with house.serve(str(house.root)):
        yield house


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("closed"), {}) as house:
        yield house


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("opened"), {"elicitation_over_http": True}) as house:
        yield house


class SelfAnswering:
    """An agent at a port that says yes to every question that it is asked."""

    def __init__(self, house: House, door: str, era: str) -> None:
        self.house, self.door, self.era = house, door, era
        self.questions = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, answer its questions, and return its data or its error."""
        if self.door == "http":
            return self._call_over_http(tool, arguments)
        with connect(
            f"{self.house.url.replace('http', 'ws', 1)}/ws",
            additional_headers={"Authorization": f"Bearer {self.house.token}"},
            max_size=None,
            proxy=None,
        ) as socket:
            if self.era == LEGACY:
                return self._call_in_handshake_era(socket, tool, arguments)
            return self._call_statelessly(socket, tool, arguments)

    def _call_over_http(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        host = Host(decision="approve")
        place = Served(self.house.url, self.house.state, self.house.root)
        with HttpAgent(place, mode=self.era, elicit=host) as agent:
            reply = agent.call(tool, **arguments)
        self.questions += len(host.questions)
        return reply.data

    def _call_in_handshake_era(self, socket: ClientConnection, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        _send(socket, id=0, method="initialize", params={**INITIALIZE, "capabilities": FORMS})
        assert json.loads(socket.recv(30))["id"] == 0
        _send(socket, method="notifications/initialized")
        _send(socket, id=1, method="tools/call", params={"name": tool, "arguments": arguments})
        while (message := json.loads(socket.recv(30))).get("id") != 1:
            if message["method"] == "elicitation/create":
                self.questions += 1
                _send(socket, id=message["id"], result=YES)
        return dict(message["result"]["structuredContent"])

    def _call_statelessly(self, socket: ClientConnection, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": FORMS}
        params: dict[str, Any] = {"name": tool, "arguments": arguments, "_meta": meta}
        # An answer to a question that was not asked yet is tried first.
        params["inputResponses"] = {"review": YES, "plan": YES}
        while True:
            _send(socket, id=1, method="tools/call", params=params)
            result = json.loads(socket.recv(30))["result"]
            if result["resultType"] != "input_required":
                return dict(result["structuredContent"])
            self.questions += len(result["inputRequests"])
            params["inputResponses"] = dict.fromkeys(result["inputRequests"], YES)
            params["requestState"] = result["requestState"]


def _send(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps({"jsonrpc": "2.0", **message}))


@pytest.mark.req("RV-12.d", "RV-10.a")
@each_era
@each_door
def test_an_agent_at_a_port_cannot_approve_its_own_proposal(closed: House, door: str, era: str) -> None:
    agent = SelfAnswering(closed, door, era)
    answer = agent.call("propose_and_review", **EDIT)
    assert (answer["user_action"], agent.questions) == ("PENDING", 0)
    refused = agent.call("commit_review", session_path=answer["session_path"], original_path="a.txt")
    assert refused["code"] == "CONFLICT"
    assert (closed.root / "a.txt").read_text() == TEXT


@pytest.mark.req("RV-12.d", "RV-10.a")
@each_era
@each_door
def test_an_agent_at_a_port_cannot_approve_its_own_plan(closed: House, door: str, era: str) -> None:
    before = harvest(closed.root)
    agent = SelfAnswering(closed, door, era)
    plan = agent.call("create_organization_plan", folder_path=".")
    assert plan["totals"]["moves"] > 0
    refused = agent.call("execute_plan", plan_id=plan["plan_id"])
    assert (refused["code"], agent.questions) == ("PERMISSION_DENIED", 0)
    assert "holdfast organise approve" in refused["message"]
    assert harvest(closed.root) == before


@pytest.mark.req("RV-12.d")
@each_era
@each_door
def test_with_the_setting_on_the_client_at_a_port_is_asked(opened: House, door: str, era: str) -> None:
    (opened.root / "a.txt").write_text(TEXT)
    agent = SelfAnswering(opened, door, era)
    answer = agent.call("propose_and_review", **{**EDIT, "new_string": f"{door} {era}\n"})
    assert (answer["user_action"], answer["decided_by"], agent.questions) == ("APPROVE", "elicitation", 1)
