"""The checks after a run: each is a function from the world to a list of problems."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import psycopg

from tests.torture.history import History, Operation, Place, read_history
from tests.torture.launch import OPENING
from tests.torture.linear import Verdict, judge
from tests.torture.replay import Replay, states_of
from tests.torture.servers import LOCK_SECONDS
from tests.torture.witness import Note
from tests.torture.world import Plan, World

FULL_SYNC = f"{OPENING}journal_mode=wal synchronous=2"
_MAX_PRINTED = 12
_ENOUGH = 5
"""A history that has no order takes long to judge; so many settle the question."""

Transactions = dict[Place, list[list[Note]]]


@dataclass
class Report:
    """What happened and what was wrong with it; `problems` is empty when every promise was kept."""

    plan: Plan
    counts: dict[str, int] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    tortured: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.plan.engine}, seed {self.plan.seed}, mutant {self.plan.mutant}: "
            f"{'OK' if not self.problems else f'{len(self.problems)} PROBLEMS'}",
            f"  {self.seconds:.0f} s, {self.tortured:.0f} s of them torture, kills {self.kills}",
            f"  {self.counts}",
            *(f"  - {problem[:400]}" for problem in self.problems[:_MAX_PRINTED]),
        ]
        return "\n".join(lines)


def judge_world(report: Report, world: World) -> None:
    """Put into the report what was counted and everything that is wrong."""
    history = read_history(world.logs)
    report.counts = dict(history.counts)
    report.problems += _fault_problems(world, history)
    accounts = _accounts(world)
    report.problems += _order_problems(report, history, accounts)
    report.problems += _witness_problems(report, history, accounts)
    report.problems += _usage_problems(report, world)
    report.problems += _pragma_problems(world)


def waiting_problems(world: World) -> list[str]:
    """While a change of one project is held up inside its lock, other projects and tenants go on.

    A tenant that is near the end of its share changes one project at a time, on PostgreSQL.
    """
    if not world.cluster or world.plan.share:
        return []
    problems: list[str] = []
    write = {"path": "/a", "content": "y"}
    blocked_call = threading.Thread(target=lambda: world.ask(0, "file_write", {"project": "probe", **write}))
    with psycopg.connect(world.cluster.url) as owner:
        tenant = hashlib.sha256(world.plan.keys[0].encode()).hexdigest()
        owner.execute("SELECT 1 FROM mcp_projects WHERE apikey_hash = %s AND project = 'probe' FOR UPDATE", [tenant])
        blocked_call.start()
        _until_waiting(world.cluster.url)
        for tenant_number, project in ((0, "probe2"), (1, "probe")):
            started_at = time.monotonic()
            world.ask(tenant_number, "file_write", {"project": project, **write}, instance=1)
            if time.monotonic() - started_at > LOCK_SECONDS / 2:
                problems.append(f"a change of project {project} of tenant {tenant_number} waited for another project")
        owner.rollback()
    blocked_call.join(30)
    return problems


def _until_waiting(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        for _ in range(200):
            row = owner.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
            if row and row[0]:
                return
            time.sleep(0.01)


def _fault_problems(world: World, history: History) -> list[str]:
    faults = [f"{fault.id}: {fault.what}" for fault in history.faults]
    if not faults:
        return []
    log_lines = [line for instance in world.instances for line in instance.log().splitlines() if " fault " in line]
    return [*log_lines[:5], *faults]


def _accounts(world: World) -> Transactions:
    numbers = {hashlib.sha256(key.encode()).hexdigest(): number for number, key in enumerate(world.plan.keys)}
    return {
        (numbers[tenant], project): transactions
        for (tenant, project), transactions in world.accounts()
        if not project.startswith("probe")
    }


def _order_problems(report: Report, history: History, accounts: Transactions) -> list[str]:
    verdicts: Counter[Verdict] = Counter()
    problems = []
    for place, verdict in _judge_places(history, accounts):
        verdicts[verdict] += 1
        if verdict is not Verdict.LINEARIZABLE:
            problems.append(f"{place}: {verdict.value} ({len(history.by_place[place])} calls)")
        if verdicts[Verdict.IMPOSSIBLE] >= _ENOUGH:
            break
    report.counts |= {verdict.value: count for verdict, count in verdicts.items()}
    report.counts["longest"] = max(map(len, history.by_place.values()), default=0)
    return problems


def _judge_places(history: History, accounts: Transactions) -> Iterator[tuple[Place, Verdict]]:
    places = list(history.by_place)
    cases = ((history.by_place[place], accounts.get(place, [])) for place in places)
    if sum(map(len, history.by_place.values())) < 20_000:
        yield from zip(places, map(_verdict, cases), strict=True)
        return
    with ProcessPoolExecutor(2) as pool:
        yield from zip(places, pool.map(_verdict, cases, chunksize=20), strict=True)


def _verdict(case: tuple[list[Operation], list[list[Note]]]) -> Verdict:
    operations, transactions = case
    return judge(operations, way=states_of(transactions))


def _witness_problems(report: Report, history: History, accounts: Transactions) -> list[str]:
    problems = []
    for place, transactions in accounts.items():
        operations = history.by_place.get(place, [])
        replay = Replay(operations)
        wrong = list(replay.problems(transactions, with_keys=_has_keys(place[1])))
        wrong += _final_problems(replay, operations)
        problems += [f"{place}: {problem}" for problem in wrong[:3]]
    report.counts["versions"] = sum(map(len, accounts.values()))
    changed = {
        place for place, calls in history.by_place.items() if any(_is_acknowledged(operation) for operation in calls)
    }
    return problems + [
        f"{place}: acknowledged changes, and no trace of any" for place in sorted(changed - set(accounts))
    ]


def _final_problems(replay: Replay, operations: list[Operation]) -> Iterator[str]:
    final = {
        operation.args["path"]: operation.answer
        for operation in operations
        if operation.id.startswith("final") and operation.tool == "file_read"
    }
    if {path: ("ok", text) for path, text in replay.state.items()} != final:
        yield "what is left is not what the transactions made"


def _is_acknowledged(operation: Operation) -> bool:
    return operation.tool == "file_write" and (operation.answer or ())[:1] == ("ok",)


def _has_keys(project: str) -> bool:
    """Return whether the clients gave keys there; they do in every other project."""
    return int(project.rpartition("-")[2]) % 2 == 0


def _usage_problems(report: Report, world: World) -> Iterator[str]:
    usages = list(world.usages())
    report.counts["bytes"] = sum(sum(usage.actual) for usage in usages)
    for usage in usages:
        if usage.counted != usage.actual:
            yield f"tenant {usage.tenant[:8]} is counted to hold {usage.counted}, and holds {usage.actual}"
        if world.plan.share and sum(usage.actual) > world.plan.share:
            yield f"tenant {usage.tenant[:8]} holds {sum(usage.actual)} bytes, more than its share"


def _pragma_problems(world: World) -> list[str]:
    log_lines = [
        line for instance in world.instances for line in instance.log().splitlines() if line.startswith(OPENING)
    ]
    if not world.cluster and not log_lines:
        return ["no server said how it opens the store's files"]
    return sorted({f"not durable: {line}" for line in log_lines if line != FULL_SYNC})
