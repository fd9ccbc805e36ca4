"""Takes the text out of many documents by few confined children; a broken one costs itself and nothing else.

The documents of one child share it, so one that takes it over could lie about those read after it: this is for sorting
files, where text only suggests a place. What a caller reads comes from `extract`, a child for each.
"""

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.errors import TimedOut
from holdfast.folders.ask import Reply, seat
from holdfast.folders.confine import Outcome, python_child, run

AT_ONCE = 16
_MAX_HEADER_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Wanted:
    """An open file, and how it is read: "PDF", "ARCHIVE", "HTML", "EML" or "IMAGE"."""

    fd: int
    reader: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one document may cost."""

    max_text_bytes: int = 16_000
    seconds: float = 10.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Taken:
    """The text of a document and the kind it turned out to be, or what is wrong with it."""

    text: str = ""
    kind: str = ""
    error: str = ""


def take_texts(call: Call, wanted: Sequence[Wanted], bounds: Bounds) -> list[Taken]:
    """Return what comes out of each file, in the same order. Raises Cancelled or TimedOut as the call does."""
    taken: list[Taken] = []
    while len(taken) < len(wanted):
        some = wanted[len(taken) : len(taken) + AT_ONCE]
        outcome = _asked(call, some, bounds)
        replies = _replies(outcome.stdout)[: len(some)]
        taken += [_taken(reply) for reply in replies]
        if len(replies) < len(some):
            taken.append(Taken(error=_blame(outcome.status, bounds)))
    return taken


def _asked(call: Call, some: Sequence[Wanted], bounds: Bounds) -> Outcome:
    request = {
        "memory_bytes": bounds.memory_bytes,
        "max_text_bytes": bounds.max_text_bytes,
        "files": [{"fd": each.fd, "reader": each.reader, "seconds": bounds.seconds} for each in some],
    }
    child = python_child(
        "-m",
        "holdfast.folders.extract_child",
        stdin=json.dumps(request).encode(),
        pass_fds=[each.fd for each in some],
    )
    child = replace(child, max_output_bytes=len(some) * (bounds.max_text_bytes + _MAX_HEADER_BYTES))
    with seat(call):
        try:
            return run(call.within((len(some) + 1) * bounds.seconds), child)
        except TimedOut:
            call.check()
            return Outcome(-signal.SIGALRM, b"", b"")


def _replies(out: bytes) -> list[Reply]:
    """Return the whole answers in what a child wrote, up to the first that is cut off or makes no sense."""
    replies: list[Reply] = []
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
        replies.append(Reply(header, out[end + 1 : at]))
    return replies


def _taken(reply: Reply) -> Taken:
    if "error" in reply.header:
        return Taken(error=str(reply.header["error"]))
    return Taken(reply.payload.decode("utf-8", "replace"), str(reply.header.get("kind", "")))


def _blame(status: int, bounds: Bounds) -> str:
    if status == -signal.SIGALRM:
        return f"reading it took longer than {bounds.seconds:g} s"
    return f"it is damaged, or needs more than {bounds.memory_bytes >> 20} MiB of memory"
