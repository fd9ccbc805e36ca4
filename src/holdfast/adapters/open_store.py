"""Opens the databases of the project store: SQLite in the state folder, or PostgreSQL by its address."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.adapters.sqlite.calls import TenantCalls
from holdfast.adapters.sqlite.search.index import SqliteIndex
from holdfast.adapters.sqlite.store.erase import SqliteEraser
from holdfast.adapters.sqlite.store.files import read_usages as sqlite_usages
from holdfast.adapters.sqlite.store.queue import SqliteQueue
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.config.settings import FilesSettings, SearchSettings
from holdfast.errors import InvalidArgument
from holdfast.observe.ports import CallTable
from holdfast.search.model import SearchLimits
from holdfast.search.ports import Index
from holdfast.store.erase import TenantEraser
from holdfast.store.model import StoreLimits
from holdfast.store.ports import IndexQueue, StoreDatabase, StoreUpkeep
from holdfast.store.tenant_share import TenantUsage

_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class StorePorts:
    """What a deployment's database gives: the files, the search index, and for the worker the queue and the upkeep.

    `open_calls` opens the tenants' call log, told whether a call alone makes a tenant known here.
    """

    database: StoreDatabase
    index: Index
    queue: IndexQueue
    upkeep: StoreUpkeep
    open_calls: Callable[[bool], CallTable]
    close: Callable[[], None]


def open_store(
    state_dir: str, database_url: str | None = None, on_lock_wait: Callable[[float], None] = lambda _ms: None
) -> StorePorts:
    """Open the store's database; PostgreSQL is migrated first, an SQLite file when a tenant first uses it.

    `on_lock_wait` is told how many milliseconds each mutation waited for the lock of its project.
    """
    if is_postgres(database_url):
        return _open_postgres(database_url or "", on_lock_wait)
    database = SqliteStore(os.path.join(state_dir, "store"), on_lock_wait)
    queue = SqliteQueue(database.files)
    return StorePorts(
        database,
        SqliteIndex(database.files),
        queue,
        queue,
        lambda adds_tenants: TenantCalls(database.files, adds_tenants=adds_tenants),
        database.close,
    )


def migrate_store(database_url: str | None, report: Callable[[int, int, str], None] | None = None) -> list[str]:
    """Migrate a PostgreSQL store and return the names of the migrations that ran; SQLite files migrate when opened.

    `report` is called before each with how many have run, how many there are, and its name.
    """
    if not is_postgres(database_url):
        return []
    _require_driver()
    from holdfast.adapters.postgres.migrate import migrate

    return migrate(database_url or "", report)


def missing_store_migrations(database_url: str | None) -> list[str]:
    """Return the names of the migrations that `migrate_store` would run; nothing is changed."""
    if not is_postgres(database_url):
        return []
    _require_driver()
    from holdfast.adapters.postgres import migrate

    return migrate.missing_migrations(database_url or "")


def read_usages(state_dir: str, database_url: str | None) -> list[TenantUsage]:
    """Return what each tenant holds, without a server; on PostgreSQL every migration has to have run."""
    if not is_postgres(database_url):
        return sqlite_usages(os.path.join(state_dir, "store"))
    _require_driver()
    from holdfast.adapters.postgres.store.queue import read_usages as postgres_usages

    return postgres_usages(database_url or "")


def open_eraser(state_dir: str, database_url: str | None, *, rewrites: bool) -> TenantEraser:
    """Return what erases a tenant from the store; `rewrites` makes PostgreSQL write the files of its tables anew.

    In state.db nothing but its key names a tenant of SQLite or PostgreSQL; that file is searched for it, too.
    """
    if not is_postgres(database_url):
        return SqliteEraser(os.path.join(state_dir, "store"), (os.path.join(state_dir, "state.db"),))
    _require_driver()
    from holdfast.adapters.postgres.store.erase import PostgresEraser

    return PostgresEraser(database_url or "", rewrites=rewrites)


def is_postgres(database_url: str | None) -> bool:
    """Return whether a database URL is of PostgreSQL; InvalidArgument when it is neither that nor of SQLite."""
    if not database_url or database_url.startswith("sqlite:"):
        return False
    if not database_url.startswith(_SCHEMES):
        raise InvalidArgument(f"DATABASE_URL must begin with {_SCHEMES[0]}, or be unset for SQLite in the state folder")
    return True


def store_limits_from_settings(settings: FilesSettings) -> StoreLimits:
    """Return the store's limits from the settings."""
    return StoreLimits(
        allow_root_wipe=settings.allow_root_wipe,
        max_payload_bytes=settings.max_payload_bytes,
        max_file_bytes=settings.max_file_bytes,
        max_project_bytes=settings.max_project_bytes,
        max_tenant_bytes=settings.max_tenant_bytes,
        list_limit_default=settings.list_limit_default,
        list_limit_max=settings.list_limit_max,
        lock_timeout_ms=settings.lock_timeout_ms,
        delete_retention_days=settings.delete_retention_days,
        versions_kept=settings.versions_kept,
        version_days=settings.version_days,
        idempotency_days=settings.idempotency_days,
    )


def search_limits_from_settings(settings: SearchSettings) -> SearchLimits:
    """Return the limits of search from the settings."""
    return SearchLimits(
        enabled=settings.enabled,
        limit_default=settings.limit_default,
        limit_max=settings.limit_max,
        vector_candidates=settings.vector_candidates,
        bm25_candidates=settings.bm25_candidates,
        rerank_timeout_ms=settings.rerank.timeout_ms,
        semantic_weight=settings.fallback.semantic_weight,
        lexical_weight=settings.fallback.lexical_weight,
    )


def _open_postgres(url: str, on_lock_wait: Callable[[float], None]) -> StorePorts:
    _require_driver()
    from holdfast.adapters.postgres.calls import PostgresCalls
    from holdfast.adapters.postgres.migrate import migrate
    from holdfast.adapters.postgres.search.index import PostgresIndex
    from holdfast.adapters.postgres.store.queue import PostgresQueue
    from holdfast.adapters.postgres.store.store import PostgresStore

    migrate(url)
    database, queue, index = PostgresStore(url, on_lock_wait=on_lock_wait), PostgresQueue(url), PostgresIndex(url)

    def close() -> None:
        database.close()
        queue.close()
        index.close()

    return StorePorts(
        database, index, queue, queue, lambda adds_tenants: PostgresCalls(url, adds_tenants=adds_tenants), close
    )


def _require_driver() -> None:
    try:
        import psycopg_pool  # noqa: F401  checks that it is installed
    except ImportError:
        raise InvalidArgument(
            "DATABASE_URL names PostgreSQL, and its driver is missing: pip install 'holdfast[postgres]'"
        ) from None
