"""Starts, watches and stops the index workers of one process: threads (lanes) for words, for meaning and for upkeep."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.auth.context import LOCAL_TENANT, AuthContext
from holdfast.clock import format_utc
from holdfast.observe.metrics import Metrics, Reading, SlowReading, Values
from holdfast.search.ports import Embedder, Index
from holdfast.store.model import Backlog, FailedJob, Stage
from holdfast.worker.indexing_stats import NO_LAG, Lag, Speed
from holdfast.worker.loop import Loop
from holdfast.worker.purge import Purge

_log = logging.getLogger(__name__)

_UPKEEP_SECONDS = 5.0
_PAUSE_AFTER_FAULT_SECONDS = 1.0
_MIN_WAIT_SECONDS = 0.02
_MAX_LISTED_FAILURES = 20
_UNDER_WAY = frozenset({"pending", "processing"})
_NICE = 10
"""The nice value of the slow lanes, so that calls come first."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How fresh the index is. Lags and speed are of this process; the backlog is of all tenants."""

    words: Lag
    meaning: Lag
    embedder: Speed
    backlog: Sequence[Backlog]
    failed: Sequence[FailedJob]
    model: str | None
    lanes: int

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        return {
            "lag": {"words": asdict(self.words), "meaning": asdict(self.meaning)},
            "embedder": {"model": self.model, **asdict(self.embedder)},
            "backlog": [
                {
                    "stage": group.stage,
                    "status": group.status,
                    "jobs": group.jobs,
                    "oldest_at": format_utc(group.oldest_at),
                }
                for group in self.backlog
            ],
            "failed": [_failed_job_json(job) for job in self.failed],
            "lanes": self.lanes,
        }


@dataclass(frozen=True, slots=True)
class QueueState:
    """The jobs that are not done, and for how long the first of each stage has been due without a worker."""

    backlog: Sequence[Backlog]
    overdue_seconds: Values
    oldest_seconds: Values

    @property
    def depth(self) -> int:
        """Return how many jobs are neither done nor given up."""
        return sum(group.jobs for group in self.backlog if group.status != "failed")


