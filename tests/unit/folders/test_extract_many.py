"""Many documents through few children: order is kept, and what goes wrong stays with its document."""

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.errors import Cancelled
from holdfast.folders.children import extract
from holdfast.folders.children.extract import (
    FILES_PER_CHILD,
    ExtractedText,
    ExtractionLimits,
    ExtractionRequest,
    _parse_replies,
    _trusted_replies,
    extract_texts,
)
from holdfast.folders.children.request import ChildReply
from tests.helpers import documents
from tests.helpers.reader import Reader
from tests.helpers.readers import no_reader, signalled_reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    yield Reader(tmp_path / "root", tmp_path / "state")


def taken(
    reader: Reader, files: list[tuple[str, bytes]], bounds: ExtractionLimits | None = None
) -> list[ExtractedText]:
    with ExitStack() as held:
        wanted = []
        for number, (kind, content) in enumerate(files):
            reader.write(str(number), content)
            wanted.append(ExtractionRequest(held.enter_context(reader.jail.open_file(str(number))).fd, kind))
        return extract_texts(reader.call, wanted, bounds or ExtractionLimits())


def test_nothing_wanted_starts_no_child(reader: Reader) -> None:
    assert taken(reader, []) == []


def test_every_document_gets_its_trusted_replies_text_in_order(reader: Reader) -> None:
    texts = taken(reader, [("PDF", documents.pdf(f"page {number}")) for number in range(FILES_PER_CHILD + 3)])
    assert [each.text for each in texts] == [
        f"--- Page 1 ---\npage {number}\n" for number in range(FILES_PER_CHILD + 3)
    ]
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
    first, heavy, last = taken(reader, files, ExtractionLimits(memory_bytes=200 << 20))
    assert "first" in first.text
    assert heavy.error
    assert not heavy.is_transient
    assert "last" in last.text


def test_one_that_takes_too_long_is_given_up_and_the_others_are_read(reader: Reader) -> None:
    slow, last = taken(
        reader,
        [("ARCHIVE", documents.sheet(60_000)), ("ZIP", documents.archive({"a": b"b"}))],
        ExtractionLimits(50_000_000, seconds=0.5),
    )
    assert slow.error == "reading it took longer than 0.5 s"
    assert last.text.endswith("a\n")


def test_one_that_keeps_the_processor_busy_is_itself_to_blame(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "_PATIENCE", 100.0)
    (slow,) = taken(reader, [("ARCHIVE", documents.sheet(60_000))], ExtractionLimits(50_000_000, seconds=0.5))
    assert slow == ExtractedText(error="reading it took longer than 0.5 s")


def test_a_reader_that_cannot_start_blames_no_document(reader: Reader) -> None:
    with no_reader():
        found = taken(reader, [("PDF", documents.pdf())] * (FILES_PER_CHILD + 1))
    assert found == [ExtractedText(error="its reader could not start", is_transient=True)] * (FILES_PER_CHILD + 1)


def test_want_of_descriptors_blames_no_document(reader: Reader) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    reader.write("a.pdf", documents.pdf())
    with reader.jail.open_file("a.pdf") as file:
        resource.setrlimit(resource.RLIMIT_NOFILE, (file.fd + 1, limits[1]))
        try:
            (found,) = extract_texts(reader.call, [ExtractionRequest(file.fd, "PDF")], ExtractionLimits())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.is_transient


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_reader_that_somebody_killed_blames_no_document(reader: Reader, number: signal.Signals) -> None:
    with signalled_reader(number):
        slow, last = taken(reader, [("ARCHIVE", documents.sheet(60_000)), ("PDF", documents.pdf("last"))])
    assert slow == ExtractedText(error=f"its reader was stopped (signal {number.value})", is_transient=True)
    assert "last" in last.text


def test_a_reader_that_stands_still_blames_no_document(reader: Reader) -> None:
    with signalled_reader(signal.SIGSTOP):
        (slow,) = taken(reader, [("ARCHIVE", documents.sheet(60_000))], ExtractionLimits(50_000_000, seconds=0.5))
    assert slow == ExtractedText(error="reading it took longer than 0.5 s", is_transient=True)


def test_documents_whose_reader_writes_more_than_it_may_are_blamed_and_end_nothing(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "_MAX_HEADER_BYTES", 10)
    found = taken(reader, [("PDF", documents.pdf("words " * 20))] * 3, ExtractionLimits(max_text_bytes=30))
    assert [(bool(each.error), each.is_transient) for each in found] == [(True, False)] * 3


def test_whoever_wants_memory_after_others_is_asked_again_alone() -> None:
    fine, starved = ChildReply({}, b"text"), ChildReply({"error": "it needs more", "is_out_of_memory": True}, b"")
    assert _trusted_replies([fine, fine, starved, fine]) == [fine, fine]
    assert _trusted_replies([starved, fine]) == [starved, fine]


def test_the_names_in_an_archive_of_very_many_are_cut(reader: Reader) -> None:
    (listing,) = taken(reader, [("ZIP", documents.archive({f"file {n}": b"" for n in range(5_000)}))])
    assert listing.text.startswith("Archive of 5000 entries")
    assert len(listing.text) <= 16_000


def test_a_page_of_hostile_markup_costs_little(reader: Reader) -> None:
    hostile = b"<html>" + b"<div " * 50_000 + b"<p>" * 50_000 + b"words" + b"<!--" * 1000
    (page,) = taken(reader, [("HTML", hostile)])
    assert page == ExtractedText("words\n", "HTML")


def test_the_call_ends_it(reader: Reader) -> None:
    reader.call.cancel()
    with pytest.raises(Cancelled):
        taken(reader, [("PDF", documents.pdf())])


def frame(payload: bytes, **header: object) -> bytes:
    return json.dumps({"kind": "PDF", "bytes": len(payload), **header}).encode() + b"\n" + payload


def test_answers_count_up_to_the_first_that_makes_no_sense() -> None:
    good = frame(b"one\n") + frame(b"")
    assert [reply.payload for reply in _parse_replies(good)] == [b"one\n", b""]
    for rest in (frame(b"cut")[:-1], b"no json\n", b"[]\n", b'{"bytes": "x"}\n', frame(b"", bytes=-5), b"{}\n"):
        assert len(_parse_replies(good + rest + frame(b"late"))) <= 3
        assert [reply.payload for reply in _parse_replies(good + rest)] == [b"one\n", b""]


def test_no_descriptor_is_left_open(reader: Reader) -> None:
    before = len(os.listdir("/proc/self/fd"))
    taken(reader, [("PDF", b"%PDF-1.4 broken"), ("PDF", documents.pdf())])
    assert len(os.listdir("/proc/self/fd")) == before
