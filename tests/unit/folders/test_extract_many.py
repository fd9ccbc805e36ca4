"""Many documents through few children: order is kept, and what goes wrong stays with its document."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.errors import Cancelled
from holdfast.folders.extract_many import AT_ONCE, Bounds, Taken, Wanted, _replies, take_texts
from tests.helpers import documents
from tests.helpers.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    yield Reader(tmp_path / "root", tmp_path / "state")


def taken(reader: Reader, files: list[tuple[str, bytes]], bounds: Bounds | None = None) -> list[Taken]:
    with ExitStack() as held:
        wanted = []
        for number, (kind, content) in enumerate(files):
            reader.write(str(number), content)
            wanted.append(Wanted(held.enter_context(reader.jail.open_file(str(number))).fd, kind))
        return take_texts(reader.call, wanted, bounds or Bounds())


def test_nothing_wanted_starts_no_child(reader: Reader) -> None:
    assert taken(reader, []) == []


def test_every_document_gets_its_own_text_in_order(reader: Reader) -> None:
    texts = taken(reader, [("PDF", documents.pdf(f"page {number}")) for number in range(AT_ONCE + 3)])
    assert [each.text for each in texts] == [f"--- Page 1 ---\npage {number}\n" for number in range(AT_ONCE + 3)]
    assert {each.kind for each in texts} == {"PDF"}


def test_an_archive_is_read_as_what_it_holds(reader: Reader) -> None:
    kinds = [documents.word(), documents.sheet(), documents.slides(), documents.epub(), documents.archive({"a": b"b"})]
    assert [each.kind for each in taken(reader, [("ARCHIVE", data) for data in kinds])] == [
        "DOCX",
        "XLSX",
        "PPTX",
        "EPUB",
        "ZIP",
    ]


def test_a_document_that_kills_its_reader_is_blamed_and_the_others_are_read(reader: Reader) -> None:
    files = [("PDF", documents.pdf("first")), ("ARCHIVE", documents.heavy_word(300)), ("PDF", documents.pdf("last"))]
    first, heavy, last = taken(reader, files, Bounds(memory_bytes=200 << 20))
    assert "first" in first.text
    assert heavy.error
    assert "last" in last.text


def test_one_that_takes_too_long_is_given_up_and_the_others_are_read(reader: Reader) -> None:
    slow, last = taken(
        reader,
        [("ARCHIVE", documents.sheet(60_000)), ("ZIP", documents.archive({"a": b"b"}))],
        Bounds(50_000_000, seconds=0.5),
    )
    assert slow.error == "reading it took longer than 0.5 s"
    assert last.text.endswith("a\n")


def test_the_names_in_an_archive_of_very_many_are_cut(reader: Reader) -> None:
    (listing,) = taken(reader, [("ZIP", documents.archive({f"file {n}": b"" for n in range(5_000)}))])
    assert listing.text.startswith("Archive of 5000 entries")
    assert len(listing.text) <= 16_000


def test_a_page_of_hostile_markup_costs_little(reader: Reader) -> None:
    hostile = b"<html>" + b"<div " * 50_000 + b"<p>" * 50_000 + b"words" + b"<!--" * 1000
    (page,) = taken(reader, [("HTML", hostile)])
    assert page == Taken("words\n", "HTML")


def test_the_call_ends_it(reader: Reader) -> None:
    reader.call.cancel()
    with pytest.raises(Cancelled):
        taken(reader, [("PDF", documents.pdf())])


def frame(payload: bytes, **header: object) -> bytes:
    return json.dumps({"kind": "PDF", "bytes": len(payload), **header}).encode() + b"\n" + payload


def test_answers_count_up_to_the_first_that_makes_no_sense() -> None:
    good = frame(b"one\n") + frame(b"")
    assert [reply.payload for reply in _replies(good)] == [b"one\n", b""]
    for rest in (frame(b"cut")[:-1], b"no json\n", b"[]\n", b'{"bytes": "x"}\n', frame(b"", bytes=-5), b"{}\n"):
        assert len(_replies(good + rest + frame(b"late"))) <= 3
        assert [reply.payload for reply in _replies(good + rest)] == [b"one\n", b""]


def test_no_descriptor_is_left_open(reader: Reader) -> None:
    before = len(os.listdir("/proc/self/fd"))
    taken(reader, [("PDF", b"%PDF-1.4 broken"), ("PDF", documents.pdf())])
    assert len(os.listdir("/proc/self/fd")) == before
