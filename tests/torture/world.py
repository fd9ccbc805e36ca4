"""What is tortured: the plan of a run, a database with its servers, and what is left when everything was killed."""

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.adapters.postgres.migrate import migrate
from tests.torture.chaos import NO_KILLS, Kills
from tests.torture.client import describe_result
from tests.torture.history import Journal, Place, read_history
from tests.torture.mutants import NONE, POSTGRES
from tests.torture.servers import LOCK_SECONDS, Cluster, Instance, stop_all
from tests.torture.wire import Door, ask
from tests.torture.witness import (
    Account,
    Usage,
    postgres_accounts,
    postgres_usages,
    sqlite_accounts,
    sqlite_usages,
    watch_postgres,
    watch_sqlite,
)


@dataclass(frozen=True)
class Plan:
    """One run. It ends after `seconds`, or after `operations` when that is not 0.

    `share` is the most that a tenant may hold: 0 for no limit, or so little that history is evicted all the time.
    """

    engine: str
    seconds: float
    seed: int
    kills: Kills = NO_KILLS
    operations: int = 0
    clients: int = 4
    lanes: int = 4
    tenants: int = 2
    width: int = 2
    period: float = 1.0
    mutant: str = NONE
    share: int = 0

    @property
    def keys(self) -> list[str]:
        """Return the tenants' keys."""
        return [f"torture-key-of-tenant-{number:04}" for number in range(self.tenants)]


@dataclass
class World:
    """The processes under torture and where they keep things."""

    plan: Plan
    folder: Path
    instances: list[Instance]
    cluster: Cluster | None

    @property
    def logs(self) -> Path:
        """Return the folder of the clients' files."""
        return self.folder / "logs"

    @property
    def store(self) -> Path:
        """Return the folder of the first server's SQLite files."""
        return self.instances[0].state / "store"

    def accounts(self) -> Iterator[Account]:
        """Yield what the triggers saw."""
        return postgres_accounts(self.cluster.url) if self.cluster else sqlite_accounts(self.store)

    def usages(self) -> Iterator[Usage]:
        """Yield what the counters say of each tenant, and what its rows say."""
        return postgres_usages(self.cluster.url) if self.cluster else sqlite_usages(self.store)

    def ask(self, tenant: int, tool: str, arguments: dict[str, Any], instance: int = 0) -> dict[str, Any]:
        """Make one call for a tenant."""
        return ask(self.instances[instance].port, self.plan.keys[tenant], tool, arguments)


@contextmanager
def built(plan: Plan) -> Iterator[World]:
    """Give a database and its servers, watched by triggers; everything is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-torture-", dir="/tmp"))
    (folder / "logs").mkdir()
    cluster = Cluster() if plan.engine == POSTGRES else None
    instances: list[Instance] = []
    try:
        if cluster:
            migrate(cluster.url)
            watch_postgres(cluster.url)
        url = cluster.url if cluster else None
        count = 2 if cluster else 1
        instances += [Instance(folder / f"state{number}", url, plan.mutant, plan.share) for number in range(count)]
        world = World(plan, folder, instances, cluster)
        for instance in instances:
            instance.start()
        for instance in instances:
            instance.await_ready(plan.keys[0])
        for tenant in range(plan.tenants):
            world.ask(tenant, "file_write", {"project": "probe", "path": "/a", "content": "x"})
        if not cluster:
            watch_sqlite(world.store)
        yield world
    finally:
        stop_all(instances)
        if cluster:
            cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


def look_at_the_end(world: World) -> None:
    """Read every file of every project, by the same door, into the same history."""
    places = sorted(read_history(world.logs).by_place)
    local, open_doors = threading.local(), list[Door]()

    def look(place: Place) -> None:
        if not hasattr(local, "doors"):
            local.doors = [Door(world.instances[0].port, key) for key in world.plan.keys]
            open_doors.extend(local.doors)
            local.journal = Journal(str(world.logs / f"final{threading.get_ident()}.log"))
        tenant, project = place
        listed = _noted(local, tenant, project, "file_list", {"path": "", "depth": 99})
        for path, kind, _ in listed[0]:
            if kind == "FILE":
                _noted(local, tenant, project, "file_read", {"path": path})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(look, places))
    for door in open_doors:
        door.close()


def _noted(local: threading.local, tenant: int, project: str, tool: str, args: dict[str, Any]) -> list[Any]:
    number = f"final.{project}.{tenant}.{args['path']}.{tool}"
    local.journal.write("i", number, time.monotonic_ns(), tenant, project, tool, args)
    outcome, value = describe_result(
        tool, local.doors[tenant].call(tool, {"project": project, **args}), 0.0, LOCK_SECONDS
    )
    assert outcome == "ok", (outcome, value)
    local.journal.write("r", number, time.monotonic_ns(), outcome, value)
    return list(value)
