"""A person tidies folders in the browser: chooses, watches, corrects, approves, watches again, and takes it back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console.conftest import Desk
from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import Tab
from tests.helpers.doors import House, until
from tests.helpers.organising import HOUSE, INVOICE, RECIPE
from tests.helpers.reviewer import Reviewer
from tests.helpers.trees import Tree, harvest, plant

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-42.c", "SV-46")]

MORE: Tree = {
    **{f"bill {number}.txt": INVOICE.format(number + 10) for number in range(6)},
    **{f"pie {number}.txt": RECIPE.format(number + 10) for number in range(4)},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a home folder that no agent was given."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, home: Path, browser: Browser, shots: Path) -> Iterator[Desk]:
    """Give a server with that home folder, an agent that works elsewhere, and the browser."""
    house = House(tmp_path_factory.mktemp("desk"), HOME=str(home))
    try:
        with Agent([house.root], house.state, mode=MODERN, env={"HOME": str(home)}) as agent:
            agent.call("list_allowed_directories")
            yield Desk(house, Reviewer(agent, house.root, house.state), browser, shots)
    finally:
        house.end()


@contextmanager
def working(desk: Desk, path: str) -> Iterator[Tab]:
    """Give a signed-in tab whose page must end without any error."""
    tab = desk.sign_in(path)
    yield tab
    tab.check()
    tab.page.context.close()


def scanned(desk: Desk, folder: Path, tree: Tree) -> dict[str, Any]:
    """Plant a messy folder, have it scanned as the person does, and return its plan."""
    folder.mkdir(exist_ok=True)
    plant(folder, tree)
    scan = desk.reviewer.person("start_scan", directory=str(folder))

    def is_made() -> bool:
        scans = desk.reviewer.person("running_scans")["scans"]
        return scan["plan_id"] not in [other["plan_id"] for other in scans]

    until("the plan is made", is_made, 60)
    return desk.reviewer.person("plan_rows", plan_id=scan["plan_id"], view="all")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem").filter(has_text=name)


def tab_of(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Which files").get_by_role("button", name=re.compile(f"^{name}"))


def open_folder(page: Page, name: str) -> None:
    folder = row(page, f"{name}/")
    folder.dblclick()
    expect(folder).to_have_attribute("aria-expanded", "true")


def test_a_folder_is_chosen_scanned_corrected_carried_out_and_undone_by_mouse(desk: Desk, home: Path) -> None:
    folder = home / "Downloads"
    folder.mkdir()
    plant(folder, {**HOUSE, **MORE})
    original = harvest(folder)
    with working(desk, "/organise") as tab:
        page = tab.page
        page.get_by_text("No folder was tidied yet.").wait_for()
        tab.check_everywhere(desk.shots, "organise-empty")
        page.get_by_role("link", name="Choose a folder…").click()
        expect(page.get_by_label("I mean my whole home folder")).to_be_visible()
        expect(page.get_by_role("button", name="Scan this folder")).to_be_disabled()
        page.get_by_role("button", name="Downloads").click()
        expect(page.get_by_label("Folder to tidy")).to_have_value(str(folder))
        tab.check_everywhere(desk.shots, "organise-choose")
        page.get_by_role("button", name="Scan this folder").click()

        page.get_by_role("tree", name="Files by target").wait_for()
        expect(row(page, "Recipes/")).to_contain_text("5 files")
        open_folder(page, "Recipes")
        row(page, "pasta.txt").locator("[draggable]").drag_to(row(page, "Invoices/"))
        expect(page.get_by_text("1 file corrected.")).to_be_visible()
        expect(row(page, "Invoices/")).to_contain_text("8 files")
        tab.check_everywhere(desk.shots, "organise-plan")

        page.get_by_role("checkbox", name="Choose pie 0.txt").check()
        page.get_by_role("checkbox", name="Choose pie 1.txt").check()
        row(page, "pie 1.txt").locator("[draggable]").click(button="right")
        page.get_by_role("menuitem", name="Video").wait_for()
        page.screenshot(path=desk.shots / "organise-menu.png")
        page.get_by_role("menuitem", name=re.compile("Leave it")).click()
        expect(page.get_by_text("2 files corrected.")).to_be_visible()
        expect(tab_of(page, "Left alone")).to_contain_text("2")
        tab_of(page, "Needs a look").click()
        row(page, "qwx").locator("[draggable]").drag_to(page.locator('[data-shelf="Video"]'))
        expect(page.get_by_text("1 file corrected.")).to_be_visible()
        assert harvest(folder) == original, "a correction moves nothing"

        tab_of(page, "Moves").click()
        page.get_by_role("button", name=re.compile("^Approve and carry out")).click()
        undo = page.get_by_role("button", name=re.compile("^Undo all"))
        expect(undo).to_be_visible()
        assert (folder / "Invoices" / "pasta.txt").exists()
        assert (folder / "Video" / "qwx").exists()
        assert (folder / "pie 1.txt").exists()
        open_folder(page, "Invoices")
        row(page, "pasta.txt").hover()
        page.get_by_role("button", name="What to do with pasta.txt").click()
        page.get_by_role("menuitem", name="Move it back").click()
        expect(page.get_by_text("1 file came back.")).to_be_visible()
        assert (folder / "pasta.txt").exists()
        tab.check_everywhere(desk.shots, "organise-done")
        undo.click()
        expect(page.get_by_text(re.compile("^undone: ")).first).to_be_visible()
    assert harvest(folder) == original


def test_the_plan_of_an_agent_is_corrected_approved_and_undone_by_keyboard(desk: Desk) -> None:
    folder = desk.house.root / "Inbox"
    folder.mkdir()
    plant(folder, {**HOUSE, **MORE})
    original = harvest(folder)
    plan = desk.reviewer.agent.call("create_organization_plan", folder_path="Inbox").ok().data
    with working(desk, "/") as tab:
        page = tab.page
        page.keyboard.press("g")
        page.keyboard.press("o")
        page.get_by_role("heading", name="Waits for you").wait_for()
        tab.check_everywhere(desk.shots, "organise-list")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.get_by_role("tree", name="Files by target").wait_for()
        assert plan["plan_id"] in page.url
        expect(page.get_by_text("by an agent")).to_be_visible()

        page.keyboard.press("/")
        page.keyboard.type("pasta")
        expect(row(page, "pasta.txt")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("e")
        explained = page.get_by_role("dialog")
        expect(explained).to_contain_text("Most like")
        tab.check_everywhere(desk.shots, "organise-explain")
        page.keyboard.press("Escape")
        page.keyboard.press("m")
        page.get_by_role("combobox", name="Folder").wait_for()
        page.keyboard.type("Dinner")
        tab.check_everywhere(desk.shots, "organise-move")
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 file corrected.")).to_be_visible()
        expect(row(page, "pasta.txt")).to_contain_text("→ Dinner")
        expect(row(page, "pasta.txt")).to_contain_text("changed")

        leave = [{"path": "movie.mp4"}]
        desk.reviewer.agent.call("revise_plan", plan_id=plan["plan_id"], changes=leave).ok()
        expect(tab_of(page, "Left alone")).to_contain_text("1")

        page.keyboard.press("a")
        expect(page.get_by_role("button", name=re.compile("Approve and carry out"))).to_be_focused()
        assert harvest(folder) == original, "a single key decides nothing"
        page.keyboard.press("Enter")
        undo = page.get_by_role("button", name=re.compile("^Undo all"))
        expect(undo).to_be_visible()
        assert (folder / "Dinner" / "pasta.txt").exists()

        page.keyboard.press("x")
        expect(page.get_by_text("1 file chosen")).to_be_visible()
        page.get_by_role("button", name="Undo 1 chosen").focus()
        page.keyboard.press("Enter")
        expect(row(page, "pasta.txt")).to_contain_text("came back")
        assert (folder / "pasta.txt").exists()
        undo.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text(re.compile("^undone: ")).first).to_be_visible()
    assert harvest(folder) == original


def test_a_large_plan_is_stopped_gone_on_with_and_says_why_a_file_stayed(desk: Desk, home: Path) -> None:
    folder = home / "Large"
    scanned(desk, folder, HOUSE)
    plan = scanned(desk, folder, {f"clip {number:04}.mp4": f"{number}" for number in range(5_000)})
    moves = plan["counts"]["moves"]
    with working(desk, f"/organise/{plan['plan_id']}") as tab:
        page = tab.page
        page.get_by_role("tree", name="Files by target").wait_for()
        open_folder(page, "Video")
        page.get_by_role("tree", name="Files by target").focus()
        page.keyboard.press("End")
        page.keyboard.press("Home")
        assert page.evaluate("document.querySelectorAll('*').length") < 2_000
        page.get_by_role("button", name="After", exact=True).click()
        tab.check_everywhere(desk.shots, "organise-after")
        page.get_by_role("button", name="Targets", exact=True).click()
        page.get_by_role("button", name=re.compile("scanned")).click()
        page.get_by_text("Stay where they are").wait_for()
        tab.check_everywhere(desk.shots, "organise-measures")

        (folder / "clip 4999.mp4").unlink()
        page.reload()
        expect(page.get_by_text("The folder changed since the scan: 1 file is gone")).to_be_visible()
        page.get_by_role("button", name=re.compile("^Approve and carry out")).click()
        page.get_by_role("button", name="Stop").click()
        go_on = page.get_by_role("button", name=re.compile("^Go on with"))
        expect(go_on).to_be_visible()
        expect(page.get_by_text(re.compile("^Interrupted:"))).to_be_visible()
        tab.check_everywhere(desk.shots, "organise-interrupted")
        assert (folder / "clip 4998.mp4").exists()
        go_on.click()
        expect(page.get_by_text(f"{moves - 1:,} moved, 1 stayed").first).to_be_visible(timeout=30_000)
        page.get_by_role("button", name="why", exact=True).click()
        expect(row(page, "clip 4999.mp4")).to_contain_text("stayed")
        tab.check_everywhere(desk.shots, "organise-stayed")
    assert not (folder / "clip 4998.mp4").exists()


def test_a_folder_is_scanned_three_files_are_corrected_and_all_is_undone_by_keys_alone(desk: Desk, home: Path) -> None:
    folder = home / "Drawer"
    folder.mkdir()
    plant(folder, {**HOUSE, **MORE})
    original = harvest(folder)
    with working(desk, "/organise") as tab:
        page = tab.page
        page.get_by_role("heading", name="Organise").wait_for()
        page.keyboard.press("n")
        page.get_by_role("region", name="Directories").get_by_role("button", name="Drawer").wait_for()
        page.keyboard.press("/")
        page.keyboard.type("draw")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Folder to tidy")).to_have_value(str(folder))
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        tree = page.get_by_role("tree", name="Files by target")
        tree.wait_for()

        for name, target in (("pasta.txt", "Dinner"), ("pie 0.txt", "Dinner"), ("bill 1.txt", "Paid")):
            page.keyboard.press("/")
            page.keyboard.press("Control+a")
            page.keyboard.type(name)
            page.keyboard.press("Escape")
            expect(row(page, name)).to_be_visible()
            expect(page.get_by_role("treeitem")).to_have_count(1)
            page.keyboard.press("m")
            expect(page.get_by_role("combobox", name="Folder")).to_be_focused()
            page.keyboard.type(target)
            page.keyboard.press("Enter")
            expect(row(page, name)).to_contain_text(f"→ {target}")
            expect(row(page, name)).to_contain_text(re.compile("changed|your decision"))
        page.keyboard.press("/")
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.press("Escape")
        expect(row(page, "Dinner/")).to_be_visible()
        assert harvest(folder) == original

        page.keyboard.press("a")
        expect(page.get_by_role("button", name=re.compile("Approve and carry out"))).to_be_focused()
        page.keyboard.press("Enter")
        undo = page.get_by_role("button", name=re.compile("^Undo all"))
        expect(undo).to_be_visible()
        assert (folder / "Dinner" / "pie 0.txt").exists()
        assert (folder / "Paid" / "bill 1.txt").exists()
        undo.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text(re.compile("^undone: ")).first).to_be_visible()
    assert harvest(folder) == original
