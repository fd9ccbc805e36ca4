"""Splices and slices of UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidOffset, InvalidQuery
from holdfast.store.content import (
    WriteMode,
    apply_write,
    check_offset,
    check_range,
    encode_content,
    parse_mode,
    slice_text,
    window_for_range,
)
from holdfast.store.model import ContentSlice, Window

TEXTS = st.text(st.sampled_from("aé€😀\n"), max_size=12)


def slice_of(content: bytes, offset: int, length: int) -> ContentSlice:
    start, count = window_for_range(offset, length)
    return slice_text(Window(len(content), start, content[start : start + count]), offset, length)


@pytest.mark.parametrize("encoding", ["", "utf-8", "UTF-8", "Utf-8"])
def test_utf_8_in_any_case_is_taken(encoding: str) -> None:
    assert encode_content("é", encoding) == "é".encode()


@pytest.mark.parametrize(
    ("content", "encoding"), [("a", "latin-1"), ("a", "utf8"), ("a\ud800", "utf-8"), ("\udfff", "")]
)
def test_another_encoding_or_a_lone_surrogate_is_refused(content: str, encoding: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        encode_content(content, encoding)
    assert caught.value.message.encode()


def test_a_mode_is_taken_in_any_case_and_no_other_mode() -> None:
    assert parse_mode("append") is WriteMode.APPEND
    for other in ("", "REPLACE", "\ud800"):
        with pytest.raises(InvalidOffset):
            parse_mode(other)


@pytest.mark.parametrize(
    ("mode", "offset"),
    [(WriteMode.APPEND, -1), (WriteMode.OVERWRITE, -1), (WriteMode.TRUNCATE, 1), (WriteMode.APPEND, -(10**30))],
)
def test_an_offset_that_no_file_has_is_refused(mode: WriteMode, offset: int) -> None:
    with pytest.raises(InvalidOffset):
        check_offset(mode, offset)


@pytest.mark.parametrize(
    ("before", "content", "mode", "offset", "after"),
    [
        (b"hello", b"world", WriteMode.APPEND, 0, b"helloworld"),
        (b"hello", b"world", WriteMode.APPEND, 99, b"helloworld"),
        (None, b"new", WriteMode.APPEND, 0, b"new"),
        (b"hello", b"yo", WriteMode.OVERWRITE, 0, b"yollo"),
        (b"ABCDE", b"XX", WriteMode.OVERWRITE, 2, b"ABXXE"),
        (b"AB", b"XX", WriteMode.OVERWRITE, 2, b"ABXX"),
        (b"AB", b"XXX", WriteMode.OVERWRITE, 1, b"AXXX"),
        (None, b"X", WriteMode.OVERWRITE, 0, b"X"),
        (b"long before", b"", WriteMode.TRUNCATE, 0, b""),
    ],
)
def test_content_meets_what_the_file_holds(
    before: bytes | None, content: bytes, mode: WriteMode, offset: int, after: bytes
) -> None:
    assert apply_write(before, content, mode, offset) == after


@pytest.mark.parametrize(
    ("before", "content", "offset"),
    [
        (b"AB", b"X", 3),
        (None, b"X", 1),
        ("é".encode(), b"X", 1),
        ("é".encode(), b"X", 0),
        ("aé".encode(), b"XX", 0),
        (b"", b"X", 10**30),
    ],
)
def test_a_splice_past_the_end_or_into_a_character_is_refused(
    before: bytes | None, content: bytes, offset: int
) -> None:
    with pytest.raises(InvalidOffset):
        apply_write(before, content, WriteMode.OVERWRITE, offset)


@given(TEXTS, TEXTS, st.integers(0, 40))
def test_exactly_the_splices_that_leave_valid_text_are_taken(before: str, content: str, offset: int) -> None:
    held, data = before.encode(), content.encode()
    wanted = held[:offset] + data + held[offset + len(data) :]
    try:
        assert apply_write(held, data, WriteMode.OVERWRITE, offset) == wanted
    except InvalidOffset:
        assert offset > len(held) or not _is_text(wanted)
    else:
        assert _is_text(wanted)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("offset", "length", "text"),
    [(0, -1, "hello"), (1, 3, "ell"), (5, -1, ""), (99, -1, ""), (0, 0, ""), (10**30, 10**30, ""), (3, 10**30, "lo")],
)
def test_a_range_of_hello(offset: int, length: int, text: str) -> None:
    found = slice_of(b"hello", offset, length)
    assert found.text == text
    assert not found.moved


@pytest.mark.parametrize(("offset", "length"), [(-1, -1), (0, -2), (-(10**30), 0)])
def test_a_range_that_no_file_has_is_refused(offset: int, length: int) -> None:
    with pytest.raises(InvalidOffset):
        check_range(offset, length)


@pytest.mark.parametrize(
    ("offset", "length", "text", "start", "end"),
    [
        (0, 2, "a", 0, 1),
        (2, -1, "é€b", 1, 7),
        (2, 1, "é", 1, 3),
        (1, 1, "é", 1, 3),
        (4, 1, "€", 3, 6),
        (5, 2, "€b", 3, 7),
        (2, 0, "", 1, 1),
    ],
)
def test_both_ends_move_down_to_a_character(offset: int, length: int, text: str, start: int, end: int) -> None:
    found = slice_of("aé€b".encode(), offset, length)
    assert (found.text, found.start, found.end, found.moved) == (
        text,
        start,
        end,
        (start, end) != (offset, offset + length) or length == -1,
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_slice_that_ends_inside_a_character_is_that_character_whatever_follows(length: int) -> None:
    assert slice_of("😀😀".encode(), 0, length) == ContentSlice("😀", 0, 4, moved=True)
    assert slice_of("😀😀😀".encode(), 5, length) == ContentSlice("😀", 4, 8, moved=True)


@given(TEXTS, st.integers(0, 50), st.integers(-1, 50))
def test_a_slice_is_the_bytes_of_its_range_and_makes_progress(text: str, offset: int, length: int) -> None:
    content = text.encode()
    found = slice_of(content, offset, length)
    assert found.text.encode() == content[found.start : found.end]
    assert found.start <= min(offset, len(content))
    if length != 0 and offset < len(content):
        assert found.end > found.start
    if length >= 0 and found.end > offset + length:
        assert len(found.text) == 1
