"""Watches calls for the dispatcher: each is one row of the call log, one count in the metrics, one span of a trace."""

import time
from collections.abc import Mapping
from typing import Any

from holdfast.observe.call_log import CallLog, EndedCall
from holdfast.observe.metrics import Metrics
from holdfast.observe.model import CallerLabels, CallFilter, CallStatus, LoggedCall
from holdfast.observe.spans import SpanContext, Tracer


class Observer:
    """What happens to the record of a call. Its methods never raise and never wait."""

    def __init__(self, log: CallLog | None, metrics: Metrics, tracer: Tracer | None = None) -> None:
        self._log = log
        self._metrics = metrics
        self._tracer = tracer

    def begin(self, tool: str, parent: SpanContext | None = None, *, is_recorded: bool = True) -> "WatchedCall":
        """Return a watch for one call that begins here, as part of the trace of `parent` where its caller has one."""
        self._metrics.call_began()
        return WatchedCall(
            self._log if is_recorded else None, self._metrics, self._tracer if is_recorded else None, tool, parent
        )

    def find_calls(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest recorded calls of a tenant that match, none when nothing is recorded."""
        return self._log.find(tenant, call_filter, limit, offset) if self._log else []

    def count_calls(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many recorded calls of a tenant match."""
        return self._log.count(tenant, call_filter) if self._log else 0

    @property
    def metrics(self) -> Metrics:
        """Return where is counted."""
        return self._metrics

    @property
    def is_recording(self) -> bool:
        """Return whether there is a call log."""
        return self._log is not None

    def close(self) -> None:
        """Write what waits."""
        if self._log:
            self._log.close()


class WatchedCall:
    """One call, from its beginning to its end."""

    __slots__ = ("_began", "_log", "_metrics", "_span", "_started_at", "_tool", "_tracer")

    def __init__(
        self, log: CallLog | None, metrics: Metrics, tracer: Tracer | None, tool: str, parent: SpanContext | None
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._tracer = tracer
        self._tool = tool
        self._span = tracer.begin_call(tool, parent) if tracer is not None else None
        self._started_at = time.time()
        self._began = time.perf_counter()

    def end(
        self, caller: CallerLabels, arguments: Mapping[str, Any], status: CallStatus, code: str, *, is_small: bool
    ) -> None:
        """Record how the call ended."""
        duration_ms = (time.perf_counter() - self._began) * 1000
        self._metrics.call_ended(self._tool, status, code, duration_ms)
        if self._tracer is not None and self._span is not None:
            self._tracer.end_call(self._span, caller, status, code)
        if self._log is not None:
            self._log.add(
                EndedCall(self._tool, caller, self._started_at, duration_ms, status, code, arguments, is_small)
            )
