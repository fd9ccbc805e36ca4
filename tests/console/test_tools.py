"""The person tries a tool in the browser: by mouse and by keys, with wrong JSON, and copies its declarations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import Desk
from tests.helpers.browser import Tab, new_context, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-43.d", "SV-46")]

CLIPBOARD = ["clipboard-read", "clipboard-write"]
GEMINI_REFUSES = {"$ref", "$defs", "default", "title", "additionalProperties"}


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab that may use the clipboard, and whose page must end without any error."""
    opened = open_tab(new_context(desk.browser, permissions=CLIPBOARD), link_of(desk.house))
    opened.page.get_by_role("navigation", name="Pages").wait_for()
    yield opened
    opened.check()
    opened.page.context.close()


def copied(page: Page) -> str:
    """Return what is on the clipboard."""
    return str(page.evaluate("navigator.clipboard.readText()"))


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a schema and every one within it; the names of parameters are no keywords."""
    yield schema
    for member in schema.get("properties", {}).values():
        yield from schemas(member)
    for inner in [schema.get("items", {}), *schema.get("anyOf", [])]:
        if inner:
            yield from schemas(inner)


@pytest.mark.req("SV-43.a")
def test_a_tool_is_filled_in_and_run_by_mouse_and_its_change_is_undone(desk: Desk, tab: Tab) -> None:
    page, path = tab.page, desk.reviewer.write("tool.txt", "the plan\n")
    page.get_by_role("link", name="Tools").click()
    page.get_by_role("link", name="edit_files", exact=True).click()
    page.get_by_role("textbox", name="path").fill(str(path))
    page.get_by_role("textbox", name="old_string").fill("the plan")
    page.get_by_role("textbox", name="new_string").fill("the better plan")
    tab.check_everywhere(desk.shots, "tool-form")

    page.get_by_role("button", name="Run", exact=True).click()
    assert path.read_text() == "the plan\n", "nothing runs before it is confirmed"
    page.get_by_role("button", name="Run it").click()
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("applied")
    assert path.read_text() == "the better plan\n"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    assert path.read_text() == "the plan\n"

    change = desk.reviewer.agent.call("list_changes").data["changes"][1]
    page.get_by_text("Agent", exact=True).click()
    expect(result).to_contain_text(change["change_id"])
    expect(result.get_by_text("token")).not_to_have_count(0)
    page.get_by_text("Raw", exact=True).click()
    expect(result).to_contain_text('"duration_ms"')
    tab.check_everywhere(desk.shots, "tool-result")


def test_a_tool_is_found_and_run_by_keys_and_wrong_json_stops_it(desk: Desk, tab: Tab) -> None:
    page, path = tab.page, desk.reviewer.write("keys.txt", "found\n")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.get_by_role("heading", name="Workspace description").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("read_text")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="read_text_file").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    editor = page.get_by_role("textbox", name="Arguments as JSON")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f'{{\n  "path": "{path}"\n  "head": 1\n}}')
    expect(page.get_by_role("alert")).to_contain_text("Line 3, column 3")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Result")).to_have_count(0)
    tab.check_everywhere(desk.shots, "tool-wrong")

    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f'{{"path": "{path}", "head": "one"}}')
    expect(page.get_by_text("head: Expected a whole number.")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f'{{"path": "{path}", "head": 1}}')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Result")).to_contain_text("found")
    page.get_by_text("Form", exact=True).click()
    expect(page.get_by_role("textbox", name="head")).to_have_value("1")
    page.get_by_role("button", name="Copy as a command").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert copied(page).startswith(f"holdfast call read_text_file --dir {desk.house.root} --json ")


@pytest.mark.req("SV-43.b", "SV-43.c")
def test_the_declarations_that_are_copied_keep_the_rules_of_each_api(desk: Desk, tab: Tab) -> None:
    page = tab.page
    page.goto(f"{desk.house.url}/tools/edit_files")
    page.get_by_text("Declaration for a model's API").click()
    texts = {}
    for form in ("MCP", "OpenAI", "Gemini"):
        page.get_by_text(form, exact=True).click()
        page.get_by_role("button", name=f"Copy the {form} declaration").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        texts[form] = json.loads(copied(page))
        expect(page.get_by_role("button", name="Copied")).to_have_count(0)
    tab.check_everywhere(desk.shots, "tool-declaration")

    mcp, openai, gemini = texts["MCP"], texts["OpenAI"]["function"], texts["Gemini"]
    Draft202012Validator.check_schema(mcp["inputSchema"])
    Draft202012Validator(mcp["inputSchema"]).validate(
        {"files": [{"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]}]}
    )
    assert texts["OpenAI"]["type"] == "function"
    assert {mcp["name"], openai["name"], gemini["name"]} == {"edit_files"}
    Draft202012Validator.check_schema(openai["parameters"])
    assert openai["parameters"]["type"] == "object"
    assert all(not GEMINI_REFUSES & schema.keys() for schema in schemas(gemini["parameters"]))

    page.goto(f"{desk.house.url}/tools")
    page.get_by_role("button", name="Copy the workspace description").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert str(desk.house.root) in copied(page)
    tab.check_everywhere(desk.shots, "tools")


def test_a_tenant_sees_and_runs_the_tools_of_the_store_alone(browser: Browser, shots: Path, tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings("settings:\n  auth:\n    mode: open\n")
    try:
        with house.serve(str(house.root)):
            tab = open_tab(new_context(browser), house.url)
            page = tab.page
            page.get_by_text("Sign in with an API key").click()
            page.get_by_role("textbox", name="API key").fill("a-long-key-of-a-tenant")
            page.get_by_role("button", name="Sign in", exact=True).click()
            page.get_by_role("link", name="Tools").click()
            listed = page.get_by_role("navigation", name="List of tools")
            expect(listed.get_by_role("heading", name="store")).to_be_visible()
            assert {each.split()[0] for each in listed.get_by_role("heading").all_inner_texts()} == {"store", "core"}
            listed.get_by_role("link", name="file_write").click()
            page.get_by_role("textbox", name="project").fill("mine")
            page.get_by_role("textbox", name="path", exact=True).fill("/a.txt")
            page.get_by_role("textbox", name="content", exact=True).fill("of a tenant")
            page.keyboard.press("Control+Enter")
            page.get_by_role("button", name="Run it").press("Enter")
            expect(page.get_by_role("region", name="Result")).to_contain_text("11")
            tab.check_everywhere(shots, "tool-tenant")
            page.goto(f"{house.url}/tools/edit_files")
            expect(page.get_by_text("There is no such tool.")).to_be_visible()
            tab.check()
            page.context.close()
    finally:
        house.end()
