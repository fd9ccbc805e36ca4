"""A server with the API of OpenAI's /v1/embeddings and Cohere's /v2/rerank, with the faults that a test sets."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Request"], None]


@dataclass
class Request:
    """One request that came, and the ways to answer it."""

    handler: BaseHTTPRequestHandler
    path: str
    key: str | None
    body: Any

    def answer(self, data: Any, status: int = 200, **headers: str) -> None:
        """Send JSON, or bytes as they are."""
        payload = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("content-length", str(len(payload)))
        self.handler.end_headers()
        self.handler.wfile.write(payload)

    def drip(self, data: bytes, seconds: float) -> None:
        """Send byte by byte, with a pause before each."""
        for at in range(len(data)):
            time.sleep(seconds)
            self.handler.wfile.write(data[at : at + 1])
            self.handler.wfile.flush()


@dataclass
class ModelServer:
    """What it was asked, and how it will behave: the next behaviours in turn, then always the last one."""

    url: str
    requests: list[Request] = field(default_factory=list)
    behaviours: list[Behaviour] = field(default_factory=list)

    @property
    def keys(self) -> list[str | None]:
        """Return the keys that came, in order."""
        return [request.key for request in self.requests]

    def behave(self, *behaviours: Behaviour) -> None:
        """Forget what was asked and behave so from now on."""
        self.requests.clear()
        self.behaviours = list(behaviours)


def embedding_of(text: str) -> list[float]:
    """Return a vector that tells by its direction which letters a text is made of."""
    return [
        1.0 + sum(text.lower().count(letter) for letter in letters) for letters in ("abcde", "fghij", "klmno", "pqrst")
    ]


def embeds(request: Request) -> None:
    """Answer as an embeddings endpoint should."""
    rows = [{"index": at, "embedding": embedding_of(text)} for at, text in enumerate(request.body["input"])]
    request.answer({"object": "list", "model": request.body["model"], "data": rows[::-1]})


def ranks(request: Request) -> None:
    """Answer as a reranker should: the longest text is the best."""
    scores = [{"index": at, "relevance_score": len(text) / 1000} for at, text in enumerate(request.body["documents"])]
    request.answer({"id": "x", "results": sorted(scores, key=lambda result: -result["relevance_score"])})


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Run the server on a free port of this machine until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
            scheme, _, key = self.headers.get("authorization", "").partition(" ")
            request = Request(self, self.path, key if scheme == "Bearer" else None, body)
            models.requests.append(request)
            usual = embeds if "embeddings" in self.path else ranks
            behaviour = models.behaviours.pop(0) if len(models.behaviours) > 1 else (models.behaviours or [usual])[0]
            try:
                behaviour(request)
            except OSError:
                self.close_connection = True

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_args: object) -> None:
            """Say nothing: clients that give up are what is tested."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    models = ModelServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield models
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
