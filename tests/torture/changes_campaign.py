"""One torture run: a scenario, a kind of fault, and the points where it is injected; each point is judged on its own."""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.changes_driver import Ground, Report, judge_recovery, recovering, reference, under_fire
from tests.torture.changes_judge import Moment, Run
from tests.torture.changes_mounts import is_private, mounted
from tests.torture.changes_scenarios import SCENARIOS
from tests.torture.changes_strace import Point, errors, strike, trace

KILL, ERROR, RECOVERY, POWER = "kill", "error", "recovery", "power"
MISSED = "the strike missed"
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Job:
    """Points of one scenario; `first` is the kill after which recovery itself is struck, `variants` those of a cut.

    `until_caught` ends the job at its first failure.
    """

    part: str
    scenario: str
    points: tuple[Point, ...] = ()
    mutant: str = "none"
    first: Point | None = None
    variants: tuple[tuple[str, ...], ...] = ()
    until_caught: bool = False

    def repeat(self, point: str) -> str:
        """Return the command that strikes one point again."""
        command = f"python -m tests.torture.changes {self.part} --scenario {self.scenario} --point {point}"
        command += f" --first {self.first}" if self.first else ""
        return command + (f" --mutant {self.mutant}" if self.mutant != "none" else "")


@dataclass
class Result:
    """How many points were struck, and for each that failed what repeats it and what was wrong."""

    job: Job
    points: int = 0
    variants: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def two_devices() -> Iterator[Ground]:
    """Give two folders on two devices, both in memory where mounting is allowed: there a sync costs nothing."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as near,
        tempfile.TemporaryDirectory() as far,
        mounted("torture", Path(far), "tmpfs") if is_private() else nullcontext(),
    ):
        ground = Ground(Path(near) / "one", Path(far) / "two", Path(near) / "state")
        ground.clear()
        if ground.first.stat().st_dev == ground.second.stat().st_dev:
            raise SystemExit(f"{MEMORY} and {tempfile.gettempdir()} are one device; set TMPDIR to another one")
        yield ground


def check_tracer() -> None:
    """Say plainly what is missing, if anything is."""
    if shutil.which("strace") is None:
        raise SystemExit("strace is needed and not installed (Debian package: strace)")
    if not MEMORY.is_dir():
        raise SystemExit(f"{MEMORY} is needed and not there: this part runs on Linux")


def points_of(job: Job) -> list[Point]:
    """Run a scenario once undisturbed and return every point at which it can be struck."""
    with two_devices() as ground:
        moments = reference(SCENARIOS[job.scenario], ground)
        if job.first is not None:
            return _recovery_points(job, ground, moments)
        child = under_fire(SCENARIOS[job.scenario], ground, moments, Report(), job.mutant)
        points = trace(child, ground.state.parent / "trace")
    return errors(points) if job.part == ERROR else points


def _recovery_points(job: Job, ground: Ground, moments: list[Moment]) -> list[Point]:
    assert job.first is not None
    out = ground.state.parent / "trace"
    child = under_fire(SCENARIOS[job.scenario], ground, moments, Report(), job.mutant)
    strike(child, job.first, out)
    return trace(recovering(ground, job.mutant), out)


def run(job: Job) -> Result:
    """Strike at every point of a job, each time on fresh files, and judge."""
    result = Result(job)
    scenario = SCENARIOS[job.scenario]
    with two_devices() as ground:
        moments, out = reference(scenario, ground), ground.state.parent / "trace"
        for point in job.points:
            report = Report()
            child = under_fire(scenario, ground, moments, report, job.mutant)
            missed = strike(child, job.first or point, out)
            run_report = report.read()
            if job.first is not None and missed is None:
                missed = strike(recovering(ground, job.mutant), point, out)
            problems = (
                [f"{MISSED}: {missed}"] if missed else judge_recovery(scenario, ground, moments, run_report, job.mutant)
            )
            result.points += 1
            result.failures += [(job.repeat(str(point)), with_faults(problem, run_report)) for problem in problems]
            if job.until_caught and problems and not missed:
                break
    return result


def with_faults(problem: str, run: Run) -> str:
    """Return a problem with what the struck process said of its own."""
    return problem + (f" [{'; '.join(run.faults)}]" if run.faults else "")


def sampled(points: list[Point], count: int, seed: int) -> list[Point]:
    """Return some of the points, the same ones for the same seed, in their order; all of them for 0."""
    if count == 0 or count >= len(points):
        return points
    positions = random.Random(seed).sample(range(len(points)), count)
    return [points[at] for at in sorted(positions)]


def settle_environment() -> None:
    """Make every process of a campaign choose alike where Python would choose by chance."""
    os.environ["PYTHONHASHSEED"] = "0"
