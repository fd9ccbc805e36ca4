"""The word that jobs are waiting, from whoever commits them to every worker, by NOTIFY and LISTEN.

A NOTIFY inside a mutation would hold a lock of the whole server until its commit is on disk, so that no two mutations
could commit together. It follows the commit instead, from a thread of its own, once for all commits of a moment; a
worker that misses it looks by itself a little later.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg

_log = logging.getLogger(__name__)

CHANNEL = "holdfast_jobs"
_GATHER_SECONDS = 0.01
_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
_CONNECT_SECONDS = 5


class Notifier:
    """Tells all workers, soon, that there are jobs. The thread and its connection begin with the first ring."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._rung = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        """Say that jobs were committed; never waits."""
        self._rung.set()
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="holdfast-notify", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._rung.set()
        if self._thread is not None:
            self._thread.join(_CONNECT_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.Error), _connected(self._url) as connection:
                while not self._stop.is_set():
                    self._rung.wait()
                    self._rung.clear()
                    connection.execute(f"NOTIFY {CHANNEL}")
                    self._stop.wait(_GATHER_SECONDS)
            self._stop.wait(_AGAIN_SECONDS)


def listen(url: str, ring: Callable[[], None]) -> Callable[[], None]:
    """Call `ring` at every NOTIFY of any process, from a thread of its own; returns what ends that."""
    stop = threading.Event()
    thread = threading.Thread(target=_listening, args=(url, ring, stop), name="holdfast-listen", daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(_CONNECT_SECONDS)

    return end


def _listening(url: str, ring: Callable[[], None], stop: threading.Event) -> None:
    is_silent = False
    while not stop.is_set():
        try:
            with _connected(url) as connection:
                connection.execute(f"LISTEN {CHANNEL}")
                is_silent = False
                ring()
                while not stop.is_set():
                    for _ in connection.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                        ring()
        except psycopg.Error as error:
            if not is_silent:
                _log.warning("workers hear nothing of new jobs (%s) and look for them instead", type(error).__name__)
            is_silent = True
            stop.wait(_AGAIN_SECONDS)


def _connected(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS, application_name="holdfast")
