"""Counts every HTTP request by its route and status, and answers scrapes at /metrics."""

from collections.abc import Awaitable, Callable

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.observe.metrics import Metrics

_ROUTES = frozenset({"/", "/api/logs", "/health", "/mcp", "/metrics", "/ws"})
_PREFIXES = ("/api/", "/assets/")
_OTHER = "other"
_WEBSOCKET_STATUS = {"websocket.accept": 101, "websocket.close": 403}


class CountedRequests:
    """ASGI middleware around everything else; what a client asks for is one of our routes or "other"."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it when its answer begins."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if not status:
                status = _status_of(message)
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            if status:
                self._metrics.request_ended(_route_of(scope["path"]), status)


def _route_of(path: str) -> str:
    """Return the route of a path: itself, or the prefix of many."""
    return path if path in _ROUTES else next((prefix for prefix in _PREFIXES if path.startswith(prefix)), _OTHER)


def _status_of(message: Message) -> int:
    """Return the status that a message begins an answer with; a WebSocket has one as well."""
    return int(message.get("status", _WEBSOCKET_STATUS.get(message["type"], 0)))


def answer_scrapes(metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of /metrics; some figures are read from a disk, so it is made in a thread."""

    async def scrape(request: Request) -> Response:
        text, media_type = await anyio.to_thread.run_sync(metrics.expose, request.headers.get("accept", ""))
        return Response(text, headers={"content-type": media_type, "cache-control": "no-store"})

    return scrape
