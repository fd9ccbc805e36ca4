"""Lines by head, tail, range and pattern, a page at a time, on real files."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import (
    Conflict,
    HoldfastError,
    InvalidArgument,
    InvalidOffset,
    InvalidQuery,
    PermissionDenied,
    TimedOut,
)
from holdfast.folders.reading.read import LineSelection, ReadPosition
from holdfast.text.budget import estimate_tokens
from tests.helpers.reader import Reader

FIVE = "one\ntwo\nthree\nfour\nfive\n"
GIGA = 1 << 30


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    return Reader(tmp_path / "root", tmp_path / "state")


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        (LineSelection(), FIVE),
        (LineSelection(head=2), "one\ntwo"),
        (LineSelection(head=5), FIVE),
        (LineSelection(head=99), FIVE),
        (LineSelection(tail=2), "four\nfive\n"),
        (LineSelection(tail=99), FIVE),
        (LineSelection(start_line=2, end_line=3), "two\nthree"),
        (LineSelection(start_line=4), "four\nfive\n"),
        (LineSelection(end_line=1), "one"),
        (LineSelection(start_line=4, end_line=99), "four\nfive\n"),
        (LineSelection(start_line=2, read_to_next_pattern="^f"), "two\nthree"),
        (LineSelection(start_line=4, read_to_next_pattern="^f"), "four"),
        (LineSelection(start_line=1, end_line=2, read_to_next_pattern="^f"), "one\ntwo"),
    ],
)
def test_exactly_the_lines_that_were_asked_for(reader: Reader, selection: LineSelection, text: str) -> None:
    reader.write("a", FIVE)
    assert reader.text("a", selection) == text


def test_a_pattern_that_never_comes_reads_to_the_end_and_says_so(reader: Reader) -> None:
    reader.write("a", FIVE)
    piece = reader.piece("a", LineSelection(start_line=4, read_to_next_pattern="^x"))
    assert piece.text == "four\nfive\n"
    assert "read to the end" in piece.notes[0]


@pytest.mark.parametrize(
    ("selection", "error"),
    [
        (LineSelection(head=1, tail=1), InvalidArgument),
        (LineSelection(head=1, start_line=1), InvalidArgument),
        (LineSelection(tail=1, read_to_next_pattern="x"), InvalidArgument),
        (LineSelection(head=0), InvalidOffset),
        (LineSelection(start_line=3, end_line=2), InvalidOffset),
        (LineSelection(start_line=6), InvalidOffset),
        (LineSelection(read_to_next_pattern="("), InvalidQuery),
    ],
)
def test_a_question_that_makes_no_sense_is_an_error(
    reader: Reader, selection: LineSelection, error: type[HoldfastError]
) -> None:
    reader.write("a", FIVE)
    with pytest.raises(error):
        reader.text("a", selection)


def test_a_start_past_the_end_says_how_many_lines_there_are(reader: Reader) -> None:
    reader.write("a", FIVE.rstrip("\n"))
    with pytest.raises(InvalidOffset, match="the file has 5 lines"):
        reader.text("a", LineSelection(start_line=6))


def test_a_catastrophic_pattern_costs_nothing(reader: Reader) -> None:
    reader.write("a", "a" * 20_000 + "!\n" + "b\n")
    started = time.monotonic()
    reader.text("a", LineSelection(read_to_next_pattern="(a+)+$"))
    assert time.monotonic() - started < 2


def test_an_empty_file_is_empty_text(reader: Reader) -> None:
    reader.write("a", "")
    for selection in (LineSelection(), LineSelection(head=3), LineSelection(tail=3), LineSelection(start_line=1)):
        assert reader.text("a", selection) == ""


def test_crlf_and_a_missing_last_newline_are_shown_as_they_are(reader: Reader) -> None:
    reader.write("a", "one\r\ntwo\r\nthree")
    assert reader.text("a") == "one\r\ntwo\r\nthree"
    assert reader.text("a", LineSelection(head=2)) == "one\r\ntwo"
    assert reader.text("a", LineSelection(tail=1)) == "three"


PARTS = st.lists(st.sampled_from(["a", "bc ", "\n", "\r\n", "é", "中文", "🙂", "x" * 30]), min_size=1, max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    PARTS, st.integers(4, 40), st.integers(1, 12), st.integers(0, 12), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"])
)
def test_pages_are_the_lines_whatever_the_text(
    reader: Reader, parts: list[str], tokens: int, start: int, more: int, codec: str
) -> None:
    text = "".join(parts)
    lines = text.splitlines(keepends=True)
    reader.tokens = tokens
    reader.write("a", text.encode(codec))
    assert "".join(reader.pieces("a")) == text
    assert "".join(reversed(reader.pieces("a", LineSelection(tail=start)))) == "".join(lines[-start:])
    if start <= len(lines):
        wanted = "".join(lines[start - 1 : start + more])
        got = "".join(reader.pieces("a", LineSelection(start_line=start, end_line=start + more)))
        last_newline = 0 if start + more >= len(lines) else 2 if wanted.endswith("\r\n") else 1
        assert got == wanted[: len(wanted) - last_newline]


TEXT = "".join(f"line {number} äöü 中文 text\n" for number in range(1, 6001))


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gbk"])
def test_pages_joined_are_the_file_in_every_encoding(reader: Reader, codec: str) -> None:
    text = TEXT.replace("äöü", "文件") if codec == "gbk" else TEXT
    lines = text.splitlines(keepends=True)
    reader.write("a", text.encode(codec))
    reader.tokens = 1000
    pages = reader.pieces("a")
    assert len(pages) > 10
    assert "".join(pages) == text
    assert all(estimate_tokens(page) <= 1000 and page.endswith("\n") for page in pages)
    assert "".join(reader.pieces("a", LineSelection(start_line=11, end_line=4000))) == "".join(lines[10:4000])[:-1]
    assert "".join(reversed(reader.pieces("a", LineSelection(tail=3000)))) == "".join(lines[-3000:])
    assert (
        "".join(reader.pieces("a", LineSelection(start_line=5, read_to_next_pattern="^line 5000 ")))
        == ("".join(lines[4:4999])[:-1])
    )


def test_one_enormous_line_is_read_in_pages_from_either_end(reader: Reader) -> None:
    text = "é中x" * 40_000
    reader.write("a", text)
    reader.tokens = 3000
    assert "".join(reader.pieces("a")) == text
    assert "".join(reversed(reader.pieces("a", LineSelection(tail=1)))) == text


def test_bytes_that_break_the_encoding_later_on_are_replaced_and_said(reader: Reader) -> None:
    reader.write("a", "é plain\n".encode() * 20_000 + b"bad \xff byte\n")
    reader.tokens = 60_000
    piece = reader.piece("a", LineSelection(tail=1))
    assert piece.text == "bad \ufffd byte\n"
    assert "not valid utf-8" in piece.notes[0]


def test_legacy_text_after_a_long_ascii_beginning_is_decoded(reader: Reader) -> None:
    reader.write("a", b"plain line\n" * 20_000 + "这是一个用来检查编码的文本文件。\n".encode("gbk"))
    piece = reader.piece("a", LineSelection(tail=1))
    assert piece.text == "这是一个用来检查编码的文本文件。\n"
    assert piece.encoding.name == "gbk"


def test_a_binary_file_says_which_tool_to_use(reader: Reader) -> None:
    reader.write("a", b"\x7fELF\0\0\0")
    with pytest.raises(InvalidArgument) as caught:
        reader.text("a")
    assert caught.value.message == "Binary file. Use read_media_file."


def test_a_30_gb_file_is_read_at_once_at_either_end(reader: Reader) -> None:
    path = reader.write("big", b"first line\n" * 10_000)
    with path.open("r+b") as file:
        file.truncate(30 * GIGA)
        file.seek(-1_000_000, os.SEEK_END)
        file.write(b"last line\n" * 100_000)
    started = time.monotonic()
    assert reader.text("big", LineSelection(head=2)) == "first line\nfirst line"
    assert reader.text("big", LineSelection(start_line=3, end_line=3)) == "first line"
    assert reader.text("big", LineSelection(tail=2)) == "last line\nlast line\n"
    assert len(reader.text("big")) <= 100_000
    assert time.monotonic() - started < 1


def test_a_30_gb_hole_is_binary_at_once(reader: Reader) -> None:
    with reader.write("hole", b"").open("r+b") as file:
        file.truncate(30 * GIGA)
    with pytest.raises(InvalidArgument, match="Binary file"):
        reader.text("hole", LineSelection(tail=5))


def test_text_that_goes_on_as_something_else_is_read_up_to_there(reader: Reader) -> None:
    reader.write("a", b"line\n" * 16_000 + b"\0" * 50_000 + b"end\n")
    assert reader.text("a", LineSelection(head=2)) == "line\nline"
    assert reader.text("a", LineSelection(tail=1)) == "end\n"
    piece = reader.piece("a")
    assert piece.text == "line\n" * 16_000
    with pytest.raises(InvalidArgument, match="Binary file"):
        reader.piece("a", position=piece.rest)


def test_the_way_to_a_far_line_ends_with_the_call(reader: Reader) -> None:
    path = reader.write("big", b"first line\n" * 10_000)
    with path.open("r+b") as file:
        file.truncate(30 * GIGA)
    reader.call.timeout_seconds = 0.2
    reader.call.started_at = time.monotonic()
    with pytest.raises(TimedOut):
        reader.text("big", LineSelection(start_line=20_000))
    assert time.monotonic() - reader.call.started_at < 2


def test_a_fifo_is_refused_at_once(reader: Reader) -> None:
    os.mkfifo(reader.root / "pipe")
    with pytest.raises(PermissionDenied, match="not a regular file"):
        reader.text("pipe")


def test_a_file_that_grows_ends_where_it_ended_at_opening(reader: Reader) -> None:
    path = reader.write("log", "old\n" * 40_000)
    with reader.source("log") as source:
        with path.open("ab") as file:
            file.write(b"new\n" * 1000)
        assert source.size == 160_000
        assert source.read_at(159_996, 9999) == b"old\n"


def test_a_file_that_shrinks_gives_what_is_left(reader: Reader) -> None:
    path = reader.write("log", "old\n" * 40_000)
    with reader.source("log") as source:
        os.truncate(path, 100_000)
        assert len(source.read_at(80_000, 80_000)) == 20_000


def test_a_cursor_for_another_state_of_the_file_is_a_conflict(reader: Reader) -> None:
    path = reader.write("a", FIVE)
    with reader.source("a") as source:
        version = source.version
    path.write_text(FIVE + "six\n")
    with reader.source("a") as source, pytest.raises(Conflict, match="changed since the cursor"):
        source.check_version(version)


@pytest.mark.parametrize("state", [None, {}, {"o": -1}, {"o": True}, {"o": 1, "n": "x"}, {"o": 1, "l": -3}])
def test_a_broken_position_is_refused(state: object) -> None:
    with pytest.raises(InvalidArgument):
        ReadPosition.of(state)


def test_a_position_past_the_end_is_refused(reader: Reader) -> None:
    reader.write("a", FIVE)
    with pytest.raises(InvalidArgument):
        reader.piece("a", position=ReadPosition(99_999))


def test_a_small_file_takes_a_handful_of_microseconds(reader: Reader) -> None:
    reader.write("a", "x" * 1000)
    best = min(_timed(reader, "a") for _ in range(200))
    assert best < 0.0005


def _timed(reader: Reader, name: str) -> float:
    started = time.perf_counter()
    reader.text(name)
    return time.perf_counter() - started
