"""The threads that keep the indexes of local folders up to date: one scans and reads, one extracts and embeds.

Neither starts before the first search, and a root that is not searched for an hour is closed.
"""

import logging
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.errors import Cancelled
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import Root
from holdfast.search.folders.indexed_root import IndexedRoot, IndexingContext

MAX_ROOTS = 32
IDLE_SECONDS = 3600.0
THREAD_NAME = "holdfast-folders"
_REMOVE_UNUSED_SECONDS = 86_400.0
_READ_SECONDS = 0.3
_POLL_SECONDS = 1.0
_PAUSE_AFTER_FAULT_SECONDS = 5.0
_NO_DEADLINE_SECONDS = 10 * 365 * 86_400.0
_NICE = 10

_log = logging.getLogger(__name__)


class FolderIndexWorkers:
    """Opens roots and indexes them until closed."""

    def __init__(self, context: IndexingContext) -> None:
        self._context = context
        self._call = Call(Caller(LOCAL_USER), _NO_DEADLINE_SECONDS)
        self._roots: OrderedDict[str, IndexedRoot] = OrderedDict()
        self._threads: list[threading.Thread] = []
        self._wakeup = threading.Condition()
        self._stop = threading.Event()
        self._removed_unused_at: float | None = None

    def request_scan(self, jail: Jail, root: Root) -> tuple[IndexedRoot, int]:
        """Request a scan of a root of the caller; returns the number to wait with. The first request starts the threads."""
        with self._wakeup:
            previous = indexed_root = self._roots.get(root.path)
            is_same = indexed_root is not None and indexed_root.identity == root.identity
            if indexed_root is None or not is_same or indexed_root.rules != jail.common_rules:
                indexed_root = IndexedRoot(root, jail.hidden, jail.common_rules, self._context, self.wake)
                self._roots[root.path] = indexed_root
            self._roots.move_to_end(root.path)
            request = indexed_root.state.request_scan()
            if not self._threads and not self._stop.is_set():
                self._start()
            self._wakeup.notify_all()
        if previous is not None and previous is not indexed_root:
            previous.close()
        self._context.index.mark_used(indexed_root.key)
        return indexed_root, request

    def wake(self) -> None:
        """Let the threads look for work."""
        with self._wakeup:
            self._wakeup.notify_all()

    def has_work(self) -> bool:
        """Return whether the index of a root is incomplete."""
        return any(root.state.is_scan_requested or root.has_slow_work() for root in self._recent_roots())

    def close(self, seconds: float = 4.0) -> None:
        """Stop the threads, and wait for them for `seconds` at most."""
        self._call.cancel()
        self._stop.set()
        self.wake()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        roots = self._recent_roots()
        self._roots.clear()
        for root in roots:
            root.close()

    def _start(self) -> None:
        self._threads = [
            threading.Thread(target=run, name=f"{THREAD_NAME}-{name}", daemon=True)
            for name, run in [("read", self._run_reading), ("slow", self._run_slow_work)]
        ]
        for thread in self._threads:
            thread.start()

    def _recent_roots(self) -> list[IndexedRoot]:
        """Return the open roots, the last searched first."""
        with self._wakeup:
            return list(reversed(self._roots.values()))

    def _run_reading(self) -> None:
        def read(root: IndexedRoot) -> None:
            root.scan_and_read(self._call, _READ_SECONDS)
            self.wake()

        self._run(IndexedRoot.has_text_work, read)

    def _run_slow_work(self) -> None:
        def work(root: IndexedRoot) -> None:
            if not root.extract_next(self._call):
                root.embed_next(self._call)

        if sys.platform == "linux":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        self._run(IndexedRoot.has_slow_work, work)

    def _run(self, has_work: Callable[[IndexedRoot], bool], work: Callable[[IndexedRoot], None]) -> None:
        while not self._stop.is_set():
            busy = [root for root in self._recent_roots() if has_work(root)]
            for root in busy:
                try:
                    work(root)
                except Cancelled:
                    continue
                except Exception as error:  # noqa: BLE001 - a fault must not end the thread
                    _log.warning("fault in %s: %s", threading.current_thread().name, type(error).__name__)
                    self._stop.wait(_PAUSE_AFTER_FAULT_SECONDS)
            if not busy:
                self._close_unused()
                with self._wakeup:
                    self._wakeup.wait(_POLL_SECONDS)

    def _close_unused(self) -> None:
        """Close roots that are not searched, and once a day remove the indexes that were not used for long."""
        now = time.monotonic()
        with self._wakeup:
            idle = [root for root in self._roots.values() if now - root.state.used_at > IDLE_SECONDS]
            surplus = list(self._roots.values())[: max(0, len(self._roots) - MAX_ROOTS)]
            unused = [
                root for root in {*idle, *surplus} if not root.has_slow_work() and not root.state.is_scan_requested
            ]
            for root in unused:
                del self._roots[root.path]
        for root in unused:
            root.close()
        if self._removed_unused_at is None or now - self._removed_unused_at > _REMOVE_UNUSED_SECONDS:
            self._removed_unused_at = now
            self._context.index.remove_unused(self._context.limits.keep_days)
