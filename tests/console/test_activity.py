"""A person looks at what agents did, in the browser: groups of changes and their undo, calls by filter, the server's health."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import Desk
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab
from tests.helpers.doors import House
from tests.helpers.reviewer import Reviewer

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-44", "SV-46")]

TEXT = "".join(f"line {number}\n" for number in range(1, 11))
CLIENT = "careful-agent"


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory, browser: Browser, shots: Path) -> Iterator[Desk]:
    """Give a desk whose agent changed three files, searched, and failed once."""
    house = House(tmp_path_factory.mktemp("activity"))
    try:
        with Agent([house.root], house.state, mode=MODERN, name=CLIENT, version="4.2") as agent:
            for name in ("one.txt", "two.txt", "three.txt"):
                (house.root / name).write_text(TEXT)
                agent.call("edit_file", path=name, edits=[{"oldText": "line 5\n", "newText": "line five\n"}]).ok()
            agent.call("read_text_file", path="one.txt").ok()
            assert agent.call("read_text_file", path="missing.txt").is_error
            yield Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
    finally:
        house.end()


@pytest.fixture
def tab(worked: Desk) -> Iterator[Tab]:
    """Give a signed-in tab on Activity whose page must end without any error."""
    opened = worked.sign_in("/activity")
    yield opened
    opened.check()
    opened.page.context.close()


def open_group(page: Page) -> None:
    page.get_by_role("button", name=re.compile(CLIENT)).first.click()
    page.get_by_role("heading", name=re.compile(rf"{CLIENT}: \d+ changes")).wait_for()


def five_in(worked: Desk) -> list[bool]:
    return ["line five\n" in (worked.house.root / name).read_text() for name in ("one.txt", "two.txt", "three.txt")]


def test_one_change_of_a_group_is_undone_by_mouse_and_done_again(worked: Desk, tab: Tab) -> None:
    page = tab.page
    open_group(page)
    expect(page.get_by_role("region", name="The group").get_by_text("one.txt").first).to_be_visible()

    page.get_by_role("checkbox", name=re.compile("two.txt")).check()
    page.get_by_role("button", name="Undo 1 chosen…").click()
    page.get_by_role("heading", name="What undoing would do").wait_for()
    assert five_in(worked) == [True, True, True], "a preview changes nothing"
    page.get_by_role("button", name="Undo 1 change").click()

    expect(page.get_by_text("1 change undone.")).to_be_visible()
    assert five_in(worked) == [True, False, True]
    page.get_by_role("alert").get_by_role("button", name="Undo").click()
    expect(page.get_by_text("1 change done again.")).to_be_visible()
    assert five_in(worked) == [True, True, True]


def test_a_whole_group_is_undone_by_keyboard_and_what_was_changed_since_stays(worked: Desk, tab: Tab) -> None:
    page = tab.page
    names = ["left.txt", "later.txt"]
    for name in names:
        worked.reviewer.write(name, TEXT)
        worked.reviewer.agent.call("write_file", path=name, content="all new\n").ok()
    (worked.house.root / "later.txt").write_text("by another program\n")
    page.goto(f"{worked.house.url}/activity/changes?path=l*.txt")
    page.get_by_role("button", name=re.compile(CLIENT)).first.wait_for()

    page.keyboard.press("j")
    page.get_by_role("heading", name=f"{CLIENT}: 2 changes").wait_for()
    page.keyboard.press("x")
    page.get_by_role("heading", name="What undoing would do").wait_for()
    expect(page.get_by_text("1 of 2 changes can be undone now")).to_be_visible()
    expect(page.get_by_text(re.compile("^stays: ")).first).to_be_visible()
    tab.check_everywhere(worked.shots, "undo-preview")
    page.keyboard.press("Enter")

    expect(page.get_by_text("1 change undone.")).to_be_visible()
    assert (worked.house.root / "left.txt").read_text() == TEXT
    assert (worked.house.root / "later.txt").read_text() == "by another program\n"


def test_calls_are_filtered_by_keyboard_and_by_mouse_and_new_ones_wait_behind_a_chip(worked: Desk, tab: Tab) -> None:
    page = tab.page
    page.get_by_role("navigation", name="Activity").get_by_role("link", name="Calls").click()
    rows = page.get_by_role("list", name="Calls").get_by_role("listitem")
    rows.first.wait_for()

    page.keyboard.press("/")
    page.keyboard.type("read_text_file")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("tool=read_text_file"))
    expect(rows).to_have_count(2)
    page.get_by_role("combobox", name="How it ended").select_option("error")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("NOT_FOUND")
    expect(rows.first).to_contain_text(CLIENT)

    rows.first.click()
    details = page.get_by_role("complementary", name="The call")
    expect(details).to_contain_text("missing.txt")
    expect(details).to_contain_text(f"{CLIENT} 4.2")
    page.keyboard.press("u")
    expect(details).to_have_count(0)

    assert worked.reviewer.agent.call("read_text_file", path="gone.txt").is_error
    chip = page.get_by_role("button", name="1 new")
    expect(chip).to_be_visible()
    expect(rows).to_have_count(1)
    chip.click()
    expect(rows).to_have_count(2)


def test_health_shows_figures_of_the_running_server(worked: Desk, tab: Tab) -> None:
    page = tab.page
    page.goto(worked.house.url + "/activity/health")
    calls = page.locator("dl > div").filter(has=page.get_by_text("Calls", exact=True))
    calls.wait_for()
    before = int(re.sub(r"\D", "", calls.locator("dd").first.inner_text()))
    worked.reviewer.agent.call("list_directory", path=".").ok()
    expect(calls.locator("dd").first).not_to_have_text(str(before))
    expect(page.get_by_role("figure").first).to_be_visible()
    tab.check_everywhere(worked.shots, "health")


def test_the_page_is_accessible_in_light_and_dark_wide_and_on_a_phone(worked: Desk, tab: Tab) -> None:
    page = tab.page
    open_group(page)
    tab.check_everywhere(worked.shots, "changes")
    page.goto(worked.house.url + "/activity/calls")
    page.get_by_role("list", name="Calls").wait_for()
    tab.check_everywhere(worked.shots, "calls")
