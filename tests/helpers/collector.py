"""A collector of OpenTelemetry traces for tests: takes OTLP over HTTP and reads it, or refuses as a test sets it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanRow
from opentelemetry.proto.trace.v1.trace_pb2 import Status


@dataclass(frozen=True)
class CollectedSpan:
    """One span as it was sent; ids are hexadecimal, times nanoseconds, `links` pairs of trace and span."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    failed: bool
    links: list[tuple[str, str]]


@dataclass
class Collector:
    """Keeps what it was sent, as it came and as it is to be read; `status` is what it answers with, 0 for nothing."""

    url: str = ""
    status: int = 200
    spans: list[CollectedSpan] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def with_name(self, name: str) -> list[CollectedSpan]:
        """Return the spans of that name."""
        return [span for span in self.spans if span.name == name]

    def of_trace(self, trace_id: str) -> list[CollectedSpan]:
        """Return the spans of a trace in the order of their beginning."""
        return sorted((span for span in self.spans if span.trace_id == trace_id), key=lambda span: span.began_ns)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Keep a request."""
        self.requests.append((path, headers))
        self.bodies.append(body)
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(_values(resource_spans.resource.attributes))
            for scope_spans in resource_spans.scope_spans:
                self.spans += [_collected(row) for row in scope_spans.spans]


@contextmanager
def trace_collector(port: int = 0) -> Iterator[Collector]:
    """Give one that takes everything."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if not collector.status:
                collector.over.wait(60)
                return
            if collector.status == 200:
                collector.take(self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    listening.daemon_threads = True
    collector.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.over.set()
        listening.shutdown()
        listening.server_close()
        thread.join(timeout=5)


def _collected(row: SpanRow) -> CollectedSpan:
    return CollectedSpan(
        row.name,
        SpanRow.SpanKind.Name(row.kind).removeprefix("SPAN_KIND_").lower(),
        row.trace_id.hex(),
        row.span_id.hex(),
        row.parent_span_id.hex(),
        row.start_time_unix_nano,
        row.end_time_unix_nano,
        _values(row.attributes),
        row.status.code == Status.STATUS_CODE_ERROR,
        [(link.trace_id.hex(), link.span_id.hex()) for link in row.links],
    )


def _values(attributes: Any) -> dict[str, Any]:
    rows: list[KeyValue] = list(attributes)
    return {row.key: getattr(row.value, str(row.value.WhichOneof("value"))) for row in rows}
