"""What commands print: JSON that no terminal acts on and that means what it meant, and texts line by line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.output import json_text, paragraphs, quantity
from holdfast.text import display
from holdfast.text.display import is_visible


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
