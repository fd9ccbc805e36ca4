"""The process under torture: a fork that opens a journal, recovers, waits for its tracer, and makes the changes.

It runs in one thread, so that the n-th system call of a scenario is the same one every time: what the product does in
helper threads happens here where it is asked for.
"""

import json
import mmap
import os
import pickle
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.adapters.sqlite.state.database import Database
from holdfast.changes.disk import files
from holdfast.changes.service import Changes
from holdfast.changes.upkeep import JournalUpkeep
from holdfast.errors import HoldfastError
from tests.torture import changes_mutants
from tests.torture.changes_judge import Moment, Run, ids, judge, outcome_of, snapshot, statuses
from tests.torture.changes_scenarios import Scenario, Stage
from tests.unit.changes.world import opened_world

MARKER = "/holdfast-torture-begins"
_PATIENCE_SECONDS = 60.0
_REPORT_BYTES = 65_536


@dataclass(frozen=True)
class Ground:
    """The three folders of a run: two roots on two devices and the state folder.

    Where power is cut the journal's log gets its full size at the start, as it does in the product; elsewhere that
    would only take time.
    """

    first: Path
    second: Path
    state: Path
    has_long_log: bool = False

    def clear(self) -> None:
        """Leave all three empty."""
        for folder in (self.first, self.second, self.state):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)


class Report:
    """What a child says, in memory that it shares with its parent: saying it takes no system call."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _REPORT_BYTES)

    def write(self, run: Run) -> None:
        """Say where the run is; the parent reads it after the child's death, however that came."""
        text = json.dumps(asdict(run)).encode()[: _REPORT_BYTES - 1] + b"\0"
        self._memory[: len(text)] = text

    def read(self) -> Run:
        """Return what was said last."""
        text = self._memory[:].partition(b"\0")[0]
        return Run(**json.loads(text)) if text else Run()


