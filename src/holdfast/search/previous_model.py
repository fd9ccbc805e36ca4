"""The model that was in use before: it answers for the chunks that have no vector of the present one yet."""

import threading
import time

from holdfast.search.model import Candidate
from holdfast.search.ports import Embedder, Lookup

_LOOK_AGAIN_SECONDS = 30.0


class Earlier:
    """Knows which tenants still need it. Once all of a tenant's chunks have the present model's vectors, it never does."""

    def __init__(self, embedder: Embedder, present: Embedder) -> None:
        self.embedder = embedder
        self._present = present
        self._looked: dict[str, float] = {}
        self._done: set[str] = set()
        self._lock = threading.Lock()

    def is_needed(self, index: Lookup, tenant: str) -> bool:
        """Return whether a tenant has a chunk without a vector of the present model; looks only now and then."""
        if tenant in self._done or self._present.model == self.embedder.model:
            return False
        with self._lock:
            if time.monotonic() < self._looked.get(tenant, 0.0):
                return True
            self._looked[tenant] = time.monotonic() + _LOOK_AGAIN_SECONDS
        if index.stale(tenant, self._present.model, 1):
            return True
        self._done.add(tenant)
        return False


def joined(present: list[Candidate], earlier: list[Candidate], limit: int) -> list[Candidate]:
    """Return the candidates of both models by the cosine; where both know a chunk, the present one's word counts."""
    scores = dict([*earlier, *present])
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [Candidate(chunk_id, score) for chunk_id, score in ordered[:limit]]
