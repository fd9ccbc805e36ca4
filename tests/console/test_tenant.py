"""A tenant of a shared server signs in with a key and sees what is its own: no directory, no call and no news of anybody else."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import Tab, new_context, open_tab, wait_until
from tests.helpers.console import page_of, sign_in
from tests.helpers.doors import House

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]

KEY = "a-long-key-of-this-tenant"
SECRET = "of-somebody-else"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server where every long key is a tenant; another one and the person have worked on it."""
    served = House(tmp_path_factory.mktemp("shared"))
    served.settings("settings:\n  auth:\n    mode: open\n")
    with served.serve(str(served.root)):
        other = page_of(served.url, {"api_key": f"a-long-key-{SECRET}"})
        other.data("file_write", project=f"project-{SECRET}", path=f"/{SECRET}.md", content=SECRET)
        sign_in(served).data("save_file", path=str(served.root / f"{SECRET}.txt"), text=SECRET)
        own = page_of(served.url, {"api_key": KEY})
        own.data("file_write", project="mine", path="/mine.md", content="of this tenant\n")
        yield served


@pytest.fixture
def tab(house: House, browser: Browser) -> Iterator[Tab]:
    """Give a tab that the tenant signed in to by its key; its page must end without any error."""
    opened = open_tab(new_context(browser), house.url)
    page = opened.page
    page.get_by_text("Sign in with an API key").click()
    page.get_by_role("textbox", name="API key").fill(KEY)
    page.keyboard.press("Enter")
    page.get_by_role("navigation", name="Pages").wait_for()
    yield opened
    opened.check()
    page.context.close()


def expect_nothing_of_others(house: House, page: Page) -> None:
    text = page.inner_text("body")
    assert SECRET not in text
    assert str(house.root) not in text


def test_every_page_of_a_tenant_is_its_own_and_accessible(house: House, tab: Tab, shots: Path) -> None:
    page = tab.page
    pages = page.get_by_role("navigation", name="Pages").get_by_role("link")
    assert [link.split()[0] for link in pages.all_inner_texts()] == ["Files", "Activity", "Tools", "Settings"]
    for name, mark in (("files", "mine"), ("activity", "file_write"), ("tools", "Workspace description")):
        page.goto(f"{house.url}/{name}")
        page.get_by_text(mark, exact=True).first.wait_for()
        expect_nothing_of_others(house, page)
        tab.check_everywhere(shots, f"tenant-{name}")
    for name, mark in (("connect", "YOUR_KEY"), ("sessions", "this one"), ("browser", "Theme")):
        page.goto(f"{house.url}/settings/{name}")
        page.get_by_text(mark).first.wait_for()
        expect_nothing_of_others(house, page)
        assert KEY not in page.content()
        tab.check_everywhere(shots, f"tenant-{name}")


@pytest.mark.parametrize("path", ["/organise", "/closed", "/reviews/00000000", "/group/x", "/organise/new"])
def test_a_page_of_the_person_is_no_page_for_a_tenant(house: House, tab: Tab, path: str) -> None:
    tab.page.goto(house.url + path)
    expect(tab.page.get_by_text("There is no such page.")).to_be_visible()


def test_the_first_page_of_a_tenant_is_one_of_its_own(house: House, tab: Tab) -> None:
    expect(tab.page.get_by_role("main").get_by_text("mine", exact=True)).to_be_visible()
    assert tab.page.url == f"{house.url}/files"


def test_a_tenant_sees_its_own_news_and_calls_and_nothing_of_others(house: House, tab: Tab) -> None:
    page = tab.page
    page.get_by_role("link", name="Activity").click()
    rows = page.get_by_role("list", name="Calls").get_by_role("listitem")
    rows.first.wait_for()
    before = rows.count()
    page_of(house.url, {"api_key": f"a-long-key-{SECRET}"}).data("project_list")
    page_of(house.url, {"api_key": KEY}).data("file_read", project="mine", path="/mine.md")
    chip = page.get_by_role("button", name="1 new")
    expect(chip).to_be_visible()
    chip.click()
    expect(rows).to_have_count(before + 1)
    rows.first.click()
    expect(page.get_by_role("complementary", name="The call")).to_contain_text("file_read")
    expect_nothing_of_others(house, page)


def test_who_signs_in_next_finds_nothing_of_who_was_here_before(house: House, tab: Tab) -> None:
    page, other_key = tab.page, "a-long-key-of-the-next-one"
    page_of(house.url, {"api_key": other_key}).data(
        "file_write", project="mine", path="/mine.md", content="not yours\n"
    )
    page.goto(f"{house.url}/files?project=mine&at=/mine.md")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("textbox", name="Your text").fill("a secret draft\n")
    expect(page.get_by_text("Your draft is kept in this browser.")).to_be_visible()
    wait_until(page, "Object.values(localStorage).join().includes('a secret draft')")
    own = page_of(house.url, {"api_key": KEY})
    for session in own.get("session").json()["sessions"]:
        if not session["is_this"]:
            httpx2.post(f"{house.url}/api/session/end", headers=own.headers, json={"id": session["id"]})
    page.get_by_text("Sign in with an API key").click()
    page.get_by_role("textbox", name="API key").fill(other_key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Content")).to_contain_text("not yours")
    expect(page.get_by_text("Go on with your draft")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("Sign in with an API key").click()
    page.get_by_role("textbox", name="API key").fill(KEY)
    page.keyboard.press("Enter")
    page.get_by_role("navigation", name="Pages").wait_for()
    page.goto(f"{house.url}/files?project=mine&at=/mine.md")
    page.get_by_role("button", name="Go on with your draft").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("Sign in on this machine").wait_for()
    assert "a secret draft" not in page.evaluate("Object.values(localStorage).join()")


def test_a_key_that_opens_nothing_says_so_and_is_not_kept(browser: Browser, tmp_path: Path, shots: Path) -> None:
    house = House(tmp_path)
    house.settings("settings:\n  auth:\n    mode: listed\n")
    with house.serve(str(house.root)):
        tab = open_tab(new_context(browser), house.url)
        page = tab.page
        page.get_by_text("Sign in with an API key").click()
        page.get_by_role("textbox", name="API key").fill("a-key-that-nobody-gave")
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("This key opens nothing here.")
        assert page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})").find("nobody-gave") < 0
        tab.check_everywhere(shots, "tenant-refused")
        tab.check()
        page.context.close()
