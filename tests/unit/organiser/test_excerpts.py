"""What a file's ends say, what it is by its bytes, and when its text must be read."""

import pytest

from holdfast.organiser.model import Excerpt, Verdict
from holdfast.organiser.scan.excerpts import drop_part_headers, excerpt_from_ends, reason_to_read_text
from holdfast.text.media_types import content_type
from tests.helpers import documents


def look(data: bytes, suffix: str = "txt") -> Excerpt:
    return excerpt_from_ends(len(data), data[:4096], data[-4096:], suffix)


def test_a_short_file_is_read_whole() -> None:
    for length in (1, 100, 2048, 3072):
        excerpt = look(b"a" * length)
        assert (len(excerpt.text), excerpt.bytes_read, excerpt.tier) == (length, length, 1)


@pytest.mark.parametrize("length", [3073, 4095, 4096, 4097, 8192, 1_000_000])
def test_a_longer_file_gives_its_first_2_kb_and_its_last_1_kb(length: int) -> None:
    data = b"h" * 2048 + b"m" * (length - 3072) + b"t" * 1024
    excerpt = look(data)
    assert excerpt.text == "h" * 2048 + "\n…\n" + "t" * 1024
    assert excerpt.bytes_read == 3072


def test_an_empty_file_says_nothing() -> None:
    assert look(b"") == Excerpt("", 1, 0, "inode/x-empty")


def test_a_character_cut_in_two_is_left_out() -> None:
    excerpt = look("ä".encode() * 4_000)
    assert set(excerpt.text) == {"ä", "\n", "…"}


def test_wide_encodings_are_read_from_both_ends() -> None:
    excerpt = look("Grüße ".encode("utf-16") + "und ".encode("utf-16-le") * 4_000)
    assert excerpt.text.startswith("Grüße und")
    assert excerpt.text.endswith("und und")


def test_markup_is_not_part_of_what_a_page_says() -> None:
    excerpt = look(b"<!DOCTYPE html><style>p {}</style><p>Hello <b>there</b></p><!-- no -->", "html")
    assert excerpt.text == "Hello there"
    assert excerpt.content_type == "text/html"


def test_lines_that_a_reader_writes_between_parts_are_no_words_of_a_document() -> None:
    assert drop_part_headers("--- Page 1 ---\nRent\n--- Page 2 ---\n") == "Rent"
    assert drop_part_headers("--- Slide 3 ---\nPlan") == "Plan"
    assert drop_part_headers("--- Sheet: Budget ---\n1\t2") == "Budget\n1\t2"
    assert drop_part_headers("Archive of 2 entries, 40 bytes unpacked\na.txt\nb.txt") == "a.txt\nb.txt"
    text = "On page --- Page 1 --- of the archive\nArchive of 2 letters"
    assert drop_part_headers(text) == text


@pytest.mark.parametrize(
    ("data", "suffix", "kind"),
    [
        (b"%PDF-1.7\n", "txt", "application/pdf"),
        (b"hello", "pdf", "text/plain"),
        (b"\x89PNG\r\n\x1a\n", "pdf", "image/png"),
        (b"\xff\xd8\xff\xe0", "doc", "image/jpeg"),
        (b"7z\xbc\xaf\x27\x1c", "txt", "application/x-7z-compressed"),
        (b"Rar!\x1a\x07\x01", "", "application/vnd.rar"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "doc", "application/x-ole-storage"),
        (b"MZ\x90\0", "exe", "application/vnd.microsoft.portable-executable"),
        (b"\0\0\0\x18ftypheic", "jpg", "image/heic"),
        (b"\0\0\0\x14ftypqt  ", "mov", "video/quicktime"),
        (b"<html><body>", "txt", "text/html"),
        (b"From: a@b.example\nTo: c@d.example\nSubject: Hi\n\nHello", "txt", "message/rfc822"),
        (b"From: here to eternity\nis a film", "txt", "text/plain"),
        (b"{}", "json", "application/json"),
        (bytes(range(256)), "txt", "application/octet-stream"),
        (documents.word()[:4096], "zip", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (documents.sheet()[:4096], "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (documents.epub()[:4096], "", "application/epub+zip"),
        (documents.archive({"a.txt": b"x"}), "docx2", "application/zip"),
    ],
)
def test_the_type_is_told_by_the_bytes(data: bytes, suffix: str, kind: str) -> None:
    assert content_type(data, f".{suffix}")[0] == kind


@pytest.mark.parametrize(
    "words", ["Total: 12", "TOTAL", "Invoice No 7", "Balance Due", "balance\ndue", "this Agreement", "WITNESSETH"]
)
def test_words_of_business_call_for_the_whole_text(words: str) -> None:
    assert reason_to_read_text(look(words.encode()), "txt")


@pytest.mark.parametrize("words", ["totally", "disagreements", "voice", "hello"])
def test_other_words_do_not(words: str) -> None:
    assert reason_to_read_text(look(words.encode()), "txt") is None


def test_a_document_is_read_by_its_suffix_or_by_its_bytes() -> None:
    assert reason_to_read_text(Excerpt(""), "pdf")
    assert reason_to_read_text(Excerpt(""), "docx")
    assert reason_to_read_text(Excerpt("", content_type="application/pdf"), "bin")
    assert reason_to_read_text(Excerpt(""), "bin") is None


def test_the_classifier_asks_for_more_or_is_not_sure() -> None:
    plain = Excerpt("hello")
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.9)) is None
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.8)) is None
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.79)) == "the confidence is under 0.8"
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.9, requires_deep_scan=True))


def test_what_has_been_read_is_not_read_again() -> None:
    assert reason_to_read_text(Excerpt("Total", tier=2), "pdf", Verdict("Notes", 0.1)) is None
