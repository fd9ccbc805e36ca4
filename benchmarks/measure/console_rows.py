"""What a person does in the console, one function for each row of the table: milliseconds from a key to the painted effect."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

from playwright.sync_api import expect

from benchmarks.measure.console_desk import APART, CALL_TOOLS, CLOSE, LINES, Console
from tests.helpers.console import link_of
from tests.helpers.first_load import load_first
from tests.helpers.key_to_paint import key_to_paint

KEY_MS = 200
PAGE_MS = 1000

_TREE_ROWS = "[...document.querySelectorAll('[role=treeitem]')]"
_SELECTED = "document.querySelector('[aria-selected=true]')?.textContent"
_CHANGE = "document.querySelector('[aria-label=\"The change\"]')"
_SHOWN_LINE = f"({_CHANGE}?.querySelector('[data-index] code') !== null)"
_ACTIVE_HUNK = f"{_CHANGE}.querySelector('[data-active=true]')"
_LIST_ROWS = "[...document.querySelectorAll('[role=listitem]')]"
_MIDDLE_IS_FULL = """((outer) => {
  const box = outer.getBoundingClientRect();
  return document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)?.closest(ROW) != null;
})(OUTER)"""


def first_load(console: Console, rounds: int) -> list[float]:
    """Open a link in a fresh profile: signed in, and the rows of the inbox painted."""
    return [load_first(console.browser, link_of(console.house)).milliseconds for _ in range(rounds)]


def first_load_slowly(console: Console, rounds: int) -> list[float]:
    """The same with the processor slowed down; a new page has to be told."""
    return [load_first(console.browser, link_of(console.house), 4).milliseconds for _ in range(rounds)]


def tree_end(console: Console, rounds: int) -> list[float]:
    """Press End and Home in the open folder: the last row is there, and the first again."""
    console.open_tree()
    names = f"!{_TREE_ROWS}.some((row) => row.querySelector('[data-loading]'))"
    is_last = "tree.scrollTop + tree.clientHeight >= tree.scrollHeight - 1"
    times = []
    for _ in range(rounds):
        for key, is_there in (("End", is_last), ("Home", "tree.scrollTop === 0")):
            has_moved = f"((tree) => {is_there})(document.querySelector('[role=tree]'))"
            times.append(key_to_paint(console.page, key, f"{has_moved} && {_SELECTED} !== undefined && {names}"))
    return times


def tree_scroll(console: Console, rounds: int) -> list[float]:
    """Press Page Down in the open folder: the next rows are there with their names."""
    console.open_tree()
    names = f"!{_TREE_ROWS}.some((row) => row.querySelector('[data-loading]'))"
    return [key_to_paint(console.page, "PageDown", names) for _ in range(2 * rounds)]


def tree_filter(console: Console, rounds: int) -> list[float]:
    """Type a letter of a filter: the entries that hold it are there. What waits for further letters is in it."""
    console.open_tree()
    times = []
    for number in range(rounds):
        digits = f"{number * 37 % max(1, console.amounts.entries // 1000):03}"
        console.page.get_by_role("textbox", name="Filter many").fill(f"f{digits}")
        expect(console.page.get_by_role("treeitem").filter(has_text=f"f{digits}000.txt")).to_be_visible()
        is_listed = f"{_TREE_ROWS}.some((row) => row.textContent.includes('f{digits}7'))"
        is_filtered = f"!{_TREE_ROWS}.some((row) => row.textContent.includes('f{digits}0'))"
        times.append(key_to_paint(console.page, "7", f"{is_listed} && {is_filtered}"))
    console.page.get_by_role("textbox", name="Filter many").fill("")
    return times


def tree_open(console: Console, rounds: int) -> list[float]:
    """Press Right on the closed folder, then Left: its first entries are there, and gone."""
    console.open_tree()
    console.page.keyboard.press("ArrowLeft")
    times = []
    for _ in range(rounds):
        is_open = f"{_TREE_ROWS}.some((row) => row.textContent.includes('f000000'))"
        times.append(key_to_paint(console.page, "ArrowRight", is_open))
        times.append(key_to_paint(console.page, "ArrowLeft", f"!{is_open}"))
    return times


def diff_open(console: Console, rounds: int) -> list[float]:
    """Press j on another review: this one is there with its first lines. Each time on a page that was loaded anew."""
    is_shown = f"document.querySelector('h1')?.textContent.includes('{CLOSE}') && {_SHOWN_LINE}"
    times = []
    for _ in range(rounds):
        console.open_review(APART)
        times.append(key_to_paint(console.page, "j", is_shown))
    return times


def diff_next_hunk(console: Console, rounds: int) -> list[float]:
    """Press n: the next hunk is marked and on screen."""
    console.open_review(APART)
    times = []
    for number in range(2, 2 * rounds + 2):
        is_next = f"{_ACTIVE_HUNK}?.textContent.includes('Hunk {number}') && {_SHOWN_LINE}"
        times.append(key_to_paint(console.page, "n", is_next))
    return times


def diff_take(console: Console, rounds: int) -> list[float]:
    """Press x: the hunk is left out, and the button says so."""
    console.open_review(APART)
    is_out = "[...document.querySelectorAll('button')].some((button) => /^Approve \\d+ of/.test(button.textContent))"
    times = []
    for _ in range(rounds):
        times.append(key_to_paint(console.page, "x", is_out))
        times.append(key_to_paint(console.page, "x", f"!({is_out})"))
    return times


def diff_view(console: Console, rounds: int) -> list[float]:
    """Press s: side by side, or one column."""
    console.open_review(CLOSE)
    times = []
    for view in islice(cycle(("unified", "split")), 2 * rounds):
        is_so = f"{_CHANGE}.querySelector('[data-view={view}]') !== null && {_SHOWN_LINE}"
        times.append(key_to_paint(console.page, "s", is_so))
    return times


def diff_scroll(console: Console, rounds: int) -> list[float]:
    """Press Page Down, End and Home in the diff: the lines there are painted."""
    console.open_review(CLOSE)
    is_full = _MIDDLE_IS_FULL.replace("ROW", "'[data-index]'").replace("OUTER", _CHANGE)
    times = []
    for _ in range(rounds):
        console.page.get_by_role("region", name="The change").focus()
        for key, is_there in (
            ("PageDown", "outer.scrollTop > 0"),
            ("End", "outer.scrollTop > outer.scrollHeight / 2"),
            ("Home", "outer.scrollTop === 0"),
        ):
            moved = f"((outer) => {is_there})({_CHANGE})"
            times.append(key_to_paint(console.page, key, f"{moved} && {is_full}"))
    return times


def plan_keys(console: Console, rounds: int) -> list[float]:
    """Press keys that walk and choose in the open folder of the plan: another row is selected, or chosen."""
    console.open_plan()
    last = f"clip {console.amounts.moves - 1:05}.mp4"
    is_chosen = "document.querySelector('[aria-selected=true] input')?.checked === true"
    times = []
    for _ in range(rounds):
        times.append(key_to_paint(console.page, "j", f"{_SELECTED}?.includes('clip 00000')"))
        times.append(key_to_paint(console.page, "x", is_chosen))
        times.append(key_to_paint(console.page, "x", f"!({is_chosen})"))
        times.append(key_to_paint(console.page, "End", f"{_SELECTED}?.includes('{last}')"))
        times.append(key_to_paint(console.page, "Home", f"{_SELECTED}?.includes('Video')"))
    return times


def plan_open(console: Console, rounds: int) -> list[float]:
    """Press Left on the open folder, then Right: its files are gone, and there."""
    console.open_plan()
    console.page.keyboard.press("Home")
    is_open = f"{_TREE_ROWS}.some((row) => row.textContent.includes('clip 00000'))"
    times = []
    for _ in range(rounds):
        times.append(key_to_paint(console.page, "ArrowLeft", f"!{is_open}"))
        times.append(key_to_paint(console.page, "ArrowRight", is_open))
    return times


def plan_filter(console: Console, rounds: int) -> list[float]:
    """Type a letter of a filter: the files that match are there."""
    console.open_plan()
    times = []
    for number in range(rounds):
        digits = f"{number * 7 % max(1, console.amounts.moves // 1000):02}"
        console.page.get_by_role("textbox", name="Filter the files").fill(f"clip {digits}")
        rows = console.page.get_by_role("treeitem")
        expect(rows.filter(has_not_text=f"clip {digits}")).to_have_count(0)
        expect(rows.nth(5)).to_be_visible()
        is_filtered = (
            f"{_TREE_ROWS}.length > 5 && {_TREE_ROWS}.every((row) => row.textContent.includes('clip {digits}7'))"
        )
        times.append(key_to_paint(console.page, "7", is_filtered))
    console.page.get_by_role("textbox", name="Filter the files").fill("")
    return times


def calls_keys(console: Console, rounds: int) -> list[float]:
    """Press j and k: the next call is marked and its details shown."""
    console.open_calls()
    times = []
    for key in islice(cycle("jjk"), 3 * rounds):
        before = console.page.evaluate("location.search")
        is_other = f"location.search !== {before!r} && document.querySelector('[aria-expanded=true]') !== null"
        times.append(key_to_paint(console.page, key, is_other))
    return times


def calls_scroll(console: Console, rounds: int) -> list[float]:
    """Press Page Down, End and Home in the list: the calls there are painted."""
    console.open_calls()
    outer = "document.querySelector('[role=list][aria-label=Calls]').parentElement"
    is_full = _MIDDLE_IS_FULL.replace("ROW", "'[role=listitem] button'").replace("OUTER", outer)
    times = []
    console.page.evaluate(f"{outer}.focus()")
    for _ in range(rounds):
        for key, is_there in (
            ("PageDown", "outer.scrollTop > 0"),
            ("End", "outer.scrollTop + outer.clientHeight >= outer.scrollHeight - 1"),
            ("Home", "outer.scrollTop === 0"),
        ):
            times.append(key_to_paint(console.page, key, f"((outer) => {is_there})({outer}) && {is_full}"))
    return times


def calls_filter(console: Console, rounds: int) -> list[float]:
    """Press Enter on a tool's name in the filter: only its calls are there."""
    console.open_calls()
    times = []
    for tool in islice(cycle(CALL_TOOLS), rounds):
        console.page.get_by_role("textbox", name="Tool").fill(tool)
        rows = f"{_LIST_ROWS}.filter((row) => row.textContent.includes('claude-code'))"
        is_so = f"{rows}.length > 0 && {rows}.every((row) => row.textContent.includes('{tool}'))"
        is_filtered = f"location.search.includes('{tool}') && {is_so}"
        times.append(key_to_paint(console.page, "Enter", is_filtered))
    return times


