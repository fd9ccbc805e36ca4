"""The roots in use and the two lanes that keep their indexes fresh: one reads, one extracts and embeds.

Neither begins before the first search, and a root that nobody searches is let go.
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

KEPT_ROOTS = 32
IDLE_SECONDS = 3600.0
_PURGE_SECONDS = 86_400.0
_SLICE_SECONDS = 0.3
_LOOK_SECONDS = 1.0
_PAUSE_AFTER_FAULT_SECONDS = 5.0
_NO_LIMIT_SECONDS = 10 * 365 * 86_400.0
_KINDNESS = 10

_log = logging.getLogger(__name__)


class FolderIndexWorkers:
    """Opens roots and works on them until closed."""

    def __init__(self, workshop: IndexingContext) -> None:
        self._workshop = workshop
        self._call = Call(Caller(LOCAL_USER), _NO_LIMIT_SECONDS)
        self._roots: OrderedDict[str, IndexedRoot] = OrderedDict()
        self._threads: list[threading.Thread] = []
        self._bell = threading.Condition()
        self._end = threading.Event()
        self._purged_at: float | None = None

    def ask(self, jail: Jail, root: Root) -> tuple[IndexedRoot, int]:
        """Ask for a look at a root of a caller; returns the number to wait with. The lanes begin with the first."""
        with self._bell:
            before = found = self._roots.get(root.path)
            if found is None or found.identity != root.identity:
                found = self._roots[root.path] = IndexedRoot(root, jail.hidden, self._workshop, self.ring)
            self._roots.move_to_end(root.path)
            asked = found.state.ask()
            self._start()
            self._bell.notify_all()
        if before is not None and before is not found:
            before.close()
        self._workshop.index.mark_used(found.key)
        return found, asked

    def ring(self) -> None:
        """Let the lanes look for work."""
        with self._bell:
            self._bell.notify_all()

    def has_work(self) -> bool:
        """Return whether a root is not indexed to the end."""
        return any(root.state.is_asked or root.has_slow_work() for root in self._listed())

    def close(self, seconds: float = 4.0) -> None:
        """End what is under way, within so long."""
        self._call.cancel()
        self._end.set()
        self.ring()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        roots = self._listed()
        self._roots.clear()
        for root in roots:
            root.close()

    def _start(self) -> None:
        if self._threads or self._end.is_set():
            return
        lanes = [("read", self._reading_lane), ("slow", self._slow_lane)]
        self._threads = [
            threading.Thread(target=run, name=f"holdfast-folders-{name}", daemon=True) for name, run in lanes
        ]
        for thread in self._threads:
            thread.start()

    def _listed(self) -> list[IndexedRoot]:
        with self._bell:
            return list(reversed(self._roots.values()))

    def _reading_lane(self) -> None:
        self._repeat(IndexedRoot.has_reading, self._read)

    def _slow_lane(self) -> None:
        _step_back()
        self._repeat(IndexedRoot.has_slow_work, self._work)

    def _read(self, root: IndexedRoot) -> None:
        root.look(self._call, _SLICE_SECONDS)
        self.ring()

    def _work(self, root: IndexedRoot) -> None:
        if not root.extract_one(self._call):
            root.embed_one(self._call)

    def _repeat(self, has_work: Callable[[IndexedRoot], bool], work: Callable[[IndexedRoot], None]) -> None:
        while not self._end.is_set():
            busy = [root for root in self._listed() if has_work(root)]
            for root in busy:
                self._guarded(root, work)
            if not busy:
                self._tidy()
                with self._bell:
                    self._bell.wait(_LOOK_SECONDS)

    def _guarded(self, root: IndexedRoot, work: Callable[[IndexedRoot], None]) -> None:
        """Do it; a fault is logged by its kind, and the lane goes on after a pause."""
        try:
            work(root)
        except Cancelled:
            return
        except Exception as error:  # noqa: BLE001 - a lane never ends before it is told to
            _log.warning("fault in %s: %s", threading.current_thread().name, type(error).__name__)
            self._end.wait(_PAUSE_AFTER_FAULT_SECONDS)

    def _tidy(self) -> None:
        """Let go of roots that nobody searches, and once a day of the indexes of those long unused."""
        now = time.monotonic()
        with self._bell:
            idle = [root for root in self._roots.values() if now - root.state.used_at > IDLE_SECONDS]
            surplus = list(self._roots.values())[: max(0, len(self._roots) - KEPT_ROOTS)]
            unused = [root for root in {*idle, *surplus} if not root.has_slow_work() and not root.state.is_asked]
            for root in unused:
                del self._roots[root.path]
        for root in unused:
            root.close()
        if self._purged_at is None or now - self._purged_at > _PURGE_SECONDS:
            self._purged_at = now
            self._workshop.index.remove_unused(self._workshop.limits.keep_days)


def _step_back() -> None:
    """Let the slow lane run when nothing else wants to."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _KINDNESS)
