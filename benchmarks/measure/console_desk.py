"""A signed-in browser on a real server that has much of everything: entries, changed lines, moves and calls."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, expect

from holdfast.adapters.sqlite.calls import LocalCalls
from holdfast.auth.context import LOCAL_TENANT
from holdfast.clock import utc_clock
from holdfast.observe.model import CallRecord, CallStatus
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House, until
from tests.helpers.person import Person

LINES = 20_000
CLOSE, APART = "close.txt", "apart.txt"
"""Texts of 20,000 lines of which 6,666 are changed: every third one, which is one hunk, and in 666 hunks."""
PLAN_FOLDER = "Downloads"
CALL_TOOLS = ("read_text_file", "edit_file", "grep_content", "list_directory", "write_file")


@dataclass(frozen=True)
class Amounts:
    """How much there is of what is measured."""

    entries: int = 100_000
    moves: int = 10_000
    calls: int = 50_000


@dataclass(frozen=True)
class Console:
    """A signed-in page, its server, and what is in it."""

    page: Page
    house: House
    browser: Browser
    amounts: Amounts
    plan_id: str
    session: CDPSession

    def slow_down(self, rate: int) -> None:
        """Let the page's processor work so many times slower."""
        self.session.send("Emulation.setCPUThrottlingRate", {"rate": rate})

    def go(self, path: str) -> Page:
        """Load a page of the console anew."""
        self.page.goto(self.house.url + path)
        self.page.get_by_role("navigation", name="Pages").wait_for()
        return self.page

    def open_tree(self) -> None:
        """Show the tree of files with the large folder open and selected."""
        self.go("/files").get_by_role("tree").wait_for()
        self.page.get_by_role("tree").focus()
        folder = self.page.get_by_role("treeitem").filter(has_text="many")
        folder.click()
        self.page.get_by_role("tree").focus()
        if folder.get_attribute("aria-expanded") != "true":
            self.page.keyboard.press("ArrowRight")
        expect(self.page.get_by_role("treeitem").filter(has_text="f000000.txt")).to_be_visible()

    def open_review(self, name: str) -> None:
        """Show a proposal. The newer one, APART, stands before CLOSE."""
        reviews = Person(self.house.state).call("pending_reviews")["reviews"]
        review_id = next(review["review_id"] for review in reviews if Path(review["path"]).name == name)
        self.go(f"/reviews/{review_id}").get_by_role("region", name="The change").focus()
        self.page.locator("[data-index] code").first.wait_for()

    def open_plan(self) -> None:
        """Show the plan with its one folder of files open."""
        self.go(f"/organise/{self.plan_id}").get_by_role("treeitem").first.dblclick()
        self.page.get_by_text("clip 00000.mp4").wait_for()
        self.page.get_by_role("tree").focus()

    def open_calls(self) -> None:
        """Show the calls of all times."""
        self.go("/activity/calls?since=all").get_by_role("list", name="Calls").get_by_role("listitem").first.wait_for()


@contextmanager
def open_console(folder: Path, amounts: Amounts) -> Iterator[Console]:
    """Fill a server and sign a browser in; the page must end without any error."""
    home = folder / "home"
    _fill_with_clips(home / PLAN_FOLDER, amounts.moves)
    house = House(folder, HOME=str(home))
    _fill_with_files(house.root / "many", amounts.entries)
    try:
        with Agent([house.root], house.state, mode=MODERN, env={"HOME": str(home)}) as agent, open_browser() as browser:
            agent.call("list_allowed_directories").ok()
            _record_calls(house.state, amounts.calls)
            person = Person(house.state)
            plan_id = _scan(person, home / PLAN_FOLDER)
            _propose(agent, person, house.root, CLOSE, range(1, LINES, 3))
            _propose(agent, person, house.root, APART, [at for at in range(0, LINES, 2) if at % 30 < 20])
            tab = open_tab(new_context(browser), link_of(house))
            tab.page.get_by_role("navigation", name="Pages").wait_for()
            session = tab.page.context.new_cdp_session(tab.page)
            yield Console(tab.page, house, browser, amounts, plan_id, session)
            tab.check()
    finally:
        house.end()


def _fill_with_files(folder: Path, count: int) -> None:
    """Make a folder with so many empty files."""
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    for number in range(count):
        os.close(os.open(f"f{number:06}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def _fill_with_clips(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"clip {number:05}.mp4").write_text(str(number))


def _propose(agent: Agent, person: Person, root: Path, name: str, changed: Iterable[int]) -> None:
    """Write a text and let the agent propose to change these lines of it; returns when the proposal waits."""
    lines = [f"setting {at} = {at * 7}\n" for at in range(LINES)]
    (root / name).write_text("".join(lines))
    for at in changed:
        lines[at] = f"setting {at} = {at * 9 + 1}\n"
    agent.start("propose_and_review", {"path": name, "old_string": "OVERWRITE_FILE", "new_string": "".join(lines)})
    until("it waits", lambda: name in {Path(row["path"]).name for row in person.call("pending_reviews")["reviews"]}, 60)


def _scan(person: Person, folder: Path) -> str:
    """Make a plan of a folder and return its id."""
    scan = person.call("start_scan", directory=str(folder))
    until("the plan is made", lambda: person.call("running_scans")["scans"] == [], 300)
    return str(scan["plan_id"])


def _record_calls(state: Path, count: int) -> None:
    """Write calls into the log, as the server does, one a second before the last."""
    table, now = LocalCalls(str(state)), utc_clock()
    records = [
        CallRecord(
            id=f"seed{number:08x}",
            tool=CALL_TOOLS[number % len(CALL_TOOLS)],
            kind="agent",
            tenant=LOCAL_TENANT,
            identity="local user",
            client_name="claude-code",
            client_version="2.1",
            door="stdio",
            started_at=now - timedelta(seconds=count - number),
            duration_ms=number % 90 + 0.5,
            status=CallStatus.ERROR if number % 50 == 7 else CallStatus.OK,
            code="NOT_FOUND" if number % 50 == 7 else "",
            parameters={"path": f"src/module_{number}.py"},
        )
        for number in range(count)
    ]
    table.save(records)
    table.close()
