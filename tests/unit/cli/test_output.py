"""What commands print: JSON that no terminal acts on and that means what it meant, and texts line by line."""

import io
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.output import (
    confirm,
    duration,
    json_text,
    local_time,
    paragraphs,
    quantity,
    recent_time,
    short_path,
    table_row,
    wants_colour,
)
from holdfast.cli.progress import progress_bar
from holdfast.text import display
from holdfast.text.display import display_width, is_visible


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_json_holds_nothing_that_is_not_seen_and_means_the_same(data: dict[str, object]) -> None:
    text = json_text(data)
    assert all(map(is_visible, text))
    assert json.loads(text) == data


def test_json_shows_letters_as_they_are_and_lone_surrogates_as_numbers() -> None:
    assert json_text({"é": "日本 🎉"}) == '{"é": "日本 🎉"}'
    assert json_text("a\udc80\U000e0001") == r'"a\udc80\udb40\udc01"'
    assert json_text(["a"], indent=2) == '[\n  "a"\n]'


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb\n", "a\nb"), ("a\r\nb\r\n", "a\nb"), ("a\rb\n\x1b[2J", r"a\x0db" + "\n" + r"\x1b[2J"), ("\ta", "\ta")],
)
def test_a_text_keeps_its_lines_and_tabs_alone(text: str, shown: str) -> None:
    assert paragraphs(text) == shown


def test_only_one_thing_is_in_the_singular() -> None:
    assert [quantity(count, "job") for count in (0, 1, 2, 1234)] == ["0 jobs", "1 job", "2 jobs", "1,234 jobs"]
    assert [display.quantity(count, "copy", "copies") for count in (1, 1234)] == ["1 copy", "1234 copies"]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a process whose time zone is one or two hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_time_is_shown_in_the_persons_zone_without_parts_of_a_second() -> None:
    assert local_time("2026-01-31T23:30:15.123456Z") == "2026-02-01 00:30"
    assert local_time("2026-07-31T12:00:00Z", with_seconds=True) == "2026-07-31 14:00:00"
    assert local_time(None) == "-"


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-01-31T21:59:30.5Z", "just now"),
        ("2026-01-31T21:59:00Z", "1 min ago"),
        ("2026-01-31T21:00:01Z", "59 min ago"),
        ("2026-01-31T21:00:00Z", "today 22:00"),
        ("2026-01-30T23:00:00Z", "today 00:00"),
        ("2026-01-30T22:59:00Z", "2026-01-30 23:59"),
        ("2026-01-31T22:05:00Z", "today 23:05"),
        ("2026-02-01T22:00:00Z", "2026-02-01 23:00"),
    ],
)
def test_a_recent_time_is_shown_as_a_person_says_it(at: str, shown: str) -> None:
    assert recent_time(at, datetime(2026, 1, 31, 22, 0, tzinfo=UTC)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (0.9, "0 s"), (61, "1 min 1 s"), (3600, "1 h"), (7265, "2 h 1 min"), (90_061, "1 d 1 h")],
)
def test_a_duration_has_its_two_largest_units(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_row_that_is_wider_than_the_terminal_has_its_tail_in_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    head, tail = "3f2a9c1d  just now", "/home/you/project/src/app.py"
    assert table_row(head, tail) == f"{head}  {tail}", "where no terminal is, a row is a line"
    monkeypatch.setattr("sys.stdout", Terminal())
    assert table_row(head, tail) == f"{head}\n          {tail}"
    assert table_row(head, "~/a") == f"{head}  ~/a"
    wide = table_row(f"{head}    claude-code 2.1  organise", tail).splitlines()
    assert wide == ["3f2a9c1d just now claude-code 2.1", "          organise", f"          {tail}"]


def test_the_home_folder_is_shown_as_a_tilde_and_nothing_that_begins_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/you")
    paths = ("/home/you", "/home/you/a b", "/home/yours/a", "/home/you/ a", "/")
    assert [short_path(path) for path in paths] == ["~", "~/a b", "/home/yours/a", '"~/ a"', "/"]
    monkeypatch.setenv("HOME", "/")
    assert short_path("/a") == "/a"


class Terminal(io.StringIO):
    """Takes what is printed, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_progress_line_is_cut_by_columns_and_nothing_is_drawn_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress_bar() as draw:
        assert draw is not None
        draw(1, 1, "会议记录会议记录会议记录")
    draw(1, 1, "late")
    lines = screen.getvalue().split("\r\x1b[K")
    assert display_width(lines[1]) < 40
    assert lines[2:] == [""]


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_are_wanted_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour()
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_colour(), "an empty variable counts as none"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert not wants_colour()


def test_ctrl_c_at_a_question_says_that_nothing_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> bool:
        raise click.Abort

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr(click, "confirm", interrupt)
    with pytest.raises(SystemExit) as ended:
        confirm("Undo this change?", "Nothing was undone.", "")
    assert (ended.value.code, capsys.readouterr().err) == (130, "\nholdfast: Nothing was undone.\n")
