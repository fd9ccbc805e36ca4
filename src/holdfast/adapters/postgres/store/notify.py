"""Tells every worker of new jobs, by NOTIFY and LISTEN.

A NOTIFY inside a mutation would hold a lock of the whole server until its commit is on disk, so that no two mutations
could commit together. It follows the commit instead, from a thread of its own, once for all commits of a few
milliseconds; a worker that misses it polls a little later.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg

_log = logging.getLogger(__name__)

CHANNEL = "holdfast_jobs"
_DEBOUNCE_SECONDS = 0.01
_LISTEN_SECONDS = 0.5
_RECONNECT_SECONDS = 2.0
_CONNECT_SECONDS = 5


class Notifier:
    """Sends NOTIFY after commits. Its thread and connection start with the first one."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pending = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def notify(self) -> None:
        """Tell the workers, soon, that jobs were committed; never blocks."""
        self._pending.set()
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="holdfast-notify", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._pending.set()
        if self._thread is not None:
            self._thread.join(_CONNECT_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.Error), _connect(self._url) as connection:
                while not self._stop.is_set():
                    self._pending.wait()
                    self._pending.clear()
                    connection.execute(f"NOTIFY {CHANNEL}")
                    self._stop.wait(_DEBOUNCE_SECONDS)
            self._stop.wait(_RECONNECT_SECONDS)


def listen(url: str, callback: Callable[[], None]) -> Callable[[], None]:
    """Call back at every NOTIFY of any process, from a thread of its own; returns a function that ends it."""
    stop = threading.Event()
    thread = threading.Thread(target=_listen_until, args=(url, callback, stop), name="holdfast-listen", daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(_CONNECT_SECONDS)

    return end


def _listen_until(url: str, callback: Callable[[], None], stop: threading.Event) -> None:
    is_failing = False
    while not stop.is_set():
        try:
            with _connect(url) as connection:
                connection.execute(f"LISTEN {CHANNEL}")
                is_failing = False
                callback()
                while not stop.is_set():
                    for _ in connection.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                        callback()
        except psycopg.Error as error:
            if not is_failing:
                _log.warning("workers cannot listen for new jobs (%s) and poll for them instead", type(error).__name__)
            is_failing = True
            stop.wait(_RECONNECT_SECONDS)


def _connect(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS, application_name="holdfast")
