"""Opens the project store that a deployment asks for: SQLite in the state folder, or PostgreSQL by its address."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.adapters.sqlite.search.index import SqliteIndex
from holdfast.adapters.sqlite.store.queue import SqliteQueue
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.config.settings import FilesSettings, SearchSettings
from holdfast.errors import InvalidArgument
from holdfast.search.model import SearchLimits
from holdfast.search.ports import Index
from holdfast.store.model import Limits
from holdfast.store.ports import IndexQueue, Upkeep
from holdfast.store.service import Store

_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class OpenStore:
    """The store, its search index, and for the worker its queue and its upkeep."""

    store: Store
    index: Index
    queue: IndexQueue
    upkeep: Upkeep
    close: Callable[[], None]


def build_store(settings: FilesSettings, state_dir: str, database_url: str | None = None) -> OpenStore:
    """Open the store; a PostgreSQL database is brought to the newest shape first. Nothing is read or written yet."""
    limits = limits_of(settings)
    if is_postgres(database_url):
        return _on_postgres(limits, database_url or "")
    database = SqliteStore(os.path.join(state_dir, "store"))
    queue = SqliteQueue(database.files)
    return OpenStore(Store(database, limits), SqliteIndex(database.files), queue, queue, database.close)


def migrate_store(database_url: str | None) -> list[str]:
    """Bring a PostgreSQL store to the newest shape and return the steps taken; SQLite files do it when opened."""
    if not is_postgres(database_url):
        return []
    _need_driver()
    from holdfast.adapters.postgres.migrate import migrate

    return migrate(database_url or "")


def missing_steps(database_url: str | None) -> list[str]:
    """Return the steps that `migrate_store` would take; the database is only looked at."""
    if not is_postgres(database_url):
        return []
    _need_driver()
    from holdfast.adapters.postgres.migrate import missing_steps as missing

    return missing(database_url or "")


def is_postgres(database_url: str | None) -> bool:
    """Return whether an address is one of PostgreSQL; InvalidArgument when it is neither that nor SQLite's."""
    if not database_url or database_url.startswith("sqlite:"):
        return False
    if not database_url.startswith(_SCHEMES):
        raise InvalidArgument(f"DATABASE_URL must begin with {_SCHEMES[0]}, or be unset for SQLite in the state folder")
    return True


def limits_of(settings: FilesSettings) -> Limits:
    """Return the store's limits as the settings give them."""
    return Limits(
        allow_root_wipe=settings.allow_root_wipe,
        max_payload_bytes=settings.max_payload_bytes,
        max_file_bytes=settings.max_file_bytes,
        max_project_bytes=settings.max_project_bytes,
        list_limit_default=settings.list_limit_default,
        list_limit_max=settings.list_limit_max,
        lock_timeout_ms=settings.lock_timeout_ms,
        delete_retention_days=settings.delete_retention_days,
        versions_kept=settings.versions_kept,
        version_days=settings.version_days,
        idempotency_days=settings.idempotency_days,
    )


def search_limits_of(settings: SearchSettings) -> SearchLimits:
    """Return the limits of search as the settings give them."""
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


def _on_postgres(limits: Limits, url: str) -> OpenStore:
    _need_driver()
    from holdfast.adapters.postgres.migrate import migrate
    from holdfast.adapters.postgres.search.index import PostgresIndex
    from holdfast.adapters.postgres.store.queue import PostgresQueue
    from holdfast.adapters.postgres.store.store import PostgresStore

    migrate(url)
    database, queue, index = PostgresStore(url), PostgresQueue(url), PostgresIndex(url)

    def close() -> None:
        database.close()
        queue.close()
        index.close()

    return OpenStore(Store(database, limits), index, queue, queue, close)


def _need_driver() -> None:
    try:
        import psycopg_pool  # noqa: F401  only whether it is there
    except ImportError:
        raise InvalidArgument(
            "DATABASE_URL names PostgreSQL, and its driver is missing: pip install 'holdfast[postgres]'"
        ) from None
