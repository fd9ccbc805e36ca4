"""A person decides on what agents propose, in the browser: by keyboard and by mouse, whole or in part, or with words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import EDITS, Desk
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab
from tests.helpers.doors import House, free_port, until
from tests.helpers.reviewer import Reviewer

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-41", "SV-46")]


def open_review(page: Page, name: str) -> None:
    page.get_by_role("link", name=re.compile(re.escape(name))).first.click()
    page.get_by_role("heading", level=1).get_by_text(name, exact=True).wait_for()


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab whose page must end without any error; what still waits is rejected."""
    with desk.working() as opened:
        yield opened


def test_a_change_is_approved_by_keyboard_written_by_the_agent_and_undone(desk: Desk, tab: Tab) -> None:
    path, future = desk.propose("keys.txt")
    before = path.read_text()
    page = tab.page
    page.get_by_role("link", name=re.compile("keys.txt")).wait_for()

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="keys.txt").wait_for()
    expect(page.get_by_text("2/2 seen")).to_be_visible()
    page.keyboard.press("a")
    page.get_by_text("Press Enter to approve").wait_for()
    assert not future.done()
    page.keyboard.press("Enter")
    answer = future.result(10).ok().data
    expect(page.get_by_text("Approved. The agent writes it.")).to_be_visible()
    assert path.read_text() == before, "an approval writes nothing"
    tab.check_everywhere(desk.shots, "approved")

    desk.commit(answer, "keys.txt")
    expect(page.get_by_text("Written.")).to_be_visible()
    assert "line five\n" in path.read_text()
    page.keyboard.press("z")
    expect(page.get_by_text("Undone.").first).to_be_visible()
    assert path.read_text() == before


def test_one_hunk_of_two_is_approved_by_mouse(desk: Desk, tab: Tab) -> None:
    path, future = desk.propose("mouse.txt")
    page = tab.page
    open_review(page, "mouse.txt")

    expect(page.get_by_text("2/2 seen")).to_be_visible()
    page.get_by_role("checkbox", name="Hunk 1").uncheck()
    page.get_by_role("button", name="Approve 1 of 2").click()

    desk.commit(future.result(10).ok().data, "mouse.txt")
    assert "line 5\n" in path.read_text()
    assert "line twenty-five\n" in path.read_text()


def test_what_was_not_on_screen_is_said_before_it_is_approved(desk: Desk, tab: Tab) -> None:
    long_edits = [{"old_string": "line 5\n", "new_string": "".join(f"new {at}\n" for at in range(200))}, EDITS[1]]
    _, future = desk.propose("long.txt", edits=long_edits)
    page = tab.page
    open_review(page, "long.txt")

    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_text("2 hunks of what you approve were not on screen yet.").wait_for()
    page.keyboard.press("Escape")
    assert not future.done()
    page.keyboard.press("n")
    expect(page.get_by_text("1/2 seen").or_(page.get_by_text("2/2 seen"))).to_be_visible()


def test_a_change_that_is_sent_back_comes_again_with_what_was_said(desk: Desk, tab: Tab) -> None:
    _, future = desk.propose("back.txt")
    page = tab.page
    open_review(page, "back.txt")

    page.keyboard.press("c")
    page.keyboard.type("keep the name")
    page.keyboard.press("Enter")
    answer = future.result(10).ok().data
    assert (answer["user_action"], answer["reason"]) == ("REVIEW", "keep the name")

    session = answer["session_path"]
    more = [{"old_string": "line 9\n", "new_string": "line nine\n"}]
    desk.reviewer.start(path="back.txt", session_path=session, edits=more)
    until("it is proposed again", lambda: 2 in [each["round"] for each in desk.pending()])
    page.goto(desk.house.url)
    open_review(page, "back.txt")
    expect(page.get_by_text("keep the name")).to_be_visible()
    expect(page.get_by_text("round 2")).to_be_visible()


