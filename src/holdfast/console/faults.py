"""Answers of the console's API that are not data: the headers of each, and errors with their status."""

from typing import Any

from starlette.responses import JSONResponse, Response

from holdfast.errors import HoldfastError

API_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_STATUSES = {
    "ACCESS_DENIED": 403,
    "ALREADY_EXISTS": 409,
    "CANCELLED": 409,
    "CONFLICT": 409,
    "INVALID_ARGUMENT": 400,
    "INVALID_OFFSET": 400,
    "INVALID_PATH": 400,
    "INVALID_QUERY": 400,
    "IS_DIRECTORY": 409,
    "NOT_DIRECTORY": 409,
    "NOT_EMPTY": 409,
    "NOT_FOUND": 404,
    "PAYLOAD_TOO_LARGE": 413,
    "PERMISSION_DENIED": 403,
    "QUOTA_EXCEEDED": 413,
    "RATE_LIMITED": 429,
    "RESOURCE_BUSY": 503,
    "SEARCH_BACKEND_ERROR": 503,
    "TIMEOUT": 503,
}
_OTHER = 500


def fault_response(payload: dict[str, Any], status: int = 0) -> Response:
    """Return an error as an answer; without a status the one of its code."""
    code = str(payload.get("code", ""))
    headers = dict(API_HEADERS)
    if isinstance(seconds := payload.get("retry_after_seconds"), int | float):
        headers["retry-after"] = str(int(seconds) + 1)
    return JSONResponse({"error": payload}, status or _STATUSES.get(code, _OTHER), headers)


def refuse(error: HoldfastError, status: int = 0) -> Response:
    """Return the answer to a request that failed."""
    return fault_response(error.payload(), status)
