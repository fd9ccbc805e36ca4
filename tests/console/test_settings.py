"""The person's settings: a rule that is added binds an agent at once, a session that is ended is signed out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Desk
from tests.helpers.agent import Agent
from tests.helpers.browser import Tab

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab whose page must end without any error."""
    opened = desk.sign_in("/settings")
    yield opened
    opened.check()
    opened.page.context.close()


def settings_file(desk: Desk) -> Path:
    return desk.house.state / "settings.yml"


def save(page: Page) -> None:
    page.get_by_role("button", name="Save the rules").click()
    expect(page.get_by_role("button", name="Save the rules")).to_be_disabled()


@pytest.mark.req("RV-13.i")
def test_a_rule_is_added_previewed_and_turns_an_agents_write_into_a_review(desk: Desk, tab: Tab) -> None:
    page, path = tab.page, desk.reviewer.write("watched.txt", "as it was\n")
    settings_file(desk).write_text("# by hand\nsettings:\n  review: {wait_seconds: 0}\n")
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Policy").click()
    expect(page.get_by_text("No rules: agents may change everything")).to_be_visible()
    tab.check_everywhere(desk.shots, "policy-empty")
    with Agent([desk.house.root], desk.house.state, name="claude-code") as agent:
        agent.call("write_file", path="watched.txt", content="free\n").ok()

        page.get_by_role("button", name="Add a rule").click()
        page.get_by_role("textbox", name="Pattern").fill("watched.*")
        expect(page.get_by_role("listitem").get_by_text(re.compile("About 1 file of"))).to_be_visible()
        page.get_by_role("region", name="Rules").get_by_role("textbox", name="Client").fill("claude-*")
        tab.check_everywhere(desk.shots, "policy-rule")
        save(page)
        expect(page.get_by_text("1 rule in force.")).to_be_visible()
        assert settings_file(desk).read_text().startswith("# by hand\nsettings:\n  review: {wait_seconds: 0}\n")

        asked = agent.start("write_file", {"path": "watched.txt", "content": "asked\n"})
        (review,) = desk.reviewer.waiting(1)
        assert path.read_text() == "free\n"
        page.get_by_role("link", name="Inbox").click()
        page.get_by_role("link", name=re.compile("watched.txt")).first.click()
        page.get_by_role("heading", level=1).get_by_text("watched.txt").wait_for()
        desk.reviewer.decide(review, "reject")
        assert "REJECT" in asked.result(timeout=30).text

    page.goto(f"{desk.house.url}/settings/policy")
    page.get_by_role("textbox", name="Path").fill(str(path))
    page.get_by_role("textbox", name="Client").fill("claude-code")
    page.keyboard.press("Enter")
    expect(page.get_by_text("may read it: yes; may change it: after your approval")).to_be_visible()
    expect(page.get_by_text("rule 1 says review")).to_be_visible()
    tab.check_everywhere(desk.shots, "policy-tried")


@pytest.mark.req("RV-13.i")
def test_rules_are_ordered_and_removed_by_keys_and_a_newer_file_is_not_overwritten(desk: Desk, tab: Tab) -> None:
    page = tab.page
    settings_file(desk).write_text(
        "settings:\n  policy:\n    rules:\n      - {access: deny, glob: a}\n      # second\n      - {access: deny, glob: b}\n"
    )
    page.get_by_role("link", name="Policy").click()
    page.get_by_role("button", name="Move rule 2 up").press("Enter")
    page.get_by_role("button", name="Remove rule 2").press("Enter")
    page.get_by_role("button", name="Save the rules").press("Enter")
    expect(page.get_by_text("1 rule in force.")).to_be_visible()
    assert settings_file(desk).read_text().splitlines()[3:] == ["      # second", "      - {access: deny, glob: b}"]

    page.get_by_role("button", name="Remove rule 1").press("Enter")
    settings_file(desk).write_text("settings:\n  policy:\n    rules:\n      - {access: deny, glob: other}\n")
    page.get_by_role("button", name="Save the rules").press("Enter")
    expect(page.get_by_text("The settings file is not as it was")).to_be_visible()
    assert "glob: other" in settings_file(desk).read_text()
    page.get_by_role("button", name="Show the rules of the file").click()
    expect(page.get_by_text(re.compile("other in each allowed directory"))).to_be_visible()
    settings_file(desk).unlink()


def test_another_session_is_ended_and_signed_out_at_once(desk: Desk, tab: Tab) -> None:
    other = desk.sign_in("/activity")
    expect(other.page.get_by_text("Live", exact=True)).to_be_visible()
    page = tab.page
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_text("this one")).to_be_visible()
    tab.check_everywhere(desk.shots, "sessions")
    page.get_by_role("button", name="End the session").first.click()
    expect(other.page.get_by_text("Sign in on this machine")).to_be_visible()
    expect(page.get_by_text("1 session ended.")).to_be_visible()
    other.page.context.close()


def test_each_client_has_its_command_and_what_it_writes(desk: Desk, tab: Tab) -> None:
    page = tab.page
    page.get_by_role("link", name="Connect").click()
    expect(page.get_by_text(f"holdfast install claude-code {desk.house.root}")).to_be_visible()
    page.get_by_role("listitem").filter(has_text="Codex CLI").get_by_text("What it writes").click()
    printed = desk.house.run("install", "codex", str(desk.house.root), "--print").stdout
    expect(page.get_by_role("group", name="Configuration of Codex CLI")).to_have_text(printed)
    expect(page.get_by_role("group", name="Configuration for HTTP")).to_contain_text(f"{desk.house.url}/mcp")
    assert desk.house.token not in page.content()
    tab.check_everywhere(desk.shots, "connect")


def test_theme_colours_and_keys_are_kept_in_this_browser(desk: Desk, tab: Tab) -> None:
    page = tab.page
    page.get_by_role("radio", name="Blue and orange").check(force=True)
    page.get_by_role("switch", name="Single keys").uncheck(force=True)
    page.get_by_role("radio", name="Dark").check(force=True)
    page.reload()
    expect(page.get_by_role("radio", name="Blue and orange")).to_be_checked()
    root = page.locator("html")
    expect(root).to_have_attribute("data-diff-colours", "blue-orange")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    page.get_by_role("heading", name="Settings").wait_for(state="attached")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_timeout(300)
    assert page.url.endswith("/settings/browser")
    page.get_by_role("radio", name="As the system has it").check(force=True)
    page.get_by_role("switch", name="Single keys").check(force=True)
    tab.check_everywhere(desk.shots, "settings")
