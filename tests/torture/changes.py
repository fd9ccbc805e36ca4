"""Tortures the changes of local files and judges every outcome: `python -m tests.torture.changes --help`."""

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

from tests.torture import changes_campaign as campaign
from tests.torture import changes_power as power
from tests.torture.changes_campaign import ERROR, KILL, POWER, RECOVERY, Job, Result
from tests.torture.changes_editor import race
from tests.torture.changes_model import explore
from tests.torture.changes_mutants import MUTANTS
from tests.torture.changes_scenarios import SCENARIOS
from tests.torture.changes_strace import Point

EDITOR, MODEL = "editor", "model"
PARTS = (KILL, ERROR, RECOVERY, POWER, EDITOR, MODEL)
_RACES = 10_000
_EXAMPLES = 3_000
_AT_ONCE = 20
_WORKERS = 2


@dataclass
class Tally:
    """What one part came to."""

    part: str
    points: int = 0
    variants: int = 0
    scenarios: set[str] = field(default_factory=set)
    failures: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, result: Result) -> None:
        """Count the outcome of one job."""
        self.points += result.points
        self.variants += result.variants
        self.scenarios.add(result.job.scenario)
        self.failures += result.failures

    def __str__(self) -> str:
        variants = f" judged {self.variants} times" if self.variants else ""
        return (
            f"{self.part:9} {len(self.scenarios):3} scenarios {self.points:6} points{variants} "
            f"{len(self.failures):4} failures {self.seconds:6.0f} s"
        )


def torture(part: str, names: Iterable[str], *, sample: int = 0, seed: int = 0, mutant: str = "none") -> Tally:
    """Strike one part's scenarios at every point, or at a sample of each, two at a time."""
    campaign.settle_environment()
    (power.check_power if part == POWER else campaign.check_tracer)()
    tally, started_at = Tally(part), time.monotonic()
    with ProcessPoolExecutor(_WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        scenario_jobs = [Job(part, name, mutant=mutant, variants=power.VARIANTS) for name in names]
        if part == RECOVERY:
            scenario_jobs = list(_interrupted(pool, scenario_jobs, seed))
        jobs = []
        for job, points_found in zip(scenario_jobs, pool.map(_points_of, scenario_jobs), strict=True):
            points = campaign.sampled(points_found, sample, seed)
            jobs += [replace(job, points=tuple(points[at : at + _AT_ONCE])) for at in range(0, len(points), _AT_ONCE)]
        for result in pool.map(_run, jobs):
            tally.add(result)
            _say(tally, result, sum(len(job.points) for job in jobs))
    tally.seconds = time.monotonic() - started_at
    return tally


def _points_of(job: Job) -> list[Point]:
    return power.points_of(job) if job.part == POWER else campaign.points_of(job)


def _run(job: Job) -> Result:
    return power.run(job) if job.part == POWER else campaign.run(job)


def _interrupted(pool: ProcessPoolExecutor, scenario_jobs: list[Job], seed: int) -> Iterator[Job]:
    """Give each scenario some first kills, after which recovery is struck too."""
    plain = [replace(job, part=KILL) for job in scenario_jobs]
    for job, points in zip(scenario_jobs, pool.map(campaign.points_of, plain), strict=True):
        for first in campaign.sampled(points, 6, seed):
            yield replace(job, first=first)


def _say(tally: Tally, result: Result, of: int) -> None:
    for command, problem in result.failures:
        print(f"FAILED {problem}\n    {command}", flush=True)
    print(f"\r{tally.part}: {tally.points} of {of} ({result.job.scenario})    ", end="", file=sys.stderr, flush=True)


def hunt(names: Iterable[str], seed: int, sample: int = 0) -> list[str]:
    """Put each fault in and strike until it is caught; returns those that lived."""
    campaign.settle_environment()
    power.check_power()
    alive = []
    with ProcessPoolExecutor(_WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, result in zip(names, pool.map(_hunt, [(name, seed, sample) for name in names]), strict=True):
            caught = result.failures[0][1] if result.failures else "ALIVE"
            print(f"{name:26} {result.job.part:5} {result.points:4} points: {caught[:200]}", flush=True)
            if not result.failures:
                alive.append(name)
    return alive


def _hunt(work: tuple[str, int, int]) -> Result:
    name, seed, sample = work
    mutant = MUTANTS[name]
    plain = Job(mutant.part, mutant.scenario, mutant=name, variants=power.VARIANTS, until_caught=True)
    points = campaign.sampled(_points_of(plain), sample, seed)
    random.Random(seed).shuffle(points)
    result = _run(replace(plain, points=tuple(points)))
    result.failures = [failure for failure in result.failures if not failure[1].startswith(campaign.MISSED)]
    return result


def _variant(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split("+"))


def main() -> int:
    """Run what the command line asks for; 1 when anything failed."""
    parser = argparse.ArgumentParser(description="Torture the changes of local files.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all)")
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS), help="one of them (all)")
    parser.add_argument("--sample", type=int, default=0, help="points of each scenario, by chance (0: every one)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--point", help="strike one point alone, as a failure names it")
    parser.add_argument("--first", help="with --point in recovery: the kill before it")
    parser.add_argument(
        "--variant", help="with --point in power: which devices had written everything out (all variants)"
    )
    parser.add_argument("--mutant", default="none", help="with --point: the fault to put in")
    parser.add_argument("--mutants", nargs="*", choices=list(MUTANTS), help="hunt these faults instead, or all of them")
    options = parser.parse_args()
    options.parts = options.parts or list(PARTS)
    if not set(options.parts) <= set(PARTS):
        parser.error(f"a part is one of {', '.join(PARTS)}")
    names = options.scenario or list(SCENARIOS)
    if options.point:
        first = Point.parse(options.first) if options.first else None
        variants = power.VARIANTS if options.variant is None else (_variant(options.variant),)
        job = Job(options.parts[0], names[0], (Point.parse(options.point),), options.mutant, first, variants)
        campaign.settle_environment()
        result = _run(job)
        print(*(f"{problem}" for _, problem in result.failures), sep="\n")
        return 1 if result.failures else 0
    print(f"seed {options.seed}", flush=True)
    if options.mutants is not None:
        alive = hunt(options.mutants or list(MUTANTS), options.seed)
        print(f"mutants alive: {alive or 'none'}")
        return 1 if alive else 0
    tallies = [_tortured(part, names, options.sample, options.seed) for part in options.parts]
    print(*tallies, sep="\n")
    return 1 if any(tally.failures for tally in tallies) else 0


def _tortured(part: str, names: list[str], sample: int, seed: int) -> Tally:
    started_at = time.monotonic()
    if part == EDITOR:
        races = race(sample or _RACES, seed, say=lambda line: print(line, file=sys.stderr, flush=True))
        print(races)
        failures = [(f"python -m tests.torture.changes editor --seed {seed}", lost) for lost in races.lost]
        return Tally(EDITOR, races.rounds, failures=failures, seconds=time.monotonic() - started_at)
    if part == MODEL:
        problems = explore(sample or _EXAMPLES, seed)
        failures = [(f"python -m tests.torture.changes model --seed {seed}", problem) for problem in problems]
        return Tally(MODEL, sample or _EXAMPLES, failures=failures, seconds=time.monotonic() - started_at)
    return torture(part, names, sample=sample, seed=seed)


if __name__ == "__main__":
    sys.exit(main())
