"""Files read in two tiers through descriptors."""

import os
import time
from pathlib import Path

import pytest

from holdfast.errors import Cancelled
from holdfast.organiser.model import ScannedFile, SkipReason
from holdfast.organiser.scan.read import MAX_TEXT_BYTES, peek_files, read_texts
from tests.helpers import documents
from tests.helpers.messy import Messy


def test_a_first_look_gives_hash_and_ends(messy: Messy) -> None:
    messy.write("a.txt", "hello\n")
    seen = messy.peek("a.txt")
    assert seen.skipped is None
    assert len(seen.file_hash) == 64
    assert (seen.excerpt.text, seen.excerpt.content_type) == ("hello", "text/plain")


def test_looks_come_in_the_order_of_the_files(messy: Messy) -> None:
    for name in ("b/1.txt", "a/2.txt", "b/3.txt", "4.txt"):
        messy.write(name, name)
    found = messy.scan()
    order = [found[name] for name in ("b/1.txt", "a/2.txt", "b/3.txt", "4.txt")]
    assert [each.excerpt.text for each in peek_files(messy.jail, messy.call, order)] == [one.relative for one in order]


def test_an_unreadable_file_is_an_item_with_an_error(messy: Messy, monkeypatch: pytest.MonkeyPatch) -> None:
    messy.write("a.txt")
    messy.write("b.txt")
    real = os.open

    def failing(path: str, flags: int, *rest: int, **more: int) -> int:
        if path == "a.txt":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    found = list(messy.scan().values())
    monkeypatch.setattr(os, "open", failing)
    first, second = peek_files(messy.jail, messy.call, found)
    assert first.skipped == ("a.txt", SkipReason.UNREADABLE, "Permission denied")
    assert second.skipped is None


def test_a_folder_that_is_gone_is_an_error_of_its_files_alone(messy: Messy) -> None:
    messy.write("gone/a.txt")
    messy.write("b.txt")
    found = sorted(messy.scan().values(), reverse=True)
    os.rename(messy.root / "gone", messy.root / "elsewhere")
    first, second = peek_files(messy.jail, messy.call, found)
    assert first.skipped is not None
    assert first.skipped.reason is SkipReason.UNREADABLE
    assert second.excerpt.text == "words"


def test_a_file_swapped_for_a_link_or_another_file_is_not_read(messy: Messy) -> None:
    path, other = messy.write("a.txt"), messy.root.parent / "other.txt"
    other.write_text("secret")
    (found,) = messy.scan().values()
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert peek_files(messy.jail, messy.call, [found])[0].excerpt.text == ""
    path.unlink()
    os.rename(other, path)
    skip = peek_files(messy.jail, messy.call, [found])[0].skipped
    assert skip is not None
    assert skip.detail == "it was replaced during the scan"


def test_a_file_swapped_for_a_fifo_does_not_hold_anybody_up(messy: Messy) -> None:
    path = messy.write("a.txt")
    (found,) = messy.scan().values()
    path.unlink()
    os.mkfifo(path)
    started = time.monotonic()
    assert peek_files(messy.jail, messy.call, [found])[0].skipped is not None
    assert time.monotonic() - started < 2


def test_a_file_that_grows_is_left_alone(messy: Messy) -> None:
    path = messy.write("a.bin", "one")
    (found,) = messy.scan().values()
    with path.open("ab") as file:
        file.write(b"two")
    skip = peek_files(messy.jail, messy.call, [found])[0].skipped
    assert skip is not None
    assert skip.reason is SkipReason.BEING_WRITTEN


def test_a_file_that_is_open_for_writing_is_left_alone_until_it_is_closed(messy: Messy) -> None:
    path = messy.write("a.bin", "one")
    with path.open("ab"):
        skip = messy.peek("a.bin").skipped
        assert skip is not None
        assert skip.reason is SkipReason.BEING_WRITTEN
    assert messy.peek("a.bin").skipped is None


