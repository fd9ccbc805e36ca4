"""Ends a server's process within a time limit, whatever its threads are busy with.

What was acknowledged was durable before its answer, so a process may be cut off at any moment.
"""

import logging
import os
import sys
import threading
from contextlib import suppress

MAX_SHUTDOWN_SECONDS = 15.0
"""Counted from the request to end."""

MAX_EXIT_SECONDS = 0.5
"""From the moment that everything is closed: the interpreter itself would wait for a busy thread for ever."""

_log = logging.getLogger(__name__)


def exit_within(seconds: float) -> None:
    """Start a timer that ends the process if it is still running after that many seconds."""
    timer = threading.Timer(seconds, _exit_now)
    timer.daemon = True
    timer.start()


def _exit_now() -> None:
    main = threading.main_thread()
    busy = [thread.name for thread in threading.enumerate() if not thread.daemon and thread is not main]
    _log.warning("the server (pid %d) ends without waiting for: %s", os.getpid(), ", ".join(busy) or "its closing")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
