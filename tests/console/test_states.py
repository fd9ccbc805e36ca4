"""Every list says what would be there when it is empty, shows that it loads, and when it failed why, with a way to try again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.console.conftest import Desk
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab
from tests.helpers.doors import House
from tests.helpers.reviewer import Reviewer

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]

EMPTY = {
    "/": "Nothing waits for you.",
    "/closed": "No review was closed yet.",
    "/organise": "No folder was tidied yet.",
    "/activity/changes": "Nothing was changed yet.",
    "/activity/calls": "No call matches.",
    "/files": "Nothing is open.",
    "/settings/policy": "No rules: agents may change everything",
}
LISTS = [
    ("/", "pending_reviews"),
    ("/", "all_plans"),
    ("/", "all_changes"),
    ("/closed", "closed_reviews"),
    ("/files", "known_roots"),
    ("/organise", "all_plans"),
    ("/organise/new", "list_directories"),
    ("/activity/changes", "all_changes"),
    ("/activity/calls", "list_calls"),
    ("/activity/health", "server_figures"),
    ("/tools", "tools"),
    ("/settings/connect", "connect_clients"),
    ("/settings/sessions", "session"),
    ("/settings/policy", "policy_rules"),
]
BUSY = {"error": {"code": "RESOURCE_BUSY", "message": "All places are taken.", "retryable": True}}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, browser: Browser, shots: Path) -> Iterator[Desk]:
    """Give a server that nothing has happened on; its one agent only connected."""
    house = House(tmp_path_factory.mktemp("fresh"), HOME=str(tmp_path_factory.mktemp("home")))
    try:
        with Agent([house.root], house.state, mode=MODERN) as agent:
            yield Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
    finally:
        house.end()


@pytest.fixture
def tab(fresh: Desk) -> Iterator[Tab]:
    """Give a signed-in tab whose page must end without any error of its own."""
    opened = fresh.sign_in("/settings")
    yield opened
    opened.check()
    opened.page.context.close()


@pytest.mark.parametrize("path", EMPTY)
def test_an_empty_list_says_what_would_be_there(fresh: Desk, tab: Tab, path: str) -> None:
    tab.page.goto(fresh.house.url + path)
    expect(tab.page.get_by_text(EMPTY[path]).first).to_be_visible()
    if path not in ("/files", "/settings/policy"):
        tab.check_everywhere(fresh.shots, f"empty-{path.strip('/').replace('/', '-') or 'inbox'}")


def answer_busy(route: Route) -> None:
    route.fulfill(status=503, content_type="application/json", body=json.dumps(BUSY))


@pytest.mark.parametrize(("path", "entry"), LISTS)
def test_a_list_that_failed_says_why_and_comes_when_it_is_tried_again(
    fresh: Desk, tab: Tab, path: str, entry: str
) -> None:
    page = tab.page
    address = f"**/api/{entry}"
    page.route(address, answer_busy)
    page.goto(fresh.house.url + path)
    fault = page.get_by_role("alert").filter(has_text="RESOURCE_BUSY").first
    expect(fault).to_contain_text("All places are taken.", timeout=15_000)
    if entry in ("pending_reviews", "all_plans"):
        expect(page.get_by_text("Nothing waits for you.")).to_have_count(0)
    page.unroute(address)
    fault.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("alert").filter(has_text="RESOURCE_BUSY")).to_have_count(0)


@pytest.mark.parametrize(("path", "entry"), LISTS)
def test_a_list_that_takes_long_shows_that_it_loads(fresh: Desk, tab: Tab, path: str, entry: str) -> None:
    page = tab.page
    held: list[Route] = []
    is_released = False

    def hold(route: Route) -> None:
        if is_released:
            route.continue_()
        else:
            held.append(route)

    page.route(f"**/api/{entry}", hold)
    page.goto(fresh.house.url + path)
    for _ in range(100):
        if held:
            break
        page.wait_for_timeout(100)
    skeleton = page.locator("[role=status][aria-label]:not([aria-label='Signing in'])")
    expect(skeleton.first).to_be_visible()
    is_released = True
    for route in held:
        route.continue_()
    expect(skeleton).to_have_count(0)
