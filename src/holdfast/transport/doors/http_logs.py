"""Serves /api/logs: a tenant's own calls as JSON, by its API key. The user of this machine has `holdfast calls`."""

import re
from dataclasses import replace
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.auth.context import Caller, CallerKind
from holdfast.errors import HoldfastError, InvalidArgument, PermissionDenied, RateLimited
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors.guard import CALLER

_NAMES = ("tool", "status", "code", "client", "since", "until", "limit", "cursor")
_STATUSES = {"PERMISSION_DENIED": 403, "NOT_FOUND": 404, "RATE_LIMITED": 429, "INTERNAL": 500, "INVALID_ARGUMENT": 400}
_UNAVAILABLE = 503
_NO_STORE = {"cache-control": "no-store"}


class CallLogDoor:
    """Answers GET /api/logs with a page of the caller's own calls; the query takes what `list_calls` takes."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        caller: Caller = request.scope[CALLER]
        try:
            if caller.auth.is_local:
                raise PermissionDenied("This machine's own calls are for its user: run `holdfast calls`.")
            # A tenant is the person of its own log, and of nothing else: the entry's name is fixed here.
            owner = replace(caller, kind=CallerKind.PERSON)
            answer = await self._dispatcher.call(owner, "list_calls", _parse_query(request))
        except HoldfastError as error:
            return _refuse(error)
        assert answer.data is not None
        return Response(to_json(answer.data), media_type="application/json", headers=_NO_STORE)


def _parse_query(request: Request) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name not in _NAMES or name in arguments:
            raise InvalidArgument(f"The query takes each of {', '.join(_NAMES)} once: {name!r:.60}")
        arguments[name] = int(value) if name == "limit" and re.fullmatch("[0-9]{1,9}", value) else value
    return arguments


def _refuse(error: HoldfastError) -> Response:
    headers = dict(_NO_STORE)
    if isinstance(error, RateLimited):
        headers["retry-after"] = str(error.payload()["retry_after_seconds"])
    return JSONResponse({"error": error.payload()}, _STATUSES.get(error.code, _UNAVAILABLE), headers)
