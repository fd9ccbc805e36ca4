"""Spans: when a call, the parts of it that take time, and an index job began and ended, and which belongs to which.

A span has names and numbers of our own, the error's code and the name of the caller's program: no path, content or query, and
no tenant. Where no tracer began a span, its parts cost one look at a context variable.
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from typing import NamedTuple, TypeVar

from holdfast.errors import HoldfastError
from holdfast.observe.model import CallerLabels, CallStatus

T = TypeVar("T")

MAX_SPANS = 500
"""Spans kept of one call and its parts, steps of a pipe included; a part beyond them is left out."""

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MAX_TRACEPARENT_CHARS = 256
_MIN_WAIT_NS = 1_000_000
_RATIO_SCALE = 1 << 63


class SpanContext(NamedTuple):
    """Which span another one belongs to, as W3C Trace Context passes it from one process to the next."""

    trace_id: int
    span_id: int
    is_sampled: bool = True


class SpanKind(Enum):
    """What a span stands for."""

    CALL = "call"
    PART = "part"
    JOB = "job"


class Span(NamedTuple):
    """A span that has ended; times are nanoseconds since 1970. `error` is a code, empty where nothing failed."""

    name: str
    kind: SpanKind
    trace_id: int
    span_id: int
    parent_id: int
    began_ns: int
    ended_ns: int
    error: str = ""
    attributes: Mapping[str, str | int] | None = None
    link: SpanContext | None = None


SpanSink = Callable[[Sequence[Span]], None]
"""Takes spans that have ended, from any thread; it never raises and never waits."""


class OpenSpan:
    """A span that has not ended yet. `ended` collects those of the whole call; None says that the call is not traced."""

    __slots__ = ("began_ns", "context", "ended", "kind", "name", "outer", "parent_id", "ticks")

    def __init__(
        self,
        name: str,
        kind: SpanKind,
        context: SpanContext,
        parent_id: int,
        outer: "OpenSpan | None",
        ended: list[Span] | None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.context = context
        self.parent_id = parent_id
        self.outer = outer
        self.ended = ended
        self.ticks = time.perf_counter_ns()
        # Within a call all times come from one reading of the clock, so that no part begins before its call.
        self.began_ns = outer.time_of(self.ticks) if outer is not None else time.time_ns()

    def time_of(self, ticks: int) -> int:
        """Return the time of a moment of the monotonic clock."""
        return self.began_ns + ticks - self.ticks

    def open_part(self, name: str) -> "OpenSpan":
        """Return a span within this one that begins here."""
        context = SpanContext(self.context.trace_id, random.getrandbits(64) or 1)
        return OpenSpan(name, SpanKind.PART, context, self.context.span_id, self, self.ended)

    def end(self, error: str = "", attributes: Mapping[str, str | int] | None = None) -> None:
        """Keep the span as one that ends here."""
        if self.ended is not None and len(self.ended) < MAX_SPANS:
            ended_ns = self.time_of(time.perf_counter_ns())
            ids = (self.context.trace_id, self.context.span_id, self.parent_id)
            self.ended.append(Span(self.name, self.kind, *ids, self.began_ns, ended_ns, error, attributes))


_CURRENT: ContextVar[OpenSpan | None] = ContextVar("holdfast-span", default=None)


class Tracer:
    """Makes the spans of calls and of index jobs. A caller's decision about its trace holds; `ratio` is for all other calls."""

    def __init__(self, sink: SpanSink, ratio: float = 1.0) -> None:
        self._sink = sink
        self._threshold = int(ratio * _RATIO_SCALE)

    def begin_call(self, tool: str, parent: SpanContext | None) -> OpenSpan:
        """Return the span of a call that begins here, which is from now on the current one: a step's is part of its pipe's."""
        outer, name = _CURRENT.get(), f"tools/call {tool}"
        if outer is not None:
            span = outer.open_part(name)
        else:
            new = _new_root()
            context = SpanContext(parent.trace_id, new.span_id, parent.is_sampled) if parent else new
            is_sampled = context.is_sampled if parent else self._samples(context)
            span = OpenSpan(
                name, SpanKind.CALL, context, parent.span_id if parent else 0, None, [] if is_sampled else None
            )
        _CURRENT.set(span)
        return span

    def end_call(self, span: OpenSpan, caller: CallerLabels, status: CallStatus, code: str) -> None:
        """End the span of a call; the spans of a call that is no step of another one are handed over."""
        _CURRENT.set(span.outer)
        if span.ended is None:
            return
        attributes: dict[str, str | int] = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": span.name.partition(" ")[2],
            "holdfast.status": status.value,
            "holdfast.caller.kind": caller.kind,
            "holdfast.client.name": caller.client_name,
            "holdfast.client.version": caller.client_version,
            "holdfast.door": caller.door,
        }
        span.end(code if status is CallStatus.ERROR else "", attributes)
        if span.outer is None:
            self._sink(tuple(span.ended))

    def job_ended(
        self, name: str, seconds: float, link: SpanContext | None, error: str, attributes: Mapping[str, str | int]
    ) -> None:
        """Make the span of an index job that took so long until now, in a trace of its own; `link` is the write's span."""
        context = _new_root()
        if not (link.is_sampled if link is not None else self._samples(context)):
            return
        ended_ns = time.time_ns()
        ids = (context.trace_id, context.span_id, 0)
        began_ns = ended_ns - int(seconds * 1e9)
        self._sink((Span(name, SpanKind.JOB, *ids, began_ns, ended_ns, error, attributes, link),))

    def _samples(self, context: SpanContext) -> bool:
        return context.trace_id % _RATIO_SCALE < self._threshold


