"""The token estimate, the cut, the cursor."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidArgument
from holdfast.text.budget import (
    cut_end_to_budget,
    cut_to_budget,
    decode_cursor,
    encode_cursor,
    estimate_tokens,
    first_page,
    read_position,
    take_rows,
)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中文", 2), ("ab中", 2)])
def test_four_ascii_characters_or_one_other_make_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_text_within_the_budget_is_left_whole() -> None:
    assert cut_to_budget("one\ntwo\n", 2) == ("one\ntwo\n", False)
    assert cut_end_to_budget("one\ntwo\n", 2) == ("one\ntwo\n", False)


def test_a_cut_falls_after_a_whole_line() -> None:
    assert cut_to_budget("one\ntwo\nthree\n", 3) == ("one\ntwo\n", True)
    assert cut_end_to_budget("one\ntwo\nsix\n", 2) == ("two\nsix\n", True)


def test_one_enormous_line_is_cut_inside() -> None:
    assert cut_to_budget("x" * 100, 5) == ("x" * 20, True)
    assert cut_end_to_budget("x" * 100 + "\n", 5) == ("x" * 19 + "\n", True)


@given(st.text(), st.integers(1, 50))
def test_a_cut_text_is_a_beginning_within_the_budget(text: str, tokens: int) -> None:
    head, left = cut_to_budget(text, tokens)
    assert text.startswith(head)
    assert left == (head != text)
    assert estimate_tokens(head) <= tokens
    assert head or not text


@given(st.text(), st.integers(1, 50))
def test_a_cut_end_is_an_end_within_the_budget(text: str, tokens: int) -> None:
    tail, left = cut_end_to_budget(text, tokens)
    assert text.endswith(tail)
    assert left == (tail != text)
    assert estimate_tokens(tail) <= tokens
    assert tail or not text


def test_a_cursor_comes_back_as_it_was() -> None:
    state = {"o": 12, "v": "a.b", "n": None}
    assert decode_cursor(encode_cursor(state)) == state


@pytest.mark.parametrize("cursor", ["", "!", "é", "bnVsbA", "W10", "A" * 5000, "e30=x"])
def test_a_text_that_is_no_cursor_is_refused_in_words(cursor: str) -> None:
    with pytest.raises(InvalidArgument, match="not one this server gave"):
        decode_cursor(cursor)


def test_the_cursor_of_the_longest_path_comes_back_as_it_was() -> None:
    state = {"after": "\u6f22" * 1365}
    assert decode_cursor(encode_cursor(state)) == state


def test_a_cursor_that_names_what_no_file_can_be_called_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        decode_cursor(encode_cursor({"after": "\ud800"}))
    assert decode_cursor(encode_cursor({"after": "\udcff"})) == {"after": "\udcff"}


@dataclass(frozen=True)
class Row:
    """A row of a list."""

    seq: int


def test_a_page_has_a_cursor_only_when_there_is_a_row_more() -> None:
    rows = [Row(seq) for seq in (9, 7, 5)]
    page, cursor = first_page(rows, 2, "change")
    assert page == rows[:2]
    assert read_position(cursor, "change", "list_changes") == 7
    assert first_page(rows, 3, "change") == (rows, None)
    assert first_page([], 3, "change") == ([], None)


@pytest.mark.parametrize(
    "state", [{}, {"plan": 1}, {"change": "1"}, {"change": -1}, {"change": 2**63}, {"change": True}]
)
def test_a_position_is_read_from_a_cursor_of_the_same_call_alone(state: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="not one of list_changes"):
        read_position(encode_cursor(state), "change", "list_changes")
    with pytest.raises(InvalidArgument, match="without a cursor"):
        read_position(encode_cursor(state), "change")
    assert read_position(None, "change") is None


def test_rows_are_taken_up_to_the_budget_and_at_least_one() -> None:
    rows = iter([3, 3, 3, 3])
    assert take_rows(rows, 7, lambda row: row) == [3, 3]
    assert list(rows) == [3], "no row was asked for after the one that was too much"
    assert take_rows([9, 1], 7, lambda row: row) == [9]