def test_my_own_text_is_kept_over_a_reload_compared_and_approved(desk: Desk, tab: Tab) -> None:
    path, future = desk.propose("mine.txt")
    page = tab.page
    open_review(page, "mine.txt")

    page.keyboard.press("e")
    editor = page.get_by_role("textbox", name="Your text")
    editor.wait_for()
    page.keyboard.press("Control+Home")
    page.keyboard.type("my own first line\n")
    page.reload()
    page.get_by_role("button", name="Go on with your draft").click()
    page.get_by_role("button", name="Approve my text…").click()
    expect(page.get_by_text("What your text changes in the proposal")).to_be_visible()
    expect(page.get_by_text("my own first line")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Approved. The agent writes it.")).to_be_visible()

    answer = future.result(10).ok().data
    assert "+my own first line" in answer["user_feedback_diff"]
    desk.commit(answer, "mine.txt")
    assert path.read_text().startswith("my own first line\nline 1\n")


def test_a_rejection_asks_for_enter_and_carries_the_reason(desk: Desk, tab: Tab) -> None:
    path, future = desk.propose("no.txt")
    before = path.read_text()
    page = tab.page
    open_review(page, "no.txt")

    page.keyboard.press("r")
    page.keyboard.type("not now")
    assert not future.done()
    page.keyboard.press("Enter")

    answer = future.result(10).ok().data
    assert (answer["user_action"], answer["reason"]) == ("REJECT", "not now")
    assert path.read_text() == before


def test_a_review_that_changed_is_not_decided_on_before_it_was_looked_at(desk: Desk, tab: Tab) -> None:
    _, future = desk.propose("moving.txt")
    page = tab.page
    open_review(page, "moving.txt")
    review = next(each for each in desk.pending() if each["path"].endswith("moving.txt"))

    desk.reviewer.decide(review, "revise", reason="another word")
    session = future.result(10).ok().data["session_path"]
    again = desk.reviewer.start(
        path="moving.txt", session_path=session, edits=[{"old_string": "line 9\n", "new_string": "nine\n"}]
    )
    expect(page.get_by_text("The agent proposed again.")).to_be_visible()
    page.get_by_role("button", name="Show what changed").click()
    expect(page.get_by_text("What changed since you looked")).to_be_visible()
    tab.check_everywhere(desk.shots, "news")
    page.get_by_role("button", name="Show the new version").click()
    page.get_by_role("button", name="Approve", exact=True).wait_for()
    expect(page.get_by_role("region", name="The change").get_by_text("nine")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Enter")

    assert again.result(10).ok().data["user_action"] == "APPROVE"


def test_what_is_not_seen_is_shown_in_names_and_texts(desk: Desk, tab: Tab) -> None:
    name = "invoice\u202egpj.exe.txt"
    _, _ = desk.propose(name, edits=[{"old_string": "line 5\n", "new_string": "line \u200b\u202efive\n"}])
    page = tab.page

    page.get_by_text('"invoice\\u202egpj.exe.txt"').first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text('"invoice\\u202egpj.exe.txt"')
    expect(page.get_by_text("2 hidden characters")).to_be_visible()
    expect(page.get_by_text("U+200B").first).to_be_visible()
    assert "\u202e" not in page.inner_text("body")


def test_twelve_changes_that_came_together_are_approved_together(desk: Desk, tab: Tab) -> None:
    futures = [desk.propose(f"many{at}.txt")[1] for at in range(12)]
    page = tab.page
    page.get_by_role("link", name=re.compile("12 files")).click()
    page.get_by_role("heading", name="12 changes").wait_for()
    expect(page.get_by_role("button", name="Approve 12…")).to_be_enabled()

    page.keyboard.press("a")
    page.get_by_role("button", name="Approve 12", exact=True).wait_for()
    page.keyboard.press("Enter")

    assert [future.result(10).ok().data["user_action"] for future in futures] == ["APPROVE"] * 12
    expect(page.get_by_text("approved, not yet written").first).to_be_visible()


def test_a_change_is_written_for_an_agent_that_left_or_withdrawn(desk: Desk, tab: Tab) -> None:
    path, future = desk.propose("left.txt")
    page = tab.page
    open_review(page, "left.txt")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    future.result(10)

    page.get_by_role("button", name="Write it now").click()
    expect(page.get_by_text("Written.")).to_be_visible()
    assert "line five\n" in path.read_text()
    page.get_by_role("link", name="Back to the inbox").click()
    page.get_by_role("link", name="Closed reviews").click()
    expect(page.get_by_role("listitem").filter(has_text="left.txt")).to_contain_text("written")


def test_a_server_that_starts_again_in_the_middle_loses_no_draft_and_no_review(
    browser: Browser, shots: Path, tmp_path: Path
) -> None:
    house = House(tmp_path)
    house.settings(f"settings: {{server: {{port: {free_port()}}}}}\n")
    try:
        with Agent([house.root], house.state, mode=MODERN) as agent:
            agent.call("list_allowed_directories").ok()
            desk = Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
            _, future = desk.propose("restart.txt")
            tab = desk.sign_in()
            page = tab.page
            open_review(page, "restart.txt")
            page.keyboard.press("e")
            page.get_by_role("textbox", name="Your text").wait_for()
            page.keyboard.press("Control+Home")
            page.keyboard.type("while it was away\n")

            house.run("stop")
            expect(page.get_by_text("Reconnecting", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name="Approve my text…")).to_be_disabled()
            house.run("open", "--print")
            expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=20_000)

            page.get_by_role("button", name="Approve my text…").click()
            expect(page.get_by_text("What your text changes in the proposal")).to_be_visible()
            page.keyboard.press("Enter")
            expect(page.get_by_text("Approved. The agent writes it.")).to_be_visible()
            answer = future.result(30).data
            assert answer["user_action"] == "PENDING", "the server went while the agent waited"
            desk.reviewer.commit(answer["session_path"], "restart.txt").ok()
            assert (house.root / "restart.txt").read_text().startswith("while it was away\nline 1\n")
            tab.check()
            page.context.close()
    finally:
        house.end()


def test_the_pages_are_accessible_in_light_and_dark_wide_and_on_a_phone(desk: Desk, tab: Tab) -> None:
    desk.propose("look.txt")
    page = tab.page
    page.get_by_role("link", name=re.compile("look.txt")).first.wait_for()
    tab.check_everywhere(desk.shots, "inbox")
    open_review(page, "look.txt")
    tab.check_everywhere(desk.shots, "review")
    page.keyboard.press("c")
    tab.check_everywhere(desk.shots, "send-back")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.get_by_role("textbox", name="Your text").wait_for()
    tab.check_everywhere(desk.shots, "edit")
    page.get_by_role("button", name="Back to the proposal").click()
    page.goto(desk.house.url + "/closed")
    page.get_by_role("heading", name="Closed reviews").wait_for()
    tab.check_everywhere(desk.shots, "closed")
