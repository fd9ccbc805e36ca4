"""Sends spans to an OpenTelemetry collector: OTLP over HTTP, in protobuf, from a thread of its own.

It needs the extra `otel`, which is the messages of OTLP and nothing else: OpenTelemetry's own SDK takes endpoints, headers and
proxies from the environment, loads an HTTP client, and costs a call several times as much. Nothing here reads the environment.
"""

import importlib.util
import logging
import secrets
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.observe.spans import Span, SpanContext, SpanKind
from holdfast.secret import Secret

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

_log = logging.getLogger(__name__)

_PATH = "/v1/traces"
_BATCH_SECONDS = 1.0
_BATCH_SPANS = 512
_MAX_WAITING = 8_192
_TIMEOUT_SECONDS = 5.0
_MAX_PAUSE_SECONDS = 30.0
_CLOSING_SECONDS = 2.0
_COMPLAINT_SECONDS = 60.0
_MAX_ANSWER_BYTES = 65_536
_MAX_TEXT_CHARS = 200
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_ROW_OF_KIND = {
    SpanKind.CALL: "SPAN_KIND_SERVER",
    SpanKind.PART: "SPAN_KIND_INTERNAL",
    SpanKind.JOB: "SPAN_KIND_CONSUMER",
}


@dataclass(frozen=True)
class Collector:
    """Where spans go: the address of a collector, to which `/v1/traces` is added, and the headers of every request."""

    endpoint: str
    headers: Mapping[str, Secret] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the path that spans are posted to."""
        path = urlsplit(self.endpoint).path.rstrip("/")
        return path if path.endswith(_PATH) else f"{path}{_PATH}"


def is_installed() -> bool:
    """Return whether the extra is installed, without loading it."""
    try:
        return importlib.util.find_spec("opentelemetry.proto.trace") is not None
    except ModuleNotFoundError:
        return False


def collector_fault(collector: Collector) -> str | None:
    """Return what keeps spans from being taken, None when an empty request is accepted; it is asked."""
    if not is_installed():
        return "the package opentelemetry-proto is not installed"
    line = _Line(collector)
    try:
        status = line.post(b"")
    except (OSError, HTTPException) as error:
        return f"it does not answer ({type(error).__name__})"
    finally:
        line.close()
    return None if 200 <= status < 300 else f"it answered with status {status}"


class OtlpExporter:
    """Takes spans without waiting and sends them soon. The thread starts, and the messages are loaded, with the first ones.

    While the collector is down a bounded number waits for it; later spans are dropped and counted. `on_end` is told how many
    were "sent" or "dropped".
    """

    def __init__(
        self, collector: Collector, on_end: Callable[[str, int], None] = lambda _outcome, _count: None
    ) -> None:
        self._line = _Line(collector)
        self._host = urlsplit(collector.endpoint).hostname
        self._on_end = on_end
        self._waiting: deque[Span] = deque()
        self._lock = threading.Lock()
        self._has_work = threading.Event()
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained_at = float("-inf")

    def add(self, spans: Sequence[Span]) -> None:
        """Take spans that have ended, from any thread."""
        with self._lock:
            has_room = len(self._waiting) + len(spans) <= _MAX_WAITING and not self._is_closed.is_set()
            if has_room:
                self._waiting.extend(spans)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="holdfast-traces", daemon=True)
                    self._thread.start()
        if not has_room:
            self._on_end("dropped", len(spans))
        elif len(self._waiting) >= _BATCH_SPANS:
            self._has_work.set()

    def close(self) -> None:
        """Send what waits, within two seconds; the rest is dropped."""
        self._is_closed.set()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        try:
            message = _Messages()
        except ImportError:
            _log.warning("calls are not traced: the package opentelemetry-proto is not installed")
            self._is_closed.set()
            return
        pause = 0.0
        while not (self._is_closed.is_set() and not self._waiting):
            if pause:
                self._is_closed.wait(pause)
            else:
                self._has_work.wait(_BATCH_SECONDS)
                self._has_work.clear()
            while self._waiting and self._send_batch(message):
                pause = 0.0
            if self._waiting:
                pause = min(max(1.0, 2 * pause), _MAX_PAUSE_SECONDS)
                if self._is_closed.is_set():
                    break
        self._line.close()

    def _send_batch(self, messages: "_Messages") -> bool:
        """Send the oldest spans; False when they have to wait for the collector."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH_SPANS))]
        try:
            status = self._line.post(messages.encode(batch))
            is_again, reason = status in _TRY_AGAIN, f"status {status}"
            is_sent = 200 <= status < 300
        except (OSError, HTTPException) as error:
            is_again, reason, is_sent = True, type(error).__name__, False
        except Exception as error:  # noqa: BLE001 - spans that cannot be written must not stop the others
            is_again, reason, is_sent = False, type(error).__name__, False
        if is_sent:
            self._on_end("sent", len(batch))
            return True
        self._complain(reason)
        if is_again:
            with self._lock:
                self._waiting.extendleft(reversed(batch))
            return False
        self._on_end("dropped", len(batch))
        return True

    def _complain(self, reason: str) -> None:
        if time.monotonic() - self._complained_at >= _COMPLAINT_SECONDS:
            self._complained_at = time.monotonic()
            _log.warning("spans are not taken by %s: %s", self._host, reason)