class record_part:  # noqa: N801 - reads as the function that it stands for
    """Record a part of the current call, from the beginning to the end of the block; nothing where none is traced.

    A class, because a generator would cost more than many a part.
    """

    __slots__ = ("_name", "_span")

    def __init__(self, name: str) -> None:
        self._name = name
        self._span: OpenSpan | None = None

    def __enter__(self) -> None:
        outer = _CURRENT.get()
        if outer is not None and outer.ended is not None:
            self._span = outer.open_part(self._name)
            _CURRENT.set(self._span)

    def __exit__(self, _kind: object, fault: BaseException | None, _trace: object) -> None:
        if self._span is not None:
            _CURRENT.set(self._span.outer)
            self._span.end(_error_of(fault))


def add_part(name: str, milliseconds: float) -> None:
    """Record a part of the current call that ends here and took so long."""
    outer = _CURRENT.get()
    if outer is not None and outer.ended is not None:
        part = outer.open_part(name)
        part.ticks -= int(milliseconds * 1e6)
        part.began_ns -= int(milliseconds * 1e6)
        part.end()


def carry_span(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function that another thread may call as part of the current call; a wait of a millisecond is a part itself."""
    span = _CURRENT.get()
    if span is None or span.ended is None:
        return function
    given_at = time.perf_counter_ns()

    def run(*args: object) -> T:
        _CURRENT.set(span)
        waited_ns = time.perf_counter_ns() - given_at
        if waited_ns >= _MIN_WAIT_NS:
            add_part("wait for a thread", waited_ns / 1e6)
        try:
            return function(*args)
        finally:
            _CURRENT.set(None)

    return run


def current_traceparent() -> str | None:
    """Return the current span as a `traceparent`, None where no call is traced."""
    span = _CURRENT.get()
    if span is None or span.ended is None:
        return None
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"


def parse_traceparent(text: object) -> SpanContext | None:
    """Return the span that a `traceparent` of W3C Trace Context names, None for one that is missing or malformed."""
    if not isinstance(text, str) or len(text) > _MAX_TRACEPARENT_CHARS:
        return None
    matched = _TRACEPARENT.fullmatch(text)
    if matched is None:
        return None
    version, trace_id, span_id, flags, more = matched.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return SpanContext(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1))


def _new_root() -> SpanContext:
    return SpanContext(random.getrandbits(128) or 1, random.getrandbits(64) or 1)


def _error_of(fault: BaseException | None) -> str:
    if fault is None:
        return ""
    return fault.code if isinstance(fault, HoldfastError) else type(fault).__name__
