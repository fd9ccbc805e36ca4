"""Asks a confined child of ours one question about an open file, and turns every way it can end into an answer or an error.

A child module reads a JSON request from standard input and the file from the descriptor named in it. It writes one
line of JSON (the header, or `error` with a message) and then the payload.
"""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from holdfast.call import Call
from holdfast.errors import Cancelled, InvalidArgument, PayloadTooLarge, ResourceBusy, TimedOut
from holdfast.folders.children.confine import python_child, run_child

MAX_CHILDREN = 4

_MAX_HEADER_BYTES = 65_536
_WAIT_SECONDS = 0.05
_SLOTS = threading.BoundedSemaphore(MAX_CHILDREN)
_CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGXFSZ, signal.SIGPROF}
)


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """What to run, on what, and its bounds; `subject` is how errors name the thing that was read.

    What uses up its `processor_seconds` is itself to blame; of what takes too long otherwise the machine may be.
    """

    module: str
    request: dict[str, Any]
    subject: str
    seconds: float
    memory_bytes: int
    max_payload_bytes: int
    processor_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ChildReply:
    """What the child said: its header, which may hold an `error`, and the payload."""

    header: dict[str, Any]
    payload: bytes


def ask_child(call: Call, question: ChildRequest, fd: int) -> ChildReply:
    """Run the child to its end. InvalidArgument when it broke down on the file; TimedOut, Cancelled.

    ResourceBusy when it could not do its work for a reason that is not the file's.
    """
    request = {
        **question.request,
        "fd": fd,
        "memory_bytes": question.memory_bytes,
        "processor_seconds": question.processor_seconds,
    }
    child = python_child("-m", question.module, stdin=json.dumps(request).encode(), pass_fds=[fd])
    child = replace(child, max_output_bytes=question.max_payload_bytes + _MAX_HEADER_BYTES)
    try:
        with child_slot(call):
            outcome = run_child(
                call.within(question.seconds),
                child,
                while_running=lambda: call.progress(call.elapsed(), None, question.subject),
            )
    except PayloadTooLarge:
        raise PayloadTooLarge(f"{question.subject} gives more than {question.max_payload_bytes} bytes.") from None
    except TimedOut:
        if call.remaining() == 0.0 and question.seconds > call.timeout_seconds:
            raise
        raise TimedOut(f"{question.subject} took longer than {question.seconds:g} s.") from None
    except OSError as error:
        raise ResourceBusy(f"{question.subject} cannot be read now: no reader starts ({error.strerror}).") from None
    line, _, payload = outcome.stdout.partition(b"\n")
    if outcome.status != 0 or not line.startswith(b"{"):
        raise _child_failure(call, question, outcome.status)
    reply = ChildReply(json.loads(line), payload)
    if reply.header.get("is_transient"):
        raise ResourceBusy(f"{question.subject} cannot be read now: {reply.header['error']}. Try again.")
    return reply


def is_crash(status: int) -> bool:
    """Return whether a child ended as one does that a file has broken; any other early end is not the file's doing."""
    return status == 0 or -status in _CRASHES


@contextmanager
def child_slot(call: Call) -> Iterator[None]:
    """Wait for one of the few places, so that many calls at once do not add up to many times the memory."""
    while not _SLOTS.acquire(timeout=_WAIT_SECONDS):
        call.check()
    try:
        yield
    finally:
        _SLOTS.release()


def _child_failure(call: Call, question: ChildRequest, status: int) -> Exception:
    if call.cancelled:
        return Cancelled("The call was cancelled.")
    if status == -signal.SIGPROF:
        return InvalidArgument(f"{question.subject} cannot be read within {question.processor_seconds:g} s.")
    if not is_crash(status):
        return ResourceBusy(f"{question.subject} cannot be read now: its reader ended with status {status}. Try again.")
    return InvalidArgument(
        f"{question.subject} cannot be read: it is damaged, or it needs more than "
        f"{question.memory_bytes >> 20} MiB of memory (the reader ended with status {status})."
    )
