"""The project store for commands of the person that reach past a server: whose files are whose, and erasing a tenant."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

from holdfast.adapters.open_store import open_eraser, open_store, store_limits_from_settings
from holdfast.adapters.redis import RedisKeyStore
from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.auth.keys import ApiKeys
from holdfast.config.environment import variable
from holdfast.config.settings import FilesSettings
from holdfast.credentials.envelope import Binding, KeyEncryptionKeys
from holdfast.credentials.service import Credentials
from holdfast.errors import InvalidArgument, NotFound
from holdfast.store.erase import ErasedTenant, erase_tenant
from holdfast.store.service import Store

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_MAX_JOBS = 100_000


@contextmanager
def open_tenant_store(files: FilesSettings, state_dir: str) -> Iterator[Store]:
    """Open the store of every tenant, beside a running server or without one."""
    ports = open_store(state_dir, variable("DATABASE_URL"))
    try:
        yield Store(ports.database, store_limits_from_settings(files))
    finally:
        ports.close()


def find_tenant(keys: ApiKeys, name: str | None) -> AuthContext:
    """Return the tenant of a key by its id or label, the user of this machine without a name.

    A tenant of a server in open mode is named by the SHA-256 of its key. NotFound, and InvalidArgument when a label has
    more than one tenant.
    """
    if name is None:
        return LOCAL_USER
    tenants = {key.tenant_hash: key for key in keys.all() if name in (key.id, key.label, key.tenant_hash)}
    if len(tenants) > 1:
        ids = ", ".join(key.id for key in tenants.values())
        raise InvalidArgument(f"{name!r} is the label of several tenants: name one by its id ({ids}).")
    if tenants:
        (key,) = tenants.values()
        return AuthContext(key.tenant_hash, key.identity)
    if _HASH.match(name):
        return AuthContext(name, f"key {name[:8]}")
    raise NotFound(f"There is no key with the id or label {name!r}; `holdfast keys list` shows them.")


def erase(files: FilesSettings, state_dir: str, keys: ApiKeys, tenant: str, *, rewrites: bool) -> ErasedTenant:
    """Revoke every key of a tenant, then erase all that the store holds of it, its sealed model keys, and its keys.

    InvalidArgument for the user of this machine. What a running server remembers of it in memory ends within minutes.
    """
    if tenant == LOCAL_USER.apikey_hash:
        raise InvalidArgument("The user of this machine is no tenant of a key; `holdfast files rm` deletes files.")
    keys.revoke_all_of(tenant)
    _forget_model_keys(files, state_dir, tenant)
    with closing(open_eraser(state_dir, variable("DATABASE_URL"), rewrites=rewrites)) as eraser:
        return erase_tenant(eraser, tenant, keys.erase)


def _forget_model_keys(files: FilesSettings, state_dir: str, tenant: str) -> None:
    """Drop the sealed model keys that wait in Redis for jobs of a tenant; those in a server's memory expire."""
    url = variable("REDIS_URL")
    if not url:
        return
    ports = open_store(state_dir, variable("DATABASE_URL"))
    key_store = RedisKeyStore(url, files.security.credential_cache_prefix)
    with closing(Credentials(key_store, KeyEncryptionKeys.for_this_process())) as credentials:
        try:
            for job in ports.queue.list_open_jobs(tenant, _MAX_JOBS):
                credentials.forget(Binding(tenant, job.project, job.path, job.id))
        finally:
            ports.close()
