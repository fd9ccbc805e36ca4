"""Pieces tile the file, keep characters whole, fall on boundaries, and stay when text elsewhere changes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search.chunk import MAX_BYTES, MIN_BYTES, TARGET_BYTES, diff_chunks, split_into_chunks
from holdfast.search.model import Chunk, IndexedChunk

LINES = st.lists(
    st.one_of(
        st.text(max_size=200),
        st.sampled_from(
            ["", "# Heading", "def f():", "    return 1", "x" * 900, "文字" * 300, "👩‍👧‍👦 " * 90, "a. b! c? " * 60]
        ),
    ),
    max_size=60,
)
TEXTS = st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\n\n", ""])).map(lambda made: made[1].join(made[0]))


@pytest.mark.req("SE-01.a")
@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_pieces_tile_any_text_without_splitting_a_character(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass") if text.isascii() else text.encode("utf-8", "ignore")
    chunks = split_into_chunks(data)
    assert b"".join(chunk.text.encode() for chunk in chunks) == data
    at = 0
    for chunk in chunks:
        assert (chunk.start, data[chunk.start : chunk.end].decode()) == (at, chunk.text)
        assert 0 < chunk.end - chunk.start <= MAX_BYTES
        at = chunk.end
    assert at == len(data)
    assert all(chunk.end - chunk.start >= MIN_BYTES - 3 for chunk in chunks[:-1])


@pytest.mark.req("SE-01.b")
def test_an_empty_text_has_no_pieces_and_a_short_one_is_one_piece() -> None:
    assert split_into_chunks(b"") == []
    assert [chunk.text for chunk in split_into_chunks(b"short")] == ["short"]


@pytest.mark.req("SE-01.c")
def test_cuts_fall_before_headings_where_there_are_any() -> None:
    part = "word " * 150
    text = "".join(f"# Part {number}\n\n{part}\n\n{part}\n\n" for number in range(12))
    chunks = split_into_chunks(text.encode())
    assert len(chunks) > 8
    assert all(chunk.text.startswith("# Part") for chunk in chunks)


@pytest.mark.req("SE-01.c")
def test_cuts_fall_before_functions_in_code() -> None:
    body = "".join(f"    value_{number} = compute({number})\n" for number in range(14))
    text = "".join(f"def step_{number}():\n{body}\n\n" for number in range(20))
    assert all(chunk.text.startswith("def step_") for chunk in split_into_chunks(text.encode()))


@pytest.mark.req("SE-01.c")
def test_cuts_fall_between_paragraphs_before_lines_and_lines_before_sentences() -> None:
    paragraphs = "\n\n".join("\n".join(["some words on a line"] * 20) for _ in range(20))
    assert all(chunk.text.endswith("\n\n") for chunk in split_into_chunks(paragraphs.encode())[:-1])
    lines = "\n".join(f"line {number} has words. And more." for number in range(400))
    assert all(chunk.text.endswith("\n") for chunk in split_into_chunks(lines.encode())[:-1])
    sentences = " ".join(f"Sentence {number} has words." for number in range(400))
    assert all(chunk.text.endswith(". ") for chunk in split_into_chunks(sentences.encode())[:-1])


@pytest.mark.req("SE-01.c")
def test_pieces_are_of_the_target_size_in_the_mean() -> None:
    choose = random.Random(1)
    text = "\n".join(f"{number} " + "word " * choose.randrange(1, 20) for number in range(5000))
    chunks = split_into_chunks(text.encode())
    mean = sum(chunk.end - chunk.start for chunk in chunks) / len(chunks)
    assert 0.8 * TARGET_BYTES < mean < 1.2 * TARGET_BYTES


@pytest.mark.req("SE-05.b")
@pytest.mark.parametrize("seed", range(5))
def test_an_edit_changes_the_pieces_around_it_alone(seed: int) -> None:
    choose = random.Random(seed)
    lines = [f"{number} " + "word " * choose.randrange(1, 30) for number in range(2000)]
    at = choose.randrange(len(lines))
    before = {chunk.content_hash for chunk in split_into_chunks("\n".join(lines).encode())}
    after = split_into_chunks("\n".join([*lines[:at], "something else", *lines[at:]]).encode())
    assert sum(chunk.content_hash not in before for chunk in after) <= 4


def test_equal_pieces_keep_their_ids_wherever_they_stand_now() -> None:
    def chunk(text: str, start: int) -> Chunk:
        return Chunk(start, start + 1, text, text)

    known = [IndexedChunk(7, 0, 0, 1, "a"), IndexedChunk(8, 1, 1, 2, "b"), IndexedChunk(9, 2, 2, 3, "a")]
    needed = diff_chunks(known, [chunk("a", 0), chunk("x", 1), chunk("a", 2), chunk("a", 3)])
    assert [(number, place) for number, place, _ in needed.unchanged] == [(7, 0), (9, 2)]
    assert [place for place, _ in needed.added] == [1, 3]
    assert needed.removed_ids == [8]
