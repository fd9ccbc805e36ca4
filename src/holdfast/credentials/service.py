"""Keys for jobs: seal one for a job, take it out for that job, forget it; no failure ever tells what was in it."""

import logging
import time

from holdfast.credentials.envelope import Binding, Envelope, Keks, SealFault
from holdfast.credentials.sealed_keys import KeyStoreUnavailable, SealedKeyStore
from holdfast.secret import Secret

_log = logging.getLogger(__name__)


class Credentials:
    """A cabinet and the secrets that its envelopes are sealed under."""

    def __init__(self, cabinet: SealedKeyStore, keks: Keks, ttl_seconds: int = 300) -> None:
        self._cabinet = cabinet
        self._keks = keks
        self._ttl_seconds = ttl_seconds
        self._is_silent = False

    @property
    def is_shared(self) -> bool:
        """Return whether another process can take what is kept here."""
        return self._cabinet.is_shared

    def keep(self, binding: Binding, key: Secret) -> bool:
        """Seal a key for a job; False, and a line in the log, when that failed."""
        try:
            envelope = self._keks.seal(key, binding, int(time.time()) + self._ttl_seconds)
            self._cabinet.put(_name(binding), envelope.to_bytes(), self._ttl_seconds)
        except KeyStoreUnavailable:
            self._fell_silent()
            return False
        except Exception as error:  # noqa: BLE001 - whatever went wrong, its text may hold the key
            _log.error("a key could not be sealed: %s", type(error).__name__)
            return False
        self._is_silent = False
        return True

    def take(self, binding: Binding) -> Secret | None:
        """Return the key that was sealed for a job, None when there is none or it does not open."""
        try:
            sealed = self._cabinet.get(_name(binding))
            return None if sealed is None else self._opened(sealed, binding)
        except KeyStoreUnavailable:
            self._fell_silent()
            return None

    def has(self, binding: Binding) -> bool:
        """Return whether a key lies there for a job."""
        try:
            return self._cabinet.get(_name(binding)) is not None
        except KeyStoreUnavailable:
            return False

    def forget(self, binding: Binding) -> None:
        """Remove the key of a job that has ended; one that cannot be reached ends with its time."""
        try:
            self._cabinet.drop(_name(binding))
        except KeyStoreUnavailable:
            self._fell_silent()

    def close(self) -> None:
        """Let go of the cabinet."""
        self._cabinet.close()

    def _opened(self, sealed: bytes, binding: Binding) -> Secret | None:
        try:
            return self._keks.open(Envelope.from_bytes(sealed), binding, time.time())
        except SealFault as fault:
            _log.warning("a sealed key was not opened: %s", fault)
        except Exception as error:  # noqa: BLE001 - likewise
            _log.error("a sealed key was not opened: %s", type(error).__name__)
        return None

    def _fell_silent(self) -> None:
        if not self._is_silent:
            _log.warning("sealed keys cannot be reached: jobs that need one wait")
        self._is_silent = True


def _name(binding: Binding) -> str:
    """Return where a job's key lies; it says nothing of the job."""
    return binding.digest().hex()
