"""Each decision on what an agent waits for is made twice: with keys alone, and with the mouse alone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Desk
from tests.helpers.browser import Tab

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("RV-02.e", "SV-41.c", "SV-46")]


class Keys:
    """A person who never touches the mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, name: str) -> None:
        """Walk down the inbox to a row and open it."""
        link = self.page.get_by_role("link", name=re.compile(re.escape(name))).first
        link.wait_for()
        for _ in range(30):
            self.page.keyboard.press("j")
            if link.evaluate("element => element === document.activeElement"):
                break
        self.page.keyboard.press("Enter")

    def leave_out_the_first_hunk(self) -> None:
        """Take the hunk at hand away."""
        self.page.keyboard.press("x")

    def approve(self, _label: str = "Approve") -> None:
        """Approve what is taken, by two keys."""
        self.page.keyboard.press("a")
        self.page.get_by_role("group", name="Confirm").wait_for()
        self.page.keyboard.press("Enter")

    def approve_text(self, first_line: str) -> None:
        """Write a line of one's own, look at what that changes, and approve it."""
        self.page.keyboard.press("e")
        expect(self.page.get_by_role("textbox", name="Your text")).to_be_focused()
        self.page.keyboard.press("Control+Home")
        self.page.keyboard.type(first_line)
        self.page.keyboard.press("Control+Enter")
        self.page.get_by_text("What your text changes in the proposal").wait_for()
        self.page.keyboard.press("Enter")

    def say(self, key: str, words: str) -> None:
        """Send back (`c`) or reject (`r`) with words."""
        self.page.keyboard.press(key)
        self.page.keyboard.type(words)
        self.page.keyboard.press("Enter")

    def show_what_is_new(self) -> None:
        """Look at the newer version of what is on screen."""
        self.page.get_by_role("button", name="Show what changed").wait_for()
        self.page.keyboard.press("w")
        self.page.get_by_text("What changed since you looked").wait_for()
        self.page.keyboard.press("Enter")


class Mouse:
    """A person who types words and nothing else."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def click(self, name: str) -> None:
        """Click a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def open(self, name: str) -> None:
        """Click a row of the inbox."""
        self.page.get_by_role("link", name=re.compile(re.escape(name))).first.click()

    def leave_out_the_first_hunk(self) -> None:
        """Take the first hunk away."""
        self.page.get_by_role("checkbox", name="Hunk 1").uncheck()

    def approve(self, label: str = "Approve") -> None:
        """Click the button that approves."""
        self.click(label)

    def approve_text(self, first_line: str) -> None:
        """Write a line of one's own, look at what that changes, and approve it."""
        self.click("Edit")
        editor = self.page.get_by_role("textbox", name="Your text")
        editor.get_by_text("line 1", exact=True).click()
        self.page.keyboard.press("Home")
        self.page.keyboard.type(first_line)
        self.click("Approve my text…")
        self.page.get_by_text("What your text changes in the proposal").wait_for()
        self.click("Approve my text")

    def say(self, key: str, words: str) -> None:
        """Send back (`c`) or reject (`r`) with words."""
        self.click("Send back…" if key == "c" else "Reject…")
        self.page.get_by_role("textbox").fill(words)
        self.click("Send back" if key == "c" else "Reject")

    def show_what_is_new(self) -> None:
        """Look at the newer version of what is on screen."""
        self.click("Show what changed")
        self.page.get_by_text("What changed since you looked").wait_for()
        self.click("Show the new version")


