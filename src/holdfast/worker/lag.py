"""How long it takes from a write until it is found, by words and by meaning, and how fast the model is."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.search.model import Vector
from holdfast.search.ports import Embedder
from holdfast.secret import Secret
from holdfast.store.model import Stage

WINDOW_SECONDS = 300.0
_MAX_SAMPLES = 20_000


@dataclass(frozen=True, slots=True)
class Lag:
    """From the commit of a write to its being found, over the last minutes; nothing was written when `count` is 0."""

    count: int
    p50_ms: float
    p95_ms: float


NO_LAG = Lag(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Speed:
    """Texts that the model has embedded over the last minutes, and how many a second while it was at it."""

    texts: int
    per_second: float


class Lags:
    """Keeps what the lanes of this process saw. Safe to use from any thread."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window_seconds = window_seconds
        self._lock = threading.Lock()
        self._seen: dict[Stage, deque[tuple[float, float]]] = {stage: deque(maxlen=_MAX_SAMPLES) for stage in Stage}
        self._embedded: deque[tuple[float, tuple[int, float]]] = deque(maxlen=_MAX_SAMPLES)

    def visible(self, stage: Stage, written_at: Iterable[datetime], now: datetime) -> None:
        """Note that changes written then can be found now."""
        at = time.monotonic()
        with self._lock:
            self._seen[stage].extend((at, (now - written).total_seconds() * 1000) for written in written_at)

    def embedded(self, texts: int, seconds: float) -> None:
        """Note what the model did."""
        with self._lock:
            self._embedded.append((time.monotonic(), (texts, seconds)))

    def lag(self, stage: Stage) -> Lag:
        """Return how long it took lately."""
        with self._lock:
            found = sorted(value for at, value in self._seen[stage] if self._is_recent(at))
        if not found:
            return NO_LAG
        return Lag(len(found), _percentile(found, 0.50), _percentile(found, 0.95))

    def speed(self) -> Speed:
        """Return how fast the model was lately."""
        with self._lock:
            found = [value for at, value in self._embedded if self._is_recent(at)]
        texts, seconds = sum(one for one, _ in found), sum(one for _, one in found)
        return Speed(texts, texts / seconds if seconds > 0 else 0.0)

    def _is_recent(self, at: float) -> bool:
        return time.monotonic() - at <= self._window_seconds


class TimedEmbedder:
    """An embedder that notes what it does."""

    def __init__(self, embedder: Embedder, lags: Lags) -> None:
        self._embedder = embedder
        self._lags = lags

    @property
    def model(self) -> str:
        """Return the name that vectors are kept under."""
        return self._embedder.model

    @property
    def needs_key(self) -> bool:
        """Return whether the caller's own key goes with each request."""
        return self._embedder.needs_key

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        """Return a vector for each text."""
        begun = time.monotonic()
        vectors = self._embedder.embed(texts, key, check)
        self._lags.embedded(len(texts), time.monotonic() - begun)
        return vectors


def _percentile(in_order: Sequence[float], share: float) -> float:
    """Return the smallest value that so large a share of the values does not exceed."""
    at = max(0, min(len(in_order) - 1, -int(-share * len(in_order) // 1) - 1))
    return round(in_order[at], 3)
