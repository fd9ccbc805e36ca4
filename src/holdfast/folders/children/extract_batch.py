"""Takes the text out of many documents by few confined children; a broken one costs itself and nothing else.

The documents of one child share it, so one that takes it over could lie about those read after it: this is for sorting
files, where text only suggests a place. What a caller reads comes from `extract`, a child for each.
"""

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.errors import PayloadTooLarge, TimedOut
from holdfast.folders.children.confine import Outcome, python_child, run
from holdfast.folders.children.request import Reply, is_crash, seat

AT_ONCE = 16
_MAX_HEADER_BYTES = 4_096
_TIMERS = frozenset({signal.SIGPROF, signal.SIGALRM})
_PATIENCE = 2.0
"""How much longer than its share of the processor a document may take on a busy machine."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An open file, and how it is read: "PDF", "ARCHIVE", "HTML", "EML" or "IMAGE"."""

    fd: int
    reader: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one document may cost; the seconds are those of the processor."""

    max_text_bytes: int = 16_000
    seconds: float = 10.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Taken:
    """The text of a document and the kind it turned out to be, or why there is none.

    `is_passing` says that the document may be good all the same: its reader failed, and another try may succeed.
    """

    text: str = ""
    kind: str = ""
    error: str = ""
    is_passing: bool = False


def take_texts(call: Call, wanted: Sequence[Wanted], bounds: Bounds) -> list[Taken]:
    """Return what comes out of each file, in the same order. Raises Cancelled or TimedOut as the call does.

    Memory is shared with those read before by the same child, so whoever breaks it is blamed only when it came first.
    """
    taken: list[Taken] = []
    while len(taken) < len(wanted):
        some = wanted[len(taken) : len(taken) + AT_ONCE]
        outcome = _asked(call, some, bounds)
        replies = _own(_replies(outcome.stdout)[: len(some)])
        taken += [_taken(reply) for reply in replies]
        if not replies and outcome.status > 0:
            taken += [Taken(error="its reader could not start", is_passing=True)] * len(some)
        elif not replies or (len(replies) < len(some) and -outcome.status in _TIMERS):
            taken.append(_blamed(outcome.status, bounds))
    return taken


def _asked(call: Call, some: Sequence[Wanted], bounds: Bounds) -> Outcome:
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
        with seat(call):
            return run(call.within((len(some) + 1) * bounds.seconds * _PATIENCE), child)
    except TimedOut:
        call.check()
        return Outcome(-signal.SIGALRM, b"", b"")
    except PayloadTooLarge:
        return _asked(call, some[:1], bounds) if len(some) > 1 else Outcome(0, b"", b"")
    except OSError as error:
        return Outcome(error.errno or 1, b"", b"")


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


def _own(replies: list[Reply]) -> list[Reply]:
    """Return the answers that count: one that wants memory is asked again, in a child of its own, unless it came first."""
    starved = (at for at, reply in enumerate(replies) if at and reply.header.get("is_starved"))
    return replies[: next(starved, len(replies))]


def _taken(reply: Reply) -> Taken:
    if "error" in reply.header:
        return Taken(error=str(reply.header["error"]), is_passing=bool(reply.header.get("is_passing")))
    return Taken(reply.payload.decode("utf-8", "replace"), str(reply.header.get("kind", "")))


def _blamed(status: int, bounds: Bounds) -> Taken:
    if -status in _TIMERS:
        told = f"reading it took longer than {bounds.seconds:g} s"
    elif is_crash(status):
        told = f"it is damaged, or needs more than {bounds.memory_bytes >> 20} MiB of memory"
    else:
        told = f"its reader was stopped (signal {-status})"
    return Taken(error=told, is_passing=not is_crash(status))
