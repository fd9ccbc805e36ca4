"""A plan of many moves in the console: from a key to the painted row, from a click to the tree, and how many elements the page has.

    python -m benchmarks.measure.console_plan [FILES]

A real server, a real scan and Chromium without a screen. A time ends when the frame after the change has been painted.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.measure.table import Row, Sample, markdown, milliseconds
from tests.helpers.agent import Agent
from tests.helpers.browser import new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House, until
from tests.helpers.person import Person

MAX_ELEMENTS = 2_000
_KEYS = ("ArrowDown", "j", "ArrowDown", "k", "PageDown", "ArrowDown", "x", "ArrowUp", "x", "End", "ArrowUp", "Home")
_ROUNDS = 15
_BAR_MS = 100.0
_WATCH = """
window.paints = [];
document.addEventListener("keydown", (event) => {
  const began = event.timeStamp;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.paints.push(performance.now() - began);
    channel.port2.postMessage(0);
  });
}, { capture: true });
"""


def measure(folder: Path, files: int) -> list[Row]:
    """Return the rows: keys in an open folder of that many files, opening the page, and the elements in it."""
    home = folder / "home"
    (home / "Downloads").mkdir(parents=True)
    for number in range(files):
        (home / "Downloads" / f"clip {number:05}.mp4").write_text(str(number))
    house = House(folder, HOME=str(home))
    try:
        with Agent([house.root], house.state, env={"HOME": str(home)}) as agent, open_browser() as browser:
            agent.call("list_allowed_directories").ok()
            plan = _scan(Person(house.state), home / "Downloads")
            assert plan["totals"]["moves"] == files
            page = open_tab(new_context(browser), link_of(house)).page
            page.get_by_role("navigation", name="Pages").wait_for()
            opening = _open(page, f"{house.url}/organise/{plan['plan_id']}")
            keys, elements = _press_keys(page)
    finally:
        house.end()
    assert elements < MAX_ELEMENTS, f"the page has {elements} elements"
    p95 = milliseconds(keys.p95)
    what = f"a key in an open folder of {files:,} moves, until it is painted"
    return [
        Row(
            what,
            f"{milliseconds(keys.median)} (p95 {p95})",
            "",
            bar=_BAR_MS,
            bar_text="p95 ≤ 100 ms",
            amount=keys.p95 * 1000,
        ),
        Row(f"a plan of {files:,} moves is opened, until its targets are shown", milliseconds(opening), ""),
        Row(
            f"elements of the page at {files:,} moves",
            f"{elements:,}",
            "",
            bar=MAX_ELEMENTS,
            bar_text=f"≤ {MAX_ELEMENTS:,}",
            amount=elements,
        ),
    ]


def _scan(person: Person, folder: Path) -> dict[str, Any]:
    scan = person.call("start_scan", directory=str(folder))
    until("the plan is made", lambda: person.call("running_scans")["scans"] == [], 300)
    return person.call("plan_rows", plan_id=scan["plan_id"], view="by_folder")


def _open(page: Page, url: str) -> float:
    """Open a plan and return the seconds until its tree is there."""
    began = time.perf_counter()
    page.goto(url)
    page.get_by_role("treeitem").first.wait_for()
    return time.perf_counter() - began


def _press_keys(page: Page) -> tuple[Sample, int]:
    """Press keys in the open folder; return the seconds to each paint, and the most elements that the page had."""
    page.get_by_role("treeitem").first.dblclick()
    page.get_by_text("clip 00000.mp4").wait_for()
    page.get_by_role("tree").focus()
    page.evaluate(_WATCH)
    most = 0
    for _ in range(_ROUNDS):
        for key in _KEYS:
            page.keyboard.press(key)
            page.wait_for_timeout(30)
            most = max(most, page.evaluate("document.querySelectorAll('*').length"))
    paints: list[float] = page.evaluate("window.paints")
    assert len(paints) == _ROUNDS * len(_KEYS)
    return Sample([paint / 1000 for paint in paints]), most


def main() -> None:
    """Measure once and print the table."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        print(markdown(measure(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)))


if __name__ == "__main__":
    main()
