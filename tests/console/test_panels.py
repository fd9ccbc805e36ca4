"""Panels in a chat: a host with the official bridge shows them, a person decides in them, and the model learns no token."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, expect

from tests.helpers.agent import MODERN
from tests.helpers.browser import Tab, new_context, open_tab
from tests.helpers.doors import House
from tests.helpers.organising import HOUSE
from tests.helpers.panels import LEGACY, PANEL_TOOLS, PANELS, call_over_http, host_page
from tests.helpers.reviewer import TEXT
from tests.helpers.trees import plant

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("RV-02.f", "SV-45.e")]

EDITS = [
    {"old_string": "line 5\n", "new_string": "line five\n"},
    {"old_string": "line 25\n", "new_string": "line twenty-five\n"},
]
TENANT = "some-long-key-of-another-tenant"


@dataclass
class Chat:
    """A chat in the browser: the host's page, and the model that the test plays."""

    house: House
    tab: Tab
    names: list[str]

    def call(self, name: str, /, options: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """Let the model call a tool, and return what it sees of the answer."""
        script = "([name, args, options]) => window.callAsModel(name, args, options)"
        answer: dict[str, Any] = self.tab.page.evaluate(script, [name, arguments, options or {}])
        return answer

    def propose(self, name: str, **options: Any) -> dict[str, Any]:
        """Let the model propose two edits of a file of thirty lines."""
        (self.house.root / name).write_text(TEXT)
        path = str(self.house.root / name)
        answer = self.call("propose_and_review", options, path=path, edits=EDITS, note="the words were figures")
        data: dict[str, Any] = answer["structuredContent"]
        assert data["user_action"] == "PENDING"
        return data

    @property
    def panel(self) -> FrameLocator:
        """Return the panel that is shown."""
        return self.tab.page.frame_locator("iframe")

    @property
    def transcript(self) -> str:
        """Return all that the model has seen, as one text."""
        return json.dumps(self.tab.page.evaluate("window.transcript"))

    def approve(self, label: str) -> None:
        """Approve in the panel, also what was on screen too shortly to count as seen."""
        self.panel.get_by_role("button", name=label, exact=True).click()
        question = self.panel.get_by_role("button", name="Approve all the same")
        outcome = self.panel.get_by_text("Approved. Nothing is written yet")
        expect(question.or_(outcome)).to_be_visible()
        if question.count():
            question.click()
        expect(outcome).to_be_visible()

    def token(self) -> str:
        """Return the token of the last answer, which only the host has."""
        script = "window.results.at(-1)._meta['holdfast/panel'].token"
        return str(self.tab.page.evaluate(script))

    def heard(self) -> str:
        """Return what the panel told the model last, once it has."""
        self.tab.page.wait_for_function("['message', 'context'].includes(window.transcript.at(-1).type)")
        return str(self.tab.page.evaluate("window.transcript.at(-1).content[0].text"))

    def commit(self, data: dict[str, Any], name: str) -> None:
        """Let the model make the approved change."""
        path = str(self.house.root / name)
        answer = self.call("commit_review", session_path=data["session_path"], original_path=path)
        assert not answer.get("isError"), answer

    def over_http(self, tool: str, /, key: str = "", capabilities: Any = PANELS, **arguments: Any) -> str:
        """Call a tool past the host, and return the code of the refusal."""
        answer = call_over_http(self.house, key or self.house.token, capabilities, tool, **arguments)
        if "error" in answer:
            return str(answer["error"]["code"])
        assert answer["result"]["isError"], answer
        return str(answer["result"]["structuredContent"]["code"])


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, str]]:
    """Give a server that gives panels to clients over HTTP, and the address of the host's page."""
    house = House(tmp_path_factory.mktemp("hosted"))
    plant(house.root, {"messy": HOUSE})
    with host_page() as address:
        channels = {"panel": True, "panel_over_http": True}
        served = {"server": {"allowed_origins": [address]}, "auth": {"mode": "open"}, "review": {"channels": channels}}
        house.settings(json.dumps({"settings": served}))
        with house.serve(str(house.root)):
            yield house, address


@pytest.fixture
def chat(request: pytest.FixtureRequest, hosted: tuple[House, str], browser: Browser) -> Iterator[Chat]:
    """Give a chat whose page must end without any error."""
    house, address = hosted
    era = getattr(request, "param", MODERN)
    tab = open_tab(new_context(browser), address)
    tab.page.wait_for_function("window.isReady === true")
    script = "(options) => window.connect(options)"
    names = tab.page.evaluate(script, {"url": f"{house.url}/mcp", "token": house.token, "era": era})
    yield Chat(house, tab, names)
    tab.check()
    violations = [frame.evaluate("window.policyViolations") for frame in tab.page.frames[1:]]
    assert violations in ([], [[]]), "a panel wants nothing that its host does not give"
    tab.page.context.close()


