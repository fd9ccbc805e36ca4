"""Metrics for Prometheus: one registry for each server, and its text at a scrape."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from holdfast import __version__
from holdfast.auth.rates import Rate
from holdfast.changes.model import ChangeKind
from holdfast.observe.metrics import Metrics, Reading, ScanFigures, Values
from holdfast.observe.model import CallStatus
from holdfast.review.model import Channel, Choice
from holdfast.store.model import Stage

_log = logging.getLogger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]  # they are as many as all others, and nobody reads them

_SHORT_MS = (0.1, 0.5, 1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000)
_CALL_MS = (0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000)
_LAG_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000)
_SCAN_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 1_800)
_WAIT_SECONDS = (5, 15, 60, 300, 900, 3_600, 14_400, 86_400)


_REASONS = {
    400: "malformed", 401: "no_valid_key", 403: "foreign_origin", 404: "not_there", 405: "wrong_method", 408: "slow_body",
    413: "too_large", 421: "foreign_host", 429: "rate_limited", 431: "head_too_large", 500: "fault", 503: "busy",
    505: "http_version",
}  # fmt: skip


def _seconds(buckets_ms: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(bucket / 1000 for bucket in buckets_ms)


class Figure(NamedTuple):
    """One figure as a page describes it; `buckets` are the bounds of a histogram."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


class _ReadFigure(NamedTuple):
    """How a reading is described; its type is a counter's when its name ends so."""

    help: str
    labels: tuple[str, ...] = ()


_READ_FIGURES: Mapping[Reading, _ReadFigure] = {
    Reading.CALLS_WAITING: _ReadFigure("Calls that wait for a place, by load.", ("load",)),
    Reading.CALLS_RUNNING: _ReadFigure("Calls that have a thread, by load.", ("load",)),
    Reading.CHILDREN_RUNNING: _ReadFigure("Confined child processes that are running."),
    Reading.CHILDREN_STARTED: _ReadFigure("Confined child processes that were started."),
    Reading.CHILDREN_KILLED: _ReadFigure("Confined child processes that were killed before their end."),
    Reading.CONNECTIONS: _ReadFigure("Open connections, by door; those of http include WebSockets.", ("door",)),
    Reading.HTTP_SESSIONS: _ReadFigure("Open MCP sessions over HTTP."),
    Reading.EVENT_STREAMS: _ReadFigure("Open streams of notifications over HTTP."),
    Reading.HELD_BYTES: _ReadFigure("Bytes of requests and unread answers that the doors hold."),
    Reading.HELD_BYTES_LIMIT: _ReadFigure("Bytes that the doors may hold (server.max_held_bytes)."),
    Reading.QUEUE_DEPTH: _ReadFigure("Index jobs that are neither done nor given up, of the whole database."),
    Reading.INDEX_JOBS: _ReadFigure("Index jobs that are not done, by stage and status.", ("stage", "status")),
    Reading.INDEX_OLDEST_JOB_SECONDS: _ReadFigure(
        "Age of the oldest change that is not indexed yet, by stage; 0 without one.", ("stage",)
    ),
    Reading.INDEX_OVERDUE_SECONDS: _ReadFigure(
        "For how long a job has been due without a worker to take it, by stage; 0 without one.", ("stage",)
    ),
    Reading.INDEX_LANES: _ReadFigure("Threads of index workers alive in this process."),
    Reading.INDEX_SLO_SECONDS: _ReadFigure(
        "Seconds within which 95 % of writes should be searchable (settings.mcp.files.index.slo_p95_seconds)."
    ),
    Reading.DATABASE_UP: _ReadFigure("1 when the database of the project store answered, 0 when it did not."),
    Reading.REVIEWS_OPEN: _ReadFigure("Reviews that are open, by state.", ("state",)),
    Reading.SCANS_RUNNING: _ReadFigure("Plans that the organiser is making."),
    Reading.HISTORY_BYTES: _ReadFigure("Bytes that before-images take up."),
    Reading.HISTORY_LIMIT_BYTES: _ReadFigure("Bytes that before-images may take up (journal.max_bytes)."),
    Reading.HISTORY_FULLEST_RATIO: _ReadFigure(
        "How full the undo history of the fullest allowed directory is; at 1 changes there are refused."
    ),
    Reading.DISK_FREE_BYTES: _ReadFigure("Free bytes of the disk that holds the state folder."),
    Reading.DISK_BYTES: _ReadFigure("Size of the disk that holds the state folder."),
}


