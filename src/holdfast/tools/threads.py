"""The threads in which tools do their blocking work: one bounded pool, shared out by caller and by kind of work."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import ResourceBusy
from holdfast.shares import HALF, LARGE, Shares

T = TypeVar("T")


class Load(Enum):
    """What a piece of work costs the server, which bounds how many of its kind run at once."""

    LIGHT = "light"
    """Short, or waiting for the disk or a database."""
    HEAVY = "heavy"
    """Computes for long: searches, walks of a tree. Python computes in one thread at a time."""
    CHILD = "child"
    """Runs a child process and waits for it."""
    LONG = "long"
    """May take minutes, such as executing a plan."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many threads there are, how many of them for heavy work and for children, and how many calls of one caller wait."""

    threads: int = 32
    heavy: int = 4
    children: int = 6
    waiting_per_caller: int = 256


@dataclass(eq=False, slots=True)
class _Job:
    caller: str
    load: Load
    work: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)


class CallThreads:
    """Runs blocking functions for coroutines. Every caller has queues of its own, one for each load.

    A thread that is free takes the first job of the caller that has the fewest running, of those whose callers may take
    one more place of the pool and of the job's load (`Shares`). So no caller ever holds all threads, all places of heavy
    work or all children, a job that waits for such a place holds no thread, and light calls find one in any flood. They
    have half of the threads: more of them would only wait for each other, since Python computes in one at a time.
    """

    def __init__(self, limits: PoolLimits) -> None:
        count = max(2, limits.threads)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="holdfast-call")
        self._max_waiting = limits.waiting_per_caller
        self._all = Shares(count, LARGE)
        self._by_load = {
            Load.LIGHT: Shares(max(2, count // 2), LARGE),
            Load.HEAVY: Shares(limits.heavy, HALF),
            Load.CHILD: Shares(limits.children, HALF),
            Load.LONG: Shares(count // 2, LARGE),
        }
        self._lock = threading.Lock()
        self._queues: dict[tuple[str, Load], dict[_Job, None]] = {}
        self._running: dict[_Job, None] = {}
        self._is_closed = False

    async def run(self, caller: str, function: Callable[..., T], *args: Any, load: Load = Load.LIGHT) -> T:
        """Call a function in a thread and return its result. Cancelling takes it out of the queue, but stops no thread.

        ResourceBusy when too many calls of this caller wait already.
        """
        job = _Job(caller, load, partial(function, *args))
        self._add(job)
        try:
            result: T = await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            self._forget(job)
            raise
        finally:
            del job  # as in `_run_jobs`
        return result

    def count_waiting(self) -> dict[tuple[str, ...], float]:
        """Return how many jobs wait for a place, by load."""
        with self._lock:
            waiting = [(load, len(queue)) for (_, load), queue in self._queues.items()]
        return {(load.value,): float(sum(count for of, count in waiting if of is load)) for load in Load}

    def count_running(self) -> dict[tuple[str, ...], float]:
        """Return how many jobs have a thread, by load."""
        return {(load.value,): float(shares.taken_places) for load, shares in self._by_load.items()}

    def close(self, seconds: float) -> None:
        """Start nothing more, and wait for what is running: `seconds` for short calls, without a bound for long work.

        Long work ends at its next check of its call, which the caller has cancelled. What it works on is closed next, and
        a command releases the lock of the state folder, so nothing of a plan may still move then. A server's process has
        a deadline of its own.
        """
        with self._lock:
            self._is_closed = True
            waiting = [job for queue in self._queues.values() for job in queue]
            self._queues.clear()
            running = list(self._running)
        for job in waiting:
            job.future.cancel()
        self._pool.shutdown(wait=False)
        wait([job.future for job in running if job.load is Load.LONG])
        wait([job.future for job in running], seconds)

    def _add(self, job: _Job) -> None:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the server is ending")
            if self._count_waiting(job.caller) >= self._max_waiting:
                raise ResourceBusy(f"{self._max_waiting} of your calls are waiting already; wait for their answers.")
            self._queues.setdefault((job.caller, job.load), {})[job] = None
            for ready in self._take_jobs():
                self._pool.submit(self._run_jobs, [ready])

    def _count_waiting(self, caller: str) -> int:
        return sum(len(self._queues.get((caller, load), ())) for load in Load)

    def _take_jobs(self) -> list[_Job]:
        """Take every job that may start now out of its queue and count its places."""
        jobs: list[_Job] = []
        while (key := self._next_queue()) is not None:
            caller, load = key
            queue = self._queues.pop(key)
            job = next(iter(queue))
            del queue[job]
            if queue:
                self._queues[key] = queue  # at the end: callers with equally many running take turns
            if not job.future.set_running_or_notify_cancel():
                continue
            self._all.take(caller)
            self._by_load[load].take(caller)
            self._running[job] = None
            jobs.append(job)
        return jobs

    def _next_queue(self) -> tuple[str, Load] | None:
        """Return the queue whose first job is next: its caller has the fewest running of those with room."""
        ready = [
            (caller, load)
            for caller, load in self._queues
            if self._all.has_room(caller) and self._by_load[load].has_room(caller)
        ]
        return min(ready, key=lambda key: self._all.count(key[0]), default=None)

    def _run_jobs(self, jobs: list[_Job]) -> None:
        """Run the only job of a list, then what its end made room for: one in this thread, others in threads of their own.

        An error keeps the frames that it came through, this one and those above it as well. Were the job still in one of
        them, and with it the error, then what the work had read would stay until the garbage collector comes by: megabytes
        for each call that fails.
        """
        current: _Job | None = jobs.pop()
        while current is not None:
            settle = _run(current)
            with self._lock:
                current = self._end(current)
            settle()
            del settle

    def _end(self, job: _Job) -> _Job | None:
        """Give back the places of a job and return the next one."""
        del self._running[job]
        self._all.give_back(job.caller)
        self._by_load[job.load].give_back(job.caller)
        ready = self._take_jobs()
        for other in ready[1:]:
            self._pool.submit(self._run_jobs, [other])
        return ready[0] if ready else None

    def _forget(self, job: _Job) -> None:
        """Take a job that nobody waits for out of its queue."""
        with self._lock:
            queue = self._queues.get((job.caller, job.load), {})
            queue.pop(job, None)
            if not queue:
                self._queues.pop((job.caller, job.load), None)


def _run(job: _Job) -> Callable[[], None]:
    """Do the work of a job and return what settles its future."""
    try:
        return partial(job.future.set_result, job.work())
    except BaseException as error:  # noqa: BLE001 -- whoever awaits the future gets it
        return partial(job.future.set_exception, error)
    finally:
        del job  # as in `_run_jobs`
