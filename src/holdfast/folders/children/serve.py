"""The child's side of a request: reads it, sets the limits, opens the passed descriptor and writes the reply.

Runs in a confined process of its own and imports as little as possible. `request.py` is the parent's side.
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
    """Return whether an error is not the file's fault: a library that does not load, a disk error, lack of memory."""
    return isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno in _TRANSIENT)


def serve(work: Callable[[dict[str, Any], BinaryIO], ChildAnswer]) -> None:
    """Answer the request on standard input with the result of `work`, or each of its `files` in turn.

    Replies to several files are framed by their length. Each file has time limits of its own, and the process is killed
    when it exceeds one: by SIGPROF for processor time, which is the file's fault, by SIGALRM for elapsed time, which may
    be the machine's.
    """
    request = json.loads(sys.stdin.buffer.read())
    limits = {
        resource.RLIMIT_AS: request["memory_bytes"],
        resource.RLIMIT_CPU: request["max_processor_seconds"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
    }
    for limit, value in limits.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    os.environ.clear()
    signal.setitimer(signal.ITIMER_PROF, request.get("processor_seconds", 0.0))
    for file in request.get("files", ()):
        signal.setitimer(signal.ITIMER_PROF, file["processor_seconds"])
        signal.setitimer(signal.ITIMER_REAL, file["seconds"])
        header, payload = _answer({**request, **file}, work)
        _write({**header, "bytes": len(payload)}, payload)
    if "files" not in request:
        _write(*_answer(request, work))
    os._exit(0)


def _answer(request: dict[str, Any], work: Callable[[dict[str, Any], BinaryIO], ChildAnswer]) -> ChildAnswer:
    try:
        with os.fdopen(request["fd"], "rb") as file:
            file.seek(0)
            return work(request, file)
    except ChildRefusal as refusal:
        return {"error": str(refusal)}, b""
    except MemoryError:
        message = f"it needs more than {request['memory_bytes'] >> 20} MiB of memory"
        return {"error": message, "is_out_of_memory": True}, b""
    except Exception as error:  # noqa: BLE001  a reader's error is reported by its type: its message may quote the file
        message = f"its reader failed ({type(error).__name__})"
        return {"error": message, "is_transient": is_transient(error)}, b""


def _write(header: dict[str, Any], payload: bytes) -> None:
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n")
    sys.stdout.buffer.write(payload)
    sys.stdout.buffer.flush()
