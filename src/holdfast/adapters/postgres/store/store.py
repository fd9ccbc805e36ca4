"""The store on PostgreSQL: an advisory lock per project, every round trip as full as it can be."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from holdfast.adapters.locks import ThreadLocks
from holdfast.adapters.postgres.store.mutation import PostgresMutation
from holdfast.adapters.postgres.store.notify import Notifier
from holdfast.adapters.postgres.store.reading import PostgresReading
from holdfast.adapters.postgres.store.rows import Connection
from holdfast.errors import ResourceBusy

Pool = ConnectionPool[Connection]
Role = Literal["holdfast_app", "holdfast_worker"]
Isolation = Literal["read committed", "repeatable read"]

_CONNECT_SECONDS = 10.0
_LOST_TO_ANOTHER = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
"""Another transaction was first."""


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

    With steady plans a statement is planned once for each connection and always seeks in an index, which is right for
    statements that touch few rows whatever their values are: planning takes as long as a look at a file. In index order
    rows are never sorted where an index has them in order, which is right for the first rows of very many: statistics
    are old when a project has just grown, and told that there is little to sort.
    """
    return ConnectionPool(
        url,
        connection_class=Connection,
        kwargs={"autocommit": True, "row_factory": dict_row, "application_name": "holdfast"},
        configure=partial(_prepare, role, isolation, steady_plans, in_index_order),
        min_size=0,
        max_size=size,
        timeout=_CONNECT_SECONDS,
        open=True,
        name=role,
    )


def _prepare(
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


class PostgresStore:
    """Every tenant's files in one database.

    Readers have connections of their own, and threads that wait for one project hold no connection but one, so that
    nobody waits for a connection because of a project that is not theirs.
    """

    def __init__(self, url: str, pool_size: int = 16) -> None:
        self._pool = open_pool(url, "holdfast_app", pool_size, steady_plans=True)
        self._readers = open_pool(
            url, "holdfast_app", pool_size, isolation="repeatable read", steady_plans=True, in_index_order=True
        )
        self._threads = ThreadLocks()
        self._notifier = Notifier(url)

    @contextmanager
    def mutation(self, tenant: str, project: str, lock_timeout_ms: int) -> Iterator[PostgresMutation]:
        """Hold a project's lock and change it; ResourceBusy when the lock is not free in time.

        The lock is taken before anything is read: each statement sees what was committed before the lock was granted.
        """
        deadline = time.monotonic() + lock_timeout_ms / 1000
        with self._threads.hold(f"{tenant}\0{project}", deadline) as is_held, answering(project):
            if not is_held:
                raise _busy(project)
            with self._pool.connection() as connection, connection.pipeline(), connection.transaction():
                wait_ms = max(1, int((deadline - time.monotonic()) * 1000))
                connection.execute(
                    "SELECT set_config('lock_timeout', %(wait)s, true), "
                    "set_config('holdfast.apikey_hash', %(tenant)s, true)",
                    {"wait": f"{wait_ms:d}ms", "tenant": tenant},
                )
                connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": lock_key(tenant, project)})
                change = PostgresMutation(connection, {"apikey_hash": tenant, "project": project})
                yield change
            if change._is_written:
                self._notifier.ring()

    @contextmanager
    def snapshot(self, tenant: str) -> Iterator[PostgresReading]:
        """Look at one moment of a tenant's store.

        What a pipeline sends before it is synchronised is one transaction, here repeatable and read-only.
        """
        with answering("*"), self._readers.connection() as connection, connection.pipeline():
            connection.execute("SELECT set_config('holdfast.apikey_hash', %(tenant)s, true)", {"tenant": tenant})
            yield PostgresReading(connection, tenant)

    def close(self) -> None:
        """Close every connection."""
        self._notifier.close()
        self._pool.close()
        self._readers.close()


def lock_key(tenant: str, project: str) -> int:
    """Return the 64-bit key of a project's lock; two projects that share one only wait for each other."""
    digest = hashlib.blake2b(f"{tenant}\0{project}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


@contextmanager
def answering(project: str) -> Iterator[None]:
    """Turn the faults that a retry can cure into ResourceBusy; the driver's text may hold values and is dropped."""
    try:
        yield
    except _LOST_TO_ANOTHER:
        raise _busy(project) from None
    except psycopg.errors.NotNullViolation as error:
        if not _is_version_conflict(error):
            raise
        raise _busy(project) from None
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


def _busy(project: str) -> ResourceBusy:
    return ResourceBusy(f"another change of project {project} is under way; try again")
