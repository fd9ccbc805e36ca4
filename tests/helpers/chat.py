"""A chat endpoint for tests: answers as OpenAI's does, or with the faults that a test sets."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[[int, dict[str, Any]], "tuple[int, dict[str, str], bytes] | None"]


def chat_reply(content: Any, **message: Any) -> bytes:
    """Return an answer whose message holds a content."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text, **message}}]}).encode()


def filed(request: dict[str, Any], category: str, confidence: float = 0.9) -> bytes:
    """Return an answer that puts every file of a request into one category."""
    files = json.loads(request["messages"][1]["content"])["files"]
    rows = [
        {
            "id": file["id"],
            "category": category,
            "confidence_score": confidence,
            "requires_deep_scan": False,
            "reasoning": "It fits.",
        }
        for file in files
    ]
    return chat_reply({"files": rows})


class ChatServer:
    """Keeps what it was asked; `fault` may answer a request otherwise, by its number, counted from one."""

    def __init__(self, category: str) -> None:
        self.category = category
        self.fault: Fault = lambda _number, _request: None
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.seconds = 0.0
        self.lock = threading.Lock()
        self.url = ""


@contextmanager
def chat_server(category: str) -> Iterator[ChatServer]:
    """Give a server that files everything under one category."""
    server = ChatServer(category)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with server.lock:
                server.requests.append(request)
                server.keys.append(self.headers.get("authorization"))
                number = len(server.requests)
            time.sleep(server.seconds)
            status, headers, body = server.fault(number, request) or (200, {}, filed(request, server.category))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_address[1]}/v1/chat/completions"
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(timeout=5)
