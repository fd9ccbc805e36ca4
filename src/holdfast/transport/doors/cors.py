"""Answers of the guard to web pages of other origins that the settings allow to call."""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Scope, Send

MODEL_KEY_HEADER = "x-model-key"


def is_preflight(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser asks whether its page may send a request."""
    return (
        scope["type"] == "http"
        and scope["method"] == "OPTIONS"
        and headers.get("access-control-request-method") is not None
    )


def answer_preflight(origin: str) -> Response:
    """Say what a page of an allowed origin may send."""
    return Response(
        status_code=204,
        headers={
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": (
                "authorization, content-type, accept, last-event-id, "
                f"mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, {MODEL_KEY_HEADER}"
            ),
            "access-control-max-age": "600",
            "vary": "origin",
        },
    )


def add_cors_headers(send: Send, origin: str) -> Send:
    """Return a `send` that lets a page of an allowed origin read the answer."""
    extra = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
        (b"vary", b"origin"),
    ]

    async def send_with_headers(message: Message) -> None:
        headers = list(message.get("headers", []))
        if (
            message["type"] == "http.response.start" and extra[0] not in headers
        ):  # the answer to a preflight has its own
            message = {**message, "headers": [*headers, *extra]}
        await send(message)

    return send_with_headers