class _Readings(Collector):
    """Asks every watched figure at each scrape; one that cannot be read is left out, and logged once."""

    def __init__(self) -> None:
        self._reads: dict[Reading, Callable[[], float | Values | None]] = {}
        self._faulty: set[Reading] = set()

    def watch(self, reading: Reading, read: Callable[[], float | Values | None]) -> None:
        self._reads[reading] = read

    def collect(self) -> Iterator[Metric]:
        for reading, read in list(self._reads.items()):
            try:
                value = read()
            except Exception as error:  # noqa: BLE001 - one figure must not cost the others
                value = None
                if reading not in self._faulty:
                    self._faulty.add(reading)
                    _log.warning("%s cannot be read: %s", reading, type(error).__name__)
            if value is not None:
                family = _family_of(reading)
                for labels, number in value.items() if isinstance(value, Mapping) else [((), value)]:
                    family.add_metric(labels, number)
                yield family


def _family_of(reading: Reading) -> CounterMetricFamily | GaugeMetricFamily:
    figure = _READ_FIGURES[reading]
    kind = CounterMetricFamily if reading.endswith("_total") else GaugeMetricFamily
    return kind(reading.value, figure.help, labels=figure.labels)


class _CallFigures:
    """The figures of one tool, bound once: looking labels up costs more than counting."""

    def __init__(self, metrics: "PrometheusMetrics", tool: str) -> None:
        self._metrics = metrics
        self._tool = tool
        self._duration = metrics.call_duration.labels(tool)
        self._outcomes: dict[tuple[CallStatus, str], tuple[Counter, ...]] = {}

    def add(self, status: CallStatus, code: str, duration_ms: float) -> None:
        for counter in self._outcomes.get((status, code)) or self._bind(status, code):
            counter.inc()
        self._duration.observe(duration_ms / 1000)

    def _bind(self, status: CallStatus, code: str) -> tuple[Counter, ...]:
        metrics, tool = self._metrics, self._tool
        counters: tuple[Counter, ...] = (metrics.calls.labels(tool, status.value, code),)
        if tool in metrics.store_mutations:
            counters += (metrics.mutations.labels(tool, status.value),)
        self._outcomes[status, code] = counters
        return counters


