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

MAX_RUNNING = 16
"""Plans in the making, those that wait for a thread included."""

_THREADS = 4
_MAX_REMEMBERED = 64
_NO_LIMIT_SECONDS = 24 * 3600.0


@dataclass
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
    def is_running(self) -> bool:
        """Return whether the plan is still being made."""
        return not self.future.done()

    def raise_for_failure(self) -> None:
        """Raise the error that ended the job, if one did."""
        if self.future.done():
            self.future.result()


class PlanJobs:
    """The plans in the making, and those that ended lately. Call `close()` at the end."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-scan")
        self._jobs: OrderedDict[str, PlanJob] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, job: PlanJob, work: Callable[[PlanJob], None], before: Callable[[], None] | None = None) -> None:
        """Start to make a plan. ResourceBusy when too many are in the making, or when the server is stopping.

        `before` is called when the job is not refused, before its work begins; what it raises refuses the job.
        """
        with self._lock:
            if self._is_closed:
                raise ResourceBusy("The server is stopping. Try again after it has restarted.")
            if sum(1 for other in self._jobs.values() if other.is_running) >= MAX_RUNNING:
                raise ResourceBusy(f"{MAX_RUNNING} plans are being made already. Wait for one, or cancel it.")
            if before is not None:
                before()
            job.future = self._threads.submit(work, job)
            job.future.add_done_callback(job.tell_end)
            self._jobs[job.plan_id] = job
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
        for job in self.running():
            job.call.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
