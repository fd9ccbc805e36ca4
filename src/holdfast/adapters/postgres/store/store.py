"""The store on PostgreSQL: an advisory lock per project, statements pipelined into few round trips."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.postgres.store.notify import Notifier
from holdfast.adapters.statements import named_statements
from holdfast.adapters.store_statements import StatementMutation, StatementSnapshot, project_busy
from holdfast.adapters.tenant_share import RETURN_SIZES, count_growth, removed_bytes
from holdfast.errors import ResourceBusy, StorageDamaged, StorageFull
from holdfast.store.model import FileSummary, PathLookup, PathType, ProjectState, Stamp, Stat, StoredFile, Window
from holdfast.store.paths import PathRange
from holdfast.store.tenant_share import NO_LIMIT, Growth, TenantShare, TenantUsage, is_near_limit

Connection = psycopg.Connection[DictRow]
Cursor = psycopg.Cursor[DictRow]
Pool = ConnectionPool[Connection]
Role = Literal["holdfast_app", "holdfast_worker"]
Isolation = Literal["read committed", "repeatable read"]

STATEMENTS = named_statements(__package__, "store.sql")

_CONNECT_SECONDS = 10.0
_WHOLE_TENANT = ""
"""No project has this name; its lock is that of all the tenant's projects."""

_TRANSIENT_CONFLICTS = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
"""Another transaction was first; a retry can succeed."""


def open_pool(
    url: str,
    role: Role,
    size: int,
    *,
    isolation: Isolation = "read committed",
    steady_plans: bool = False,
    in_index_order: bool = False,
) -> Pool:
    """Return a pool whose connections act as a role that owns no table.

    With `steady_plans` a statement is planned once for each connection and always seeks in an index, which is right for
    statements that touch few rows whatever their values are: planning takes as long as reading a file. With
    `in_index_order` rows are never sorted where an index has them in order, which is right for the first rows of very
    many: right after a project grows, stale statistics make the planner choose a sort.
    """
    return ConnectionPool(
        url,
        connection_class=Connection,
        kwargs={"autocommit": True, "row_factory": dict_row, "application_name": "holdfast"},
        configure=partial(_configure, role, isolation, steady_plans, in_index_order),
        min_size=0,
        max_size=size,
        timeout=_CONNECT_SECONDS,
        open=True,
        name=role,
    )


def _configure(
    role: Role, isolation: Isolation, steady_plans: bool, in_index_order: bool, connection: Connection
) -> None:
    connection.execute(
        "SELECT set_config('role', %(role)s, false), set_config('timezone', 'UTC', false), "
        "set_config('plan_cache_mode', %(plans)s, false), set_config('enable_seqscan', %(seqscan)s, false), "
        "set_config('enable_sort', %(sort)s, false), "
        "set_config('default_transaction_isolation', %(isolation)s, false), "
        "set_config('default_transaction_read_only', %(read_only)s, false)",
        {
            "role": role,
            "plans": "force_generic_plan" if steady_plans else "auto",
            "seqscan": "off" if steady_plans else "on",
            "sort": "off" if in_index_order else "on",
            "isolation": isolation,
            "read_only": "on" if isolation == "repeatable read" else "off",
        },
    )


