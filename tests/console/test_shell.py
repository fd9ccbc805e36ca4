"""What is always there: signing in, one stream for all tabs, a server that starts again, palette and keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Desk
from tests.helpers.browser import new_context, open_tab, wait_until
from tests.helpers.console import link_of
from tests.helpers.first_load import MAX_BYTES, load_first

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]


def test_a_link_opens_one_browser_once_and_leaves_no_token_in_the_address(desk: Desk) -> None:
    link = link_of(desk.house)
    first = open_tab(new_context(desk.browser), link)
    expect(first.page.get_by_text("Live", exact=True)).to_be_visible()
    assert "#" not in first.page.url
    first.check()

    second = open_tab(new_context(desk.browser), link)
    expect(second.page.get_by_role("alert")).to_contain_text("used before")
    expect(second.page.get_by_text("holdfast open", exact=True)).to_be_visible()
    second.check_everywhere(desk.shots, "signed-out")
    second.check()
    first.page.context.close()
    second.page.context.close()


def test_eight_tabs_share_one_stream_and_all_hear_of_a_new_review(desk: Desk) -> None:
    first = desk.sign_in()
    tabs = [first, *(open_tab(first.page.context, desk.house.url) for _ in range(7))]
    for tab in tabs:
        expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()

    desk.reviewer.write("shared.txt")
    desk.reviewer.start(path="shared.txt", old_string="line 5\n", new_string="five\n")
    for tab in tabs:
        expect(tab.page.get_by_role("link", name=re.compile("shared.txt")).first).to_be_visible()
        expect(tab.page).to_have_title("(1) Holdfast")

    first.page.close()
    desk.reviewer.decide(desk.reviewer.waiting(1)[0], "reject")
    for tab in tabs[1:]:
        expect(tab.page).to_have_title("Holdfast")
        tab.check()
    tabs[1].page.context.close()


def test_palette_and_map_of_keys_work_and_single_keys_can_be_switched_off(desk: Desk) -> None:
    tab = desk.sign_in("/closed")
    page = tab.page
    page.get_by_role("heading", name="Closed reviews").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Palette").get_by_role("combobox").fill("inb")
    tab.check_everywhere(desk.shots, "palette")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Waits for you", exact=True).wait_for()

    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Single keys", exact=True).wait_for()
    tab.check_everywhere(desk.shots, "keys")
    page.set_viewport_size({"width": 360, "height": 780})
    expect(page.get_by_role("button", name="Go to…", include_hidden=True)).to_have_count(1)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("switch", name="Single keys").uncheck(force=True)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("c")
    page.wait_for_timeout(300)
    expect(page.get_by_role("heading", name="Waits for you", exact=True)).to_be_visible()
    tab.check()
    page.context.close()


RECORD_NOTIFICATIONS = """
window.isAway = false;
window.told = [];
Object.defineProperty(document, "hidden", { get: () => window.isAway });
window.Notification = class {
  static permission = "granted";
  static async requestPermission() { return "granted"; }
  constructor(title, options) { window.told.push([title, options.body]); window.newest = this; }
  close() {}
};
"""
"""Chromium without a screen has nobody to show a notification to, and says that all are refused."""


@pytest.mark.req("SV-41.d")
def test_a_review_is_told_by_its_name_alone_once_that_is_wished_and_only_to_who_looks_elsewhere(desk: Desk) -> None:
    context = new_context(desk.browser)
    context.add_init_script(RECORD_NOTIFICATIONS)
    tab = open_tab(context, link_of(desk.house))
    page = tab.page
    desk.propose("first.txt")
    page.get_by_role("link", name=re.compile("first.txt")).first.click()
    expect(page.get_by_text("2/2 seen")).to_be_visible()
    expect(page.get_by_text("Tell you when something waits")).to_have_count(0)
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_text("Tell you when something waits").wait_for()
    page.get_by_role("button", name="Yes").click()

    desk.propose("while-here.txt")
    expect(page).to_have_title("(1) Holdfast")
    page.evaluate("window.isAway = true")
    desk.propose("while\u202eaway.txt")
    wait_until(page, "window.told.length > 0")
    assert page.evaluate("window.told") == [["Waits for you", '"while\\u202eaway.txt"']]
    page.evaluate("window.newest.onclick()")
    expect(page.get_by_role("heading", level=1)).to_have_text('"while\\u202eaway.txt"')
    tab.check()
    context.close()
    for review in desk.pending():
        if review["user_action"] != "APPROVE":
            desk.reviewer.decide(review, "reject")


def test_the_palette_finds_a_review_by_its_id_and_a_file_by_its_name(desk: Desk) -> None:
    with desk.working("/settings") as tab:
        page = tab.page
        desk.propose("by-id.txt")
        desk.reviewer.write("deep-in-the-folder.txt")
        expect(page).to_have_title("(1) Holdfast")
        (review,) = [each for each in desk.pending() if each["path"].endswith("by-id.txt")]
        page.keyboard.press("Control+k")
        page.keyboard.type(review["review_id"][:8])
        page.get_by_role("option").filter(has_text="by-id.txt").wait_for()
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1).get_by_text("by-id.txt").wait_for()
        page.keyboard.press("Control+k")
        page.keyboard.type("in-the-f")
        page.get_by_role("option").filter(has_text="deep-in-the-folder.txt").wait_for()
        tab.check_everywhere(desk.shots, "palette-files")
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=2).get_by_text("deep-in-the-folder.txt").wait_for()


def test_signing_out_ends_the_session_in_every_tab(desk: Desk) -> None:
    tab = desk.sign_in()
    other = open_tab(tab.page.context, desk.house.url)
    expect(other.page.get_by_text("Live", exact=True)).to_be_visible()

    tab.page.get_by_role("button", name="Sign out").click()

    expect(tab.page.get_by_text("Sign in on this machine")).to_be_visible()
    expect(other.page.get_by_text("Sign in on this machine")).to_be_visible()
    tab.page.context.close()


def test_a_first_load_is_small_and_compressed(desk: Desk) -> None:
    load = load_first(desk.browser, link_of(desk.house))
    assert load.files >= 4, "the page, its script and its style at least"
    assert load.wire_bytes <= MAX_BYTES
    assert load.wire_bytes < load.raw_bytes / 2
