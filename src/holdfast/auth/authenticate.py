"""The one place that sees a raw key: turns it into the tenant it stands for, or into nobody."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.secret import Secret

MIN_OPEN_KEY_CHARS = 16

KeyList = Callable[[str], AuthContext | None]
"""Finds the tenant of a listed key by the key's SHA-256 in hexadecimal; None for an unknown or revoked one."""


def nobody_listed(_apikey_hash: str) -> AuthContext | None:
    """Stand for a list without keys."""
    return None


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Knows the local token, the mode, and where listed keys are looked up.

    The local token is this machine's own user in every mode; other keys are tenants without local folders.
    """

    local_token: Secret
    mode: Literal["local", "listed", "open"] = "local"
    key_list: KeyList = nobody_listed

    def identify(self, key: Secret, model_key: Secret | None = None) -> AuthContext | None:
        """Return who holds this key, None when nobody known does.

        Models get the key of an open server's caller, as behind a gateway; a key that we minted never leaves, so that
        the caller of a listed server gives one for models beside it. The local user's is in the settings.
        """
        if self.local_token.matches(key.reveal()):
            return LOCAL_USER
        if self.mode == "listed":
            found = self.key_list(_hash(key))
            return replace(found, model_key=model_key) if found is not None else None
        if self.mode == "open" and len(key.reveal()) >= MIN_OPEN_KEY_CHARS:
            apikey_hash = _hash(key)
            return AuthContext(apikey_hash, f"key {apikey_hash[:8]}", model_key=key)
        return None


def _hash(key: Secret) -> str:
    return hashlib.sha256(key.reveal().encode("utf-8", "surrogateescape")).hexdigest()
