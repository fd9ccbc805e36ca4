"""Plans in the making: each has a thread of its own, so that one may take longer than the call that asked for it."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from holdfast.auth.context import Caller
from holdfast.call import Call
from holdfast.errors import ResourceBusy

_AT_ONCE = 4
_KEPT = 64
_MOST = 16
_NO_LIMIT_SECONDS = 24 * 3600.0


@dataclass
class Job:
    """One plan in the making: what it is for, how far it is, and how it ended."""

    plan_id: str
    folder: str
    root: str
    call: Call
    future: "Future[None]" = field(default_factory=Future)
    done: float = 0
    total: float | None = None
    message: str = "Scanning"

    @classmethod
    def of(cls, caller: Caller, folder: str, root: str) -> "Job":
        """Return one for a folder that has not begun."""
        job = cls(secrets.token_hex(16), folder, root, Call(caller, _NO_LIMIT_SECONDS))
        job.call.progress = job.progress
        return job

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Take notice of progress."""
        self.done, self.total, self.message = done, total, message

    @property
    def is_running(self) -> bool:
        """Return whether the plan is not there yet."""
        return not self.future.done()

    def raise_fault(self) -> None:
        """Raise what kept the plan from being made, if something did."""
        if self.future.done():
            self.future.result()


class Jobs:
    """The plans in the making and those lately ended."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="holdfast-scan")
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, job: Job, work: Callable[[Job], None]) -> None:
        """Begin to make a plan. ResourceBusy when too many are in the making."""
        if len(self.running()) >= _MOST:
            raise ResourceBusy(f"{_MOST} plans are in the making already. Wait for one, or cancel it.")
        with self._lock:
            self._jobs[job.plan_id] = job
            ended = [plan_id for plan_id, other in self._jobs.items() if not other.is_running]
            for plan_id in ended[: max(0, len(self._jobs) - _KEPT)]:
                del self._jobs[plan_id]
        job.future = self._threads.submit(work, job)

    def find(self, plan_id: str) -> Job | None:
        """Return a plan in the making, or lately made."""
        with self._lock:
            return self._jobs.get(plan_id)

    def running(self) -> list[Job]:
        """Return the plans that are not there yet."""
        with self._lock:
            return [job for job in self._jobs.values() if job.is_running]

    def close(self) -> None:
        """Stop every plan in the making and wait for its thread."""
        for job in self.running():
            job.call.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