@pytest.mark.parametrize("chat", [LEGACY, MODERN], indirect=True)
def test_a_change_is_approved_in_the_panel_and_the_model_learns_no_token(chat: Chat) -> None:
    assert set(chat.names) >= PANEL_TOOLS
    data = chat.propose("approve.txt")
    expect(chat.panel.get_by_role("heading", name="approve.txt")).to_be_visible()
    expect(chat.panel.get_by_text("the words were figures")).to_be_visible()
    expect(chat.panel.locator("code").filter(has_text="line twenty-five")).to_be_visible()
    token = chat.token()
    chat.approve("Approve")
    assert "commit_review" in chat.heard()
    assert (chat.house.root / "approve.txt").read_text() == TEXT, "an approval writes nothing"
    chat.commit(data, "approve.txt")
    assert "line five\n" in (chat.house.root / "approve.txt").read_text()
    assert len(token) >= 43
    assert token not in chat.transcript
    assert "panel_" not in chat.transcript, "no tool of a panel is listed to the model"


def test_parts_of_a_change_are_approved(chat: Chat) -> None:
    data = chat.propose("parts.txt")
    chat.panel.get_by_role("checkbox", name="Hunk 1").uncheck()
    chat.approve("Approve 1 of 2")
    assert "differs from your proposal" in chat.heard()
    chat.commit(data, "parts.txt")
    text = (chat.house.root / "parts.txt").read_text()
    assert "line 5\n" in text
    assert "line twenty-five\n" in text


def test_a_change_is_sent_back_with_words_and_the_next_version_rejected(chat: Chat) -> None:
    data = chat.propose("back.txt")
    chat.panel.get_by_role("button", name="Send back…").click()
    chat.panel.get_by_role("textbox", name="What should the agent change?").fill("keep the name")
    chat.tab.page.keyboard.press("Enter")
    expect(chat.panel.get_by_text("Sent back to the agent.")).to_be_visible()
    assert "keep the name" in chat.heard()

    path = str(chat.house.root / "back.txt")
    edit = {"old_string": "line five\n", "new_string": "the fifth line\n"}
    again = chat.call("propose_and_review", path=path, session_path=data["session_path"], edits=[edit])
    assert again["structuredContent"]["user_action"] == "PENDING"
    expect(chat.panel.get_by_text("round 2")).to_be_visible()
    chat.panel.get_by_role("button", name="Reject…").click()
    chat.tab.page.keyboard.type("not now")
    chat.panel.get_by_role("button", name="Reject", exact=True).click()
    expect(chat.panel.get_by_text("Rejected. Nothing is changed.")).to_be_visible()
    assert "not now" in chat.heard()
    assert (chat.house.root / "back.txt").read_text() == TEXT


def test_a_panel_without_a_token_only_shows_and_opens_the_console(chat: Chat) -> None:
    data = chat.propose("drop.txt", dropMeta=True)
    expect(chat.panel.get_by_text("This panel can only show the change")).to_be_visible()
    expect(chat.panel.locator("code").filter(has_text="line five")).to_be_visible()
    assert chat.panel.get_by_role("button", name="Approve").count() == 0
    chat.panel.get_by_role("button", name="Open in the console").click()
    chat.tab.page.wait_for_function("window.opened.length === 1")
    assert chat.tab.page.evaluate("window.opened[0]").startswith(f"{chat.house.url}/reviews/")
    again = chat.propose("drop.txt", without=["openLinks", "serverTools"])
    assert again["session_path"] == data["session_path"]
    expect(chat.panel.get_by_text("This host lets panels call no tools.")).to_be_visible()
    expect(chat.panel.get_by_text("holdfast review", exact=True)).to_be_visible()


def test_a_host_that_takes_no_messages_gets_the_decision_as_context(chat: Chat) -> None:
    chat.propose("context.txt", without=["message"])
    chat.panel.get_by_role("button", name="Reject…").click()
    chat.panel.get_by_role("button", name="Reject", exact=True).click()
    assert "REJECT" in chat.heard()
    assert json.loads(chat.transcript)[-1]["type"] == "context"