def run(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Cursor:
    """Run a named statement; in a pipeline the answer comes when it is fetched."""
    return connection.execute(STATEMENTS[name], parameters)


def run_for(connection: Connection, tenant: str) -> Callable[[str, Mapping[str, Any]], list[DictRow]]:
    """Return a function that runs a named statement for a tenant and returns its rows."""

    def run_statement(name: str, parameters: Mapping[str, Any]) -> list[DictRow]:
        cursor = run(connection, name, {"apikey_hash": tenant, **parameters})
        return cursor.fetchall() if name != "count_bytes" else []

    return run_statement


def take_lock(connection: Connection, tenant: str, project: str) -> None:
    """Take the lock of a project until the transaction ends; it waits as long as `lock_timeout` says."""
    connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": lock_key(tenant, project)})


def set_tenant(connection: Connection, tenant: str) -> None:
    """Set the tenant that row-level security lets through, until the transaction ends."""
    connection.execute("SELECT set_config('holdfast.apikey_hash', %(tenant)s, true)", {"tenant": tenant})


class PostgresStore:
    """Every tenant's files in one database.

    Readers have a pool of their own, and of the threads that wait for one project, or for a tenant near its limit, only
    one holds a connection, so that no caller waits for a connection because of another one.
    """

    def __init__(self, url: str, pool_size: int = 16, on_lock_wait: Callable[[float], None] = lambda _ms: None) -> None:
        self._on_lock_wait = on_lock_wait
        self._pool = open_pool(url, "holdfast_app", pool_size, steady_plans=True)
        self._readers = open_pool(
            url, "holdfast_app", pool_size, isolation="repeatable read", steady_plans=True, in_index_order=True
        )
        self._threads = ThreadLocks()
        self._near_limit = set[str]()
        self._notifier = Notifier(url)

    @contextmanager
    def mutation(
        self, tenant: str, project: str, lock_timeout_ms: int, share: TenantShare = NO_LIMIT
    ) -> Iterator["PostgresMutation"]:
        """Hold a project's lock and change it within the tenant's share; ResourceBusy when the lock is not free in time.

        The lock is taken before anything is read: each statement sees what was committed before the lock was granted.
        """
        wait = _LockWait(self._on_lock_wait)
        deadline = wait.began + lock_timeout_ms / 1000
        with wait, self._hold_threads(tenant, project, deadline), busy_on_conflict(project):
            with self._pool.connection() as connection, connection.pipeline(), connection.transaction():
                wait_ms = max(1, int((deadline - time.monotonic()) * 1000))
                connection.execute(
                    "SELECT set_config('lock_timeout', %(wait)s, true), "
                    "set_config('holdfast.apikey_hash', %(tenant)s, true)",
                    {"wait": f"{wait_ms:d}ms", "tenant": tenant},
                )
                take_lock(connection, tenant, project)
                mutation = PostgresMutation(connection, {"apikey_hash": tenant, "project": project}, share, wait.end)
                yield mutation
            (self._near_limit.add if mutation.is_near_limit else self._near_limit.discard)(tenant)
            if mutation.is_written:
                self._notifier.notify()

    @contextmanager
    def _hold_threads(self, tenant: str, project: str, deadline: float) -> Iterator[None]:
        """Let one thread at a time change a project, and of a tenant near its limit one in all, before any has a connection."""
        with self._threads.hold(f"{tenant}\0{project}", deadline) as is_held:
            if not is_held:
                raise project_busy(project)
            if tenant not in self._near_limit:
                yield
                return
            with self._threads.hold(tenant, deadline) as is_whole_tenant_held:
                if not is_whole_tenant_held:
                    raise project_busy(project)
                yield

    @contextmanager
    def snapshot(self, tenant: str) -> Iterator["PostgresSnapshot"]:
        """Read one consistent state of a tenant's files.

        What a pipeline sends before it is synchronised is one transaction, here repeatable read and read-only.
        """
        with busy_on_conflict("*"), self._readers.connection() as connection, connection.pipeline():
            set_tenant(connection, tenant)
            yield PostgresSnapshot(connection, tenant)

    def close(self) -> None:
        """Close every connection."""
        self._notifier.close()
        self._pool.close()
        self._readers.close()


class _LockWait:
    """Measures the wait for a project's lock: in a pipeline it is over when the first answer comes."""

    def __init__(self, on_end: Callable[[float], None]) -> None:
        self.began = time.monotonic()
        self._on_end: Callable[[float], None] | None = on_end

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_fault: object) -> None:
        self.end()

    def end(self) -> None:
        """Say how long the wait was, once."""
        if self._on_end is not None:
            self._on_end((time.monotonic() - self.began) * 1000)
            self._on_end = None


