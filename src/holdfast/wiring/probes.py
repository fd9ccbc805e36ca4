"""What commands ask of databases, models and services when no server is built for it, and the migration of the store."""

import os
from collections.abc import Callable

from holdfast.adapters.langfuse import CLOUD, LangfuseAccess, access_fault
from holdfast.adapters.models.build import embedder_fault
from holdfast.adapters.open_store import migrate_store, missing_store_migrations, read_usages
from holdfast.adapters.otlp import Collector, collector_fault
from holdfast.adapters.redis import redis_fault
from holdfast.adapters.sqlite.state.database import inspect_database
from holdfast.adapters.sqlite.state.image_table import read_image_usage
from holdfast.changes.disk.image_room import describe_full_roots, find_cap
from holdfast.config.environment import variable
from holdfast.config.observe_settings import TraceSettings
from holdfast.config.settings import EmbedderSettings, FilesSettings, Settings
from holdfast.secret import Secret
from holdfast.store.tenant_share import describe_usages


def migrate(report: Callable[[int, int, str], None] | None = None) -> list[str]:
    """Migrate the project store of this deployment; returns the names of the migrations that ran.

    `report` is called before each with how many have run, how many there are, and its name.
    """
    return migrate_store(variable("DATABASE_URL"), report)


def missing_migrations() -> list[str]:
    """Return the names of the migrations that `migrate` would run. Raises what keeps a server from using its store."""
    return missing_store_migrations(variable("DATABASE_URL"))


def store_usage(files: FilesSettings, state_dir: str) -> tuple[str, bool]:
    """Return what all tenants hold in the store, and whether one of them is near its limit; no server is needed."""
    return describe_usages(read_usages(state_dir, variable("DATABASE_URL")), files.max_tenant_bytes)


def model_fault(settings: EmbedderSettings) -> str | None:
    """Return what is wrong with the embedding model, None when it can be used."""
    return embedder_fault(settings)


def database_fault(path: str) -> str | None:
    """Return what is wrong with a state database, None when nothing is; the file is only looked at."""
    return inspect_database(path)


def history_warnings(settings: Settings, state_dir: str) -> list[str]:
    """Return a sentence for each allowed directory whose undo history is nearly full, without a server."""
    usage = read_image_usage(os.path.join(state_dir, "state.db"))
    if not usage:
        return []
    return list(describe_full_roots(usage, find_cap(settings.journal, state_dir, usage)).values())


def counter_fault(redis_url: str) -> str | None:
    """Return what is wrong with the Redis at an address, None when it answers. InvalidArgument when it is none."""
    return redis_fault(redis_url)


def langfuse_fault(public_key: str, secret_key: str, host: str | None) -> str | None:
    """Return what keeps plans from being recorded by Langfuse, None when nothing does; it is asked."""
    return access_fault(LangfuseAccess(public_key, Secret(secret_key), host or CLOUD))


def trace_fault(settings: TraceSettings) -> str | None:
    """Return what keeps spans from the collector of the settings, None when it takes an empty request."""
    headers = {name: Secret(value.get_secret_value()) for name, value in settings.headers.items()}
    return collector_fault(Collector(settings.endpoint, headers))
