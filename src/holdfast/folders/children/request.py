"""Sends one request about an open file to a confined child, and turns every way the child can end into a reply or an error.

This is the parent's side; `serve.py` is the child's. A child module reads a JSON request from standard input and the
file from the descriptor named in it. It writes one line of JSON (the header, or `error` with a message), then the payload.
"""

import json
import math
import signal
from dataclasses import dataclass, replace
from typing import Any

from holdfast.call import Call
from holdfast.errors import Cancelled, InvalidArgument, PayloadTooLarge, ResourceBusy, TimedOut
from holdfast.folders.children.confine import python_child, run_child

_MAX_HEADER_BYTES = 65_536
_CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGXFSZ, signal.SIGPROF}
)


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """The child module to run, its request, and its limits; `subject` names the file in errors.

    A child that uses up its `processor_seconds` fails because of the file; one that is slow otherwise may be slow because
    of the machine.
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
    """What the child wrote: its header, which may hold an `error`, and the payload."""

    header: dict[str, Any]
    payload: bytes


def ask_child(call: Call, request: ChildRequest, fd: int) -> ChildReply:
    """Run the child to its end and return its reply. InvalidArgument when the file crashed it; TimedOut, Cancelled.

    ResourceBusy when it failed for a reason that is not the file's, so that another try may succeed. ChildNeeded when the
    call has no place among those that run a child; call this before anything that must not be done twice.
    """
    call.need_child()
    message = {
        **request.request,
        "fd": fd,
        "memory_bytes": request.memory_bytes,
        "processor_seconds": request.processor_seconds,
        "max_processor_seconds": 2 * math.ceil(request.seconds),
    }
    child = python_child("-m", request.module, stdin=json.dumps(message).encode(), pass_fds=[fd])
    child = replace(child, max_output_bytes=request.max_payload_bytes + _MAX_HEADER_BYTES)
    try:
        ended = run_child(
            call.within(request.seconds),
            child,
            while_running=lambda: call.progress(call.elapsed(), None, request.subject),
        )
    except PayloadTooLarge:
        raise PayloadTooLarge(f"{request.subject} gives more than {request.max_payload_bytes} bytes.") from None
    except TimedOut:
        if call.remaining() == 0.0 and request.seconds > call.timeout_seconds:
            raise
        raise TimedOut(f"{request.subject} took longer than {request.seconds:g} s.") from None
    except OSError as error:
        raise ResourceBusy(f"{request.subject} cannot be read now: no reader starts ({error.strerror}).") from None
    header, _, payload = ended.stdout.partition(b"\n")
    if ended.status != 0 or not header.startswith(b"{"):
        raise _child_failure(call, request, ended.status)
    reply = ChildReply(json.loads(header), payload)
    if reply.header.get("is_transient"):
        raise ResourceBusy(f"{request.subject} cannot be read now: {reply.header['error']}. Try again.")
    return reply


def is_crash(status: int) -> bool:
    """Return whether the exit status of a failed child is the file's fault; any other early end is not."""
    return status == 0 or -status in _CRASHES


def _child_failure(call: Call, request: ChildRequest, status: int) -> Exception:
    if call.cancelled:
        return Cancelled("The call was cancelled.")
    if status == -signal.SIGPROF:
        return InvalidArgument(f"{request.subject} cannot be read within {request.processor_seconds:g} s.")
    if not is_crash(status):
        return ResourceBusy(f"{request.subject} cannot be read now: its reader ended with status {status}. Try again.")
    return InvalidArgument(
        f"{request.subject} cannot be read: it is damaged, or it needs more than "
        f"{request.memory_bytes >> 20} MiB of memory (the reader ended with status {status})."
    )
