"""Documents as text, in a child that a hostile file cannot leave."""

import errno
import io
import signal
import threading
import time
import zipfile
from pathlib import Path

import pytest

from holdfast.errors import Cancelled, HoldfastError, InvalidArgument, PayloadTooLarge, ResourceBusy, TimedOut
from holdfast.folders.children import extract as extract_module
from holdfast.folders.children.extract import extract_document
from holdfast.folders.children.serve import is_transient
from holdfast.folders.reading.read import LineSelection
from holdfast.text.media_types import document_format
from tests.helpers import documents
from tests.helpers.reader import Reader
from tests.helpers.readers import no_reader, signalled_reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    return Reader(tmp_path / "root", tmp_path / "state")


def test_a_pdf_reads_as_text(reader: Reader) -> None:
    reader.write("a.pdf", documents.pdf())
    assert reader.text("a.pdf") == "--- Page 1 ---\nHello from a PDF page\n"


def test_a_docx_reads_as_text_with_its_headings_and_tables(reader: Reader) -> None:
    reader.write("a.docx", documents.word())
    assert reader.text("a.docx") == "# Minutes\nFirst paragraph.\nGröße und Maß.\nname\tage\nAda\t36\n"


def test_an_xlsx_reads_as_rows_under_the_names_of_its_sheets(reader: Reader) -> None:
    reader.write("a.xlsx", documents.sheet(2))
    assert reader.text("a.xlsx") == "--- Sheet: People ---\nname\tage\nperson 0\t0\nperson 1\t1\n--- Sheet: Empty ---\n"


def test_a_pptx_reads_as_slides_with_tables_and_notes(reader: Reader) -> None:
    reader.write("a.pptx", documents.slides())
    text = reader.text("a.pptx")
    assert text == "--- Slide 1 ---\nOpening\n--- Slide 2 ---\nClosing\nleft\tright\nNotes: Say thanks.\n"


def test_the_content_decides_and_not_the_suffix(reader: Reader) -> None:
    reader.write("renamed.txt", documents.word())
    reader.write("plain.docx", "only text\n")
    assert reader.text("renamed.txt").startswith("# Minutes")
    assert reader.text("plain.docx") == "only text\n"


def test_text_that_speaks_of_pdf_is_text(reader: Reader) -> None:
    reader.write("a.py", 'MARK = b"%PDF-"\n')
    assert reader.text("a.py") == 'MARK = b"%PDF-"\n'


def test_ranges_and_pages_work_on_a_document_as_on_text(reader: Reader) -> None:
    reader.write("a.xlsx", documents.sheet(3000))
    assert reader.text("a.xlsx", LineSelection(start_line=3, end_line=4)) == "person 0\t0\nperson 1\t1"
    reader.tokens = 2000
    pages = reader.pieces("a.xlsx")
    assert len(pages) > 3
    assert "".join(pages).count("person") == 3000


def test_a_zip_bomb_is_refused_quickly(reader: Reader) -> None:
    reader.write("bomb.docx", documents.zip_bomb())
    started = time.monotonic()
    with pytest.raises(InvalidArgument, match="it unpacks to"):
        reader.text("bomb.docx")
    assert time.monotonic() - started < 10


def test_a_bomb_of_entities_is_not_expanded(reader: Reader) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(12))
    xml = f'<?xml version="1.0"?><!DOCTYPE x [{entities}]><w:document xmlns:w="urn:x">&e11;</w:document>'
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(documents.word())) as honest, zipfile.ZipFile(out, "w") as hostile:
        for name in honest.namelist():
            hostile.writestr(name, xml if name == "word/document.xml" else honest.read(name))
    reader.write("a.docx", out.getvalue())
    started = time.monotonic()
    with pytest.raises(HoldfastError):
        reader.text("a.docx")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.docx", documents.word()[:2000]),
        ("cut.pdf", documents.pdf()[:60]),
        ("cut.xlsx", documents.sheet()[:-300]),
        ("noise.pptx", b"PK\x03\x04" + b"\x00\x07" * 500),
    ],
)
def test_a_broken_document_is_a_clear_error(reader: Reader, name: str, content: bytes) -> None:
    reader.write(name, content)
    with pytest.raises(InvalidArgument, match="cannot be read as a document"):
        reader.text(name)


def test_an_archive_is_binary_and_not_a_document(reader: Reader) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "hello")
    assert document_format(out.getvalue(), "a.zip") is None
    reader.write("a.zip", out.getvalue())
    with pytest.raises(InvalidArgument, match="Binary file"):
        reader.text("a.zip")


def test_a_document_over_the_limit_is_refused_unread(reader: Reader) -> None:
    reader.write("a.pdf", documents.pdf())
    with reader.jail.open_file("a.pdf") as file, pytest.raises(PayloadTooLarge):
        extract_document(reader.call, file, max_bytes=10)


def test_extraction_ends_with_the_call(reader: Reader) -> None:
    reader.write("a.xlsx", documents.sheet(40_000))
    reader.call.timeout_seconds = 0.3
    reader.call.started_at = time.monotonic()
    with pytest.raises(TimedOut):
        reader.text("a.xlsx")
    assert time.monotonic() - reader.call.started_at < 3


def test_extraction_is_cancelled_with_the_call(reader: Reader) -> None:
    reader.write("a.xlsx", documents.sheet(40_000))
    threading.Timer(0.2, reader.call.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        reader.text("a.xlsx")
    assert time.monotonic() - started < 3


def test_a_reader_that_fails_is_busy_and_the_document_not_to_blame(reader: Reader) -> None:
    reader.write("a.pdf", documents.pdf())
    with no_reader(), pytest.raises(ResourceBusy, match="cannot be read now"):
        reader.text("a.pdf")
    reader.write("a.xlsx", documents.sheet(40_000))
    with signalled_reader(signal.SIGKILL), pytest.raises(ResourceBusy, match="ended with status -9"):
        reader.text("a.xlsx")
    assert "Hello from a PDF page" in reader.text("a.pdf")


def test_a_document_that_keeps_the_processor_busy_for_too_long_is_refused(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract_module, "_PROCESSOR_SECONDS", 0.5)
    reader.write("a.xlsx", documents.sheet(40_000))
    with pytest.raises(InvalidArgument, match=r"cannot be read within 0\.5 s"):
        reader.text("a.xlsx")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ModuleNotFoundError("pypdfium2"), True),
        (OSError(errno.EIO, "Input/output error"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.EINVAL, "Invalid argument"), False),
        (OSError("cannot identify image file"), False),
        (ValueError("bad"), False),
    ],
)
def test_faults_that_pass_are_told_from_those_of_the_file(error: Exception, passes: bool) -> None:
    assert is_transient(error) is passes
