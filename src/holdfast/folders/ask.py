"""Asks a confined child of ours one question about an open file, and turns every way it can end into an answer or an error.

A child module reads a JSON request from standard input and the file from the descriptor named in it. It writes one
line of JSON (the header, or `error` with a message) and then the payload.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from holdfast.call import Call
from holdfast.errors import Cancelled, InvalidArgument, PayloadTooLarge, TimedOut
from holdfast.folders.confine import python_child, run

MAX_CHILDREN = 4

_MAX_HEADER_BYTES = 65_536
_WAIT_SECONDS = 0.05
_SEATS = threading.BoundedSemaphore(MAX_CHILDREN)


@dataclass(frozen=True, slots=True)
class Question:
    """What to run, on what, and its bounds; `subject` is how errors name the thing that was read."""

    module: str
    request: dict[str, Any]
    subject: str
    seconds: float
    memory_bytes: int
    max_payload_bytes: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What the child said: its header, which may hold an `error`, and the payload."""

    header: dict[str, Any]
    payload: bytes


def ask(call: Call, question: Question, fd: int) -> Reply:
    """Run the child to its end. TimedOut, Cancelled, or InvalidArgument when it broke down on the file."""
    request = {**question.request, "fd": fd, "memory_bytes": question.memory_bytes}
    child = python_child("-m", question.module, stdin=json.dumps(request).encode(), pass_fds=[fd])
    child = replace(child, max_output_bytes=question.max_payload_bytes + _MAX_HEADER_BYTES)
    try:
        with seat(call):
            outcome = run(
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
    line, _, payload = outcome.stdout.partition(b"\n")
    if outcome.status != 0 or not line.startswith(b"{"):
        raise _broke_down(call, question, outcome.status)
    return Reply(json.loads(line), payload)


@contextmanager
def seat(call: Call) -> Iterator[None]:
    """Wait for one of the few places, so that many calls at once do not add up to many times the memory."""
    while not _SEATS.acquire(timeout=_WAIT_SECONDS):
        call.check()
    try:
        yield
    finally:
        _SEATS.release()


def _broke_down(call: Call, question: Question, status: int) -> Exception:
    if call.cancelled:
        return Cancelled("The call was cancelled.")
    return InvalidArgument(
        f"{question.subject} cannot be read: it is damaged, or it needs more than "
        f"{question.memory_bytes >> 20} MiB of memory (the reader ended with status {status})."
    )
