"""Creates, lists and revokes API keys; stores only their SHA-256.

A key is looked up at every call, so that revoking takes effect at once.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field, replace
from typing import Protocol

from holdfast.auth.context import AuthContext
from holdfast.auth.rates import PerMinute
from holdfast.clock import utc_now
from holdfast.errors import InvalidArgument, NotFound
from holdfast.secret import Secret

PREFIX = "hf_"
MAX_LABEL_CHARS = 100
_KEY_BYTES = 32
_ID_CHARS = 12


@dataclass(frozen=True, slots=True)
class Key:
    """What is stored of a key; only its holder has the key itself.

    `id` is the beginning of its hash. `tenant` is the hash of the tenant's first key, which names the tenant everywhere
    else; empty for that key itself.
    """

    id: str
    apikey_hash: str
    label: str
    created_at: str
    revoked_at: str | None = None
    per_minute: PerMinute = field(default_factory=dict)
    tenant: str = ""

    @property
    def tenant_hash(self) -> str:
        """Return the hash that names the tenant."""
        return self.tenant or self.apikey_hash

    @property
    def identity(self) -> str:
        """Return how the holder is shown."""
        return self.label or f"key {self.id}"


class KeyTable(Protocol):
    """Where keys are stored. A change by any process is visible to the next lookup of every other."""

    def add(self, key: Key) -> None:
        """Store a new key."""

    def find(self, apikey_hash: str) -> Key | None:
        """Return the key of a hash, revoked or not."""

    def all(self) -> list[Key]:
        """Return every key, the oldest first."""

    def revoke(self, key_id: str, at: str) -> None:
        """Mark a key as revoked; one that is revoked already keeps its time."""

    def erase(self, tenant: str) -> int:
        """Remove every key of a tenant and overwrite what held them; returns how many."""

    def close(self) -> None:
        """Close the table."""


class ApiKeys:
    """Creates, lists and revokes keys, and finds the tenant of a hash."""

    def __init__(self, table: KeyTable) -> None:
        self._table = table

    def create(self, label: str = "", per_minute: PerMinute | None = None) -> tuple[Secret, Key]:
        """Create a key of 256 random bits. The returned secret is the only copy of it."""
        if len(label) > MAX_LABEL_CHARS or not label.isprintable():
            raise InvalidArgument(
                f"a label is one line of at most {MAX_LABEL_CHARS} printable characters: {label!r:.120}"
            )
        return self._add(label, dict(per_minute or {}))

    def rotate(self, key_id: str, *, keeps_old: bool = False) -> tuple[Secret, Key]:
        """Create another key for the tenant of a key, and revoke that one unless it is kept. NotFound.

        It has the label and the limits of the old one. The tenant of a revoked key gets its files back so.
        """
        old = self._find_by_id(key_id)
        secret, key = self._add(old.label, dict(old.per_minute), old.tenant_hash)
        if not keeps_old:
            self._table.revoke(old.id, utc_now())
        return secret, key

    def _add(self, label: str, per_minute: PerMinute, tenant: str = "") -> tuple[Secret, Key]:
        raw = PREFIX + base64.b32encode(secrets.token_bytes(_KEY_BYTES)).decode().rstrip("=").lower()
        apikey_hash = hashlib.sha256(raw.encode()).hexdigest()
        key = Key(apikey_hash[:_ID_CHARS], apikey_hash, label, utc_now(), None, per_minute, tenant)
        self._table.add(key)
        return Secret(raw), key

    def _find_by_id(self, key_id: str) -> Key:
        key = next((key for key in self._table.all() if key.id == key_id), None)
        if key is None:
            raise NotFound(f"There is no key {key_id!r}; `holdfast keys list` shows their ids.")
        return key

    def all(self) -> list[Key]:
        """Return every key, the oldest first, revoked ones too."""
        return self._table.all()

    def revoke(self, key_id: str) -> Key:
        """Revoke a key from its next call on. NotFound when there is no such id; one that is revoked already is returned."""
        key = self._find_by_id(key_id)
        if key.revoked_at is not None:
            return key
        at = utc_now()
        self._table.revoke(key_id, at)
        return replace(key, revoked_at=at)

    def revoke_all_of(self, tenant: str) -> list[Key]:
        """Revoke every key of a tenant and return them."""
        keys = [key for key in self._table.all() if key.tenant_hash == tenant]
        for key in keys:
            self._table.revoke(key.id, utc_now())
        return keys

    def erase(self, tenant: str) -> int:
        """Remove what is stored of a tenant's keys, labels too; returns how many there were."""
        return self._table.erase(tenant)

    def find(self, apikey_hash: str) -> Key | None:
        """Return the key of a hash, None when it is unknown or revoked."""
        key = self._table.find(apikey_hash)
        return None if key is None or key.revoked_at is not None else key

    def tenant_of(self, apikey_hash: str) -> AuthContext | None:
        """Return the tenant of a hash, None for an unknown or revoked key."""
        key = self.find(apikey_hash)
        return None if key is None else AuthContext(key.tenant_hash, key.identity, key_hash=key.apikey_hash)

    def close(self) -> None:
        """Close the table."""
        self._table.close()
