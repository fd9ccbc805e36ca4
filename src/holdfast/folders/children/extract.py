"""Takes the text out of PDF, DOCX, XLSX and PPTX files, in a confined child that a broken file cannot get out of."""

from dataclasses import dataclass

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.request import ChildRequest, ask_child

MAX_TEXT_BYTES = 20_000_000
_MEMORY_BYTES = 2 << 30
_SECONDS = 60.0
_PROCESSOR_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document, and one line about where it comes from."""

    text: str
    note: str


def extract_document(call: Call, file: OpenFile, max_bytes: int) -> Document:
    """Return a document's text. InvalidArgument when it is damaged, encrypted or no document; PayloadTooLarge.

    TimedOut and ResourceBusy say nothing of the document: another try may succeed.
    """
    if file.status.st_size > max_bytes:
        raise PayloadTooLarge(f"{file.shown} has {file.status.st_size} bytes; documents are read up to {max_bytes}.")
    question = ChildRequest(
        "holdfast.folders.children.extract_child",
        {"max_text_bytes": MAX_TEXT_BYTES},
        f"The document {file.shown}",
        _SECONDS,
        _MEMORY_BYTES,
        MAX_TEXT_BYTES,
        _PROCESSOR_SECONDS,
    )
    reply = ask_child(call, question, file.fd)
    if "error" in reply.header:
        raise InvalidArgument(f"{file.shown} cannot be read as a document: {reply.header['error']}.")
    cut = f"; only its first {MAX_TEXT_BYTES} bytes of text" if reply.header["cut"] else ""
    return Document(reply.payload.decode(), f"{reply.header['kind']} as text{cut}")
