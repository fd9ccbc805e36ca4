"""Removes what has outlived its retention: deleted files, old versions, idempotency keys, ended jobs, outdated vectors."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.clock import utc_clock
from holdfast.errors import HoldfastError
from holdfast.search.ports import Embedder, Index
from holdfast.store.ports import StoreUpkeep
from holdfast.store.service import Store

_log = logging.getLogger(__name__)

PURGE_SECONDS = 3600.0
PURGE_DONE_SECONDS = 60.0
DONE_JOB_RETENTION = timedelta(hours=1)
OUTDATED_VECTOR_RETENTION = timedelta(days=1)
"""How long a chunk keeps the vectors of other models after it got one of the model in use: a day to change back."""

VECTORS_AT_ONCE = 1_000


class OutdatedVectors:
    """Removes vectors of models no longer in use, once the model in use has one for every chunk.

    `is_stopping` is asked between one batch and the next.
    """

    def __init__(self, index: Index, embedder: Embedder, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._index = index
        self._embedder = embedder
        self._is_stopping = is_stopping

    def purge(self, now: datetime) -> int:
        """Remove the outdated vectors of every tenant that no longer needs them; returns how many."""
        removed, before, model = 0, now - OUTDATED_VECTOR_RETENTION, self._embedder.model
        for tenant in self._index.list_tenants():
            outdated_models = [name for name in self._index.list_models(tenant) if name != model]
            if not outdated_models or self._index.find_files_without_vectors(tenant, model, 1):
                continue
            for outdated in outdated_models:
                dropped = VECTORS_AT_ONCE
                while dropped == VECTORS_AT_ONCE and not self._is_stopping():
                    dropped = self._index.delete_outdated_vectors(tenant, outdated, model, before, VECTORS_AT_ONCE)
                    removed += dropped
        return removed


class Purge:
    """Removes what the settings no longer keep, at intervals; an error is logged and the next interval tries again.

    The first run is due after `delay_seconds`.
    """

    def __init__(
        self,
        store: Store,
        upkeep: StoreUpkeep,
        now: Callable[[], datetime] = utc_clock,
        vectors: OutdatedVectors | None = None,
        delay_seconds: float = PURGE_DONE_SECONDS,
    ) -> None:
        self._store = store
        self._upkeep = upkeep
        self._now = now
        self._vectors = vectors
        self._purge_at = self._purge_done_at = time.monotonic() + delay_seconds

    def run_due(self) -> int:
        """Run the purges that are due; returns the rows removed."""
        removed, at, vectors = 0, time.monotonic(), self._vectors
        if at >= self._purge_done_at:
            self._purge_done_at = at + PURGE_DONE_SECONDS
            removed += _run_logged(lambda: self._upkeep.purge_done(self._now() - DONE_JOB_RETENTION))
        if at >= self._purge_at:
            self._purge_at = at + PURGE_SECONDS
            removed += _run_logged(lambda: self._store.purge(self._upkeep))
            if vectors is not None:
                removed += _run_logged(lambda: vectors.purge(self._now()))
        return removed


def _run_logged(purge: Callable[[], int]) -> int:
    try:
        return purge()
    except HoldfastError as error:
        _log.warning("nothing was purged: %s", error)
    except Exception as error:  # noqa: BLE001 - the lanes go on
        _log.error("fault in the purge: %s", type(error).__name__)
    return 0
