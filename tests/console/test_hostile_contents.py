"""Names, texts, reasons, programs and errors that an agent chose, on every page that shows them: markup stays text, nothing hides."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import Desk
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]

MARKUP = "<img src=x onerror=window.hurt=1><b>bold</b>"
NAME = f"{MARKUP[:33]}\u202egpj.\u200btxt"
SHOWN = '"<img src=x onerror=window.hurt=1>\\u202egpj.\\u200btxt"'
UNSEEN = set("\u202e\u200b\x1b\x07")
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert\\(1\\))>>>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/AA<</O<</S/URI/URI(http://evil.test/)>>>>>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n"
)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory, browser: Browser, shots: Path) -> Iterator[Desk]:
    """Give a desk whose directory, agent, files and words all carry markup and characters that are not seen."""
    house = House(tmp_path_factory.mktemp("hostile"))
    try:
        with Agent([house.root], house.state, mode=MODERN, name=MARKUP, version=MARKUP) as agent:
            (house.root / NAME).write_text(f"one\n{MARKUP}\n\x1b[31m\u202e\n")
            agent.call("edit_file", path=NAME, edits=[{"oldText": "one\n", "newText": f"{MARKUP}\u200b\n"}]).ok()
            assert agent.call("read_text_file", path=f"missing-{NAME}").is_error
            agent.call("file_write", project="notes", path="/a-<b>.md", content=MARKUP).ok()
            for name in ("drawing.svg", "page.html", "page.md"):
                (house.root / name).write_text("<svg onload='window.hurt=1'><script>window.hurt=1</script></svg>")
            (house.root / "paper.pdf").write_bytes(PDF)
            tidy = house.root / "tidy"
            tidy.mkdir()
            for at in range(3):
                (tidy / f"{MARKUP[:33]}\u202e{at}.mp4").write_text(f"{at}")
            agent.call("create_organization_plan", folder_path="tidy").ok()
            yield Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
    finally:
        house.end()


@pytest.fixture
def tab(worked: Desk) -> Iterator[Tab]:
    """Give a signed-in tab whose page must end inert and without any error."""
    opened = worked.sign_in()
    yield opened
    expect_inert(opened.page)
    opened.check()
    opened.page.context.close()


def expect_inert(page: Page) -> None:
    assert page.evaluate("window.hurt") is None
    assert page.locator("img[src='x'], main script, main svg script, iframe, embed, object").count() == 0
    shown = page.evaluate(
        "[...document.querySelectorAll('[title], [aria-label]')].map(e => e.title + e.ariaLabel).join('')"
    )
    assert not UNSEEN & set(page.inner_text("body")), "every character is seen"
    assert not UNSEEN & set(shown), "in hints and labels, too"


def test_in_the_inbox_in_a_review_and_among_closed_ones(worked: Desk, tab: Tab) -> None:
    page = tab.page
    edits = [{"old_string": f"{MARKUP}\n", "new_string": f"{MARKUP}\u202e\x07\n", "expected_replacements": 1}]
    future = worked.reviewer.start(path=NAME, edits=edits, note=f"{MARKUP} \u202ereason")
    review = until("it waits", lambda: worked.reviewer.waiting(1))[0]
    link = page.get_by_role("link").filter(has_text=SHOWN).first
    link.wait_for()
    expect(page.get_by_text(MARKUP).first).to_be_visible()
    expect_inert(page)
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(SHOWN)
    expect(page.get_by_role("blockquote")).to_contain_text("says:")
    expect(page.get_by_text("2 hidden characters")).to_be_visible()
    expect_inert(page)
    page.keyboard.press("e")
    page.get_by_role("textbox", name="Your text").wait_for()
    expect_inert(page)
    page.keyboard.press("Escape")
    worked.reviewer.decide(review, "reject", reason=f"{MARKUP}\u202e")
    future.result(10)
    page.goto(f"{worked.house.url}/closed")
    page.get_by_role("listitem").filter(has_text=SHOWN).first.wait_for()
    expect(page.get_by_text("U+202E").first).to_be_visible()


def test_in_changes_calls_and_errors(worked: Desk, tab: Tab) -> None:
    page = tab.page
    page.goto(f"{worked.house.url}/activity/changes")
    page.get_by_role("button", name=re.compile("img src=x")).first.click()
    page.get_by_role("region", name="The group").get_by_text(SHOWN).first.wait_for()
    expect_inert(page)
    page.keyboard.press("x")
    page.get_by_role("heading", name="What undoing would do").wait_for()
    expect_inert(page)
    page.goto(f"{worked.house.url}/activity/calls?status=error")
    page.get_by_role("list", name="Calls").get_by_role("listitem").first.click()
    expect(page.get_by_role("complementary", name="The call")).to_contain_text("missing-")
    expect_inert(page)


@pytest.mark.parametrize("view", ["text", "history", "info"])
def test_in_each_view_of_a_file(worked: Desk, tab: Tab, view: str) -> None:
    page = tab.page
    page.goto(f"{worked.house.url}/files")
    page.get_by_role("treeitem").filter(has_text=SHOWN).first.click()
    page.get_by_role("heading", level=2).get_by_text(SHOWN).wait_for()
    page.get_by_role("navigation", name="Views of the file").get_by_role("button").nth(
        ["text", "history", "info"].index(view)
    ).click()
    page.wait_for_timeout(300)
    if view == "history":
        page.get_by_role("button", name="Diff").first.click()
        page.get_by_role("group", name=re.compile("Diff of")).first.wait_for()


@pytest.mark.parametrize("name", ["drawing.svg", "page.html", "page.md", "paper.pdf"])
def test_active_contents_are_shown_as_source_or_text(worked: Desk, tab: Tab, name: str) -> None:
    page = tab.page
    page.goto(f"{worked.house.url}/files")
    page.get_by_role("treeitem").filter(has_text=name).first.click()
    page.get_by_role("heading", level=2).get_by_text(name).wait_for()
    if name.endswith("pdf"):
        page.wait_for_timeout(500)
    else:
        expect(page.get_by_role("textbox", name="Content")).to_contain_text("window.hurt=1")
    assert page.locator("main svg[onload]").count() == 0


def test_in_the_palette_in_search_and_in_toasts(worked: Desk, tab: Tab) -> None:
    page = tab.page
    page.keyboard.press("Control+k")
    page.keyboard.type("src=x onerror")
    option = page.get_by_role("option").filter(has_text=SHOWN)
    option.wait_for()
    expect_inert(page)
    option.click()
    page.get_by_role("heading", level=2).get_by_text(SHOWN).wait_for()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("x")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("alert").filter(has_text=SHOWN)).to_be_visible()
    expect_inert(page)
    page.get_by_role("alert").get_by_role("button", name="Undo").click()
    page.get_by_text("Search", exact=True).click()
    page.get_by_role("textbox", name="Search").fill("bold")
    page.get_by_text("Text", exact=True).click()
    page.get_by_role("button").filter(has_text=SHOWN).first.wait_for()


def test_in_a_plan(worked: Desk, tab: Tab) -> None:
    page = tab.page
    page.goto(f"{worked.house.url}/organise")
    page.get_by_role("link").filter(has_text="tidy").first.click()
    page.get_by_role("tree", name="Files by target").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("img")
    row = page.get_by_role("treeitem").filter(has_text="onerror").first
    row.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.get_by_role("dialog").wait_for()
    expect_inert(page)
    page.keyboard.press("Escape")


@pytest.mark.parametrize("shown_as", ["Person", "Agent", "Raw"])
def test_in_the_answer_of_a_tool(worked: Desk, tab: Tab, shown_as: str) -> None:
    page = tab.page
    page.goto(f"{worked.house.url}/tools/list_directory")
    page.get_by_role("textbox", name="path").fill(str(worked.house.root))
    page.keyboard.press("Control+Enter")
    result = page.get_by_role("region", name="Result")
    result.wait_for()
    result.get_by_text(shown_as, exact=True).click()
    expect(result).to_contain_text("onerror=window.hurt=1")
    expect_inert(page)
    page.goto(f"{worked.house.url}/tools/read_text_file")
    page.get_by_role("textbox", name="path").fill(f"gone-{NAME}")
    page.keyboard.press("Control+Enter")
    page.get_by_text("NOT_FOUND").first.wait_for()
    result.get_by_text(shown_as, exact=True).click()
