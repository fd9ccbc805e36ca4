"""Extracts the text of documents (PDF, DOCX, XLSX, PPTX and more) in confined children that a broken file cannot escape.

`extract_document` starts a child for each document. `extract_texts` reads many documents with few children: the documents
of one child share it, so one that takes it over could lie about those after it. That is for sorting files, where text
only suggests a folder; what a caller reads comes from `extract_document`.
"""

import json
import math
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge, TimedOut
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.confine import ChildExit, python_child, run_child
from holdfast.folders.children.request import ChildReply, ChildRequest, ask_child, is_crash

MAX_TEXT_BYTES = 20_000_000
_MEMORY_BYTES = 2 << 30
_SECONDS = 60.0
_PROCESSOR_SECONDS = 40.0
FILES_PER_CHILD = 16
_MAX_HEADER_BYTES = 4_096
_TIMERS = frozenset({signal.SIGPROF, signal.SIGALRM})
_PATIENCE = 2.0
"""Elapsed time that a document may take on a busy machine, as a multiple of its processor time."""


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document, and a note that names its format and whether the text was cut."""

    text: str
    note: str


def extract_document(call: Call, file: OpenFile, max_bytes: int) -> Document:
    """Return a document's text. InvalidArgument when it is damaged, encrypted or no document; PayloadTooLarge.

    TimedOut and ResourceBusy are not the document's fault: another try may succeed.
    """
    if file.status.st_size > max_bytes:
        raise PayloadTooLarge(
            f"{file.display_path} has {file.status.st_size} bytes; documents are read up to {max_bytes}."
        )
    request = ChildRequest(
        "holdfast.folders.children.extract_child",
        {"max_text_bytes": MAX_TEXT_BYTES},
        f"The document {file.display_path}",
        _SECONDS,
        _MEMORY_BYTES,
        MAX_TEXT_BYTES,
        _PROCESSOR_SECONDS,
    )
    reply = ask_child(call, request, file.fd)
    if "error" in reply.header:
        raise InvalidArgument(f"{file.display_path} cannot be read as a document: {reply.header['error']}.")
    cut = f"; only its first {MAX_TEXT_BYTES} bytes of text" if reply.header["cut"] else ""
    return Document(reply.payload.decode(), f"{reply.header['kind']} as text{cut}")


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """An open file, and how it is read: "PDF", "ARCHIVE", "HTML", "EML" or "IMAGE"."""

    fd: int
    reader: str


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """What one document may cost; `seconds` is processor time."""

    max_text_bytes: int = 16_000
    seconds: float = 10.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a document and its detected format, or the error.

    With `is_transient` the reader failed and not the document: another try may succeed.
    """

    text: str = ""
    kind: str = ""
    error: str = ""
    is_transient: bool = False


def extract_texts(call: Call, requests: Sequence[ExtractionRequest], limits: ExtractionLimits) -> list[ExtractedText]:
    """Return the text or the error of each file, in the same order. Raises Cancelled or TimedOut as the call does, ChildNeeded.

    Files read by one child share its memory, so a file is blamed for a crash only when the child read it first.
    """
    call.need_child()
    texts: list[ExtractedText] = []
    while len(texts) < len(requests):
        batch = requests[len(texts) : len(texts) + FILES_PER_CHILD]
        ended = _run_batch(call, batch, limits)
        replies = _trusted_replies(_parse_replies(ended.stdout)[: len(batch)])
        for reply in replies:
            if "error" in reply.header:
                error, is_transient = str(reply.header["error"]), bool(reply.header.get("is_transient"))
                texts.append(ExtractedText(error=error, is_transient=is_transient))
            else:
                texts.append(ExtractedText(reply.payload.decode("utf-8", "replace"), str(reply.header.get("kind", ""))))
        if not replies and ended.status > 0:
            texts += [ExtractedText(error="its reader could not start", is_transient=True)] * len(batch)
        elif not replies or (len(replies) < len(batch) and -ended.status in _TIMERS):
            texts.append(_failed_text(ended.status, limits))
    return texts


def _run_batch(call: Call, batch: Sequence[ExtractionRequest], limits: ExtractionLimits) -> ChildExit:
    times = {"processor_seconds": limits.seconds, "seconds": limits.seconds * _PATIENCE}
    message = {
        "memory_bytes": limits.memory_bytes,
        "max_processor_seconds": math.ceil((len(batch) + 1) * limits.seconds * _PATIENCE),
        "max_text_bytes": limits.max_text_bytes,
        "files": [{"fd": request.fd, "reader": request.reader, **times} for request in batch],
    }
    child = python_child(
        "-m",
        "holdfast.folders.children.extract_child",
        stdin=json.dumps(message).encode(),
        pass_fds=[request.fd for request in batch],
    )
    child = replace(child, max_output_bytes=len(batch) * (limits.max_text_bytes + _MAX_HEADER_BYTES))
    try:
        return run_child(call.within((len(batch) + 1) * limits.seconds * _PATIENCE), child)
    except TimedOut:
        call.check()
        return ChildExit(-signal.SIGALRM, b"", b"")
    except PayloadTooLarge:
        return _run_batch(call, batch[:1], limits) if len(batch) > 1 else ChildExit(0, b"", b"")
    except OSError as error:
        return ChildExit(error.errno or 1, b"", b"")


def _parse_replies(out: bytes) -> list[ChildReply]:
    """Return the complete replies in a child's output, up to the first that is cut off or invalid."""
    replies: list[ChildReply] = []
    at = 0
    while (end := out.find(b"\n", at)) >= 0:
        try:
            header = json.loads(out[at:end])
            length = int(header["bytes"])
        except (ValueError, KeyError, TypeError):
            break
        at = end + 1 + length
        if length < 0 or at > len(out):
            break
        replies.append(ChildReply(header, out[end + 1 : at]))
    return replies


def _trusted_replies(replies: list[ChildReply]) -> list[ChildReply]:
    """Return the replies before the first that ran out of memory, which is read again by a new child unless it came first."""
    out_of_memory = (at for at, reply in enumerate(replies) if at and reply.header.get("is_out_of_memory"))
    return replies[: next(out_of_memory, len(replies))]


def _failed_text(status: int, limits: ExtractionLimits) -> ExtractedText:
    if -status in _TIMERS:
        message = f"reading it took longer than {limits.seconds:g} s"
    elif is_crash(status):
        message = f"it is damaged, or needs more than {limits.memory_bytes >> 20} MiB of memory"
    else:
        message = f"its reader was stopped (signal {-status})"
    return ExtractedText(error=message, is_transient=not is_crash(status))
