"""Vectors of models that are no longer in use go, some at a time, once the model in use has one for every chunk."""

from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.search.ports import Embedder, Index

VECTORS_AT_ONCE = 1_000
KEPT = timedelta(days=1)
"""How long a chunk keeps the vectors of other models after it got one of the model in use; a day to change one's mind."""


class OutdatedVectors:
    """Knows the embedder in use. `is_stopping` is asked between one batch and the next."""

    def __init__(self, index: Index, embedder: Embedder, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._index = index
        self._embedder = embedder
        self._is_stopping = is_stopping

    def purge(self, now: datetime) -> int:
        """Remove what is outdated of every tenant; returns how many vectors. A tenant that still needs them keeps all."""
        return sum(self._purged(tenant, now - KEPT) for tenant in self._index.list_tenants())

    def _purged(self, tenant: str, before: datetime) -> int:
        others = [model for model in self._index.list_models(tenant) if model != self._embedder.model]
        if not others or self._index.files_without_vectors(tenant, self._embedder.model, 1):
            return 0
        return sum(self._dropped(tenant, other, before) for other in others)

    def _dropped(self, tenant: str, other: str, before: datetime) -> int:
        removed, gone = 0, VECTORS_AT_ONCE
        while gone == VECTORS_AT_ONCE and not self._is_stopping():
            gone = self._index.delete_outdated_vectors(tenant, other, self._embedder.model, before, VECTORS_AT_ONCE)
            removed += gone
        return removed
