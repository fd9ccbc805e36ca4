"""Turns a raw key into the tenant that it belongs to; nothing else sees raw keys."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.secret import Secret

MIN_OPEN_KEY_CHARS = 16

FindTenant = Callable[[str], AuthContext | None]
"""Finds the tenant of a listed key by the key's SHA-256 in hexadecimal; None for an unknown or revoked one."""


def find_no_tenant(_apikey_hash: str) -> AuthContext | None:
    """Return None for every key: a server without listed keys."""
    return None


@dataclass(slots=True)
class Authenticator:
    """Identifies callers by the local token, the mode, and the listed keys.

    The local token is this machine's own user in every mode; other keys are tenants without local folders. The key to
    the metrics opens them and nothing else. Both tokens may be exchanged while the server runs. With oauth there are no other
    keys: callers have access tokens (`tokens.py`).
    """

    local_token: Secret
    mode: Literal["local", "listed", "open", "oauth"] = "local"
    find_tenant: FindTenant = find_no_tenant
    metrics_token: Secret | None = None

    def opens_metrics(self, key: Secret) -> bool:
        """Return whether a key is the one to the metrics."""
        return self.metrics_token is not None and self.metrics_token.matches(key.reveal())

    def identify(self, key: Secret, model_key: Secret | None = None) -> AuthContext | None:
        """Return the tenant of this key, None when it has none.

        An open server passes its caller's key on to models, as a gateway does. A key that we issued never leaves, so
        the caller of a listed server sends a second one for models. The local user's is in the settings.
        """
        if self.local_token.matches(key.reveal()):
            return LOCAL_USER
        if self.opens_metrics(key):
            return None
        if self.mode == "listed":
            tenant = self.find_tenant(_hash(key))
            return replace(tenant, model_key=model_key) if tenant is not None else None
        if self.mode == "open" and len(key.reveal()) >= MIN_OPEN_KEY_CHARS:
            apikey_hash = _hash(key)
            return AuthContext(apikey_hash, f"key {apikey_hash[:8]}", model_key=key)
        return None


def _hash(key: Secret) -> str:
    return hashlib.sha256(key.reveal().encode("utf-8", "surrogateescape")).hexdigest()
