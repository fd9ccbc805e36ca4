"""Fixtures of the console's tests: one browser, and a server of its own with an agent for each module."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab, new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House
from tests.helpers.reviewer import Reviewer


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
