"""One pass over due jobs: claim some, do them, and hand each back with its outcome; a bad job harms only itself."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Protocol

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.errors import HoldfastError
from holdfast.search.ports import EmbedFault, IndexFault
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Stage
from holdfast.store.ports import IndexQueue
from holdfast.worker.lag import Lags

_log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 300
_BACKLOG_SHARE = 4


class Indexing(Protocol):
    """What is done for jobs."""

    def index_words(self, jobs: Sequence[ClaimedJob]) -> list[bool]:
        """Index the words of the jobs' files; returns for each whether its meaning is owed now."""

    def index_meaning(self, job: ClaimedJob, key: Secret | None, check: Callable[[], None]) -> None:
        """Embed what a file has no vector for."""


class ModelKeys(Protocol):
    """Where the key of a job comes from."""

    def on_model_key(self, auth: AuthContext) -> None:
        """Receive a caller, whose key its jobs may need; never blocks."""

    def key_for(self, job: ClaimedJob) -> Secret | None:
        """Return the key that a job may use."""

    def await_key(self, job: ClaimedJob) -> None:
        """Let a job wait for its tenant's key."""

    def done_with(self, job: ClaimedJob) -> None:
        """Forget the key of a job that has ended."""

    def close(self) -> None:
        """Let go of them."""


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """How many jobs at once, how long each may be held, and when to give up."""

    batch_size: int = 20
    retry_max: int = 5
    retry_backoff_ms: int = 1000
    backoff_max_ms: int = 60_000
    lease_ms: int = 20_000

    @property
    def meaning_lease_ms(self) -> int:
        """Return how long a slow job is held; a request to a model may take most of it."""
        return 3 * self.lease_ms

    @property
    def meaning_batch(self) -> int:
        """Return how many jobs a slow lane takes, so that the others get some."""
        return max(1, self.batch_size // 5)


class ClaimLost(Exception):
    """The job is somebody else's by now, or of an older state of its file."""


class WorkerStopping(Exception):
    """The worker is about to end."""


class BacklogYields(Exception):
    """A fresh change is due, and the job is of the backlog."""


@dataclass
class Loop:
    """What the lanes of one worker share. `needs_key` says that a job's meaning needs its tenant's key."""

    queue: IndexQueue
    indexing: Indexing
    keys: ModelKeys
    needs_key: bool = False
    pace: JobPolicy = JobPolicy()
    lags: Lags = field(default_factory=Lags)
    now: Callable[[], datetime] = utc_clock
    stop: threading.Event = field(default_factory=threading.Event)
    choose: random.Random = field(default_factory=random.Random)
    _in_hand: Sequence[ClaimedJob] = ()
    _passes: dict[Stage, "count[int]"] = field(default_factory=lambda: {stage: count() for stage in Stage})

    def words_pass(self) -> int:
        """Index the words of some due files; returns how many jobs were taken."""
        jobs = self._claimed(Stage.WORDS, self.pace.batch_size, self.pace.lease_ms)
        if not jobs:
            return 0
        self._in_hand = jobs
        try:
            return self._words_of(jobs)
        finally:
            self._in_hand = ()

    def keep_in_hand(self) -> int:
        """Renew the leases of jobs whose words are being indexed, for whoever looks after it; returns how many there are."""
        jobs = self._in_hand
        for job in jobs:
            self.queue.renew(job, self.pace.lease_ms, self.now())
        return len(jobs)

    def _words_of(self, jobs: Sequence[ClaimedJob]) -> int:
        try:
            owed = self.indexing.index_words(jobs)
        except Exception as error:  # noqa: BLE001 - found out one by one whose fault it is
            if len(jobs) == 1:
                self._failed(jobs[0], error)
            else:
                for job in jobs:
                    self._words_alone(job)
            return len(jobs)
        self._worded(list(zip(jobs, owed, strict=True)))
        return len(jobs)

    def meaning_pass(self) -> int:
        """Embed some due files; returns how many jobs were taken."""
        jobs = self._claimed(Stage.MEANING, self.pace.meaning_batch, self.pace.meaning_lease_ms)
        waiting = list(jobs)
        while waiting:
            job = waiting.pop(0)
            try:
                self._meant(job, waiting)
            except ClaimLost:
                _log.debug("job %d was overtaken", job.id)
            except (WorkerStopping, BacklogYields) as reason:
                for left in (job, *waiting):
                    self.queue.release(left, self.now())
                return 0 if isinstance(reason, WorkerStopping) else len(jobs)
            except Exception as error:  # noqa: BLE001 - one bad job never ends a lane
                self._failed(job, error)
        return len(jobs)

    def _claimed(self, stage: Stage, limit: int, lease_ms: int) -> list[ClaimedJob]:
        kept = kept_for_backlog(next(self._passes[stage]), limit)
        return self.queue.claim(limit, lease_ms, self.now(), stage, kept)

    def _words_alone(self, job: ClaimedJob) -> None:
        try:
            self._worded([(job, self.indexing.index_words([job])[0])])
        except Exception as error:  # noqa: BLE001 - likewise
            self._failed(job, error)

    def _worded(self, jobs: Sequence[tuple[ClaimedJob, bool]]) -> None:
        self.lags.visible(Stage.WORDS, [job.written_at for job, _ in jobs if not job.is_backlog], self.now())
        self.queue.finish_all([(job, Stage.MEANING if owed else None) for job, owed in jobs], self.now())
        if self.needs_key:
            for job, owed in jobs:
                if not owed:
                    self.keys.done_with(job)

    def _meant(self, job: ClaimedJob, others: Sequence[ClaimedJob]) -> None:
        key = self.keys.key_for(job) if self.needs_key else None
        if key is None and self.needs_key:
            self.keys.await_key(job)
            return
        self.indexing.index_meaning(job, key, _Holding(self, job, others).check)
        if self.queue.finish(job, self.now()):
            self.lags.visible(Stage.MEANING, [] if job.is_backlog else [job.written_at], self.now())
            if self.needs_key:
                self.keys.done_with(job)

    def _failed(self, job: ClaimedJob, error: Exception) -> None:
        """Give a job back to be tried later, or up; the reason that is kept holds neither content nor key."""
        reason, attempt = reason_of(error), job.retry_count + 1
        _log.warning("job %d (%s) failed, attempt %d: %s", job.id, job.stage, attempt, reason)
        is_hopeless = isinstance(error, EmbedFault) and not error.retryable
        try:
            if attempt >= self.pace.retry_max or is_hopeless:
                self.queue.fail(job, reason, self.now())
            else:
                due_at = self.now() + timedelta(milliseconds=self.backoff_ms(attempt))
                self.queue.retry(job, reason, due_at, self.now())
        except HoldfastError as fault:
            _log.warning("job %d is taken up again when its lease ends: %s", job.id, type(fault).__name__)

    def backoff_ms(self, attempt: int) -> float:
        """Return how long to wait before the next attempt: longer each time, up to a bound, and never quite the same."""
        longest = min(self.pace.retry_backoff_ms * attempt, self.pace.backoff_max_ms)
        return longest * self.choose.uniform(0.75, 1.25)


class _Holding:
    """Keeps the claims of a lane while it works on the first of them."""

    def __init__(self, loop: Loop, job: ClaimedJob, others: Sequence[ClaimedJob]) -> None:
        self._loop = loop
        self._job = job
        self._others = others
        self._renew_at = self._next()

    def check(self) -> None:
        """Raise WorkerStopping when the worker ends, ClaimLost when the job was lost; renew the leases now and then.

        A job of the backlog has at least until then before it is to make way: what it has done by then stays done.
        """
        loop = self._loop
        if loop.stop.is_set():
            raise WorkerStopping
        if time.monotonic() < self._renew_at:
            return
        self._renew_at = self._next()
        if not loop.queue.renew(self._job, loop.pace.meaning_lease_ms, loop.now()):
            raise ClaimLost
        for other in self._others:
            loop.queue.renew(other, loop.pace.meaning_lease_ms, loop.now())
        if self._job.is_backlog and loop.queue.is_fresh_due(self._job.stage, loop.now()):
            raise BacklogYields

    def _next(self) -> float:
        return time.monotonic() + min(2.0, self._loop.pace.lease_ms / 3000)


def kept_for_backlog(number: int, limit: int) -> int:
    """Return how many of the places of a claim, the so-manieth, are the backlog's: every fourth of all places."""
    return ((number + 1) * limit) // _BACKLOG_SHARE - (number * limit) // _BACKLOG_SHARE


def reason_of(error: Exception) -> str:
    """Return what may be kept of an error: the words of our own faults, of all others the kind and the place alone."""
    if isinstance(error, EmbedFault | IndexFault | HoldfastError):
        return str(error)[:_MAX_ERROR_CHARS]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{place}"
