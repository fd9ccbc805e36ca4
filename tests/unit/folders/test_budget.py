"""The token estimate, the cut, the cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidArgument
from holdfast.text.budget import cut_end_to_budget, cut_to_budget, decode_cursor, encode_cursor, estimate_tokens


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
