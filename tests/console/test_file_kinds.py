"""A file of each kind is found, edited where it is text, renamed, deleted and restored: by keys alone, and by the mouse alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from tests.console.conftest import Desk
from tests.helpers.browser import Tab
from tests.helpers.documents import pdf, picture, word
from tests.helpers.doors import until

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-40.f", "SV-46")]


@dataclass(frozen=True)
class Kind:
    """A file of one kind: its name, how the page shows that name, what is in it, and what of that the page shows."""

    name: str
    display: str
    content: bytes
    text: str = ""
    is_editable: bool = False


KINDS = (
    Kind("text.md", "text.md", b"# Title\n\none\n", "Title", is_editable=True),
    Kind("image.png", "image.png", picture(4, 4)),
    Kind("word.docx", "word.docx", word(), "First paragraph."),
    Kind("paper.pdf", "paper.pdf", pdf(), "Hello from a PDF page"),
    Kind("binary.bin", "binary.bin", bytes(range(256)) * 8),
    Kind("odd \u202e<b>&.txt", '"odd \\u202e<b>&.txt"', b"odd \xc3\xa9\n", "odd", is_editable=True),
    Kind("blank  twice .txt", "blank  twice .txt", b"", is_editable=True),
)
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.split(".")[0].split(" ")[0])


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab on the page with the directory open; the page must end without any error."""
    opened = desk.sign_in("/files")
    root = row(opened.page, "project")
    expect(root).to_be_visible()
    expect(root).to_have_attribute("aria-expanded", "true")
    yield opened
    opened.check()
    opened.page.context.close()


def row(page: Page, display: str) -> Locator:
    return page.get_by_role("treeitem").filter(has=page.get_by_text(display, exact=True)).first


def plant(desk: Desk, page: Page, kind: Kind, folder: str) -> Path:
    """Put the file into a folder of its own and show that in the tree."""
    path = desk.reviewer.root / folder / kind.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(kind.content)
    page.reload()
    row(page, folder).wait_for()
    page.get_by_role("tree").focus()
    return path


def expect_shown(page: Page, kind: Kind) -> None:
    expect(page.get_by_role("heading", level=2)).to_have_text(kind.display)
    if kind.text:
        expect(page.get_by_role("textbox", name="Content")).to_contain_text(kind.text)
    elif kind.name.endswith("png"):
        expect(page.get_by_role("img", name="image.png")).to_be_visible()
    elif not kind.is_editable:
        expect(page.get_by_text("There is no text to show.")).to_be_visible()
    expect(page.get_by_role("button", name="Edit", exact=True).and_(page.locator(":enabled"))).to_have_count(
        int(kind.is_editable)
    )


@EACH_KIND
def test_by_keys_alone(desk: Desk, tab: Tab, kind: Kind) -> None:
    page, folder = tab.page, f"k{KINDS.index(kind)}"
    path = plant(desk, page, kind, folder)
    renamed = path.with_name("renamed" + path.suffix)

    page.keyboard.press("Home")
    for _ in range(20):
        if row(page, folder).get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    row(page, kind.display).wait_for()
    page.keyboard.press("/")
    page.keyboard.type(kind.name[:4].upper())
    page.keyboard.press("Enter")
    expect(row(page, kind.display)).to_be_visible()
    for _ in range(3):
        if row(page, kind.display).get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect_shown(page, kind)
    if kind.is_editable:
        page.keyboard.press("e")
        expect(page.get_by_role("textbox", name="Your text")).to_be_focused()
        page.keyboard.press("Control+End")
        page.keyboard.type("more\n")
        page.keyboard.press("Control+s")
        until("it is saved", lambda: path.read_bytes() == kind.content + b"more\n")
        expect(page.get_by_text("Saved")).to_be_visible()
        expect(page.get_by_role("textbox", name="Your text")).to_have_count(0)
        expect(page.get_by_role("button", name="Undo", exact=True).last).to_be_visible()
        page.keyboard.press("z")
        until("it is undone", lambda: path.read_bytes() == kind.content)

    page.keyboard.press("F2")
    expect(page.get_by_role("textbox", name="New path")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type(str(renamed))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=renamed.name)).to_be_visible()
    assert (path.exists(), renamed.read_bytes()) == (False, kind.content)
    page.keyboard.press("Delete")
    expect(page.get_by_role("button", name="Delete 1 file")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is here any more.")).to_be_visible()
    assert not renamed.exists()
    expect(page.get_by_role("button", name="Undo", exact=True).last).to_be_visible()
    page.keyboard.press("z")
    until("it is back", lambda: renamed.exists() and renamed.read_bytes() == kind.content)


@EACH_KIND
def test_by_the_mouse_alone(desk: Desk, tab: Tab, kind: Kind) -> None:
    page, folder = tab.page, f"m{KINDS.index(kind)}"
    path = plant(desk, page, kind, folder)
    renamed = path.with_name("renamed" + path.suffix)

    page.get_by_text("Search", exact=True).click()
    page.get_by_role("textbox", name="Search").fill(kind.name[:4])
    page.get_by_text("Name", exact=True).click()
    page.get_by_role("button").filter(has_text=f"/{folder}").filter(has_text=kind.display.strip('"')).first.click()
    expect_shown(page, kind)
    if kind.is_editable:
        page.get_by_role("button", name="Edit", exact=True).click()
        page.get_by_role("textbox", name="Your text").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("more\n")
        page.get_by_role("button", name="Save", exact=True).click()
        until("it is saved", lambda: path.read_bytes() == kind.content + b"more\n")
        page.get_by_role("button", name="Undo", exact=True).last.click()
        until("it is undone", lambda: path.read_bytes() == kind.content)

    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="New path").fill(str(renamed))
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_role("heading", name=renamed.name)).to_be_visible()
    assert (path.exists(), renamed.read_bytes()) == (False, kind.content)
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete 1 file").click()
    expect(page.get_by_text("Nothing is here any more.")).to_be_visible()
    assert not renamed.exists()
    page.get_by_role("list", name="Changes").locator("> li").first.get_by_role("button", name="Undo").click()
    until("it is back", lambda: renamed.exists() and renamed.read_bytes() == kind.content)


def test_what_is_made_while_a_folder_is_being_read_is_there_after_looking_again(desk: Desk, tab: Tab) -> None:
    page = tab.page
    held: list[tuple[Route, APIResponse]] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/api/browse_folder", hold_the_first)
    page.reload()
    row(page, "project").wait_for()
    for _ in range(100):
        if held:
            break
        page.wait_for_timeout(50)
    (desk.reviewer.root / "late.txt").write_text("late\n")
    page.get_by_role("tree").focus()
    page.keyboard.press("R")
    expect(row(page, "late.txt")).to_be_visible()
    ((first, answer),) = held
    first.fulfill(response=answer)
    page.wait_for_timeout(300)
    expect(row(page, "late.txt")).to_be_visible()
    page.unroute("**/api/browse_folder")