class WakeUp:
    """A wake-up signal for worker threads; one sent while a thread is busy is not lost.

    It counts its signals: a thread that remembers the count from before its work learns at once of a later one.
    """

    def __init__(self) -> None:
        self._count = 0
        self._condition = threading.Condition()

    @property
    def count(self) -> int:
        """Return how many signals were sent."""
        return self._count

    def send(self) -> None:
        """Wake every waiting thread."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, known_count: int, seconds: float) -> None:
        """Wait until more signals than `known_count` were sent, at most that long."""
        with self._condition:
            self._condition.wait_for(lambda: self._count != known_count, seconds)


class Workers:
    """One words lane and `lanes` meaning lanes over one loop; 0 leaves all of it to another process.

    Without an embedder a lane ends the jobs that wait for meaning, since no other thread does: once there is a model,
    `catch_up` finds their files. They are left alone where other processes have a model (`is_alone` False). Where
    nothing is indexed (`is_on` False) there is only the upkeep lane.
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
        metrics: Metrics | None = None,
    ) -> None:
        self._loop = loop
        self._watch(metrics or Metrics())
        self._index = index
        self._purge = purge
        self._embedder = embedder
        self._lanes = lanes
        self._is_on = is_on
        self._meaning_lanes = lanes if embedder else int(is_alone)
        self._busy_until = 0.0
        self._wake_up = WakeUp()
        self._threads: list[threading.Thread] = []
        self._unlisten: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the lanes; returns at once. What a lane needs is loaded by its first job."""
        if self._threads or self._lanes == 0:
            return
        self._loop.stop.clear()
        self._unlisten = self._loop.queue.listen(self._wake_up.send)
        lanes: list[tuple[str, Callable[[], None]]] = [("upkeep", self._upkeep_lane)]
        if self._is_on:
            lanes += [("words", self._words_lane), ("leases", self._lease_lane)]
            lanes += [(f"meaning-{number}", self._meaning_lane) for number in range(self._meaning_lanes)]
        self._threads = [threading.Thread(target=run, name=f"holdfast-{name}", daemon=True) for name, run in lanes]
        for thread in self._threads:
            thread.start()

    def release(self) -> None:
        """Tell the lanes to end; returns at once."""
        self._loop.stop.set()
        self._wake_up.send()

    def stop(self, seconds: float = 2.0) -> None:
        """End the lanes after their current jobs, at most that long; an unfinished job is due at once or after its lease."""
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
        """Return whether the lanes were started."""
        return bool(self._threads)

    def has_work(self) -> bool:
        """Return whether a lane of this process had work lately, or the queue had jobs; never blocks."""
        return bool(self._threads) and time.monotonic() < self._busy_until

    def status(self) -> IndexStatus:
        """Return how fresh the index is."""
        stats, queue = self._loop.stats, self._loop.queue
        return IndexStatus(
            words=stats.lag(Stage.WORDS),
            meaning=stats.lag(Stage.MEANING) if self._embedder else NO_LAG,
            embedder=stats.speed(),
            backlog=queue.list_backlog(),
            failed=queue.list_failed(_MAX_LISTED_FAILURES),
            model=self._embedder.model if self._embedder else None,
            lanes=len(self._threads),
        )

    def read_queue(self) -> QueueState:
        """Return what waits in the queue; asks the database."""
        queue, now, backlog = self._loop.queue, self._loop.now(), self._loop.queue.list_backlog()
        overdue, oldest = dict.fromkeys(Stage, 0.0), dict.fromkeys(Stage, 0.0)
        for group in backlog:
            if group.status in _UNDER_WAY:
                oldest[group.stage] = max(oldest[group.stage], (now - group.oldest_at).total_seconds())
        for stage in {group.stage for group in backlog if group.status in _UNDER_WAY}:
            due_at = queue.find_longest_due(stage)
            overdue[stage] = max(0.0, (now - due_at).total_seconds()) if due_at else 0.0
        return QueueState(backlog, _by_stage(overdue), _by_stage(oldest))

    def _watch(self, metrics: Metrics) -> None:
        """Give the queue's figures to the metrics; the queue is queried every few seconds at most, however often it is scraped."""
        state = SlowReading(self.read_queue)

        def read(part: Callable[[QueueState], float | Values]) -> Callable[[], float | Values | None]:
            return lambda: part(latest) if (latest := state.latest()) is not None else None

        metrics.watch(Reading.DATABASE_UP, lambda: float(state.latest() is not None))
        metrics.watch(Reading.QUEUE_DEPTH, read(lambda queue: queue.depth))
        metrics.watch(
            Reading.INDEX_JOBS,
            read(lambda queue: {(group.stage.value, group.status): group.jobs for group in queue.backlog}),
        )
        metrics.watch(Reading.INDEX_OVERDUE_SECONDS, read(lambda queue: queue.overdue_seconds))
        metrics.watch(Reading.INDEX_OLDEST_JOB_SECONDS, read(lambda queue: queue.oldest_seconds))
        metrics.watch(Reading.INDEX_LANES, lambda: sum(thread.is_alive() for thread in self._threads))

    def drain(self, seconds: float, progress: Callable[[int], None] = lambda _remaining: None) -> bool:
        """Do jobs in this thread until none is due or running anywhere, at most that long; returns whether none is."""
        deadline = time.monotonic() + seconds
        while remaining := self._count_unfinished():
            progress(remaining)
            if time.monotonic() >= deadline:
                return False
            if not self._loop.run_words_pass() and not (self._meaning_lanes and self._loop.run_meaning_pass()):
                time.sleep(_MIN_WAIT_SECONDS)
        return True

    def retry_failed(self) -> int:
        """Make failed jobs due again; returns how many."""
        return self._loop.queue.retry_failed(self._loop.now())

    def rebuild(self, stage: Stage) -> int:
        """Add a job for every live file that has none open; returns how many."""
        queue, now = self._loop.queue, self._loop.now
        return sum(queue.requeue(tenant, project, stage, now()) for tenant, project in queue.list_projects())

    def catch_up(self) -> int:
        """Add jobs for the files that lack vectors of the model in use; returns how many. The old vectors stay."""
        if self._embedder is None:
            return 0
        queue, added = self._loop.queue, 0
        stale = {
            tenant
            for tenant in self._index.list_tenants()
            if self._index.find_files_without_vectors(tenant, self._embedder.model, 1)
        }
        for tenant, project in queue.list_projects() if stale else ():
            if tenant in stale:
                added += queue.requeue(tenant, project, Stage.MEANING, self._loop.now())
        return added

    def _words_lane(self) -> None:
        def run_pass() -> int:
            claimed = self._loop.run_words_pass()
            if claimed:
                self._wake_up.send()  # their meaning may be due
            return claimed

        self._repeat(Stage.WORDS, run_pass)

    def _meaning_lane(self) -> None:
        _lower_priority()
        self._repeat(Stage.MEANING, self._loop.run_meaning_pass)

    def _upkeep_lane(self) -> None:
        _lower_priority()
        self._run_logged(self.catch_up)
        while not self._loop.stop.wait(_UPKEEP_SECONDS):
            self._run_logged(self._purge.run_due)
            self._run_logged(self._index.run_maintenance)

    def _lease_lane(self) -> None:
        """Renew the leases of long work, and notice whether there is work; upkeep may take too long for that."""
        while not self._loop.stop.wait(_UPKEEP_SECONDS):
            self._run_logged(self._loop.renew_words_leases)
            if self._run_logged(self._count_unfinished):
                self._mark_busy()

    def _count_unfinished(self) -> int:
        depth = self._loop.queue.count_open_jobs()
        return depth.get("pending", 0) + depth.get("processing", 0)

    def _mark_busy(self) -> None:
        self._busy_until = time.monotonic() + 2 * _UPKEEP_SECONDS

    def _repeat(self, stage: Stage, run_pass: Callable[[], int]) -> None:
        stop = self._loop.stop
        while not stop.is_set():
            known_count = self._wake_up.count
            if self._run_logged(run_pass):
                self._mark_busy()
            elif not stop.is_set():
                self._wake_up.wait(known_count, self._seconds_until_due(stage))

    def _seconds_until_due(self, stage: Stage) -> float:
        """Return how long a lane may sleep: until the next job is due, or until the next poll."""
        poll_seconds = self._loop.queue.poll_seconds
        try:
            due_at = self._loop.queue.find_next_due(stage)
        except Exception:  # noqa: BLE001 - the next pass logs what is wrong
            return poll_seconds
        if due_at is None:
            return poll_seconds
        return min(poll_seconds, max(_MIN_WAIT_SECONDS, (due_at - self._loop.now()).total_seconds()))

    def _run_logged(self, work: Callable[[], int]) -> int:
        """Do the work; an error outside any job is logged by its type, and the lane goes on after a pause."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a lane ends on request only
            _log.warning("fault in %s: %s", threading.current_thread().name, type(error).__name__)
            self._loop.stop.wait(_PAUSE_AFTER_FAULT_SECONDS)
            return 0


def _failed_job_json(job: FailedJob) -> dict[str, Any]:
    """Return a failed job for the operator of the server, without the project and path of another tenant's file."""
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


def _by_stage(seconds: Mapping[Stage, float]) -> Values:
    return {(stage.value,): value for stage, value in seconds.items()}


def _lower_priority() -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