class Child:
    """A forked process that stops before the region of interest until `go` is called."""

    def __init__(self, body: Callable[[Callable[[], None]], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _live(body, writing)
        os.close(writing)
        self._reading = reading
        self.status: int | None = None

    def await_ready(self) -> bool:
        """Wait until the child stands before the region; False when it ended instead."""
        return os.read(self._reading, 1) == b"r"

    def go(self) -> None:
        """Let the child enter the region."""
        os.kill(self.pid, signal.SIGUSR1)

    def wait(self) -> int:
        """Return how the child ended, as subprocess says it; a child that hangs is ended and counts as -SIGALRM."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        hung = False
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                hung = True
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.001)
        os.close(self._reading)
        self.status = -signal.SIGALRM if hung else os.waitstatus_to_exitcode(status)
        return self.status


def _live(body: Callable[[Callable[[], None]], None], writing: int) -> None:
    def wait_for_tracer() -> None:
        os.write(writing, b"r")
        signal.sigwait([signal.SIGUSR1])
        os.access(MARKER, os.F_OK)

    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.umask(0o022)
        _in_one_thread()
        body(wait_for_tracer)
    except BaseException:
        traceback.print_exc()
        os._exit(3)
    os._exit(0)


def _in_one_thread() -> None:
    class Inline:
        def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
            done: Future[Any] = Future()
            try:
                done.set_result(work(*arguments))
            except BaseException as error:
                done.set_exception(error)
            return done

    files.closer.close = os.close  # type: ignore[method-assign]
    vars(files)["_pool"] = Inline()
    JournalUpkeep.wake = _nothing  # type: ignore[method-assign, assignment]


def _nothing(*_arguments: object) -> None:
    """Leave it for another time."""


def _keep_log_short() -> None:
    Database._stretch_log = _nothing  # type: ignore[method-assign, assignment]


@contextmanager
def on_stage(ground: Ground) -> Iterator[Stage]:
    """Open the service over a ground; recovery has run."""
    with opened_world([ground.first, ground.second], ground.state) as world:
        stage = Stage(world, ground.first, ground.second)
        stage.ids[:] = ids(stage)
        yield stage


def reference(scenario: Scenario, ground: Ground) -> list[Moment]:
    """Run a scenario undisturbed and return the moments between its steps, the first before any of them."""
    ground.clear()
    scenario.plant(ground.first, ground.second)

    def body(_wait: Callable[[], None]) -> list[Moment]:
        _keep_log_short()
        with on_stage(ground) as stage:
            _prepare(scenario, stage)
            moments = [Moment(snapshot(stage.first, stage.second), statuses(stage))]
            for step in scenario.steps:
                outcome = outcome_of(step, stage)
                moments.append(Moment(snapshot(stage.first, stage.second), statuses(stage), outcome))
            return moments

    moments: list[Moment] = call_in_child(body)
    return moments


def call_in_child(body: Callable[[Callable[[], None]], Any]) -> Any:
    """Return what a function returns in a child of its own."""
    reading, writing = os.pipe()

    def tell(wait: Callable[[], None]) -> None:
        data = pickle.dumps(body(wait))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)

    child = Child(tell)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    if child.wait() != 0:
        return [f"the judge's process ended with {child.status}"]
    return pickle.loads(data)


def under_fire(scenario: Scenario, ground: Ground, moments: list[Moment], report: Report, mutant: str) -> Child:
    """Start a child that makes the scenario's changes; it says in the report how far it came."""
    ground.clear()
    scenario.plant(ground.first, ground.second)
    report.write(Run())

    def body(wait: Callable[[], None]) -> None:
        changes_mutants.apply(mutant)
        if not ground.has_long_log:
            _keep_log_short()
        has_begun = False
        try:
            with on_stage(ground) as stage:
                _prepare(scenario, stage)
                wait()
                has_begun = True
                _perform(scenario, stage, moments, report)
        except (OSError, sqlite3.Error):
            if not has_begun:
                raise

    return Child(body)


def _prepare(scenario: Scenario, stage: Stage) -> None:
    for step in scenario.before:
        outcome = outcome_of(step, stage)
        assert outcome == "ok", outcome


def _perform(scenario: Scenario, stage: Stage, moments: list[Moment], report: Report) -> None:
    """Make the changes as a caller would who tries once more what failed without effect, in the same process."""
    run = Run()
    for number, step in enumerate(scenario.steps, start=1):
        run.begun_steps = number
        report.write(run)
        outcome = outcome_of(step, stage)
        if outcome != moments[number].outcome:
            run.faults.append(f"step {number}: {outcome}")
            report.write(run)
            disk = snapshot(stage.first, stage.second)
            if disk == moments[number - 1].disk != moments[number].disk:
                outcome = outcome_of(step, stage)
            if outcome != moments[number].outcome:
                run.faults.append(f"step {number} again: {outcome}")
                report.write(run)
                return
        run.ended_steps = number
        report.write(run)


def recovering(ground: Ground, mutant: str) -> Child:
    """Start a child that stops right before recovery."""

    def body(wait: Callable[[], None]) -> None:
        real = Changes.recover

        def recover(self: Changes) -> int:
            wait()
            return real(self)

        Changes.recover = recover  # type: ignore[method-assign]
        _keep_log_short()
        changes_mutants.apply(mutant)
        with opened_world([ground.first, ground.second], ground.state):
            pass

    return Child(body)


def judge_recovery(
    scenario: Scenario, ground: Ground, moments: list[Moment], run: Run, mutant: str = "none"
) -> list[str]:
    """Recover in a fresh process, finish, take back, and return what was wrong."""

    def body(_wait: Callable[[], None]) -> list[str]:
        changes_mutants.apply(mutant)
        _keep_log_short()
        try:
            with on_stage(ground) as stage:
                return judge(scenario, moments, run, stage)
        except (HoldfastError, OSError, sqlite3.Error) as error:
            traceback.print_exc(file=sys.stderr)
            return [f"the next start ended with {type(error).__name__}: {error}"]

    problems: list[str] = call_in_child(body)
    return problems
