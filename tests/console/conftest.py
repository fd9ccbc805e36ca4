"""Fixtures of the console's tests: one browser, and a server of its own with an agent for each module."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.helpers.agent import MODERN, Agent, Reply
from tests.helpers.browser import Tab, new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer

EDITS = [
    {"old_string": "line 5\n", "new_string": "line five\n"},
    {"old_string": "line 25\n", "new_string": "line twenty-five\n"},
]
"""Two edits of the file that `Desk.propose` writes, each a hunk of its own."""


@dataclass
class Desk:
    """A person with a browser, and an agent that proposes."""

    house: House
    reviewer: Reviewer
    browser: Browser
    shots: Path

    def sign_in(self, path: str = "/") -> Tab:
        """Open a fresh profile of the browser by a new link, and go to a page of the console."""
        tab = open_tab(new_context(self.browser), link_of(self.house))
        tab.page.get_by_role("navigation", name="Pages").wait_for()
        if path != "/":
            tab.page.goto(self.house.url + path)
        return tab

    @contextmanager
    def working(self, path: str = "/") -> Iterator[Tab]:
        """Give a signed-in tab whose page must end without any error; what still waits then is rejected."""
        tab = self.sign_in(path)
        try:
            yield tab
            tab.check()
        finally:
            tab.page.context.close()
            for review in self.pending():
                if review["user_action"] != "APPROVE":
                    self.reviewer.decide(review, "reject")

    def propose(self, name: str, **arguments: Any) -> "tuple[Path, Future[Reply]]":
        """Write a file of thirty lines and let the agent propose two edits of it; its call waits."""
        path = self.reviewer.write(name)
        future = self.reviewer.start(path=name, **(arguments or {"edits": EDITS}))
        until("it is proposed", lambda: name in [Path(each["path"]).name for each in self.pending()])
        return path, future

    def pending(self) -> list[dict[str, Any]]:
        """Return the open reviews."""
        reviews: list[dict[str, Any]] = self.reviewer.person("pending_reviews")["reviews"]
        return reviews

    def commit(self, answer: dict[str, Any], name: str) -> Reply:
        """Let the agent write what was approved."""
        assert answer["user_action"] == "APPROVE"
        return self.reviewer.commit(answer["session_path"], name).ok()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Give the browser. It ends with these tests: its event loop would be in the way of every later test's own."""
    with open_browser() as running:
        yield running


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder for pictures of pages."""
    return tmp_path_factory.mktemp("shots")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, browser: Browser, shots: Path) -> Iterator[Desk]:
    """Give a server, an agent in its one folder, and the browser."""
    house = House(tmp_path_factory.mktemp("desk"))
    try:
        with Agent([house.root], house.state, mode=MODERN) as agent:
            agent.call("list_allowed_directories")
            yield Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
    finally:
        house.end()
