"""What is given for panels: to whom, where the token stands, and what every client without them keeps."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.table import TOOLS
from tests.helpers.console import sign_in
from tests.helpers.doors import House
from tests.helpers.panels import (
    LEGACY,
    MODERN,
    PANEL_TOOLS,
    PANELS,
    PLAN,
    REVIEW,
    ChatHost,
    call_over_http,
    model_view,
    settings,
    token_of,
)

MAX_PANEL_BYTES = 900_000
each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])
UNDECLARED: list[dict[str, Any]] = [
    {},
    {"extensions": {}},
    {"extensions": {"io.modelcontextprotocol/ui": {}}},
    {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
]
EDIT = {"old_string": "hello", "new_string": "good morning"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Give a house whose servers give panels."""
    house = House(tmp_path)
    house.settings(settings())
    return house


@pytest.mark.req("SV-45.a")
@each_era
def test_panels_are_two_pages_of_one_file_each_that_load_nothing(house: House, era: str) -> None:
    with house.relay() as relay:
        host = ChatHost(relay, era)
        listed = host.ask("resources/list")["result"]["resources"]
        assert [each["uri"] for each in listed] == [REVIEW, PLAN]
        for uri in (REVIEW, PLAN):
            (page,) = host.ask("resources/read", uri=uri)["result"]["contents"]
            assert page["mimeType"] == "text/html;profile=mcp-app"
            assert page["_meta"]["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
            assert len(page["text"].encode()) < MAX_PANEL_BYTES
            assert not re.search(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=", page["text"])
            for outside in ("@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "new Worker", "import("):
                assert outside not in page["text"], outside
            assert "MantineProvider" not in page["text"]
        assert "error" in host.ask("resources/read", uri="ui://holdfast/other.html")
    house.end()


@pytest.mark.req("SV-45.b")
@each_era
@pytest.mark.parametrize("capabilities", UNDECLARED)
def test_a_client_without_the_extension_sees_nothing_of_panels(
    house: House, era: str, capabilities: dict[str, Any]
) -> None:
    with house.relay() as relay:
        host = ChatHost(relay, era, capabilities)
        tools = host.tools()
        assert not PANEL_TOOLS & tools.keys()
        assert len(tools) <= 40
        assert all("_meta" not in tool for tool in tools.values())
        assert host.ask("resources/list")["result"]["resources"] == []
        assert "error" in host.ask("resources/read", uri=REVIEW)
        assert host.code("panel_review", token="x") == "NOT_FOUND"
        assert host.code("panel_decide", token="x", shown_hash="x", decision="approve") == "NOT_FOUND"
    house.end()


@pytest.mark.req("SV-45.b")
@each_era
def test_a_client_with_panels_is_listed_the_same_tools_and_those_of_panels_as_the_apps(house: House, era: str) -> None:
    agents = {tool.name for tool in TOOLS if tool.audience is CallerKind.AGENT}
    with house.relay() as relay:
        tools = ChatHost(relay, era).tools()
    house.end()
    assert tools.keys() - agents == PANEL_TOOLS
    assert len(tools.keys() & agents) <= 40
    for name in PANEL_TOOLS:
        assert tools[name]["_meta"] == {"ui": {"visibility": ["app"]}}
    shown = {
        name: tool["_meta"]["ui"]["resourceUri"] for name, tool in tools.items() if name in agents and "_meta" in tool
    }
    assert shown == {"propose_and_review": REVIEW, "create_organization_plan": PLAN, "get_plan": PLAN}


@pytest.mark.req("SV-45.c")
@each_era
def test_a_proposal_is_answered_at_once_with_a_token_that_no_model_sees(house: House, era: str) -> None:
    with house.relay() as relay:
        host = ChatHost(relay, era)
        began = time.monotonic()
        result = host.call("propose_and_review", path="a.txt", **EDIT)
        assert time.monotonic() - began < 20
        data, token = result["structuredContent"], token_of(result)
        assert data["user_action"] == "PENDING"
        assert "holdfast review" in model_view(result), "a host that shows no panel tells the command all the same"
        assert token not in model_view(result)
        view = host.ok("panel_review", token=token)
        assert token not in json.dumps(view)
        assert view["can_decide"] is True
        assert view["console_url"].endswith(f"/reviews/{view['review_id']}")

        decided = host.call("panel_decide", token=token, shown_hash=view["shown_hash"], decision="approve")
        assert decided["structuredContent"]["user_action"] == "APPROVE"
        assert token not in json.dumps(decided)
        assert (
            host.code("panel_decide", token=token, shown_hash=view["shown_hash"], decision="approve")
            == "PERMISSION_DENIED"
        )
        host.ok("commit_review", session_path=data["session_path"], original_path="a.txt")
    assert (house.root / "a.txt").read_text() == "good morning\n"
    for path in house.state.rglob("*"):
        assert path.is_dir() or path.is_socket() or token.encode() not in path.read_bytes(), path
    house.end()


@pytest.mark.req("SV-45.d")
def test_a_token_is_bound_to_the_version_that_was_shown_and_to_its_kind(house: House) -> None:
    with house.relay() as relay:
        host = ChatHost(relay, MODERN)
        first = host.call("propose_and_review", path="a.txt", **EDIT)
        view = host.ok("panel_review", token=token_of(first))
        back = {"decision": "revise", "reason": "another word"}
        host.ok("panel_decide", token=token_of(first), shown_hash=view["shown_hash"], **back)
        session = first["structuredContent"]["session_path"]
        second = host.call(
            "propose_and_review", path="a.txt", session_path=session, old_string="good morning", new_string="hi"
        )
        third = host.call(
            "propose_and_review", path="a.txt", session_path=session, old_string="good morning", new_string="hi"
        )
        stale = token_of(second)
        view = host.ok("panel_review", token=token_of(third))
        assert (view["round"], view["can_decide"]) == (2, True)
        again = {"decision": "revise", "reason": "no word at all"}
        host.ok("panel_decide", token=token_of(third), shown_hash=view["shown_hash"], **again)
        assert host.ok("panel_review", token=stale)["can_decide"] is False
        assert host.code("panel_decide", token=stale, shown_hash=view["shown_hash"], decision="approve") == "CONFLICT"
        assert host.code("panel_decide_plan", token=stale, plan_hash="x", decision="approve") == "PERMISSION_DENIED"
        assert host.code("panel_decide", token=stale, shown_hash="0" * 64, decision="approve") == "CONFLICT"
    house.end()


@pytest.mark.req("SV-45.d")
def test_without_a_token_a_panel_sees_what_the_agent_sees_and_decides_nothing(house: House) -> None:
    with house.relay() as relay:
        host = ChatHost(relay, MODERN)
        session = host.ok("propose_and_review", path="a.txt", **EDIT)["session_path"]
        view = host.ok("panel_review", session_path=session, path="a.txt")
        assert view["can_decide"] is False
        assert view["hunks"]
        assert host.code("panel_review", session_path=session, path="other.txt") == "NOT_FOUND"
        assert host.code("panel_review") == "INVALID_ARGUMENT"
        assert (
            host.code("panel_decide", token="", shown_hash=view["shown_hash"], decision="approve")
            == "PERMISSION_DENIED"
        )
        steps = [{"id": "a", "tool": "panel_review", "arguments": {"session_path": session, "path": "a.txt"}}]
        assert host.code("mcp_pipe", steps=steps) == "INVALID_ARGUMENT"
    house.end()


@pytest.mark.req("SV-45.b")
def test_the_channel_is_off_until_it_is_switched_on_and_over_http_until_that_is(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings(json.dumps({"settings": {"review": {"wait_seconds": 0}}}))
    with house.relay() as relay:
        host = ChatHost(relay, MODERN)
        assert not PANEL_TOOLS & host.tools().keys()
        assert "holdfast/panel" not in host.call("propose_and_review", path="a.txt", **EDIT).get("_meta", {})
        assert "error" in host.ask("resources/list")
    house.end()
    for channels, is_given in (({"panel": True}, False), ({"panel": True, "panel_over_http": True}, True)):
        house.settings(json.dumps({"settings": {"review": {"wait_seconds": 0, "channels": channels}}}))
        with house.serve(str(house.root)):
            answer = call_over_http(house, house.token, PANELS, "propose_and_review", path="a.txt", **EDIT)
            assert ("holdfast/panel" in answer["result"]["_meta"]) is is_given


@pytest.mark.req("SV-45.b")
def test_no_command_and_no_page_calls_what_is_for_panels(house: House) -> None:
    with house.serve(str(house.root)):
        for ran in (house.run("call", "panel_decide"), house.run("tools", "panel_decide")):
            assert ran.returncode != 0
            assert "There is no tool" in ran.stderr
        assert not [name for name in PANEL_TOOLS if name in house.run("tools", "--person").stdout]
        page = sign_in(house)
        for name in PANEL_TOOLS:
            assert page.post(name, {}).status_code == 404
        assert not PANEL_TOOLS & {tool["name"] for tool in page.get("tools").json()["tools"]}