def test_units_that_are_directories_and_links_are_known_by_name_alone(messy: Messy) -> None:
    messy.write("repo/.git/HEAD")
    os.symlink("repo", messy.root / "link")
    kinds = [
        (each.excerpt.content_type, each.file_hash, each.excerpt.tier)
        for each in peek_files(messy.jail, messy.call, list(messy.scan(allow_symlinks=True).values()))
    ]
    assert sorted(kinds) == [("inode/directory", "", 0), ("inode/symlink", "", 0)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.pdf", documents.pdf(), "Hello from a PDF page"),
        ("a.docx", documents.word(), "Größe und Maß."),
        ("a.xlsx", documents.sheet(), "person 0\t0"),
        ("a.pptx", documents.slides(), "Notes: Say thanks."),
        ("a.html", b"<html><title>News</title><script>x()</script><p>Rain &amp; sun", "News\nRain & sun"),
        ("a.eml", documents.message(), "Subject: Größe der Maschine"),
        ("a.eml", documents.message(), "Attached: notes.pdf"),
        ("a.epub", documents.epub(), "Title: Moby-Dick\nCreator: Herman Melville\nCall me Ishmael.\nThe carpet-bag."),
        ("a.zip", documents.archive({"src/main.c": b"int", "README": b"x"}), "src/main.c\nREADME"),
        ("a.jpg", documents.photo(), "Camera: X100V\nTaken: 2023:07:14 10:20:30"),
        ("a.txt", b"x" * 5_000 + b" middle " + b"y" * 5_000, "middle"),
        ("a.rtf", rb"{\rtf1\ansi{\fonttbl\f0 Arial;}\f0\pard Dear Sir\par}", "Dear Sir"),
        ("wrong.bin", documents.pdf(), "Hello from a PDF page"),
    ],
)
def test_text_comes_out_of_documents(messy: Messy, name: str, content: bytes, words: str) -> None:
    messy.write(name, content)
    excerpt = messy.read_text(name)
    assert words in excerpt.text
    assert (excerpt.tier, excerpt.note) == (2, "")


def test_the_text_of_a_document_is_bounded(messy: Messy) -> None:
    messy.write("a.xlsx", documents.sheet(5_000))
    messy.write("b.txt", "word " * 100_000)
    assert MAX_TEXT_BYTES - 200 < len(messy.read_text("a.xlsx").text) <= MAX_TEXT_BYTES
    assert len(messy.read_text("b.txt").text) <= MAX_TEXT_BYTES + 1_100


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("cut.docx", documents.word()[:3000], "it is a damaged archive"),
        ("cut.pdf", documents.pdf()[:60], "damaged"),
        ("bomb.docx", documents.zip_bomb(), "it unpacks to"),
        ("bomb.png", documents.pixel_bomb(), "damaged"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + b"\0" * 50, "there is no text to take out of application/x-7z-compressed"),
    ],
)
def test_a_broken_document_or_a_bomb_keeps_its_type_and_says_why(
    messy: Messy, name: str, content: bytes, why: str
) -> None:
    messy.write(name, content)
    excerpt = messy.read_text(name)
    assert why in excerpt.note
    assert excerpt.text == ""
    assert excerpt.content_type != "application/octet-stream"


def test_a_broken_document_costs_its_neighbours_nothing(messy: Messy) -> None:
    for number in range(40):
        messy.write(f"{number:02}.pdf", documents.pdf(f"page {number}") if number % 7 else b"%PDF-1.4 broken")
    found = sorted(messy.scan().values())
    results = peek_files(messy.jail, messy.call, found)
    excerpts = read_texts(messy.jail, messy.call, [(each.file, each.excerpt) for each in results], 10**6)
    for number, excerpt in enumerate(excerpts):
        assert (f"page {number}" in excerpt.text) is bool(number % 7)
        assert bool(excerpt.note) is not bool(number % 7)


def test_a_document_over_the_limit_is_not_read(messy: Messy) -> None:
    messy.write("a.pdf", documents.pdf())
    assert "documents are read up to 10" in messy.read_text("a.pdf", max_bytes=10).note


def test_a_document_that_is_gone_is_a_note(messy: Messy) -> None:
    path = messy.write("a.pdf", documents.pdf())
    first = messy.peek("a.pdf")
    path.unlink()
    (excerpt,) = read_texts(messy.jail, messy.call, [(first.file, first.excerpt)], 10**6)
    assert "No such file" in excerpt.note


def test_reading_ends_with_the_call(messy: Messy) -> None:
    messy.write("a.xlsx", documents.sheet(30_000))
    first = messy.peek("a.xlsx")
    messy.call.cancel()
    with pytest.raises(Cancelled):
        read_texts(messy.jail, messy.call, [(first.file, first.excerpt)], 10**9)


def test_no_descriptor_is_left_open(messy: Messy, tmp_path: Path) -> None:
    for number in range(20):
        messy.write(f"{number}.pdf", documents.pdf())
    before = len(os.listdir("/proc/self/fd"))
    found: list[ScannedFile] = list(messy.scan().values())
    results = peek_files(messy.jail, messy.call, found)
    read_texts(messy.jail, messy.call, [(each.file, each.excerpt) for each in results], 10**6)
    assert len(os.listdir("/proc/self/fd")) == before
