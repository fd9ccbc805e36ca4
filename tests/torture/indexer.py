"""A worker process for the torture, right or with one fault: `python -m tests.torture.indexer PLAN`, where PLAN is JSON.

It dawdles between reading a file and writing its pieces, now and then longer than its lease, so that files change and
other workers take its jobs meanwhile: what keeps the index right then is the version that every write carries.
"""

import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from holdfast.adapters.postgres.search import rows as postgres_rows
from holdfast.adapters.postgres.search import write as postgres_write
from holdfast.adapters.postgres.search.index import PostgresIndex
from holdfast.adapters.postgres.store.queue import PostgresQueue
from holdfast.adapters.postgres.store.store import STATEMENTS as POSTGRES
from holdfast.adapters.sqlite.search import rows as sqlite_rows
from holdfast.adapters.sqlite.search import write as sqlite_write
from holdfast.adapters.sqlite.search.index import SqliteIndex
from holdfast.adapters.sqlite.store.files import STATEMENTS as SQLITE
from holdfast.adapters.sqlite.store.files import TenantFiles
from holdfast.adapters.sqlite.store.queue import SqliteQueue
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import IndexedFile, Vector
from holdfast.search.ports import Index
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob
from holdfast.store.ports import IndexQueue
from holdfast.worker.loop import JobPolicy, Loop
from holdfast.worker.model_keys import NoKeys
from holdfast.worker.service import WakeUp


@dataclass(frozen=True)
class WorkerPlan:
    """What a worker is told."""

    engine: str
    location: str
    lease_ms: int
    seed: int
    mutant: str = "none"
    usual_seconds: float = 0.1


class Letters:
    """Embeds a text by the letters in it; quick, and the same everywhere."""

    model = "letters"
    needs_key = False

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector of length one for each text."""
        check()
        return [self.vector(text) for text in texts]

    @staticmethod
    def vector(text: str) -> Vector:
        """Return the vector of one text."""
        counts = [1.0 + text.count(letter) for letter in "aeiounrt"]
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]


class Dawdling(Indexer):
    """An indexer that sometimes takes its time in the worst place."""

    def __init__(self, index: Index, choose: random.Random, seconds: float, usual_seconds: float) -> None:
        super().__init__(index, Letters())
        self._choose = choose
        self._seconds = seconds
        self._usual_seconds = usual_seconds

    def _load(self, tenant: str, jobs: Sequence[ClaimedJob]) -> list[IndexedFile]:
        contents = super()._load(tenant, jobs)
        for _ in jobs:
            longest = self._seconds if self._choose.random() < 0.02 else self._usual_seconds
            time.sleep(self._choose.random() * longest)
        return contents


def _trusts_its_job() -> None:
    """A job is done when its worker says so, whatever was written meanwhile."""
    for statements, version, status in ((SQLITE, ":version", ":status"), (POSTGRES, "%(version)s", "%(status)s::text")):
        guarded = f"CASE WHEN version = {version} THEN {status} ELSE 'pending' END"
        assert guarded in statements["finish_job"]
        statements["finish_job"] = statements["finish_job"].replace(guarded, status)


def _writes_what_it_read() -> None:
    """Pieces are written without a look at the version of the file."""
    for module in (sqlite_write, postgres_write):
        module._has_changed_since = lambda *_args: False  # type: ignore[attr-defined]
    for rows in (sqlite_rows, postgres_rows):
        claim_statement = rows.STATEMENTS["claim_state"]
        guard = "WHERE mcp_file_chunk_states.version <= excluded.version"
        assert guard in claim_statement
        rows.STATEMENTS["claim_state"] = claim_statement.replace(guard, "")


MUTANTS: dict[str, Callable[[], None]] = {
    "trusts its job": _trusts_its_job,
    "writes what it read": _writes_what_it_read,
}


@contextmanager
def restored() -> Iterator[None]:
    """Undo whatever fault is put in during the block."""
    statements = [POSTGRES, SQLITE, postgres_rows.STATEMENTS, sqlite_rows.STATEMENTS]
    originals = [dict(statement) for statement in statements]
    guards = [module._has_changed_since for module in (sqlite_write, postgres_write)]
    try:
        yield
    finally:
        for statement, before in zip(statements, originals, strict=True):
            statement.update(before)
        for module, guard in zip((sqlite_write, postgres_write), guards, strict=True):
            module._has_changed_since = guard  # type: ignore[attr-defined]


def queue_and_index(engine: str, location: str) -> tuple[IndexQueue, Index]:
    """Open both, as a worker process does."""
    if engine == "sqlite":
        files = TenantFiles(location)
        return SqliteQueue(files), SqliteIndex(files)
    return PostgresQueue(location), PostgresIndex(location)


def drain(queue: IndexQueue, index: Index, lease_ms: int) -> None:
    """Do what is left, with no fault, an hour later than it is, so that every lease has ended; nothing may be left."""
    policy = JobPolicy(lease_ms=lease_ms)
    loop = Loop(queue, Indexer(index, Letters()), NoKeys(), policy=policy, now=lambda: utc_clock() + timedelta(hours=1))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not loop.run_words_pass() and not loop.run_meaning_pass():
            if not any(statement.status in ("pending", "processing") for statement in queue.list_backlog()):
                return
            time.sleep(0.05)
    raise AssertionError(f"jobs are left: {queue.list_backlog()}")


def work(plan: WorkerPlan) -> None:
    """Work until killed: a lane for words and one for meaning, as in a server."""
    MUTANTS.get(plan.mutant, lambda: None)()
    queue, index = queue_and_index(plan.engine, plan.location)
    # What was read long ago does harm only while the others are quick.
    usual_seconds = 0.0 if plan.mutant == "writes what it read" else plan.usual_seconds
    indexing = Dawdling(index, random.Random(plan.seed), 2.5 * plan.lease_ms / 1000, usual_seconds)
    loop = Loop(queue, indexing, NoKeys(), policy=JobPolicy(lease_ms=plan.lease_ms, retry_backoff_ms=50))
    wake_up = WakeUp()
    queue.listen(wake_up.send)
    passes = (loop.run_words_pass, loop.run_meaning_pass)
    threads = [threading.Thread(target=_lane, args=(loop, wake_up, run_pass), daemon=True) for run_pass in passes]
    for thread in threads:
        thread.start()
    signal.pause()


def _lane(loop: Loop, wake_up: WakeUp, run_pass: Callable[[], int]) -> None:
    while True:
        known_count = wake_up.count
        try:
            if run_pass():
                wake_up.send()
                continue
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
        wake_up.wait(known_count, min(0.2, loop.queue.poll_seconds))


if __name__ == "__main__":
    work(WorkerPlan(**json.loads(sys.argv[1])))
