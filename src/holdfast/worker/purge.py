"""What has outlived its time goes: deleted files, old versions, answered keys, ended jobs, outdated vectors."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.clock import utc_clock
from holdfast.errors import HoldfastError
from holdfast.store.ports import StoreUpkeep
from holdfast.store.service import Store
from holdfast.worker.outdated_vectors import OutdatedVectors

_log = logging.getLogger(__name__)

PURGE_SECONDS = 3600.0
TIDY_SECONDS = 60.0
DONE_KEPT = timedelta(hours=1)


class Purge:
    """Removes what the settings no longer keep, now and then; a fault is logged and tried again at the next time."""

    def __init__(
        self,
        store: Store,
        upkeep: StoreUpkeep,
        now: Callable[[], datetime] = utc_clock,
        vectors: OutdatedVectors | None = None,
    ) -> None:
        self._store = store
        self._upkeep = upkeep
        self._now = now
        self._vectors = vectors
        self._purge_at = self._tidy_at = time.monotonic() + TIDY_SECONDS

    def when_due(self) -> int:
        """Do what is due; returns the rows removed."""
        removed, at = 0, time.monotonic()
        if at >= self._tidy_at:
            self._tidy_at = at + TIDY_SECONDS
            removed += self._done(lambda: self._upkeep.purge_done(self._now() - DONE_KEPT))
        if at >= self._purge_at:
            self._purge_at = at + PURGE_SECONDS
            removed += self._done(lambda: self._store.purge(self._upkeep))
            removed += self._done(self._outdated)
        return removed

    def at_once(self) -> int:
        """Do everything now; returns the rows removed."""
        done = self._upkeep.purge_done(self._now() - DONE_KEPT)
        return done + self._store.purge(self._upkeep) + self._outdated()

    def _outdated(self) -> int:
        return self._vectors.purge(self._now()) if self._vectors else 0

    def _done(self, work: Callable[[], int]) -> int:
        try:
            return work()
        except HoldfastError as error:
            _log.warning("nothing was purged: %s", error)
        except Exception as error:  # noqa: BLE001 - the lanes go on
            _log.error("fault in the purge: %s", type(error).__name__)
        return 0
