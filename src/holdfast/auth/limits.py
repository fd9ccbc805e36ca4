"""Admits a call: its key must be valid still, and its tenant within the limit of calls a minute."""

import math
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.auth.context import Caller, CallerKind
from holdfast.auth.keys import Key
from holdfast.auth.rates import Rate
from holdfast.config.settings import LimitSettings
from holdfast.errors import PermissionDenied, RateLimited

FindKey = Callable[[str], Key | None]
"""Finds a valid key by its hash; None for an unknown or revoked one."""


class Counters(Protocol):
    """Counts calls over a moving window of sixty seconds. `is_remote`: counting waits for another process."""

    is_remote: bool

    def hit(self, name: str, per_minute: int) -> float | None:
        """Count one call and return None, or count nothing and return the seconds until one will be admitted."""

    def close(self) -> None:
        """Close the counters."""


class Admission:
    """The limits of one server. Calls of agents and tenants are counted; those of this machine's person are not.

    Tenants may be counted together with other servers; the user of this machine is counted here alone.
    """

    def __init__(
        self, settings: LimitSettings, tenants: Counters, local: Counters, find_key: FindKey | None = None
    ) -> None:
        self._settings = settings
        self._tenants = tenants
        self._local = local
        self._find_key = find_key

    def can_block(self, caller: Caller) -> bool:
        """Return whether `count` may block, so that it must not run on the event loop."""
        return self._counters_of(caller).is_remote

    def allowance(self, caller: Caller, rate: Rate) -> int:
        """Return the calls a minute of this class, 0 for no limit. PermissionDenied when the key was revoked, or expired.

        The key is looked up again for each call, because a connection that stays open was authenticated only once.
        """
        grant = caller.auth.grant
        if grant is not None and grant.expires_at <= time.time():
            raise PermissionDenied("The access token of this connection has expired; connect again with a new one.")
        if caller.auth.is_local:
            return 0 if caller.kind is CallerKind.PERSON else self._settings.local.of(rate)
        default = self._settings.tenant.of(rate)
        if self._find_key is None:
            return default
        key = self._find_key(caller.auth.shown_key_hash)
        if key is None:
            raise PermissionDenied("This key has been revoked.")
        return key.per_minute.get(rate, default)

    def count(self, caller: Caller, rate: Rate, per_minute: int) -> None:
        """Count one call. RateLimited, saying how long to wait, when there were too many."""
        wait = self._counters_of(caller).hit(f"{caller.auth.apikey_hash}/{rate}", per_minute)
        if wait is not None:
            seconds = math.floor(wait) + 1
            raise RateLimited(
                f"Too many {rate} calls: at most {per_minute} a minute. Try again in {seconds} s.",
                retry_after_seconds=seconds,
            )

    def close(self) -> None:
        """Close the counters."""
        self._tenants.close()
        self._local.close()

    def _counters_of(self, caller: Caller) -> Counters:
        return self._local if caller.auth.is_local else self._tenants