class PrometheusMetrics(Metrics):
    """Implements `Metrics`. `store_mutations` are the tools that change the project store.

    `figures` describes every figure but those of the process.
    """

    def __init__(self, store_mutations: Iterable[str] = ()) -> None:
        self.store_mutations = frozenset(store_mutations)
        self.registry = registry = CollectorRegistry(auto_describe=False)
        self.figures = [
            Figure(
                reading.value,
                "counter" if reading.endswith("_total") else "gauge",
                read_figure.labels,
                read_figure.help,
            )
            for reading, read_figure in _READ_FIGURES.items()
        ]
        self._readings = _Readings()
        self._by_tool: dict[str, _CallFigures] = {}
        self._bind_lock = threading.Lock()
        self._scrape_lock = threading.Lock()

        def counter(name: str, text: str, *labels: str) -> Counter:
            self.figures.append(Figure(f"{name}_total", "counter", labels, text))
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            self.figures.append(Figure(name, "histogram", labels, text, buckets))
            return Histogram(name, text, labels, buckets=buckets, registry=registry)

        self.calls = counter(
            "holdfast_calls", "Tool calls that ended, by tool, status and error code.", "tool", "status", "code"
        )
        self.call_duration = histogram(
            "holdfast_call_duration_seconds",
            "Duration of tool calls, waiting for a place included.",
            _seconds(_CALL_MS),
            "tool",
        )
        self.figures.append(Figure("holdfast_calls_in_progress", "gauge", (), "Tool calls under way."))
        self._in_progress = Gauge("holdfast_calls_in_progress", "Tool calls under way.", registry=registry)
        self._limited = counter("holdfast_calls_rate_limited", "Calls refused by the limit of their class.", "class")
        self._dropped = counter("holdfast_call_log_dropped", "Calls that could not be written to the call log.")
        self._spans = counter("holdfast_spans", "Spans for the collector of traces, sent or dropped.", "outcome")
        self.mutations = counter(
            "mcp_files_mutation", "Calls that change the project store, by tool and status.", "tool", "status"
        )
        self._lock_wait_ms = histogram(
            "mcp_files_lock_wait_ms", "Wait of a mutation for the lock of its project.", _SHORT_MS
        )
        self._search_ms = histogram("mcp_files_search_latency_ms", "Duration of a search of stored files.", _CALL_MS)
        self._rerank_failures = counter(
            "mcp_files_search_rerank_fail", "Searches that were answered without the reranker, because it failed."
        )
        self._search_failures = counter(
            "holdfast_search_part_failures", "Searches that went on without one of their parts.", "part"
        )
        self._visibility_lag_ms = histogram(
            "mcp_files_index_visibility_lag_ms", "Time from a write until search finds its words by index.", _LAG_MS
        )
        self._meaning_lag = histogram(
            "holdfast_index_meaning_lag_seconds", "Time from a write until search finds its meaning.", _seconds(_LAG_MS)
        )
        self._job_latency_ms = histogram(
            "mcp_files_index_job_latency_ms", "Time that an index job takes, from its claim to its end.", _CALL_MS
        )
        self._jobs = counter("holdfast_index_jobs_ended", "Index jobs that ended in this process.", "stage", "outcome")
        self._embedded = counter("holdfast_index_embedded_texts", "Texts that the model turned into vectors.")
        self._embedding_seconds = counter("holdfast_index_embedding_seconds", "Seconds that the model was busy.")
        self._scans = counter("holdfast_organiser_scans", "Plans made or corrected, by how that ended.", "outcome")
        self._scan_seconds = histogram("holdfast_organiser_scan_seconds", "Duration of making a plan.", _SCAN_SECONDS)
        self._files_read = counter("holdfast_organiser_files_read", "Files that scans read, not found in the cache.")
        self._bytes_read = counter("holdfast_organiser_read_bytes", "Bytes that scans read.")
        self._verdicts = counter("holdfast_organiser_verdicts", "Files that scans decided on, by outcome.", "outcome")
        self._moves = counter("holdfast_plan_items", "Steps of plans that were executed, by outcome.", "outcome")
        self._reviews_opened = counter("holdfast_reviews_opened", "Changes that agents proposed for review.")
        self._decisions = counter(
            "holdfast_reviews_decided", "Decisions on reviews, by action and channel.", "action", "channel"
        )
        self._review_seconds = histogram(
            "holdfast_review_wait_seconds", "Time from a proposal to the decision on it.", _WAIT_SECONDS
        )
        self._changes = counter("holdfast_changes", "Changes of local files that the journal took up, by kind.", "kind")
        self._images = counter("holdfast_history_images", "Before-images that were kept.")
        self._image_bytes = counter("holdfast_history_image_bytes", "Bytes of before-images that were kept.")
        self._commit = histogram(
            "holdfast_journal_commit_seconds", "Duration of a durable commit.", _seconds(_SHORT_MS)
        )
        self._connected = counter("holdfast_connections_opened", "Connections that clients made, by door.", "door")
        self._turned_away = counter(
            "holdfast_connections_refused", "Connections refused because there are too many, by door.", "door"
        )
        self._requests = counter(
            "holdfast_http_requests", "HTTP requests and WebSockets, by route and status.", "route", "status"
        )
        self._refused = counter("holdfast_http_requests_refused", "HTTP requests refused, by reason.", "reason")
        self.figures.append(Figure("holdfast_build_info", "info", ("version",), "The running version."))
        self._show_zeros()
        Info("holdfast_build", "The running version.", registry=registry).info({"version": __version__})
        ProcessCollector(registry=registry)
        registry.register(self._readings)

    def _show_zeros(self) -> None:
        """Give the series whose labels are known a value from the start: of one that appears late the first count is lost."""
        for counter, labels in (
            (self._limited, [(rate,) for rate in Rate]),
            (self._search_failures, [(part,) for part in ("words", "meaning", "reranker", "served_at")]),
            (self._jobs, list(product(Stage, ("done", "retried", "failed", "lost")))),
            (self._scans, [("ok",)]),
            (self._verdicts, [(outcome,) for outcome in ("move", "uncertain", "stay")]),
            (self._moves, [(outcome,) for outcome in ("done", "skipped", "error")]),
            (self._decisions, [*product(Choice, Channel), ("expired", "none")]),
            (self._changes, [(kind,) for kind in ChangeKind]),
            (self._connected, [("socket",), ("http",)]),
            (self._turned_away, [("socket",), ("http",)]),
            (self._refused, [(reason,) for reason in _REASONS.values()]),
            (self.mutations, [(tool, "ok") for tool in self.store_mutations]),
        ):
            for values in labels:
                counter.labels(*values)

    def expose(self, accept: str) -> tuple[bytes, str]:
        """Return the text of a scrape and its media type: OpenMetrics for a client that accepts it."""
        encode, media_type = choose_encoder(accept)
        with self._scrape_lock:
            return encode(self.registry), media_type

    def snapshot(self) -> dict[str, list[dict[str, object]]]:
        """Return every figure as JSON values, histograms by their buckets, sums and counts."""
        figures: dict[str, list[dict[str, object]]] = {}
        with self._scrape_lock:
            for family in self.registry.collect():
                for sample in family.samples:
                    entry: dict[str, object] = {"labels": dict(sample.labels), "value": sample.value}
                    figures.setdefault(sample.name, []).append(entry)
        return figures

    def watch(self, reading: Reading, read: Callable[[], float | Values | None]) -> None:
        """Call `read` at every scrape."""
        self._readings.watch(reading, read)

    def call_began(self) -> None:
        """Count a call under way."""
        self._in_progress.inc()

    def call_ended(self, tool: str, status: CallStatus, code: str, duration_ms: float) -> None:
        """Count a call by its outcome."""
        self._in_progress.dec()
        figures = self._by_tool.get(tool)
        if figures is None:
            with self._bind_lock:
                figures = self._by_tool.setdefault(tool, _CallFigures(self, tool))
        figures.add(status, code, duration_ms)

    def call_limited(self, rate: str) -> None:
        """Count a call that was refused by its rate limit."""
        self._limited.labels(rate).inc()

    def calls_dropped(self, count: int) -> None:
        """Count calls that are not in the log."""
        self._dropped.inc(count)

    def spans_ended(self, outcome: str, count: int) -> None:
        """Count spans by what became of them."""
        self._spans.labels(outcome).inc(count)

    def lock_waited(self, wait_ms: float) -> None:
        """Measure a wait for a project's lock."""
        self._lock_wait_ms.observe(wait_ms)

    def search_ended(self, duration_ms: float) -> None:
        """Measure a search."""
        self._search_ms.observe(duration_ms)

    def search_part_failed(self, part: str) -> None:
        """Count a search that went on without a part."""
        self._search_failures.labels(part).inc()
        if part == "reranker":
            self._rerank_failures.inc()

    def file_indexed(self, stage: str, lag_ms: float) -> None:
        """Measure how long a change was not to be found."""
        if stage == "words":
            self._visibility_lag_ms.observe(lag_ms)
        else:
            self._meaning_lag.observe(lag_ms / 1000)

    def job_ended(self, stage: str, outcome: str, duration_ms: float) -> None:
        """Count and measure an index job."""
        self._jobs.labels(stage, outcome).inc()
        self._job_latency_ms.observe(duration_ms)

    def texts_embedded(self, count: int, seconds: float) -> None:
        """Count what the model did."""
        self._embedded.inc(count)
        self._embedding_seconds.inc(seconds)

    def scan_ended(self, figures: ScanFigures) -> None:
        """Count and measure a scan."""
        self._scans.labels(figures.outcome).inc()
        self._scan_seconds.observe(figures.seconds)
        self._files_read.inc(figures.files_read)
        self._bytes_read.inc(figures.bytes_read)
        for outcome, count in (figures.verdicts or {}).items():
            self._verdicts.labels(outcome).inc(count)

    def moves_ended(self, outcome: str, count: int) -> None:
        """Count steps of plans."""
        self._moves.labels(outcome).inc(count)

    def review_opened(self) -> None:
        """Count a proposal."""
        self._reviews_opened.inc()

    def review_decided(self, action: str, channel: str, waited_seconds: float) -> None:
        """Count and measure a decision."""
        self._decisions.labels(action, channel).inc()
        self._review_seconds.observe(waited_seconds)

    def change_began(self, kind: str, image_count: int, image_bytes: int) -> None:
        """Count a change and its before-images."""
        self._changes.labels(kind).inc()
        self._images.inc(image_count)
        self._image_bytes.inc(image_bytes)

    def journal_committed(self, duration_ms: float) -> None:
        """Measure a commit."""
        self._commit.observe(duration_ms / 1000)

    def connection_opened(self, door: str) -> None:
        """Count a connection."""
        self._connected.labels(door).inc()

    def connection_refused(self, door: str) -> None:
        """Count a connection that was turned away."""
        self._turned_away.labels(door).inc()

    def request_ended(self, route: str, status: int) -> None:
        """Count a request, and why it was refused."""
        self._requests.labels(route, str(status)).inc()
        if reason := _REASONS.get(status):
            self._refused.labels(reason).inc()
