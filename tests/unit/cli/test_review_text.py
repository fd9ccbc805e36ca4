"""A review as a person reads it in a terminal: both sides fit its width, and line endings do not get in the way."""

import click
import pytest

from holdfast.cli.commands.changes.review_text import side_by_side
from holdfast.text.diff import unified_diff
from holdfast.text.display import display_width, escape_diff_lines

LONG = "a line that is longer than half of any terminal is shown in pieces, none of them left out"


@pytest.mark.parametrize("columns", [40, 80, 119, 300])
def test_both_sides_fit_the_terminal_and_no_character_is_left_out(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = click.unstyle(side_by_side("one\ntwo\n", f"one\n{LONG}会议记录\n")).splitlines()
    assert max(map(display_width, rows)) <= columns
    assert len({display_width(row.partition("│")[0]) for row in rows if "│" in row}) == 1
    right = "".join(row.partition("│ ")[2][6:].strip("\n") for row in rows)
    assert f"{LONG}会议记录".replace(" ", "") in right.replace(" ", "")


def test_a_diff_of_texts_with_windows_line_ends_is_shown_without_them() -> None:
    diff = unified_diff("one\r\ntwo\r\n", "one\r\nzwei\r\n", "a.txt")
    assert escape_diff_lines(diff)[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+zwei"]


def test_a_change_of_line_ends_is_shown() -> None:
    diff = unified_diff("one\r\ntwo\r\n", "one\r\ntwo\n", "a.txt")
    assert r"-two\x0d" in escape_diff_lines(diff)
