"""The child process that extracts a document's text, with a line before each page, slide or sheet."""

import mimetypes
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from holdfast.folders.children import extract_formats
from holdfast.folders.children.serve import ChildAnswer, ChildRefusal, is_transient, serve
from holdfast.text.decode import replace_lone_surrogates

MAX_ENTRIES = 20_000
MAX_UNPACKED_BYTES = 400_000_000
_KINDS = {"word/document.xml": "DOCX", "xl/workbook.xml": "XLSX", "ppt/presentation.xml": "PPTX"}


def work(request: dict[str, Any], file: BinaryIO) -> ChildAnswer:
    """Return the format of a document and its text, cut at `max_text_bytes`."""
    mimetypes.knownfiles = []
    kind = request.get("reader") or ("OFFICE" if file.read(2) == b"PK" else "PDF")
    if kind == "ARCHIVE":
        kind = _archive_kind(file)
    if kind == "OFFICE":
        kind = _office_kind(file)
    file.seek(0)
    text, cut = _join_parts(_read_parts(kind, file), request["max_text_bytes"])
    return {"kind": kind, "cut": cut}, text


def _entries(file: BinaryIO) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        if is_transient(error):
            raise
        raise ChildRefusal("it is a damaged archive") from None


def _archive_kind(file: BinaryIO) -> str:
    names = {entry.filename for entry in _entries(file)}
    if names & _KINDS.keys():
        return "OFFICE"
    return "EPUB" if "META-INF/container.xml" in names else "ZIP"


def _office_kind(file: BinaryIO) -> str:
    entries = _entries(file)
    if len(entries) > MAX_ENTRIES:
        raise ChildRefusal(f"it holds {len(entries)} parts; the limit is {MAX_ENTRIES}")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED_BYTES:
        raise ChildRefusal(f"it unpacks to {unpacked} bytes; the limit is {MAX_UNPACKED_BYTES}")
    names = {entry.filename for entry in entries}
    for part, kind in _KINDS.items():
        if part in names:
            return kind
    raise ChildRefusal("it is an archive, not a DOCX, XLSX or PPTX document; use read_media_file")


def _read_parts(kind: str, file: BinaryIO) -> Iterator[str]:
    try:
        yield from _READERS[kind](file)
    except (ChildRefusal, MemoryError):
        raise
    except Exception as error:
        if is_transient(error):
            raise
        raise ChildRefusal(f"it is damaged or encrypted ({type(error).__name__})") from None


def _join_parts(parts: Iterator[str], max_bytes: int) -> tuple[bytes, bool]:
    out = bytearray()
    for part in parts:
        out += replace_lone_surrogates(part).encode() + b"\n"
        if len(out) > max_bytes:
            return bytes(out[:max_bytes]).decode("utf-8", "ignore").encode(), True
    return bytes(out), False


def _pdf(file: BinaryIO) -> Iterator[str]:
    import pypdfium2

    document = pypdfium2.PdfDocument(file)
    for index in range(len(document)):
        page = document[index]
        text = page.get_textpage().get_text_range()
        yield f"--- Page {index + 1} ---\n" + text.replace("\r\n", "\n").rstrip("\n")
        page.close()


def _docx(file: BinaryIO) -> Iterator[str]:
    import docx
    from docx.table import Table

    for block in docx.Document(file).iter_inner_content():
        if isinstance(block, Table):
            yield from ("\t".join(_one_line(cell.text) for cell in row.cells) for row in block.rows)
        else:
            yield _heading_marks(block) + block.text


def _heading_marks(paragraph: Any) -> str:
    style = str(getattr(paragraph.style, "name", ""))
    level = style.removeprefix("Heading ")
    return "#" * int(level) + " " if style != level and level.isdigit() else ""


def _xlsx(file: BinaryIO) -> Iterator[str]:
    import openpyxl

    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    for sheet in book.worksheets:
        yield f"--- Sheet: {sheet.title} ---"
        blank_rows = 0
        for row in sheet.iter_rows(values_only=True):
            line = "\t".join("" if value is None else _one_line(str(value)) for value in row).rstrip("\t")
            if line:
                yield "\n" * blank_rows + line
            blank_rows = 0 if line else blank_rows + 1


def _pptx(file: BinaryIO) -> Iterator[str]:
    import pptx

    for number, slide in enumerate(pptx.Presentation(file).slides, start=1):
        yield f"--- Slide {number} ---"
        for shape in slide.shapes:
            yield from _shape_text(shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text
            if notes:
                yield f"Notes: {notes}"


def _shape_text(shape: Any) -> Iterator[str]:
    for inner in getattr(shape, "shapes", ()):
        yield from _shape_text(inner)
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield "\t".join(_one_line(cell.text) for cell in row.cells)
    elif getattr(shape, "has_text_frame", False) and shape.text_frame.text:
        yield shape.text_frame.text.replace("\v", "\n")


def _one_line(text: str) -> str:
    return text.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")


_READERS: dict[str, Callable[[BinaryIO], Iterator[str]]] = {
    "PDF": _pdf,
    "DOCX": _docx,
    "XLSX": _xlsx,
    "PPTX": _pptx,
    "HTML": extract_formats.html,
    "EML": extract_formats.mail,
    "EPUB": extract_formats.book,
    "ZIP": extract_formats.archive,
    "IMAGE": extract_formats.picture,
}

if __name__ == "__main__":
    serve(work)
