"""Model keys of jobs: seal one, take it for its job, forget it; no error or log line reveals a key."""

import logging
import time

from holdfast.credentials.envelope import Binding, Envelope, KeyEncryptionKeys, SealFault
from holdfast.credentials.sealed_keys import KeyStoreUnavailable, SealedKeyStore
from holdfast.secret import Secret

_log = logging.getLogger(__name__)


class Credentials:
    """A store of sealed keys and the key encryption keys that they are sealed under."""

    def __init__(self, key_store: SealedKeyStore, keks: KeyEncryptionKeys, ttl_seconds: int = 300) -> None:
        self._key_store = key_store
        self._keks = keks
        self._ttl_seconds = ttl_seconds
        self._is_unavailable = False

    @property
    def is_shared(self) -> bool:
        """Return whether another process can take what is kept here."""
        return self._key_store.is_shared

    def keep(self, binding: Binding, key: Secret) -> bool:
        """Seal a key for a job; False, and a log line, when that failed."""
        try:
            envelope = self._keks.seal(key, binding, int(time.time()) + self._ttl_seconds)
            self._key_store.put(_key_name(binding), envelope.to_bytes(), self._ttl_seconds)
        except KeyStoreUnavailable:
            self._log_unavailable()
            return False
        except Exception as error:  # noqa: BLE001 - whatever went wrong, its text may hold the key
            _log.error("a key could not be sealed: %s", type(error).__name__)
            return False
        self._is_unavailable = False
        return True

    def take(self, binding: Binding) -> Secret | None:
        """Return the key that was sealed for a job, None when there is none or it does not open."""
        try:
            sealed = self._key_store.get(_key_name(binding))
            return None if sealed is None else self._open(sealed, binding)
        except KeyStoreUnavailable:
            self._log_unavailable()
            return None

    def has(self, binding: Binding) -> bool:
        """Return whether a key is kept for a job."""
        try:
            return self._key_store.get(_key_name(binding)) is not None
        except KeyStoreUnavailable:
            return False

    def forget(self, binding: Binding) -> None:
        """Drop the key of a job that has ended; one that cannot be reached expires."""
        try:
            self._key_store.drop(_key_name(binding))
        except KeyStoreUnavailable:
            self._log_unavailable()

    def close(self) -> None:
        """Close the store of sealed keys."""
        self._key_store.close()

    def _open(self, sealed: bytes, binding: Binding) -> Secret | None:
        try:
            return self._keks.open(Envelope.from_bytes(sealed), binding, time.time())
        except SealFault as fault:
            _log.warning("a sealed key was not opened: %s", fault)
        except Exception as error:  # noqa: BLE001 - likewise
            _log.error("a sealed key was not opened: %s", type(error).__name__)
        return None

    def _log_unavailable(self) -> None:
        if not self._is_unavailable:
            _log.warning("sealed keys cannot be reached: jobs that need one wait")
        self._is_unavailable = True


def _key_name(binding: Binding) -> str:
    """Return the name that a job's key is kept under: a hash, which does not reveal the job."""
    return binding.digest().hex()
