"""Runs one pass over due index jobs: claim some, do them, finish, retry or fail each; a bad job harms only itself."""

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
from holdfast.errors import HoldfastError, describe_place
from holdfast.search.ports import EmbedFault, IndexFault
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Stage
from holdfast.store.ports import IndexQueue
from holdfast.worker.indexing_stats import IndexingStats

_log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 300
_BACKLOG_SHARE = 4


class Indexing(Protocol):
    """What is done for jobs."""

    def index_words(self, jobs: Sequence[ClaimedJob]) -> list[bool]:
        """Index the words of the jobs' files; returns for each whether its meaning stage is due."""

    def index_meaning(self, job: ClaimedJob, key: Secret | None, check: Callable[[], None]) -> None:
        """Embed what a file has no vector for."""


class ModelKeys(Protocol):
    """Where the model key of a job comes from."""

    def on_model_key(self, auth: AuthContext) -> None:
        """Receive a caller, whose key its jobs may need; never blocks."""

    def key_for(self, job: ClaimedJob) -> Secret | None:
        """Return the key that a job may use."""

    def await_key(self, job: ClaimedJob) -> None:
        """Let a job wait for its tenant's key."""

    def forget_key(self, job: ClaimedJob) -> None:
        """Forget the key of a job that has ended."""

    def close(self) -> None:
        """Close what holds the keys."""


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """How many jobs are claimed at once, how long they are leased, and when they are retried or given up."""

    batch_size: int = 20
    retry_max: int = 5
    retry_backoff_ms: int = 1000
    backoff_max_ms: int = 60_000
    lease_ms: int = 20_000

    @property
    def meaning_lease_ms(self) -> int:
        """Return how long a meaning job is leased; a request to a model may take most of it."""
        return 3 * self.lease_ms

    @property
    def meaning_batch(self) -> int:
        """Return how many jobs a meaning lane claims, so that the other lanes get some."""
        return max(1, self.batch_size // 5)


class ClaimLost(Exception):
    """Another worker has the job, or its file has changed since it was claimed."""


class WorkerStopping(Exception):
    """The worker is about to end."""


class BacklogYields(Exception):
    """A fresh change is due, and the job is of the backlog."""


@dataclass
class Loop:
    """What the lanes of one worker share. `needs_key` says that the meaning of a job needs its tenant's key."""

    queue: IndexQueue
    indexing: Indexing
    keys: ModelKeys
    needs_key: bool = False
    policy: JobPolicy = JobPolicy()
    stats: IndexingStats = field(default_factory=IndexingStats)
    now: Callable[[], datetime] = utc_clock
    stop: threading.Event = field(default_factory=threading.Event)
    jitter: random.Random = field(default_factory=random.Random)
    _words_jobs: Sequence[ClaimedJob] = ()
    _claim_numbers: dict[Stage, "count[int]"] = field(default_factory=lambda: {stage: count() for stage in Stage})

    def run_words_pass(self) -> int:
        """Index the words of some due files; returns how many jobs were claimed."""
        jobs = self._claim(Stage.WORDS, self.policy.batch_size, self.policy.lease_ms)
        if not jobs:
            return 0
        self._words_jobs, began = jobs, time.monotonic()
        try:
            self._index_words(jobs, began)
        finally:
            self._words_jobs = ()
        return len(jobs)

    def renew_words_leases(self) -> int:
        """Renew the leases of the jobs whose words are being indexed, from another thread; returns how many there are."""
        jobs = self._words_jobs
        for job in jobs:
            self.queue.renew(job, self.policy.lease_ms, self.now())
        return len(jobs)

    def run_meaning_pass(self) -> int:
        """Embed some due files; returns how many jobs were claimed, 0 when the worker stops."""
        jobs = self._claim(Stage.MEANING, self.policy.meaning_batch, self.policy.meaning_lease_ms)
        waiting = list(jobs)
        while waiting:
            job, began = waiting.pop(0), time.monotonic()
            try:
                self._index_meaning(job, waiting, began)
            except ClaimLost:
                self.stats.record_job(job, "lost", began)
                _log.debug("the claim of job %d was lost", job.id)
            except (WorkerStopping, BacklogYields) as reason:
                for unfinished in (job, *waiting):
                    self.queue.release(unfinished, self.now())
                return 0 if isinstance(reason, WorkerStopping) else len(jobs)
            except Exception as error:  # noqa: BLE001 - one bad job never ends a lane
                self._fail(job, error, began)
        return len(jobs)

    def _claim(self, stage: Stage, limit: int, lease_ms: int) -> list[ClaimedJob]:
        for_backlog = backlog_slots(next(self._claim_numbers[stage]), limit)
        return self.queue.claim(limit, lease_ms, self.now(), stage, for_backlog)

    def _index_words(self, jobs: Sequence[ClaimedJob], began: float) -> None:
        try:
            needs_meaning = self.indexing.index_words(jobs)
        except Exception as error:  # noqa: BLE001 - the jobs are tried one by one, to find which is at fault
            if len(jobs) == 1:
                self._fail(jobs[0], error, began)
                return
            for job in jobs:
                try:
                    self._finish_words([job], self.indexing.index_words([job]), began)
                except Exception as fault:  # noqa: BLE001 - one bad job never ends a lane
                    self._fail(job, fault, began)
        else:
            self._finish_words(jobs, needs_meaning, began)

    def _finish_words(self, jobs: Sequence[ClaimedJob], needs_meaning: Sequence[bool], began: float) -> None:
        outcomes = list(zip(jobs, needs_meaning, strict=True))
        self.stats.record_visible(Stage.WORDS, [job.written_at for job in jobs if not job.is_backlog], self.now())
        self.queue.finish_all([(job, Stage.MEANING if further else None) for job, further in outcomes], self.now())
        for job in jobs:
            self.stats.record_job(job, "done", began)
        if self.needs_key:
            for job, further in outcomes:
                if not further:
                    self.keys.forget_key(job)

    def _index_meaning(self, job: ClaimedJob, waiting: Sequence[ClaimedJob], began: float) -> None:
        key = self.keys.key_for(job) if self.needs_key else None
        if key is None and self.needs_key:
            self.keys.await_key(job)
            return
        self.indexing.index_meaning(job, key, _LeaseKeeper(self, job, waiting).check)
        if self.queue.finish(job, self.now()):
            self.stats.record_visible(Stage.MEANING, [] if job.is_backlog else [job.written_at], self.now())
            self.stats.record_job(job, "done", began)
            if self.needs_key:
                self.keys.forget_key(job)

    def _fail(self, job: ClaimedJob, error: Exception, began: float) -> None:
        """Retry a job later, or give it up; the stored reason holds neither content nor key."""
        reason, attempt = describe_error(error), job.retry_count + 1
        _log.warning("job %d (%s) failed, attempt %d: %s", job.id, job.stage, attempt, reason)
        is_hopeless = isinstance(error, EmbedFault) and not error.retryable
        is_given_up = attempt >= self.policy.retry_max or is_hopeless
        self.stats.record_job(job, "failed" if is_given_up else "retried", began)
        try:
            if is_given_up:
                self.queue.fail(job, reason, self.now())
            else:
                due_at = self.now() + timedelta(milliseconds=self.backoff_ms(attempt))
                self.queue.retry(job, reason, due_at, self.now())
        except HoldfastError as fault:
            _log.warning("job %d is taken up again when its lease ends: %s", job.id, type(fault).__name__)

    def backoff_ms(self, attempt: int) -> float:
        """Return the backoff before the next attempt: it grows with each, up to a bound, with jitter."""
        backoff = min(self.policy.retry_backoff_ms * attempt, self.policy.backoff_max_ms)
        return backoff * self.jitter.uniform(0.75, 1.25)


class _LeaseKeeper:
    """Renews the leases of a lane's claimed jobs while it works on the first of them."""

    def __init__(self, loop: Loop, job: ClaimedJob, waiting: Sequence[ClaimedJob]) -> None:
        self._loop = loop
        self._job = job
        self._waiting = waiting
        self._renew_at = self._next_renewal()

    def check(self) -> None:
        """Renew the leases at intervals; WorkerStopping, ClaimLost when the job was lost, BacklogYields.

        A backlog job yields at a renewal, never before the first: what it has done by then stays done.
        """
        loop = self._loop
        if loop.stop.is_set():
            raise WorkerStopping
        if time.monotonic() < self._renew_at:
            return
        self._renew_at = self._next_renewal()
        if not loop.queue.renew(self._job, loop.policy.meaning_lease_ms, loop.now()):
            raise ClaimLost
        for job in self._waiting:
            loop.queue.renew(job, loop.policy.meaning_lease_ms, loop.now())
        if self._job.is_backlog and loop.queue.is_fresh_due(self._job.stage, loop.now()):
            raise BacklogYields

    def _next_renewal(self) -> float:
        return time.monotonic() + min(2.0, self._loop.policy.lease_ms / 3000)


def backlog_slots(claim_number: int, limit: int) -> int:
    """Return how many slots of the n-th claim are reserved for the backlog: a quarter overall."""
    return ((claim_number + 1) * limit) // _BACKLOG_SHARE - (claim_number * limit) // _BACKLOG_SHARE


def describe_error(error: Exception) -> str:
    """Return what may be stored of an error: the message of our own, only the type and place of any other."""
    if isinstance(error, EmbedFault | IndexFault | HoldfastError):
        return str(error)[:_MAX_ERROR_CHARS]
    return describe_place(error)
