"""Plans in the making: how many may run at once, and what becomes of one that comes when the server stops."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.errors import ResourceBusy
from holdfast.organiser.planning import jobs as jobs_module
from holdfast.organiser.planning.jobs import MAX_RUNNING, PlanJob, PlanJobs


class _YieldingLock:
    """A lock after whose release every other thread has its turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        time.sleep(0.05)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlanJobs]:
    """Give jobs whose lock yields, closed at the end."""
    monkeypatch.setattr(jobs_module, "threading", SimpleNamespace(Lock=_YieldingLock))
    jobs = PlanJobs()
    yield jobs
    jobs.close()


def _job(connection: str = "") -> PlanJob:
    return PlanJob.create(Caller(LOCAL_USER, connection=connection), "/in", "/in")


def _wait_for_cancel(job: PlanJob) -> None:
    while True:
        job.call.check()
        time.sleep(0.01)


def test_jobs_that_start_at_the_same_moment_do_not_exceed_the_limit(jobs: PlanJobs) -> None:
    def start(number: int) -> bool:
        try:
            jobs.start(_job(str(number)), _wait_for_cancel)
        except ResourceBusy:
            return False
        return True

    with ThreadPoolExecutor(2 * MAX_RUNNING) as threads:
        started = sum(threads.map(start, range(2 * MAX_RUNNING)))
    assert started == MAX_RUNNING
    assert len(jobs.running()) == MAX_RUNNING


def test_a_job_that_comes_after_the_end_is_refused_and_does_not_run_for_ever(jobs: PlanJobs) -> None:
    jobs.close()
    job = _job()
    with pytest.raises(ResourceBusy, match="stopping"):
        jobs.start(job, _wait_for_cancel)
    assert jobs.running() == []
    assert jobs.find(job.plan_id) is None


def test_no_job_begins_while_the_others_are_being_stopped(jobs: PlanJobs) -> None:
    late: list[str] = []

    def start_another(job: PlanJob) -> None:
        try:
            _wait_for_cancel(job)
        finally:
            try:
                jobs.start(_job(), _wait_for_cancel)
                late.append("started")
            except ResourceBusy:
                late.append("refused")

    jobs.start(_job(), start_another)
    closing = threading.Thread(target=jobs.close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()
    assert late == ["refused"]
    assert jobs.running() == []


@pytest.mark.req("SV-13.a")
def test_one_caller_takes_neither_all_threads_nor_all_places(jobs: PlanJobs) -> None:
    running: list[str] = []

    def work(job: PlanJob) -> None:
        running.append(job.share)
        _wait_for_cancel(job)

    with pytest.raises(ResourceBusy, match="Too many plans"):
        for _ in range(MAX_RUNNING):
            jobs.start(_job("flood"), work)
    for caller in ("quiet", "other"):
        jobs.start(_job(caller), work)
    deadline = time.monotonic() + 5
    while len(running) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(running) == ["local/flood", "local/flood", "local/other", "local/quiet"]


def test_a_job_that_waits_gets_the_thread_of_one_that_ended(jobs: PlanJobs) -> None:
    order: list[int] = []
    started = [_job() for _ in range(6)]
    for number, job in enumerate(started):
        jobs.start(job, lambda _job, number=number: order.append(number))  # type: ignore[misc]
    for job in started:
        job.future.result(5)
    assert sorted(order) == list(range(6))
    assert jobs.running() == []
