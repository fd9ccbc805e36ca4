"""Takes the text out of PDF, DOCX, XLSX and PPTX files, in a confined child that a broken file cannot get out of."""

from dataclasses import dataclass

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.request import Question, ask

MAX_TEXT_BYTES = 20_000_000
_MEMORY_BYTES = 2 << 30
_SECONDS = 60.0
_PROCESSOR_SECONDS = 40.0
_PDF_MARK_WITHIN = 1024
_OFFICE_SUFFIXES = (".docx", ".xlsx", ".pptx", ".docm", ".xlsm", ".pptm")
_OFFICE_NAMES = (b"[Content_Types].xml", b"word/", b"xl/", b"ppt/")


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document, and one line about where it comes from."""

    text: str
    note: str


def document_kind(first: bytes, name: str) -> str | None:
    """Return "pdf" or "office" by the first bytes of a file, None when it is neither; a suffix alone decides nothing."""
    if first.startswith(b"%PDF-") or (b"%PDF-" in first[:_PDF_MARK_WITHIN] and name.lower().endswith(".pdf")):
        return "pdf"
    if first.startswith(b"PK\x03\x04"):
        named = name.lower().endswith(_OFFICE_SUFFIXES)
        return "office" if named or any(part in first for part in _OFFICE_NAMES) else None
    return None


def extract(call: Call, file: OpenFile, max_bytes: int) -> Document:
    """Return a document's text. InvalidArgument when it is damaged, encrypted or no document; PayloadTooLarge.

    TimedOut and ResourceBusy say nothing of the document: another try may succeed.
    """
    if file.status.st_size > max_bytes:
        raise PayloadTooLarge(f"{file.shown} has {file.status.st_size} bytes; documents are read up to {max_bytes}.")
    question = Question(
        "holdfast.folders.children.extract_child",
        {"max_text_bytes": MAX_TEXT_BYTES},
        f"The document {file.shown}",
        _SECONDS,
        _MEMORY_BYTES,
        MAX_TEXT_BYTES,
        _PROCESSOR_SECONDS,
    )
    reply = ask(call, question, file.fd)
    if "error" in reply.header:
        raise InvalidArgument(f"{file.shown} cannot be read as a document: {reply.header['error']}.")
    cut = f"; only its first {MAX_TEXT_BYTES} bytes of text" if reply.header["cut"] else ""
    return Document(reply.payload.decode(), f"{reply.header['kind']} as text{cut}")
