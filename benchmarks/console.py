"""Measure how fast pages of the console answer a key, in a real browser against a real server.

    python benchmarks/console.py [--entries 100000] [--rounds 10] [--json FILE]

Each row is one thing that a person does, from the key to the frame in which its effect was painted; the table gives the 95th
percentile, as the browser runs and with its processor slowed down four times. One function measures one row: a further row
is one more function in `ROWS`.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.helpers.agent import MODERN, Agent
from tests.helpers.browser import new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House
from tests.helpers.key_to_paint import key_to_paint, p95

BAR_MS = 200
SLOW = 4
_SELECTED = "document.querySelector('[aria-selected=true]')?.textContent"


@dataclass(frozen=True)
class Times:
    """What was measured of one row, in milliseconds, at one speed of the processor."""

    what: str
    slow_down: int
    values: list[float]

    @property
    def median(self) -> float:
        """Return the middle value."""
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """Return the value that 95 % do not exceed."""
        return p95(self.values)


@dataclass(frozen=True)
class Console:
    """A signed-in page, and the folder that is served."""

    page: Page
    house: House
    entries: int

    def open_tree(self) -> None:
        """Show the tree with the large folder open and selected."""
        self.page.goto(f"{self.house.url}/files")
        self.page.get_by_role("tree").wait_for()
        self.page.get_by_role("tree").focus()
        folder = self.page.get_by_role("treeitem").filter(has_text="many")
        folder.click()
        self.page.get_by_role("tree").focus()
        if folder.get_attribute("aria-expanded") != "true":
            self.page.keyboard.press("ArrowRight")
        expect(self.page.get_by_role("treeitem").filter(has_text="f000000.txt")).to_be_visible()


def tree_end(console: Console, rounds: int) -> list[float]:
    """Press End and Home in the open folder: the last row is there, and the first again."""
    console.open_tree()
    last = f"f{console.entries - 1:06}.txt"
    times = []
    for _ in range(rounds):
        times.append(key_to_paint(console.page, "End", f"{_SELECTED}?.includes('{last}')"))
        times.append(key_to_paint(console.page, "Home", f"{_SELECTED}?.includes('project')"))
    return times


def tree_filter(console: Console, rounds: int) -> list[float]:
    """Type a letter of a filter: the entries that hold it are there. What waits for further letters is in it."""
    console.open_tree()
    times = []
    for number in range(rounds):
        digits = f"{number * 37 % 1000:03}"
        console.page.get_by_role("textbox", name="Filter many").fill(f"f{digits}")
        expect(console.page.get_by_role("treeitem").filter(has_text=f"f{digits}000.txt")).to_be_visible()
        shown = (
            f"[...document.querySelectorAll('[role=treeitem]')].some((row) => row.textContent.includes('f{digits}7'))"
        )
        gone = (
            f"![...document.querySelectorAll('[role=treeitem]')].some((row) => row.textContent.includes('f{digits}0'))"
        )
        times.append(key_to_paint(console.page, "7", f"{shown} && {gone}"))
    console.page.get_by_role("textbox", name="Filter many").fill("")
    return times


def tree_open(console: Console, rounds: int) -> list[float]:
    """Press Right on the closed folder, then Left: its first entries are there, and gone."""
    console.open_tree()
    console.page.keyboard.press("ArrowLeft")
    times = []
    row = "document.querySelectorAll('[role=treeitem]')"
    for _ in range(rounds):
        times.append(
            key_to_paint(console.page, "ArrowRight", f"[...{row}].some((r) => r.textContent.includes('f000000'))")
        )
        times.append(
            key_to_paint(console.page, "ArrowLeft", f"![...{row}].some((r) => r.textContent.includes('f000000'))")
        )
    return times


def tree_scroll(console: Console, rounds: int) -> list[float]:
    """Press Page Down in the open folder: the next rows are there with their names."""
    console.open_tree()
    names = "![...document.querySelectorAll('[role=treeitem]')].some((row) => row.querySelector('[data-loading]'))"
    return [key_to_paint(console.page, "PageDown", names) for _ in range(2 * rounds)]


ROWS: dict[str, Callable[[Console, int], list[float]]] = {
    "tree of {entries} entries: End, Home": tree_end,
    "tree of {entries} entries: Page Down, with names": tree_scroll,
    "tree of {entries} entries: a letter of the filter": tree_filter,
    "tree of {entries} entries: open, close": tree_open,
}


def main() -> None:
    """Measure every row at both speeds and print the table."""
    options = _options()
    measured: list[Times] = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        _console(Path(folder), options.entries) as console,
    ):
        session = console.page.context.new_cdp_session(console.page)
        for name, measure in ROWS.items():
            for slow_down in (1, SLOW):
                session.send("Emulation.setCPUThrottlingRate", {"rate": slow_down})
                what = name.format(entries=f"{options.entries:,}")
                measured.append(Times(what, slow_down, measure(console, options.rounds)))
        nodes = console.page.locator("*").count()
    print(_table(measured))
    print(f"\nDOM nodes of the page: {nodes:,}.")
    if options.json:
        facts = {"rows": [{**asdict(times), "p95": times.p95} for times in measured], "dom_nodes": nodes}
        Path(options.json).write_text(json.dumps(facts, indent=1))


@contextmanager
def _console(folder: Path, entries: int) -> Iterator[Console]:
    house = House(folder)
    _fill(house.root / "many", entries)
    try:
        with Agent([house.root], house.state, mode=MODERN) as agent, open_browser() as browser:
            agent.call("list_allowed_directories").ok()
            tab = open_tab(new_context(browser), link_of(house))
            tab.page.get_by_role("navigation", name="Pages").wait_for()
            yield Console(tab.page, house, entries)
            tab.check()
    finally:
        house.end()


def _fill(folder: Path, entries: int) -> None:
    """Make a folder with so many empty files."""
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    for number in range(entries):
        os.close(os.open(f"f{number:06}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def _table(measured: list[Times]) -> str:
    lines = ["| what | median | p95 | p95, 4x slower | bar | |", "|---|---|---|---|---|---|"]
    for plain, slow in zip(measured[::2], measured[1::2], strict=True):
        verdict = "met" if max(plain.p95, slow.p95) <= BAR_MS else "**missed**"
        lines.append(
            f"| {plain.what} | {plain.median:.0f} ms | {plain.p95:.0f} ms | {slow.p95:.0f} ms | ≤ {BAR_MS} ms | {verdict} |"
        )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000, help="files in the large folder")
    parser.add_argument("--rounds", type=int, default=10, help="how often each key is pressed")
    parser.add_argument("--json", metavar="FILE", help="write what was measured to FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
