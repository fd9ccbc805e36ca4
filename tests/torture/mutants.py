"""Faults that a store could have, each put into a running server from outside; the harness must catch every one.

Nothing here is imported by the product. `launch.py` applies one by name before the server starts.
"""

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any

import psycopg

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.postgres.store import store as postgres
from holdfast.adapters.postgres.store.store import PostgresMutation, PostgresSnapshot
from holdfast.adapters.sqlite.store import files as sqlite_rows
from holdfast.adapters.sqlite.store import store as sqlite
from holdfast.adapters.sqlite.store.files import TenantFiles, file_name
from holdfast.adapters.sqlite.store.store import ProjectLocks
from holdfast.auth.context import AuthContext
from holdfast.errors import NotFound
from holdfast.store import mutations
from holdfast.store.model import ProjectState, Stamp, WrittenFile
from holdfast.store.service import Store
from holdfast.store.tenant_share import NO_LIMIT

POSTGRES = "postgres"
SQLITE = "sqlite"


@dataclass(frozen=True)
class Mutant:
    """One fault. `needs_crash` says that only a crash of the database shows it."""

    engine: str
    apply: Callable[[], None]
    needs_crash: bool = False


def _put(owner: object, name: str, value: object) -> None:
    """Put another function in the place of one; the owner must have one of that name."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, value)


def _nothing() -> None:
    """Leave the store as it is."""


def _guard_off() -> None:
    """Take away the second wall: a version that is not the next one is accepted."""
    for statements in (postgres.STATEMENTS, sqlite_rows.STATEMENTS):
        guarded = statements["save_project"]
        version_guard = "CASE WHEN mcp_projects.version = excluded.version - 1 THEN excluded.version END"
        assert version_guard in guarded
        statements["save_project"] = guarded.replace(version_guard, "excluded.version")


def _no_lock() -> None:
    """Everybody has a key of his own, across processes and within one."""

    @contextmanager
    def hold(_self: ThreadLocks, _name: str, _deadline: float) -> Iterator[bool]:
        yield True

    _put(postgres, "lock_key", lambda _tenant, _project: random.getrandbits(62))
    _put(ThreadLocks, "hold", hold)


def _no_lock_no_guard() -> None:
    _no_lock()
    _guard_off()


def _read_before_lock() -> None:
    """The lock is taken when the first statement is written, after everything was read."""
    _guard_off()
    real_key, real_write = postgres.lock_key, PostgresMutation._write
    _no_lock()

    @wraps(real_write)
    def locked(self: PostgresMutation, name: str, stamp: Stamp, **parameters: Any) -> None:
        if not self.is_written:
            key = real_key(self._scope["apikey_hash"], self._scope["project"])
            self._connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": key})
        real_write(self, name, stamp, **parameters)

    _put(PostgresMutation, "_write", locked)


def _lock_key_of(choose: Callable[[str, str], str]) -> Callable[[], None]:
    def apply() -> None:
        def key(tenant: str, project: str) -> int:
            return int.from_bytes(
                hashlib.blake2b(choose(tenant, project).encode(), digest_size=8).digest(), signed=True
            )

        _put(postgres, "lock_key", key)

    return apply


def _job_outside_transaction() -> None:
    """Index jobs go in by a connection of their own, before the mutation is committed."""
    real_init = postgres.PostgresStore.__init__
    urls: list[str] = []

    def remember(self: postgres.PostgresStore, url: str, pool_size: int = 16) -> None:
        urls.append(url)
        real_init(self, url, pool_size)

    def enqueue(self: PostgresMutation, jobs: Any, stamp: Stamp) -> None:
        with psycopg.connect(urls[0]) as other:
            real(PostgresMutation(other, self._scope, NO_LIMIT), jobs, stamp)  # type: ignore[arg-type]

    real = PostgresMutation.enqueue
    _put(postgres.PostgresStore, "__init__", remember)
    _put(PostgresMutation, "enqueue", enqueue)


def _version_from_clock() -> None:
    _guard_off()

    def stamp(_state: ProjectState, now: datetime) -> Stamp:
        return Stamp(time.time_ns() // 1000, now)

    _put(mutations, "next_stamp", stamp)


def _answer_before_commit() -> None:
    real = postgres.PostgresStore.mutation

    @contextmanager
    def early(self: postgres.PostgresStore, tenant: str, project: str, *rest: Any) -> Iterator[PostgresMutation]:
        with ExitStack() as stack:
            yield stack.enter_context(real(self, tenant, project, *rest))
            later = stack.pop_all()
        threading.Timer(0.02, later.close).start()

    _put(postgres.PostgresStore, "mutation", early)


def _async_commit() -> None:
    """The database says yes before its log is written, so a crash forgets what was acknowledged."""
    real = psycopg.Connection.connect

    def connect(conninfo: str = "", **options: Any) -> Any:
        return real(conninfo, options="-c synchronous_commit=off", **options)

    _put(psycopg.Connection, "connect", connect)


def _rename_in_two() -> None:
    """A file is written at its new place, and deleted at the old one in another transaction."""
    real = Store.rename

    def in_two(self: Store, auth: AuthContext, project: str, source: str, target: str, **options: Any) -> int:
        moved = real(self, auth, project, source, target, **options)
        if moved == 1:
            text = self.read(auth, project, target).text
            self.delete(auth, project, target)
            self.write(auth, project, target, text, mode="TRUNCATE")
        return moved

    _put(Store, "rename", in_two)


def _append_unlocked() -> None:
    """An append reads the file, adds to it and replaces it; only the replacing is under the lock."""
    real = Store.write

    def append(
        self: Store, auth: AuthContext, project: str, path: str, content: str, encoding: str = "utf-8", offset: int = 0,
        mode: str = "APPEND", key: str | None = None,
    ) -> WrittenFile:  # fmt: skip
        if mode != "APPEND":
            return real(self, auth, project, path, content, encoding, offset, mode, key)
        try:
            before = self.read(auth, project, path).text
        except NotFound:
            before = ""
        written = real(self, auth, project, path, before + content, encoding, 0, "TRUNCATE", key)
        return written._replace(bytes_written=len(content))

    _put(Store, "write", append)


def _stale_reads() -> None:
    """What was read is given out again for a moment, outside any transaction."""
    real = PostgresSnapshot.read_window
    cache: dict[tuple[Any, ...], tuple[float, Any]] = {}

    def window(self: PostgresSnapshot, *arguments: Any) -> Any:
        at, result = cache.get((self._tenant, *arguments), (0.0, None))
        if time.monotonic() - at > 0.1:
            at, result = time.monotonic(), real(self, *arguments)
            cache[self._tenant, *arguments] = at, result
        return result

    _put(PostgresSnapshot, "read_window", window)


def _forgotten_keys() -> None:
    real = PostgresMutation.settle

    def settle(self: PostgresMutation, state: ProjectState, stamp: Stamp, _applied: Any, growth: Any) -> None:
        real(self, state, stamp, None, growth)

    _put(PostgresMutation, "settle", settle)


def _sqlite_no_lock() -> None:
    _guard_off()

    @contextmanager
    def hold(self: ProjectLocks, _tenant: str, _project: str, _deadline: float) -> Iterator[None]:
        yield

    _put(ProjectLocks, "hold", hold)


def _sqlite_no_sync() -> None:
    real = TenantFiles._connect

    def connect_without_sync(self: TenantFiles, name: str) -> Any:
        connection = real(self, name)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    _put(TenantFiles, "_connect", connect_without_sync)


def _sqlite_steps_apart() -> None:
    """Each statement of a mutation is a transaction of its own."""

    def commit(self: sqlite.SqliteStore, tenant: str, _project: str, change: Any, _share: Any, deadline: float) -> None:
        for statement in change.statements:
            with self.files.write_transaction(file_name(tenant), deadline) as connection:
                sqlite_rows.run(connection, statement.name, statement.parameters)

    _put(sqlite.SqliteStore, "_commit", commit)


def _pruning_uncounted() -> None:
    """What a write prunes stays in the tenant's counters."""
    _put(postgres, "RETURN_SIZES", frozenset())
    _put(sqlite, "RETURN_SIZES", frozenset())


