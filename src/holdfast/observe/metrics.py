"""What is counted and measured. The base class counts nothing; adapters turn the same calls into a format for scraping."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from holdfast.observe.model import CallStatus

T = TypeVar("T")
Values = Mapping[tuple[str, ...], float]
"""A value for each combination of label values, in the order of the labels."""


class Reading(StrEnum):
    """A figure that is read on request; the value is its name."""

    CALLS_WAITING = "holdfast_calls_waiting"
    CALLS_RUNNING = "holdfast_calls_running"
    CHILDREN_RUNNING = "holdfast_children_running"
    CHILDREN_STARTED = "holdfast_children_started_total"
    CHILDREN_KILLED = "holdfast_children_killed_total"
    CONNECTIONS = "holdfast_connections"
    HTTP_SESSIONS = "holdfast_http_sessions"
    EVENT_STREAMS = "holdfast_event_streams"
    HELD_BYTES = "holdfast_held_bytes"
    HELD_BYTES_LIMIT = "holdfast_held_bytes_limit"
    QUEUE_DEPTH = "mcp_files_index_queue_depth"
    INDEX_JOBS = "holdfast_index_jobs"
    INDEX_OLDEST_JOB_SECONDS = "holdfast_index_oldest_job_seconds"
    INDEX_OVERDUE_SECONDS = "holdfast_index_overdue_seconds"
    INDEX_LANES = "holdfast_index_lanes"
    INDEX_SLO_SECONDS = "holdfast_index_slo_seconds"
    DATABASE_UP = "holdfast_database_up"
    REVIEWS_OPEN = "holdfast_reviews_open"
    SCANS_RUNNING = "holdfast_organiser_scans_running"
    HISTORY_BYTES = "holdfast_history_bytes"
    HISTORY_LIMIT_BYTES = "holdfast_history_limit_bytes"
    HISTORY_FULLEST_RATIO = "holdfast_history_fullest_ratio"
    DISK_FREE_BYTES = "holdfast_disk_free_bytes"
    DISK_BYTES = "holdfast_disk_bytes"


@dataclass(frozen=True, slots=True)
class ScanFigures:
    """What a scan of the organiser came to: how it ended ("ok" or an error's code) and the verdicts by outcome."""

    outcome: str
    seconds: float
    files_read: int = 0
    bytes_read: int = 0
    verdicts: Mapping[str, int] | None = None


class Metrics:
    """Takes counts and measurements from everywhere in the server. Its methods never raise, never wait, and may be called
    from any thread.

    No label ever holds a tenant, a path, a project or anything else that a caller chose.
    """

    def watch(self, reading: Reading, read: Callable[[], float | Values | None]) -> None:
        """Call `read` whenever the figures are asked for; None, or an error, leaves the figure out."""

    def expose(self, accept: str) -> tuple[bytes, str]:  # noqa: ARG002 - there is nothing to choose for
        """Return every figure as the text of a scrape, and its media type; `accept` is what the client accepts."""
        return b"", "text/plain"

    def snapshot(self) -> dict[str, list[dict[str, object]]]:
        """Return every figure as JSON values: by name, a value for each combination of labels."""
        return {}

    def call_began(self) -> None:
        """A tool call was taken up."""

    def call_ended(self, tool: str, status: CallStatus, code: str, duration_ms: float) -> None:
        """A tool call ended, after that long; `code` is the error's."""

    def call_limited(self, rate: str) -> None:
        """A call was refused because its caller made too many of its class in a minute."""

    def calls_dropped(self, count: int) -> None:
        """So many calls could not be written to the call log."""

    def spans_ended(self, outcome: str, count: int) -> None:
        """So many spans were "sent" to the collector of traces, or "dropped"."""

    def lock_waited(self, wait_ms: float) -> None:
        """A mutation waited that long for the lock of its project, and got it or gave up."""

    def search_ended(self, duration_ms: float) -> None:
        """A search of stored files ended."""

    def search_part_failed(self, part: str) -> None:
        """A search went on without one of its parts: words, meaning, reranker, served_at."""

    def file_indexed(self, stage: str, lag_ms: float) -> None:
        """A change can be found from now on, by its words or by its meaning."""

    def job_ended(self, stage: str, outcome: str, duration_ms: float) -> None:
        """An index job ended in this process: done, retried, failed or lost; the time is from its claim."""

    def texts_embedded(self, count: int, seconds: float) -> None:
        """The model turned texts into vectors."""

    def scan_ended(self, figures: ScanFigures) -> None:
        """The organiser made or corrected a plan, or failed to."""

    def moves_ended(self, outcome: str, count: int) -> None:
        """Moves of plans got an outcome."""

    def review_opened(self) -> None:
        """An agent proposed a change."""

    def review_decided(self, action: str, channel: str, waited_seconds: float) -> None:
        """A person decided on a review, or its time was over."""

    def change_began(self, kind: str, image_count: int, image_bytes: int) -> None:
        """The journal took up a change with its before-images."""

    def journal_committed(self, duration_ms: float) -> None:
        """A durable commit of the journal took that long."""

    def connection_opened(self, door: str) -> None:
        """A client connected."""

    def connection_refused(self, door: str) -> None:
        """A client was turned away because there are too many connections."""

    def request_ended(self, route: str, status: int) -> None:
        """An HTTP request was answered."""


class SlowReading(Generic[T]):
    """Reads a slow figure in a thread of its own, again on a request that finds it some seconds old.

    `latest` waits a little for a new value and returns None when the function failed or does not return: a database that
    is down is no reason to wait for it.
    """

    def __init__(self, read: Callable[[], T], seconds: float = 5.0, patience_seconds: float = 0.5) -> None:
        self._read = read
        self._seconds = seconds
        self._patience_seconds = patience_seconds
        self._condition = threading.Condition()
        self._value: T | None = None
        self._read_at = float("-inf")
        self._began_at: float | None = None

    def latest(self) -> T | None:
        """Return a value that is a few seconds old at most, None when there is none."""
        with self._condition:
            now = time.monotonic()
            if self._began_at is None and now - self._read_at > self._seconds:
                self._began_at = now
                threading.Thread(target=self._refresh, name="holdfast-reading", daemon=True).start()
            if self._began_at is None:
                return self._value
            waits_until = self._began_at + self._patience_seconds
            is_done = self._condition.wait_for(lambda: self._began_at is None, max(0.0, waits_until - now))
            return self._value if is_done or time.monotonic() - self._read_at <= 2 * self._seconds else None

    def _refresh(self) -> None:
        value: T | None = None
        try:
            value = self._read()
        except Exception:  # noqa: BLE001 - no value is the answer
            value = None
        finally:
            with self._condition:
                self._value, self._read_at, self._began_at = value, time.monotonic(), None
                self._condition.notify_all()
