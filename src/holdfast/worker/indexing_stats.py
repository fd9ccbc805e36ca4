"""Measures the indexing of this process: the lag from a write until search finds it, and the speed of the model."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.observe.metrics import Metrics
from holdfast.observe.spans import Tracer, parse_traceparent
from holdfast.search.model import Vector
from holdfast.search.ports import Embedder
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Stage

WINDOW_SECONDS = 300.0
_MAX_SAMPLES = 20_000


@dataclass(frozen=True, slots=True)
class Lag:
    """Time from the commit of a write until search finds it, over the last minutes; `count` writes were measured."""

    count: int
    p50_ms: float
    p95_ms: float


NO_LAG = Lag(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Speed:
    """Texts that the model embedded over the last minutes, and how many a second while it was busy."""

    texts: int
    per_second: float


class IndexingStats:
    """Collects the measurements of all lanes: those of the last minutes stay here, and each goes on to the metrics.

    With a tracer each job that ended is a span, too. Safe to use from any thread.
    """

    def __init__(
        self, metrics: Metrics | None = None, window_seconds: float = WINDOW_SECONDS, tracer: Tracer | None = None
    ) -> None:
        self.metrics = metrics or Metrics()
        self._tracer = tracer
        self._window_seconds = window_seconds
        self._lock = threading.Lock()
        self._lags: dict[Stage, deque[tuple[float, float]]] = {stage: deque(maxlen=_MAX_SAMPLES) for stage in Stage}
        self._embeddings: deque[tuple[float, tuple[int, float]]] = deque(maxlen=_MAX_SAMPLES)

    def record_visible(self, stage: Stage, written_at: Iterable[datetime], now: datetime) -> None:
        """Record that changes written at these times can be found now."""
        at, lags = time.monotonic(), [(now - written).total_seconds() * 1000 for written in written_at]
        with self._lock:
            self._lags[stage].extend((at, lag_ms) for lag_ms in lags)
        for lag_ms in lags:
            self.metrics.file_indexed(stage.value, lag_ms)

    def record_job(self, job: ClaimedJob, outcome: str, began: float) -> None:
        """Record how a job ended that was claimed at this time of the monotonic clock; a fresh one links to its write."""
        seconds, stage = time.monotonic() - began, job.stage.value
        self.metrics.job_ended(stage, outcome, seconds * 1000)
        write = parse_traceparent(job.traceparent)
        if self._tracer is not None and (write is not None or job.is_backlog):
            attributes = {
                "holdfast.job.outcome": outcome,
                "holdfast.job.operation": job.operation.value,
                "holdfast.job.attempts": job.retry_count,
                "holdfast.job.backlog": int(job.is_backlog),
            }
            error = "" if outcome == "done" else outcome
            self._tracer.job_ended(f"index {stage}", seconds, write, error, attributes)

    def record_embedding(self, texts: int, seconds: float) -> None:
        """Record one request to the model."""
        with self._lock:
            self._embeddings.append((time.monotonic(), (texts, seconds)))
        self.metrics.texts_embedded(texts, seconds)

    def lag(self, stage: Stage) -> Lag:
        """Return the lag of a stage over the last minutes."""
        with self._lock:
            lags = sorted(lag_ms for at, lag_ms in self._lags[stage] if self._is_recent(at))
        if not lags:
            return NO_LAG
        return Lag(len(lags), _percentile(lags, 0.50), _percentile(lags, 0.95))

    def speed(self) -> Speed:
        """Return the speed of the model over the last minutes."""
        with self._lock:
            recent = [sample for at, sample in self._embeddings if self._is_recent(at)]
        texts, seconds = sum(count for count, _ in recent), sum(duration for _, duration in recent)
        return Speed(texts, texts / seconds if seconds > 0 else 0.0)

    def _is_recent(self, at: float) -> bool:
        return time.monotonic() - at <= self._window_seconds


class TimedEmbedder:
    """An embedder that records how long each request took."""

    def __init__(self, embedder: Embedder, stats: IndexingStats) -> None:
        self._embedder = embedder
        self._stats = stats

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
        started = time.monotonic()
        vectors = self._embedder.embed(texts, key, check)
        self._stats.record_embedding(len(texts), time.monotonic() - started)
        return vectors


def _percentile(in_order: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    at = max(0, min(len(in_order) - 1, -int(-share * len(in_order) // 1) - 1))
    return round(in_order[at], 3)
