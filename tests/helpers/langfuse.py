"""A Langfuse server for tests: takes what the real library sends and reads it, or refuses as a test sets it."""

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PUBLIC_KEY, SECRET_KEY = "pk-lf-test", "sk-lf-test"
_PROJECT = {"id": "p", "name": "p", "organization": {"id": "o", "name": "o"}, "metadata": {}}


@dataclass(frozen=True)
class Sent:
    """One span as it was sent; the times are in nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    attributes: dict[str, Any]


@dataclass
class LangfuseServer:
    """Keeps what it was sent, as it came and as it is to be read; `status` is what it answers with, 0 for nothing."""

    url: str = ""
    status: int = 200
    spans: list[Sent] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that lead here."""
        return {
            "LANGFUSE_PUBLIC_KEY": PUBLIC_KEY,
            "LANGFUSE_SECRET_KEY": SECRET_KEY,
            "LANGFUSE_HOST": self.url,
        }

    def take(self, path: str, body: bytes) -> dict[str, Any]:
        """Read a request and return the answer."""
        self.bodies.append(body)
        if path == "/api/public/otel/v1/traces":
            self.spans += _spans(body)
            return {}
        if path == "/api/public/scores":
            scores = json.loads(body)
            self.scores += scores
            return {"accepted": len(scores), "rejected": 0, "errors": []}
        return {"data": [_PROJECT]}


@contextmanager
def langfuse_server() -> Iterator[LangfuseServer]:
    """Give one that takes everything sent with the right keys."""
    server = LangfuseServer()
    allowed = "Basic " + base64.b64encode(f"{PUBLIC_KEY}:{SECRET_KEY}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if not server.status:
                server.over.wait(60)
                return
            status = server.status if self.headers.get("authorization") == allowed else 401
            body = json.dumps(server.take(self.path, body) if status == 200 else {}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        listening.shutdown()
        listening.server_close()
        thread.join(timeout=5)


def _spans(body: bytes) -> Iterator[Sent]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Sent(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    {
                        attribute.key: getattr(attribute.value, str(attribute.value.WhichOneof("value")))
                        for attribute in span.attributes
                    },
                )
