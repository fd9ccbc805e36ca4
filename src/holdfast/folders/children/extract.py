"""Extracts the text of documents (PDF, DOCX, XLSX, PPTX and more) in confined children that a broken file cannot escape.

`extract_document` starts a child for each document. `extract_texts` reads many documents with few children: the documents
of one child share it, so one that takes it over could lie about those after it. That is for sorting files, where text
only suggests a folder; what a caller reads comes from `extract_document`.
"""

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.errors import InvalidArgument, PayloadTooLarge, TimedOut
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.confine import ChildExit, python_child, run_child
from holdfast.folders.children.request import ChildReply, ChildRequest, ask_child, child_slot, is_crash

MAX_TEXT_BYTES = 20_000_000
_MEMORY_BYTES = 2 << 30
_SECONDS = 60.0
_PROCESSOR_SECONDS = 40.0
FILES_PER_CHILD = 16
_MAX_HEADER_BYTES = 4_096
_TIMERS = frozenset({signal.SIGPROF, signal.SIGALRM})
_PATIENCE = 2.0
"""How much longer than its share of the processor a document may take on a busy machine."""


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
        raise PayloadTooLarge(
            f"{file.display_path} has {file.status.st_size} bytes; documents are read up to {max_bytes}."
        )
    question = ChildRequest(
        "holdfast.folders.children.extract_child",
        {"max_text_bytes": MAX_TEXT_BYTES},
        f"The document {file.display_path}",
        _SECONDS,
        _MEMORY_BYTES,
        MAX_TEXT_BYTES,
        _PROCESSOR_SECONDS,
    )
    reply = ask_child(call, question, file.fd)
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
    """What one document may cost; the seconds are those of the processor."""

    max_text_bytes: int = 16_000
    seconds: float = 10.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a document and the kind it turned out to be, or why there is none.

    `is_transient` says that the document may be good all the same: its reader failed, and another try may succeed.
    """

    text: str = ""
    kind: str = ""
    error: str = ""
    is_transient: bool = False


def extract_texts(call: Call, wanted: Sequence[ExtractionRequest], bounds: ExtractionLimits) -> list[ExtractedText]:
    """Return what comes out of each file, in the same order. Raises Cancelled or TimedOut as the call does.

    Memory is shared with those read before by the same child, so whoever breaks it is blamed only when it came first.
    """
    taken: list[ExtractedText] = []
    while len(taken) < len(wanted):
        some = wanted[len(taken) : len(taken) + FILES_PER_CHILD]
        outcome = _asked(call, some, bounds)
        replies = _own(_replies(outcome.stdout)[: len(some)])
        taken += [_taken(reply) for reply in replies]
        if not replies and outcome.status > 0:
            taken += [ExtractedText(error="its reader could not start", is_transient=True)] * len(some)
        elif not replies or (len(replies) < len(some) and -outcome.status in _TIMERS):
            taken.append(_blamed(outcome.status, bounds))
    return taken


def _asked(call: Call, some: Sequence[ExtractionRequest], bounds: ExtractionLimits) -> ChildExit:
    times = {"processor_seconds": bounds.seconds, "seconds": bounds.seconds * _PATIENCE}
    request = {
        "memory_bytes": bounds.memory_bytes,
        "max_text_bytes": bounds.max_text_bytes,
        "files": [{"fd": each.fd, "reader": each.reader, **times} for each in some],
    }
    child = python_child(
        "-m",
        "holdfast.folders.children.extract_child",
        stdin=json.dumps(request).encode(),
        pass_fds=[each.fd for each in some],
    )
    child = replace(child, max_output_bytes=len(some) * (bounds.max_text_bytes + _MAX_HEADER_BYTES))
    try:
        with child_slot(call):
            return run_child(call.within((len(some) + 1) * bounds.seconds * _PATIENCE), child)
    except TimedOut:
        call.check()
        return ChildExit(-signal.SIGALRM, b"", b"")
    except PayloadTooLarge:
        return _asked(call, some[:1], bounds) if len(some) > 1 else ChildExit(0, b"", b"")
    except OSError as error:
        return ChildExit(error.errno or 1, b"", b"")


def _replies(out: bytes) -> list[ChildReply]:
    """Return the whole answers in what a child wrote, up to the first that is cut off or makes no sense."""
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


def _own(replies: list[ChildReply]) -> list[ChildReply]:
    """Return the answers that count: one that wants memory is asked again, in a child of its own, unless it came first."""
    starved = (at for at, reply in enumerate(replies) if at and reply.header.get("is_starved"))
    return replies[: next(starved, len(replies))]


def _taken(reply: ChildReply) -> ExtractedText:
    if "error" in reply.header:
        return ExtractedText(error=str(reply.header["error"]), is_transient=bool(reply.header.get("is_transient")))
    return ExtractedText(reply.payload.decode("utf-8", "replace"), str(reply.header.get("kind", "")))


def _blamed(status: int, bounds: ExtractionLimits) -> ExtractedText:
    if -status in _TIMERS:
        told = f"reading it took longer than {bounds.seconds:g} s"
    elif is_crash(status):
        told = f"it is damaged, or needs more than {bounds.memory_bytes >> 20} MiB of memory"
    else:
        told = f"its reader was stopped (signal {-status})"
    return ExtractedText(error=told, is_transient=not is_crash(status))
