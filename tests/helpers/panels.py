"""Clients that show panels: one spoken in raw messages, and a page in a browser that hosts panels with the official bridge."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from tests.helpers.doors import ACCEPT, MODERN_META, House, Pipes

LEGACY, MODERN = "legacy", "2026-07-28"
PANELS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
REVIEW, PLAN = "ui://holdfast/review.html", "ui://holdfast/plan.html"
PANEL_TOOLS = {"panel_review", "panel_decide", "panel_plan", "panel_decide_plan"}
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'; "
    "frame-src 'none'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
)
"""What a host lets a panel do that asks for no address: run what is in it, and nothing else."""

_TOP = Path(__file__).resolve().parents[2]
_PAGE = _TOP / "tests" / "console" / "panel_host"
_MODULES = _TOP / "web" / "node_modules"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript"}


def settings(**channels: bool) -> str:
    """Return settings with the channels of panels."""
    return json.dumps({"settings": {"review": {"channels": channels or {"panel": True}}}})


def token_of(result: dict[str, Any]) -> str:
    """Return the token that came beside an answer."""
    return str(result["_meta"]["holdfast/panel"]["token"])


def model_view(result: dict[str, Any]) -> str:
    """Return all that a model sees of an answer."""
    return json.dumps({name: value for name, value in result.items() if name != "_meta"})


class ChatHost:
    """An MCP client through the relay, in either era; it declares what it is given."""

    def __init__(self, pipes: Pipes, era: str, capabilities: dict[str, Any] | None = None) -> None:
        self._pipes = pipes
        self._numbers = count(1)
        declared = PANELS if capabilities is None else capabilities
        self._meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": declared} if era == MODERN else None
        if self._meta is None:
            info = {"name": "chat", "version": "1"}
            self.ask("initialize", protocolVersion="2025-11-25", capabilities=declared, clientInfo=info)
            pipes.send(method="notifications/initialized")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the message that answers it."""
        return self._pipes.ask(next(self._numbers), method, **params, **({"_meta": self._meta} if self._meta else {}))

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        result: dict[str, Any] = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result

    def ok(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that succeeds and return its data."""
        result = self.call(name, **arguments)
        assert not result["isError"], result
        data: dict[str, Any] = result["structuredContent"]
        return data

    def code(self, name: str, **arguments: Any) -> str:
        """Call a tool that fails and return the code of its error."""
        result = self.call(name, **arguments)
        assert result["isError"], result
        return str(result["structuredContent"]["code"])

    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the listed tools by name."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}


def call_over_http(house: House, key: str, capabilities: dict[str, Any], name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool at the HTTP door, in the stateless era."""
    meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer: dict[str, Any] = httpx2.post(f"{house.url}/mcp", json=message, headers=headers, timeout=60).json()
    return answer


class _HostPage(BaseHTTPRequestHandler):
    """Serves the page of the host, the packages that it imports, and each panel as a page with a policy of its own."""

    panels: dict[str, bytes]

    def do_GET(self) -> None:
        """Answer a file; nothing outside the two folders is served."""
        path = self.path.partition("?")[0]
        if path in self.panels:
            self._answer(self.panels[path], "text/html; charset=utf-8", POLICY)
            return
        top, name = (_MODULES, path.removeprefix("/modules/")) if path.startswith("/modules/") else (_PAGE, path[1:])
        file = (top / (name or "index.html")).resolve()
        if not file.is_relative_to(top.resolve()) or not file.is_file():
            self.send_error(404)
            return
        self._answer(file.read_bytes(), _TYPES.get(file.suffix, "application/octet-stream"))

    def do_POST(self) -> None:
        """Keep a panel, and answer where it is."""
        path = f"/panel/{len(self.panels)}"
        self.panels[path] = self.rfile.read(int(self.headers["content-length"]))
        self._answer(path.encode(), "text/plain")

    def _answer(self, body: bytes, media_type: str, policy: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        if policy:
            self.send_header("content-security-policy", policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Write nothing."""


@contextmanager
def host_page() -> Iterator[str]:
    """Serve the host's page until the block ends, and give its address."""
    handler = type("_Page", (_HostPage,), {"panels": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
