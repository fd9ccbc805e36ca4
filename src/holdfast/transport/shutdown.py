"""The end of a server's process: soon and for sure, whatever its threads are busy with.

What was acknowledged is durable before its answer, so a process may be cut off at any moment.
"""

import logging
import os
import sys
import threading
from contextlib import suppress

LONGEST_SECONDS = 15.0
"""From the moment that a server is told to end."""

CLOSED_SECONDS = 0.5
"""From the moment that everything is closed: the interpreter itself waits for a busy thread without an end."""

_log = logging.getLogger(__name__)


def end_within(seconds: float) -> None:
    """Begin to count: a process that is still there after so long is cut off."""
    last = threading.Timer(seconds, _cut_off)
    last.daemon = True
    last.start()


def _cut_off() -> None:
    busy = [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    _log.warning("the server (pid %d) ends without waiting for: %s", os.getpid(), ", ".join(busy) or "its closing")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