Hand = Keys | Mouse
HANDS = pytest.mark.parametrize("by", [Keys, Mouse])


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab on the inbox."""
    with desk.working() as opened:
        yield opened


def open_seen(hand: Hand, name: str) -> None:
    hand.open(name)
    hand.page.get_by_role("heading", level=1).get_by_text(name, exact=True).wait_for()
    expect(hand.page.get_by_text("2/2 seen")).to_be_visible()


@HANDS
def test_a_change_is_approved_and_written(desk: Desk, tab: Tab, by: type[Hand]) -> None:
    hand, name = by(tab.page), f"whole-{by.__name__}.txt"
    path, future = desk.propose(name)
    open_seen(hand, name)
    hand.approve()
    desk.commit(future.result(10).ok().data, name)
    expect(tab.page.get_by_text("Written.")).to_be_visible()
    assert "line five\n" in path.read_text()
    assert "line twenty-five\n" in path.read_text()


@HANDS
def test_a_change_is_approved_in_part(desk: Desk, tab: Tab, by: type[Hand]) -> None:
    hand, name = by(tab.page), f"part-{by.__name__}.txt"
    path, future = desk.propose(name)
    open_seen(hand, name)
    hand.leave_out_the_first_hunk()
    expect(tab.page.get_by_role("button", name="Approve 1 of 2")).to_be_visible()
    hand.approve("Approve 1 of 2")
    desk.commit(future.result(10).ok().data, name)
    assert "line 5\n" in path.read_text()
    assert "line twenty-five\n" in path.read_text()


@HANDS
def test_my_own_text_is_approved(desk: Desk, tab: Tab, by: type[Hand]) -> None:
    hand, name = by(tab.page), f"mine-{by.__name__}.txt"
    path, future = desk.propose(name)
    open_seen(hand, name)
    hand.approve_text("mine: ")
    desk.commit(future.result(10).ok().data, name)
    assert path.read_text().startswith("mine: line 1\n")
    assert "line five\n" in path.read_text()


@HANDS
@pytest.mark.parametrize(("key", "action"), [("c", "REVIEW"), ("r", "REJECT")])
def test_a_change_is_sent_back_or_rejected_with_words(
    desk: Desk, tab: Tab, by: type[Hand], key: str, action: str
) -> None:
    hand, name = by(tab.page), f"{action}-{by.__name__}.txt"
    path, future = desk.propose(name)
    before = path.read_text()
    open_seen(hand, name)
    hand.say(key, "keep the name")
    answer = future.result(10).ok().data
    assert (answer["user_action"], answer["reason"]) == (action, "keep the name")
    assert path.read_text() == before


@HANDS
def test_twelve_that_came_together_are_approved_together(desk: Desk, tab: Tab, by: type[Hand]) -> None:
    hand = by(tab.page)
    names = [f"many-{by.__name__}-{at}.txt" for at in range(12)]
    edits = [{"old_string": "line 5\n", "new_string": "line \u202efive\n"}]
    futures = [desk.propose(name, edits=edits, note="the same everywhere")[1] for name in names]
    hand.open("12 files")
    tab.page.get_by_role("heading", name="12 changes").wait_for()
    expect(tab.page.get_by_text("the same everywhere").first).to_be_visible()
    expect(tab.page.get_by_text("1 hidden character").first).to_be_visible()
    expect(tab.page.get_by_role("button", name="Approve 12…")).to_be_enabled()
    tab.check_everywhere(desk.shots, "group")
    hand.approve("Approve 12…")
    if by is Mouse:
        hand.approve("Approve 12")
    assert [future.result(20).ok().data["user_action"] for future in futures] == ["APPROVE"] * 12


@HANDS
def test_a_newer_version_is_looked_at_before_it_is_decided_on(desk: Desk, tab: Tab, by: type[Hand]) -> None:
    hand, name = by(tab.page), f"newer-{by.__name__}.txt"
    _, future = desk.propose(name)
    open_seen(hand, name)
    review = next(each for each in desk.pending() if each["path"].endswith(name))
    desk.reviewer.decide(review, "revise", reason="another word")
    session = future.result(10).ok().data["session_path"]
    nine = [{"old_string": "line 9\n", "new_string": "nine\n"}]
    again = desk.reviewer.start(path=name, session_path=session, edits=nine)
    expect(tab.page.get_by_text("The agent proposed again.")).to_be_visible()
    hand.show_what_is_new()
    change = tab.page.get_by_role("region", name="The change")
    expect(change.get_by_text("nine")).to_be_visible()
    tab.page.wait_for_timeout(800)
    hand.approve()
    assert again.result(10).ok().data["user_action"] == "APPROVE"


def test_deletions_that_came_together_count_as_seen_when_they_were_on_screen(desk: Desk, tab: Tab) -> None:
    page = tab.page
    (desk.house.state / "settings.yml").write_text(
        "settings:\n  policy:\n    rules:\n      - {access: review, glob: kept-*}\n"
    )
    names = ["kept-one.txt", "kept-two.txt"]
    paths = [desk.reviewer.write(name) for name in names]
    futures = [desk.reviewer.agent.start("delete_file", {"path": name}) for name in names]
    Keys(page).open("2 files")
    page.get_by_role("heading", name="2 changes").wait_for()
    page.get_by_text("kept-two.txt").first.wait_for()
    page.keyboard.press("n")
    page.keyboard.press("p")
    page.wait_for_timeout(500)
    page.keyboard.press("a")
    expect(page.get_by_text("Nothing is written yet: the agent writes what is approved.")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    assert ["REJECT" in future.result(20).text for future in futures] == [True, True]
    assert all(path.exists() for path in paths)
    (desk.house.state / "settings.yml").unlink()
