"""Runs the making of plans in threads, so that it may outlive the call that asked for it."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from holdfast.auth.context import Caller
from holdfast.bulletin import Bulletin, NewsKind
from holdfast.call import Call
from holdfast.errors import Cancelled, ResourceBusy
from holdfast.shares import HALF, LARGE, Shares

MAX_RUNNING = 16
"""Plans in the making, those that wait for a thread included."""

_THREADS = 4
_MAX_REMEMBERED = 64
_NO_LIMIT_SECONDS = 24 * 3600.0


@dataclass(eq=False)
class PlanJob:
    """One plan in the making: its folder, its progress, and how it ended."""

    plan_id: str
    folder: str
    root: str
    call: Call
    bulletin: Bulletin
    future: "Future[None]" = field(default_factory=Future)
    done: float = 0
    total: float | None = None
    message: str = "Scanning"

    @classmethod
    def create(cls, caller: Caller, folder: str, root: str, bulletin: Bulletin | None = None) -> "PlanJob":
        """Return a job for a folder, not started yet; its progress is published in the bulletin."""
        job = cls(secrets.token_hex(16), folder, root, Call(caller, _NO_LIMIT_SECONDS), bulletin or Bulletin())
        job.call.progress = job.set_progress
        return job

    def set_progress(self, done: float, total: float | None, message: str) -> None:
        """Keep the latest progress."""
        self.done, self.total, self.message = done, total, message
        self.bulletin.tell_progress(self.plan_id, "scan", done, total, message)

    def tell_end(self, future: "Future[None]") -> None:
        """Tell of a scan that ended without a plan."""
        if future.cancelled() or (error := future.exception()) is None:
            return
        status = "CANCELLED" if isinstance(error, Cancelled) else "SCAN_FAILED"
        self.bulletin.tell(NewsKind.PLAN_CHANGED, id=self.plan_id, status=status, kind="organise")

    @property
    def share(self) -> str:
        """Return whose part of the server it uses."""
        return self.call.caller.share

    @property
    def is_running(self) -> bool:
        """Return whether the plan is still being made."""
        return not self.future.done()

    def raise_for_failure(self) -> None:
        """Raise the error that ended the job, if one did."""
        if self.future.done():
            self.future.result()


Work = Callable[[PlanJob], None]


class PlanJobs:
    """The plans in the making, and those that ended lately. Call `close()` at the end.

    Threads and the places to wait for one are shared out by caller, as those of calls are.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-scan")
        self._places, self._running_places = Shares(MAX_RUNNING, LARGE), Shares(_THREADS, HALF)
        self._waiting: OrderedDict[str, tuple[PlanJob, Work]] = OrderedDict()
        self._jobs: OrderedDict[str, PlanJob] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, job: PlanJob, work: Work, before: Callable[[], None] | None = None) -> None:
        """Start to make a plan. ResourceBusy when too many of the caller are in the making, or when the server is stopping.

        `before` is called when the job is not refused, before its work begins; what it raises refuses the job.
        """
        with self._lock:
            if self._is_closed:
                raise ResourceBusy("The server is stopping. Try again after it has restarted.")
            if not self._places.has_room(job.share):
                raise ResourceBusy("Too many plans are being made already. Wait for one of yours, or cancel it.")
            if before is not None:
                before()
            job.future.add_done_callback(job.tell_end)
            self._places.take(job.share)
            self._jobs[job.plan_id] = job
            self._waiting[job.plan_id] = job, work
            self._start_waiting()
            ended = [plan_id for plan_id, other in self._jobs.items() if not other.is_running]
            for plan_id in ended[: max(0, len(self._jobs) - _MAX_REMEMBERED)]:
                del self._jobs[plan_id]

    def find(self, plan_id: str) -> PlanJob | None:
        """Return the job of a plan that is in the making or lately was; None for any other."""
        with self._lock:
            return self._jobs.get(plan_id)

    def running(self) -> list[PlanJob]:
        """Return the jobs whose plans are still being made."""
        with self._lock:
            return [job for job in self._jobs.values() if job.is_running]

    def failed(self) -> list[tuple[PlanJob, BaseException]]:
        """Return the jobs that ended lately without a plan, each with the error; those that were cancelled are left out."""
        with self._lock:
            ended = [job for job in self._jobs.values() if not job.is_running and not job.future.cancelled()]
        errors = ((job, job.future.exception()) for job in ended)
        return [(job, error) for job, error in errors if error is not None and not isinstance(error, Cancelled)]

    def close(self) -> None:
        """Refuse new jobs, cancel those that run and wait for their threads."""
        with self._lock:
            self._is_closed = True
            waiting = [job for job, _ in self._waiting.values()]
            self._waiting.clear()
        for job in waiting:
            job.future.cancel()
        for job in self.running():
            job.call.cancel()
        self._threads.shutdown(wait=True)

    def _start_waiting(self) -> None:
        """Give threads to the jobs that wait, first to callers with the fewest running. The caller holds the lock."""
        while ready := [job for job, _ in self._waiting.values() if self._running_places.has_room(job.share)]:
            job = min(ready, key=lambda each: self._running_places.count(each.share))
            self._running_places.take(job.share)
            self._threads.submit(self._run, *self._waiting.pop(job.plan_id))

    def _run(self, job: PlanJob, work: Work) -> None:
        error: BaseException | None = None
        try:
            work(job)
        except BaseException as fault:  # noqa: BLE001 -- whoever asks for the plan gets it
            error = fault.with_traceback(None)  # its frames hold all that was read of the folder
        with self._lock:
            self._places.give_back(job.share)
            self._running_places.give_back(job.share)
            self._start_waiting()
        if error is None:
            job.future.set_result(None)
        else:
            job.future.set_exception(error)
