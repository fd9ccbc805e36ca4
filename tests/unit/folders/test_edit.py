"""The edit engine on text: counted, literal, in order, all or nothing."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import EditRejected
from holdfast.text.edit import APPEND, OVERWRITE, Edit, EditLimits, apply_edits
from holdfast.text.edit_match import LfView

LIMITS = EditLimits()


def edited(text: str | None, *edits: Edit) -> str:
    return apply_edits(text, edits, LIMITS)


def rejected(text: str | None, *edits: Edit, limits: EditLimits = LIMITS) -> dict[str, Any]:
    with pytest.raises(EditRejected) as caught:
        apply_edits(text, edits, limits)
    return caught.value.payload()


def test_a_text_that_occurs_once_is_replaced() -> None:
    assert edited("one two three", Edit("two", "2")) == "one 2 three"


def test_a_text_that_occurs_twice_is_refused_with_the_count() -> None:
    error = rejected("a b a", Edit("a", "x"))
    assert error["found"] == 2
    assert "found 2 times" in error["message"]
    assert error["error"] is True
    assert error["error_type"] == "validation_error"


def test_the_announced_number_of_occurrences_is_replaced() -> None:
    assert edited("a b a", Edit("a", "x", count=2)) == "x b x"


def test_fewer_occurrences_than_announced_are_refused() -> None:
    assert "found 1 time in the file; 2 expected" in rejected("a b", Edit("a", "x", count=2))["message"]


def test_a_match_that_overlaps_itself_is_not_a_single_match() -> None:
    assert "overlaps" in rejected("aaa", Edit("aa", "b"))["message"]


def test_white_space_is_never_guessed() -> None:
    error = rejected("def f():\n\treturn 1\n", Edit("def f():\n    return 1", "x"))
    assert error["found"] == 0


def test_a_line_feed_in_the_match_matches_crlf_and_new_lines_end_as_the_file_does() -> None:
    assert edited("a\r\nb\r\nc\r\n", Edit("a\nb", "a\nx\ny")) == "a\r\nx\r\ny\r\nc\r\n"


def test_a_crlf_in_the_match_matches_a_line_feed() -> None:
    assert edited("a\nb\n", Edit("a\r\nb", "a\r\nc")) == "a\nc\n"


def test_mixed_line_ends_survive_inside_and_outside_the_match() -> None:
    before = "one\r\ntwo\nthree\r\nfour\nfive"
    assert edited(before, Edit("one\ntwo\nthree\nfour", "one\ntwo\n3\nfour")) == "one\r\ntwo\n3\r\nfour\nfive"


def test_places_with_either_line_end_count_as_the_same_text() -> None:
    assert rejected("a\nb|a\r\nb", Edit("a\nb", "x"))["found"] == 2


def test_a_file_without_a_final_newline_stays_without() -> None:
    assert edited("a\nb", Edit("b", "c")) == "a\nc"


def test_edits_apply_in_order_to_the_running_text() -> None:
    assert edited("a", Edit("a", "b"), Edit("b", "c")) == "c"


def test_the_error_of_a_batch_names_the_failing_edit() -> None:
    error = rejected("a b", Edit("a", "x"), Edit("missing", "y"), Edit("b", "z"))
    assert error["message"].startswith("edits[1]: ")
    assert error["edit_index"] == 1
    assert "No edit of this file was applied" in error["message"]


def test_an_empty_match_creates_a_missing_file() -> None:
    assert edited(None, Edit("", "new\r\ntext")) == "new\r\ntext"


def test_an_empty_match_fills_an_empty_file() -> None:
    assert edited("", Edit("", "text")) == "text"


def test_a_match_in_a_missing_file_is_file_not_found() -> None:
    assert rejected(None, Edit("a", "b"))["error_type"] == "file_not_found"
    assert rejected(None, Edit(OVERWRITE, "b"))["error_type"] == "file_not_found"


@pytest.mark.parametrize(("match", "error_type"), [("", "file_exists"), ("  \n", "validation_error")])
def test_a_blank_match_on_content_names_the_way_to_overwrite(match: str, error_type: str) -> None:
    error = rejected("content", Edit(match, "x"))
    assert error["error_type"] == error_type
    assert OVERWRITE in error["hint"]


def test_overwrite_and_append_work_as_match() -> None:
    assert edited("a\r\nb\r\n", Edit(OVERWRITE, "x\ny\n")) == "x\r\ny\r\n"
    assert edited("a\r\nb\r\n", Edit(APPEND, "x\n")) == "a\r\nb\r\nx\r\n"


def test_a_replacement_equal_to_the_match_is_an_error() -> None:
    assert "nothing would change" in rejected("a", Edit("a", "a"))["message"]


def test_edits_that_cancel_each_other_are_an_error() -> None:
    assert "leave the file as it is" in rejected("a", Edit("a", "b"), Edit("b", "a"))["message"]


def test_a_replacement_that_differs_only_in_line_ends_is_an_error() -> None:
    assert "line ends" in rejected("a\r\nb", Edit("a\r\nb", "a\nb"))["message"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("say \u201chello\u201d now", 'say "hello" now'),
        ("it\u2019s here", "it's here"),
        ("pages 3\u20135", "pages 3-5"),
        ("a\u00a0b", "a b"),
        ('plain "quotes"', "plain \u201cquotes\u201d"),
    ],
)
def test_typographic_twins_are_matched_where_they_map_to_one_place(text: str, match: str) -> None:
    assert edited(f"x {text} y", Edit(match, "Z")) == "x Z y"


def test_typographic_characters_that_the_edit_does_not_touch_stay() -> None:
    assert edited("\u201cold\u201d text", Edit('"old" text', '"old" word')) == "\u201cold\u201d word"


def test_typographic_twins_in_two_places_are_refused() -> None:
    error = rejected("\u201ca\u201d and \u201ea\u201f", Edit('"a"', "b"))
    assert error["found"] == 0


def test_a_near_miss_is_suggested_by_line_and_never_applied() -> None:
    text = "".join(f"line number {n}\n" for n in range(50)) + "def total(items):\n    return sum(items)\n"
    error = rejected(text, Edit("def total(item):\n    return sum(item)", "x"))
    best = error["suggestions"][0]
    assert (best["start_line"], best["end_line"]) == (51, 52)
    assert best["similarity"] > 0.9
    assert len(error["suggestions"]) <= 3
    assert "lines 51 to 52" in error["hint"]


def test_a_near_miss_in_one_line_names_that_line() -> None:
    hint = rejected("import os\nprint('hello there')\n", Edit("prnt('hello there')", "x"))["hint"]
    assert hint.startswith("The nearest text is in line 2 (")


def test_a_replacement_that_is_there_already_is_said() -> None:
    assert "already" in rejected("the new text stands here", Edit("old words", "the new text"))["hint"]


def test_the_text_comes_with_the_error_only_when_it_is_short() -> None:
    assert rejected("short", Edit("nope", "x"))["file_content"] == "short"
    assert "file_content" not in rejected("a\n" * 5_000, Edit("nope", "x"))
    assert "file_content" not in rejected("word " * 500, Edit("nope", "x"), limits=EditLimits(max_answer_tokens=500))


def test_the_text_shown_is_that_which_the_failing_edit_met() -> None:
    assert rejected("a b", Edit("a", "x"), Edit("nope", "y"))["file_content"] == "x b"


def test_a_match_that_is_too_long_is_refused() -> None:
    error = rejected("a", Edit("abcdef", "x"), limits=EditLimits(max_match_chars=5))
    assert "6 characters; the limit is 5" in error["message"]


def test_a_miss_in_a_large_file_is_answered_in_bounded_time() -> None:
    text = "".join(f"value {n} of a large table, row after row\r\n" for n in range(400_000))
    match = "value 5 of a large table, row after row\nvalue 7 of a large table" + "\nabc def" * 200
    started = time.monotonic()
    assert rejected(text, Edit(match, "x"))["found"] == 0
    assert time.monotonic() - started < 5


def test_a_miss_in_repetitive_text_is_answered_in_bounded_time() -> None:
    text = "ab" * 90_000 + "\n" + "ba ab\n" * 2_000
    started = time.monotonic()
    assert rejected(text, Edit("ab ba ab ba\n" * 300, "x"))["found"] == 0
    assert time.monotonic() - started < 5


PIECES = st.lists(st.sampled_from(["a", "b", "ab", " ", "\n", "\r\n", "\r", "\u201c", "ä", "\U0001f600"]), max_size=40)


@given(PIECES)
def test_every_offset_of_the_lf_view_leads_back_to_its_character(pieces: list[str]) -> None:
    raw = "".join(pieces)
    view = LfView(raw)
    for offset, char in enumerate(view.text):
        at = view.to_raw(offset)
        assert raw[at] == char or raw[at : at + 2] == "\r\n"
    assert view.to_raw(len(view.text)) == len(raw)


@given(PIECES, PIECES, st.text("ab \n", max_size=4), st.sampled_from(["\n", "\r\n"]), st.text("abX \n", max_size=6))
def test_what_lies_outside_the_match_never_changes(
    before: list[str], behind: list[str], rest: str, line_end: str, new: str
) -> None:
    match = f"Q{rest}"  # no piece holds a Q, so it occurs once
    head, tail = "".join(before), "".join(behind)
    after = edited(head + match.replace("\n", line_end) + tail, Edit(match, new))
    assert after.startswith(head)
    assert after.endswith(tail)
    # Only what was put in: a lone carriage return before it and a line feed in it would be read as one line end.
    assert LfView(after[len(head) : len(after) - len(tail)]).text == new
