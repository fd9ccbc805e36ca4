"""The child's end of `ask`: takes the request, sets the bounds, opens the passed descriptor, writes the answer.

Runs in a confined process of its own and imports as little as it can.
"""

import errno
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

ChildAnswer = tuple[dict[str, Any], bytes]

_TRANSIENT = frozenset({errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ESTALE})


class ChildRefusal(Exception):
    """The file cannot be used; the message is for the caller."""


def is_transient(error: Exception) -> bool:
    """Return whether something else than the file is at fault: a library that cannot be loaded, a disk, want of room."""
    return isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno in _TRANSIENT)


def serve(work: Callable[[dict[str, Any], BinaryIO], ChildAnswer]) -> None:
    """Answer the one question on standard input with what `work` makes of it, or each one of its `files` in turn.

    Several answers are framed by their length, and each has its own seconds: whoever overruns them is killed. A file
    is to blame when it was the processor that was busy for so long (SIGPROF); otherwise the machine is (SIGALRM).
    """
    request = json.loads(sys.stdin.buffer.read())
    _bound(request["memory_bytes"])
    os.environ.clear()
    signal.setitimer(signal.ITIMER_PROF, request.get("processor_seconds", 0.0))
    for each in request.get("files", ()):
        signal.setitimer(signal.ITIMER_PROF, each["processor_seconds"])
        signal.setitimer(signal.ITIMER_REAL, each["seconds"])
        header, payload = _answer({**request, **each}, work)
        _write({**header, "bytes": len(payload)}, payload)
    if "files" not in request:
        _write(*_answer(request, work))
    os._exit(0)


def _answer(request: dict[str, Any], work: Callable[[dict[str, Any], BinaryIO], ChildAnswer]) -> ChildAnswer:
    try:
        with os.fdopen(request["fd"], "rb") as file:
            file.seek(0)
            return work(request, file)
    except ChildRefusal as refused:
        return {"error": str(refused)}, b""
    except MemoryError:
        told = f"it needs more than {request['memory_bytes'] >> 20} MiB of memory"
        return {"error": told, "is_starved": True}, b""
    except Exception as error:  # noqa: BLE001  whatever happens to a reader is said by its kind, never by its words
        told = f"its reader failed ({type(error).__name__})"
        return {"error": told, "is_transient": is_transient(error)}, b""


def _write(header: dict[str, Any], payload: bytes) -> None:
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n")
    sys.stdout.buffer.write(payload)
    sys.stdout.buffer.flush()


def _bound(memory_bytes: int) -> None:
    limits = ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0))
    for limit, value in limits:
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
