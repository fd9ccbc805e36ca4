"""Names that would mislead are quoted; all others are shown as they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.display import display_name, is_plain


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "two words",
        "/a b/c d.txt",
        "e\u0302\u0301",
        "\u05d1\u05bc\u05b8\u0591",
        "naïve 漢字.md",
        "🙂.png",
        "-x",
        "[DIR] fake",
        "a\\b",
    ],
)
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert display_name(name) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\n[DIR] b", '"a\\n[DIR] b"'),
        ("a\r\tb", '"a\\r\\tb"'),
        ("\x1b[2J", '"\\u001b[2J"'),
        ("abc\u202egpj.exe", '"abc\\u202egpj.exe"'),
        ("zero\u200bwidth", '"zero\\u200bwidth"'),
        ("hangul\u3164filler", '"hangul\\u3164filler"'),
        ("tag\U000e0041", '"tag\\udb40\\udc41"'),
        ("line\u2028two", '"line\\u2028two"'),
        ("bytes\udcff", '"bytes\\xff"'),
        ('"quoted', '"\\"quoted"'),
        (" leading", '" leading"'),
        ("trailing ", '"trailing "'),
        ("docs/ leading", '"docs/ leading"'),
        ("docs /x", '"docs /x"'),
        ("object\ufffcreplaced", '"object\\ufffcreplaced"'),
        ("note\U0001d159", '"note\\ud834\\udd59"'),
        ("a" + "\u0301" * 6, '"a' + "\u0301" * 4 + '\\u0301\\u0301"'),
        ("", '""'),
    ],
)
def test_a_name_that_could_mislead_is_quoted_and_escaped(name: str, text: str) -> None:
    assert display_name(name) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_shown_name_is_one_visible_line_and_can_be_read_back(name: str) -> None:
    text = display_name(name)
    assert text.isprintable()
    assert (text if is_plain(name) else json.loads(text)) == name
