"""Tortures the store and judges what came of it: `python -m tests.torture.store --help`."""

import argparse
import random
import sys
import time
from collections.abc import Callable

from tests.torture.chaos import Chaos, Crowd, Kills, Progress
from tests.torture.client import Config
from tests.torture.mutants import MUTANTS, POSTGRES, SQLITE
from tests.torture.servers import LOCK_SECONDS, stop_all
from tests.torture.verdicts import Report, judge_world, waiting_problems
from tests.torture.wire import Broken, NotSent
from tests.torture.world import Plan, World, built, look_at_the_end


def run(plan: Plan, say: Callable[[str], None] = lambda _line: None) -> Report:
    """Torture, stop everything hard, start it again, look at what is left, and judge."""
    report = Report(plan)
    started_at = time.monotonic()
    with built(plan) as world:
        report.problems += waiting_problems(world)
        tortured_at = time.monotonic()
        report.kills = _torture(world)
        report.tortured = time.monotonic() - tortured_at
        say(f"tortured for {report.tortured:.0f} s; looking at what is left")
        _end_hard(world)
        look_at_the_end(world)
        stop_all(world.instances)
        say("judging")
        judge_world(report, world)
    report.seconds = time.monotonic() - started_at
    return report


def _torture(world: World) -> dict[str, int]:
    plan, choose = world.plan, random.Random(world.plan.seed)
    start = time.monotonic()
    config = Config(
        name="", seed=plan.seed, ports=[instance.port for instance in world.instances], keys=plan.keys,
        lanes=plan.lanes, width=plan.width, period=plan.period, start=start, until=start + plan.seconds,
        lock_seconds=LOCK_SECONDS, log=str(world.logs),
    )  # fmt: skip
    crowd = Crowd(config, plan.clients)
    try:
        chaos = Chaos(crowd, world.instances, world.cluster, choose)
        return chaos.run(plan.kills.schedule(choose), Progress(world.logs, plan.seconds, plan.operations))
    finally:
        crowd.end()


def _end_hard(world: World) -> None:
    stop_all(world.instances)
    if world.cluster:
        world.cluster.crash()
    for instance in world.instances:
        instance.start()
    for instance in world.instances:
        instance.await_ready(world.plan.keys[0])


def mutant_plan(name: str, seed: int) -> Plan:
    """Return the short run that must catch a mutant."""
    mutant = MUTANTS[name]
    kills = Kills(clients=1, servers=2 if mutant.engine == SQLITE else 0, crashes=1 if mutant.needs_crash else 0)
    return Plan(mutant.engine, 5.0, seed, kills, mutant=name)


def main() -> int:
    """Run what the command line asks for; 1 when a promise was broken, or a mutant lived."""
    parser = argparse.ArgumentParser(description="Torture the store.")
    parser.add_argument("--engine", choices=[POSTGRES, SQLITE], default=POSTGRES)
    parser.add_argument("--seconds", type=float, default=60.0, help="longest time (60)")
    parser.add_argument("--operations", type=int, default=0, help="calls after which it ends (0: by time alone)")
    parser.add_argument("--client-kills", type=int, default=20)
    parser.add_argument("--server-kills", type=int, default=5)
    parser.add_argument("--crashes", type=int, default=2, help="crashes of PostgreSQL (2)")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--lanes", type=int, default=4, help="calls that a client has under way at once (4)")
    parser.add_argument("--period", type=float, default=1.0, help="seconds after which projects change (1)")
    parser.add_argument("--share", type=int, default=0, help="bytes that a tenant may hold (0: no limit)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="run these mutants instead, or all of them")
    options = parser.parse_args()
    if options.mutants is not None:
        return _run_mutants(options.mutants or list(MUTANTS), options.seed)
    kills = Kills(options.client_kills, options.server_kills, options.crashes if options.engine == POSTGRES else 0)
    plan = Plan(
        options.engine,
        options.seconds,
        options.seed,
        kills,
        options.operations,
        options.clients,
        options.lanes,
        period=options.period,
        share=options.share,
    )
    report = run(plan, say=lambda line: print(line, flush=True))
    print(report)
    return 1 if report.problems else 0


def _run_mutants(names: list[str], seed: int) -> int:
    alive = []
    for name in names:
        report = run(mutant_plan(name, seed))
        print(report, flush=True)
        if not report.problems:
            alive.append(name)
    print(f"{len(names) - len(alive)} of {len(names)} mutants caught; alive: {alive or 'none'}")
    return 1 if alive else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Broken, NotSent) as error:
        sys.exit(f"a server did not answer: {error}")
