"""Every version of the protocol: what is agreed on at the opening, and the same answers on the short and the long way."""

import json
from typing import Any, Self

import httpx2
import pytest

from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.pipe import Pipe
from tests.protocol.conftest import Served
from tests.protocol.fixture_table import TABLE
from tests.protocol.http_agent import HttpAgent

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST = HANDSHAKE[-1]
OURS = [entry.name for entry in TABLE if entry.name.startswith("test_")]


class HttpLine:
    """A handshake session over HTTP, request by request."""

    def __init__(self, served: Served) -> None:
        self._url = f"{served.url}/mcp"
        self._http = httpx2.Client(
            timeout=30,
            headers={
                "authorization": f"Bearer {served.key}",
                "accept": "application/json, text/event-stream",
                "content-type": "application/json",
            },
        )
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        self._count += 1
        body = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        response = self._http.post(self._url, content=json.dumps(body))
        assert response.status_code == 200, response.text
        self._http.headers.update(
            {name: response.headers[name] for name in ["mcp-session-id"] if name in response.headers}
        )
        data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        message: dict[str, Any] = json.loads(data[-1])
        result: dict[str, Any] = message["result"]
        return result

    def open(self, version: str) -> dict[str, Any]:
        """Shake hands for one version."""
        result = self.ask(
            "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"}
        )
        self._http.headers["mcp-protocol-version"] = str(result["protocolVersion"])
        body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self._http.post(self._url, content=body).status_code == 202
        return result


@pytest.mark.req("SV-04.a")
@pytest.mark.parametrize(
    ("requested", "agreed"), [*[(version, version) for version in HANDSHAKE], ("1999-01-01", NEWEST)]
)
def test_the_handshake_agrees_on_the_version_that_is_asked_for(served: Served, requested: str, agreed: str) -> None:
    (served.root / "version.txt").write_text("the same\n")
    calls = [("read_text_file", {"path": "version.txt"}), ("get_file_info", {"path": "version.txt"})]
    with HttpLine(served) as line:
        assert line.open(requested)["protocolVersion"] == agreed
        over_http = [line.ask("tools/call", name=name, arguments=arguments) for name, arguments in calls]
    with Pipe([served.root], served.state) as pipe:
        opening = {"protocolVersion": requested, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert pipe.ask("init", "initialize", opening)["result"]["protocolVersion"] == agreed
        pipe.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        by_relay = [pipe.call(number, name, **arguments) for number, (name, arguments) in enumerate(calls)]
    assert over_http[0]["content"] == [{"type": "text", "text": "the same\n"}]
    assert over_http == by_relay


@pytest.mark.req("SV-04.a")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_the_short_way_answers_as_the_long_way_does(conformance_build: Served, era: str) -> None:
    with HttpAgent(conformance_build, mode=era) as long, Agent(["/"], conformance_build.state, mode=era) as short:
        listed = [tool.name for tool in short.tools()]
        assert listed == [tool.name for tool in long.tools()]
        for name in OURS:
            assert short.call(name).result.model_dump() == long.call(name).result.model_dump(), name