def test_a_token_decides_once_on_what_was_shown_for_its_tenant_and_in_a_client_with_panels(chat: Chat) -> None:
    chat.propose("attack.txt")
    expect(chat.panel.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    token = chat.token()
    answer = call_over_http(chat.house, chat.house.token, PANELS, "panel_review", token=token)
    view = answer["result"]["structuredContent"]
    decision = {"token": token, "shown_hash": view["shown_hash"], "decision": "approve"}
    assert view["can_decide"] is True
    assert token not in json.dumps(answer)

    assert chat.over_http("panel_decide", **{**decision, "token": "x" * 43}) == "PERMISSION_DENIED"
    assert chat.over_http("panel_decide", **{**decision, "shown_hash": "0" * 64}) == "CONFLICT"
    assert chat.over_http("panel_decide", key=TENANT, **decision) in ("NOT_FOUND", "-32602")
    assert chat.over_http("panel_decide", capabilities={}, **decision) in ("NOT_FOUND", "-32602")
    assert chat.over_http("panel_decide_plan", token=token, plan_hash="0", decision="approve") == "PERMISSION_DENIED"
    assert chat.over_http("panel_decide", **decision, hunks=["nothing"]) == "INVALID_ARGUMENT"

    (frame,) = chat.tab.page.frames[1:]
    forged = {"isError": True, "content": [{"type": "text", "text": "forged"}]}
    frame.evaluate(
        "(params) => postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params }, '*')", forged
    )
    chat.tab.page.wait_for_timeout(200)
    assert chat.panel.get_by_text("forged").count() == 0, "a panel hears its host and nobody else"
    chat.panel.get_by_role("button", name="Reject…").click()
    chat.panel.get_by_role("button", name="Reject", exact=True).click()
    expect(chat.panel.get_by_text("Rejected.")).to_be_visible()
    assert chat.over_http("panel_decide", **decision) == "PERMISSION_DENIED"
    assert (chat.house.root / "attack.txt").read_text() == TEXT


@pytest.mark.parametrize("chat", [LEGACY, MODERN], indirect=True)
def test_a_plan_is_looked_at_and_approved_in_the_panel_and_the_agent_carries_it_out(chat: Chat) -> None:
    answer = chat.call("create_organization_plan", folder_path=str(chat.house.root / "messy"))
    plan_id = answer["structuredContent"]["plan_id"]
    token = chat.token()
    expect(chat.panel.get_by_role("heading", name="messy")).to_be_visible()
    chat.panel.get_by_role("treeitem", name="Invoices").click()
    chat.tab.page.keyboard.press("ArrowRight")
    expect(chat.panel.get_by_text("scan_0012.txt")).to_be_visible()
    refused = chat.call("execute_plan", {"theme": "dark"}, plan_id=plan_id)
    assert refused["isError"]
    chat.panel.get_by_role("button", name=re.compile("^Approve .* moves…")).click()
    chat.panel.get_by_role("button", name=re.compile("^Approve .* moves$")).click()
    expect(chat.panel.get_by_text("Approved. Nothing has moved yet")).to_be_visible()
    assert "execute_plan" in chat.heard()
    assert not chat.call("execute_plan", plan_id=plan_id).get("isError")
    assert (chat.house.root / "messy" / "Invoices" / "scan_0012.txt").exists()
    assert token not in chat.transcript
    assert chat.over_http("panel_decide_plan", token=token, plan_hash="0", decision="close") == "PERMISSION_DENIED"
    assert not chat.call("undo_change", change_id=plan_id).get("isError")


def test_the_panels_are_accessible_in_light_and_dark_wide_and_narrow(chat: Chat, shots: Path) -> None:
    def look(name: str, theme: str) -> None:
        for width in (1280, 360):
            chat.tab.page.set_viewport_size({"width": width, "height": 900})
            chat.tab.page.wait_for_timeout(200)
            chat.tab.page.screenshot(path=shots / f"panel-{name}-{width}-{theme}.png")
            (frame,) = chat.tab.page.frames[1:]
            chat.tab.check_accessibility(frame)
            overflow = frame.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert overflow <= 0, f"{name} is {overflow} px too wide at {width}"

    for theme in ("light", "dark"):
        chat.propose("look.txt", theme=theme)
        expect(chat.panel.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        look("review", theme)
        chat.panel.get_by_role("button", name="Send back…").click()
        look("send-back", theme)
        chat.call("create_organization_plan", {"theme": theme}, folder_path=str(chat.house.root / "messy"))
        chat.panel.get_by_role("treeitem", name="Invoices").dblclick()
        expect(chat.panel.get_by_text("scan_0012.txt")).to_be_visible()
        look("plan", theme)