class _Line:
    """One kept-alive connection to the collector, without proxies and redirects; used by one thread."""

    def __init__(self, collector: Collector) -> None:
        self._address = urlsplit(collector.endpoint)
        self._path = collector.path
        self._headers = {name: secret.reveal() for name, secret in collector.headers.items()}
        self._connection: HTTPConnection | None = None

    def post(self, body: bytes) -> int:
        """Post a message and return the status. OSError or HTTPException when there is none."""
        connection = self._connection = self._connection or self._connect()
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/x-protobuf", **self._headers})
            answer = connection.getresponse()
            answer.read(_MAX_ANSWER_BYTES)
        except BaseException:
            self.close()
            raise
        if not answer.isclosed():
            self.close()
        return answer.status

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
        self._connection = None

    def _connect(self) -> HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context())
        return HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)


class _Messages:
    """Writes spans as a message of OTLP. ImportError without the extra."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanRow
        from opentelemetry.proto.trace.v1.trace_pb2 import Status

        self._request = ExportTraceServiceRequest
        self._kinds = {kind: SpanRow.SpanKind.Value(name) for kind, name in _ROW_OF_KIND.items()}
        self._failed = Status.STATUS_CODE_ERROR
        self._instance = secrets.token_hex(8)

    def encode(self, spans: Sequence[Span]) -> bytes:
        """Return the message of some spans."""
        request = self._request()
        resource_spans = request.resource_spans.add()
        resource = {"service.name": "holdfast", "service.version": __version__, "service.instance.id": self._instance}
        for key, text in resource.items():
            resource_spans.resource.attributes.add(key=key).value.string_value = text
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name, scope_spans.scope.version = "holdfast", __version__
        for span in spans:
            self._fill(scope_spans.spans.add(), span)
        encoded: bytes = request.SerializeToString()
        return encoded

    def _fill(self, row: "SpanMessage", span: Span) -> None:
        row.name, row.kind = span.name, self._kinds[span.kind]
        row.trace_id, row.span_id = _bytes_of(SpanContext(span.trace_id, span.span_id))
        if span.parent_id:
            row.parent_span_id = span.parent_id.to_bytes(8)
        row.start_time_unix_nano, row.end_time_unix_nano = span.began_ns, span.ended_ns
        for key, value in (span.attributes or {}).items():
            if isinstance(value, int):
                row.attributes.add(key=key).value.int_value = value
            elif value:
                row.attributes.add(key=key).value.string_value = _printable(value)
        if span.error:
            row.attributes.add(key="error.type").value.string_value = span.error
            row.status.code = self._failed
        if span.link is not None:
            link = row.links.add()
            link.trace_id, link.span_id = _bytes_of(span.link)


def _bytes_of(context: SpanContext) -> tuple[bytes, bytes]:
    return context.trace_id.to_bytes(16), context.span_id.to_bytes(8)


def _printable(text: str) -> str:
    """Return a text as UTF-8 can hold it, and not too long: a client chooses its own name."""
    return text[:_MAX_TEXT_CHARS].encode("utf-8", "backslashreplace").decode()
