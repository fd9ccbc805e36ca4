"""The index workers of one process: a lane for words, some for meaning, one for upkeep; started, watched, stopped."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.auth.context import LOCAL_TENANT, AuthContext
from holdfast.clock import format_utc
from holdfast.search.ports import Embedder, Index
from holdfast.store.model import Backlog, FailedJob, Stage
from holdfast.worker.lag import NO_LAG, Lag, Speed
from holdfast.worker.loop import Loop
from holdfast.worker.purge import Purge
from holdfast.worker.wakeup import Bell

_log = logging.getLogger(__name__)

_UPKEEP_SECONDS = 5.0
_PAUSE_AFTER_FAULT_SECONDS = 1.0
_LEAST_WAIT_SECONDS = 0.02
_FAILED_SHOWN = 20
_KINDNESS = 10
"""How far the slow lanes step back, in the system's own measure of priority, so that calls come first."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How fresh the index is. Lags and speed are what this process saw; the backlog is everybody's."""

    words: Lag
    meaning: Lag
    embedder: Speed
    backlog: Sequence[Backlog]
    failed: Sequence[FailedJob]
    model: str | None
    lanes: int

    def as_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {
            "lag": {"words": asdict(self.words), "meaning": asdict(self.meaning)},
            "embedder": {"model": self.model, **asdict(self.embedder)},
            "backlog": [
                {"stage": one.stage, "status": one.status, "jobs": one.jobs, "oldest_at": format_utc(one.oldest_at)}
                for one in self.backlog
            ],
            "failed": [_shown(one) for one in self.failed],
            "lanes": self.lanes,
        }


class Workers:
    """One lane for words and so many for meaning, over one loop; 0 leaves all of it to another process.

    Without an embedder the jobs that wait for meaning are ended without it, since nobody else would: once there is a
    model, `catch_up` finds their files. They are left alone where others have one (`is_alone` False). There is no lane
    but that of upkeep where nothing is indexed.
    """

    def __init__(
        self,
        loop: Loop,
        index: Index,
        purge: Purge,
        embedder: Embedder | None,
        lanes: int,
        *,
        is_on: bool = True,
        is_alone: bool = True,
    ) -> None:
        self._loop = loop
        self._index = index
        self._purge = purge
        self._embedder = embedder
        self._lanes = lanes
        self._is_on = is_on
        self._meaning_lanes = lanes if embedder else int(is_alone)
        self._busy_until = 0.0
        self._bell = Bell()
        self._threads: list[threading.Thread] = []
        self._unlisten: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin; returns at once. What a lane needs is loaded by its first job."""
        if self._threads or self._lanes == 0:
            return
        self._loop.stop.clear()
        self._unlisten = self._loop.queue.listen(self._bell.ring)
        lanes: list[tuple[str, Callable[[], None]]] = [("upkeep", self._upkeep_lane)]
        if self._is_on:
            lanes += [("words", self._words_lane), ("watch", self._watch_lane)]
            lanes += [(f"meaning-{number}", self._meaning_lane) for number in range(self._meaning_lanes)]
        self._threads = [threading.Thread(target=run, name=f"holdfast-{name}", daemon=True) for name, run in lanes]
        for thread in self._threads:
            thread.start()

    def release(self) -> None:
        """Let the lanes come to an end; returns at once."""
        self._loop.stop.set()
        self._bell.ring()

    def stop(self, seconds: float = 2.0) -> None:
        """End after the jobs in hand, within so long; what was not finished is due again at once or with its lease."""
        self.release()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            _log.warning("a lane did not end in time; its jobs are taken up again when their lease ends")
        self._threads = []
        self._unlisten()
        self._loop.keys.close()

    def on_model_key(self, auth: AuthContext) -> None:
        """Pass a caller's key for models on to its jobs that wait for one; never blocks."""
        self._loop.keys.on_model_key(auth)

    @property
    def is_running(self) -> bool:
        """Return whether the lanes of this process work."""
        return bool(self._threads)

    def has_work(self) -> bool:
        """Return whether a lane of this process has, or will have, something to do, as of its last look; never waits."""
        return bool(self._threads) and time.monotonic() < self._busy_until

    def status(self) -> IndexStatus:
        """Return how fresh the index is."""
        lags = self._loop.lags
        model = self._embedder.model if self._embedder else None
        words, meaning = lags.lag(Stage.WORDS), lags.lag(Stage.MEANING) if self._embedder else NO_LAG
        queue = self._loop.queue
        failed = queue.failed(_FAILED_SHOWN)
        return IndexStatus(words, meaning, lags.speed(), queue.backlog(), failed, model, len(self._threads))

    def drain(self, seconds: float, progress: Callable[[int], None] = lambda _left: None) -> bool:
        """Do jobs here until none is due or under way anywhere, or so long; returns whether none is left."""
        deadline = time.monotonic() + seconds
        while left := self._left():
            progress(left)
            if time.monotonic() >= deadline:
                return False
            if not self._loop.words_pass() and not (self._meaning_lanes and self._loop.meaning_pass()):
                time.sleep(_LEAST_WAIT_SECONDS)
        return True

    def retry_failed(self) -> int:
        """Make failed jobs due again; returns how many."""
        return self._loop.queue.retry_failed(self._loop.now())

    def rebuild(self, stage: Stage) -> int:
        """Add a job for every live file that has none open; returns how many."""
        queue, now = self._loop.queue, self._loop.now
        return sum(queue.requeue(tenant, project, stage, now()) for tenant, project in queue.projects())

    def catch_up(self) -> int:
        """Add jobs for the files that lack vectors of the model in use; returns how many. The old vectors stay."""
        if self._embedder is None:
            return 0
        queue, added = self._loop.queue, 0
        stale = {
            tenant
            for tenant in self._index.list_tenants()
            if self._index.files_without_vectors(tenant, self._embedder.model, 1)
        }
        for tenant, project in queue.projects() if stale else ():
            if tenant in stale:
                added += queue.requeue(tenant, project, Stage.MEANING, self._loop.now())
        return added

    def _words_lane(self) -> None:
        self._repeat(Stage.WORDS, self._worded)

    def _worded(self) -> int:
        done = self._loop.words_pass()
        if done:
            self._bell.ring()
        return done

    def _meaning_lane(self) -> None:
        _step_back()
        self._repeat(Stage.MEANING, self._loop.meaning_pass)

    def _upkeep_lane(self) -> None:
        _step_back()
        stop = self._loop.stop
        self._guarded(self.catch_up)
        while not stop.wait(_UPKEEP_SECONDS):
            self._guarded(self._purge.when_due)
            self._guarded(self._index.run_maintenance)

    def _watch_lane(self) -> None:
        """Keep the leases of long work, and know whether there is work; upkeep may take too long for that."""
        while not self._loop.stop.wait(_UPKEEP_SECONDS):
            self._guarded(self._loop.keep_in_hand)
            self._guarded(self._look)

    def _look(self) -> int:
        left = self._left()
        if left:
            self._stay()
        return left

    def _left(self) -> int:
        depth = self._loop.queue.depth()
        return depth.get("pending", 0) + depth.get("processing", 0)

    def _stay(self) -> None:
        self._busy_until = time.monotonic() + 2 * _UPKEEP_SECONDS

    def _repeat(self, stage: Stage, work: Callable[[], int]) -> None:
        stop = self._loop.stop
        while not stop.is_set():
            heard = self._bell.rings
            if self._guarded(work):
                self._stay()
            elif not stop.is_set():
                self._bell.wait(heard, self._until_due(stage))

    def _until_due(self, stage: Stage) -> float:
        """Return how long a lane may sleep: until the next job is due, or until it is time to look again."""
        longest = self._loop.queue.poll_seconds
        try:
            due_at = self._loop.queue.next_due(stage)
        except Exception:  # noqa: BLE001 - the next look says what is wrong
            return longest
        if due_at is None:
            return longest
        return min(longest, max(_LEAST_WAIT_SECONDS, (due_at - self._loop.now()).total_seconds()))

    def _guarded(self, work: Callable[[], int]) -> int:
        """Do it; a fault outside any job is logged by its kind, and the lane goes on after a pause."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a lane never ends before it is told to
            _log.warning("fault in %s: %s", threading.current_thread().name, type(error).__name__)
            self._loop.stop.wait(_PAUSE_AFTER_FAULT_SECONDS)
            return 0


def _shown(job: FailedJob) -> dict[str, Any]:
    """Return a failed job for whoever runs the server: where another tenant's file lies is not his business."""
    is_local = job.tenant == LOCAL_TENANT
    return {
        "tenant": job.tenant[:8],
        "project": job.project if is_local else None,
        "path": job.path if is_local else None,
        "stage": job.stage,
        "attempts": job.attempts,
        "error": job.error,
        "failed_at": format_utc(job.failed_at),
    }


def _step_back() -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _KINDNESS)