def _counted_apart() -> None:
    """A tenant's counters are read, added to and written, without a lock that covers it."""
    counting = postgres.STATEMENTS["count_bytes"]
    added = "mcp_tenant_bytes.live_bytes + excluded.live_bytes"
    assert added in counting
    read = "(SELECT t.live_bytes FROM mcp_tenant_bytes AS t WHERE t.apikey_hash = excluded.apikey_hash AND t.slot = 0)"
    one_slot = counting.replace("mod(pg_backend_pid(), 16)", "0")
    postgres.STATEMENTS["count_bytes"] = one_slot.replace(added, f"{read} + excluded.live_bytes")


NONE = "none"

MUTANTS: dict[str, Mutant] = {
    "no-lock": Mutant(POSTGRES, _no_lock),
    "no-lock-no-guard": Mutant(POSTGRES, _no_lock_no_guard),
    "read-before-lock": Mutant(POSTGRES, _read_before_lock),
    "lock-key-without-project": Mutant(POSTGRES, _lock_key_of(lambda tenant, _project: tenant)),
    "lock-key-without-tenant": Mutant(POSTGRES, _lock_key_of(lambda _tenant, project: project)),
    "job-outside-transaction": Mutant(POSTGRES, _job_outside_transaction),
    "version-from-clock": Mutant(POSTGRES, _version_from_clock),
    "answer-before-commit": Mutant(POSTGRES, _answer_before_commit),
    "asynchronous-commit": Mutant(POSTGRES, _async_commit, needs_crash=True),
    "rename-in-two-transactions": Mutant(POSTGRES, _rename_in_two),
    "append-read-unlocked": Mutant(POSTGRES, _append_unlocked),
    "stale-reads": Mutant(POSTGRES, _stale_reads),
    "forgotten-keys": Mutant(POSTGRES, _forgotten_keys),
    "pruning-uncounted": Mutant(POSTGRES, _pruning_uncounted),
    "counted-apart": Mutant(POSTGRES, _counted_apart),
    "sqlite-pruning-uncounted": Mutant(SQLITE, _pruning_uncounted),
    "sqlite-no-lock-no-guard": Mutant(SQLITE, _sqlite_no_lock),
    "sqlite-no-sync": Mutant(SQLITE, _sqlite_no_sync),
    "sqlite-steps-apart": Mutant(SQLITE, _sqlite_steps_apart),
}


def apply(name: str) -> None:
    """Put a fault into this process; "none" puts none."""
    (MUTANTS[name].apply if name != NONE else _nothing)()