class PostgresMutation(StatementMutation):
    """Statements within the transaction that holds the project's lock, in pipeline mode.

    A tenant that is near the end of its share changes one project at a time, from before the first write on: only then
    are its counters the whole truth. Removing history of another project can wait for none of its changes then.
    `on_first_answer` is called when the first statement has been answered, so that the lock is held.
    """

    def __init__(
        self,
        connection: Connection,
        scope: dict[str, str],
        share: TenantShare,
        on_first_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_first_answer = on_first_answer
        self._connection = connection
        self._scope = scope
        self._share = share
        self.is_written = self.is_near_limit = False
        self._state_cursor = run(connection, "project_state", scope)
        self._usage_cursor = run(connection, "tenant_usage", scope)
        self._pruned: list[Cursor] = []
        self._state: ProjectState | None = None

    @property
    def state(self) -> ProjectState:
        """The project's counters when the lock was taken."""
        if self._state is None:
            row = self._state_cursor.fetchone()
            self._on_first_answer()
            self._state = ProjectState(**row) if row else ProjectState()
            usage = self._usage_cursor.fetchone()
            self.is_near_limit = is_near_limit(TenantUsage(**usage) if usage else TenantUsage(), self._share)
            if self.is_near_limit:
                take_lock(self._connection, self._scope["apikey_hash"], _WHOLE_TENANT)
            else:
                self._share = NO_LIMIT
        return self._state

    def look_up(self, path: str, above: Sequence[str], below: PathRange, *, with_content: bool) -> PathLookup:
        """Return what is at a path, below it, and above it: three statements, one round trip."""
        scope = self._scope | {"path": path, "with_content": with_content, "low": below.low, "high": below.high}
        file_cursor = run(self._connection, "find_file", scope)
        above_cursor = run(self._connection, "files_among", self._scope | {"paths": json.dumps(list(above))})
        below_cursor = run(self._connection, "any_file_in", scope)
        file = file_cursor.fetchone()
        self._on_first_answer()
        file_above, any_below = above_cursor.fetchone(), below_cursor.fetchone()
        return PathLookup(
            StoredFile(**file) if file else None,
            bool(any_below and any_below["found"]),
            file_above["path"] if file_above else None,
        )

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if self.is_written:
            raise RuntimeError("a mutation reads before it writes")
        rows = run(self._connection, name, self._scope | parameters).fetchall()
        self._on_first_answer()
        return rows

    def _count(self, growth: Growth) -> None:
        pruned = sum(removed_bytes(cursor.fetchall()) for cursor in self._pruned)
        count_growth(
            run_for(self._connection, self._scope["apikey_hash"]),
            Growth(growth.live_bytes, growth.history_bytes - pruned),
            self._share,
        )

    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        self.is_written = True
        cursor = run(self._connection, name, {**self._scope, "at": stamp.at, "version": stamp.version, **parameters})
        if name in RETURN_SIZES:
            self._pruned.append(cursor)


class PostgresSnapshot(StatementSnapshot):
    """Reads within one read-only transaction."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def stat(self, project: str, path: str, below: PathRange) -> Stat:
        """Return what is at a path."""
        rows = self._rows("stat_path", project=project, path=path, low=below.low, high=below.high)
        return Stat(**{**rows[0], "type": PathType(rows[0]["type"])}) if rows else Stat()

    def read_window(self, project: str, path: str, below: PathRange, start: int, count: int) -> Window | Stat:
        """Return bytes of a file, or what else is at the path."""
        rows = self._rows(
            "read_window", project=project, path=path, low=below.low, high=below.high, start=start, count=count
        )
        if not rows:
            return Stat()
        if rows[0]["type"] == PathType.DIRECTORY:
            return Stat(PathType.DIRECTORY)
        return Window(rows[0]["size"], start, rows[0]["data"] or b"")

    def list_heads(self, project: str, span: PathRange, components: int, limit: int) -> list[FileSummary]:
        """Return the first file of each group that shares its first components."""
        rows = self._rows(
            "list_heads", project=project, low=span.low, high=span.high, components=components, limit=limit
        )
        return [FileSummary(**row) for row in rows]

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        return run(self._connection, name, {"apikey_hash": self._tenant, **parameters}).fetchall()


def lock_key(tenant: str, project: str) -> int:
    """Return the 64-bit key of a project's lock; two projects that share one only wait for each other."""
    digest = hashlib.blake2b(f"{tenant}\0{project}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


@contextmanager
def busy_on_conflict(project: str) -> Iterator[None]:
    """Turn errors that a retry can cure into ResourceBusy, those of a full or damaged disk into errors that say so.

    The driver's text may hold values and is dropped.
    """
    try:
        yield
    except _TRANSIENT_CONFLICTS:
        raise project_busy(project) from None
    except psycopg.errors.NotNullViolation as error:
        if not _is_version_conflict(error):
            raise
        raise project_busy(project) from None
    except psycopg.errors.DiskFull:
        raise StorageFull("the disk of the database is full; nothing was changed") from None
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted):
        raise StorageDamaged("the database reports damaged data; its administrator has to repair it") from None
    except PoolTimeout:
        raise ResourceBusy("no database connection was free in time, or the database is down; try again") from None
    except psycopg.OperationalError as error:
        raise ResourceBusy(
            f"the database did not answer ({type(error).__name__}), so a change may or may not have happened;"
            " look before you try again, or send every change with an idempotency_key and repeat it"
        ) from None


def _is_version_conflict(error: psycopg.errors.NotNullViolation) -> bool:
    """Return whether `save_project` refused a version that is not the next one, which it does by writing NULL.

    A partition of the table has a name of its own that begins with the table's.
    """
    return (error.diag.table_name or "").startswith("mcp_projects") and error.diag.column_name == "version"