@dataclass(frozen=True)
class Deed:
    """One row: what is done, how it is measured, and the bar for its 95th percentile."""

    what: str
    measure: Callable[[Console, int], list[float]]
    bar_ms: int = KEY_MS


_DIFF = f"diff of {LINES:,} lines, 6,666 changed"
DEEDS = (
    Deed("tree of {entries:,} entries: End, Home", tree_end),
    Deed("tree of {entries:,} entries: Page Down, with names", tree_scroll),
    Deed("tree of {entries:,} entries: a letter of the filter", tree_filter),
    Deed("tree of {entries:,} entries: open, close", tree_open),
    Deed(f"{_DIFF}: open the next review (j)", diff_open, PAGE_MS),
    Deed(f"{_DIFF} in 666 hunks: next hunk (n)", diff_next_hunk),
    Deed(f"{_DIFF} in 666 hunks: leave out, take (x)", diff_take),
    Deed(f"{_DIFF} in 1 hunk: split, unified (s)", diff_view),
    Deed(f"{_DIFF} in 1 hunk: Page Down, End, Home", diff_scroll),
    Deed("plan of {moves:,} moves: j, x, End, Home", plan_keys),
    Deed("plan of {moves:,} moves: open, close", plan_open),
    Deed("plan of {moves:,} moves: a letter of the filter", plan_filter),
    Deed("{calls:,} calls: j, k, with details", calls_keys),
    Deed("{calls:,} calls: Page Down, End, Home", calls_scroll),
    Deed("{calls:,} calls: filter by tool", calls_filter),
)
