"""Puts the console together: the routes that the HTTP door mounts, and the gate that its guard asks."""

import secrets
from collections.abc import Callable
from functools import cache

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from holdfast.auth.context import AuthContext, CallerKind
from holdfast.bulletin import Bulletin
from holdfast.console.api import ConsoleApi, Endpoint, answering
from holdfast.console.calls import ConsoleCalls
from holdfast.console.events import EventStreams
from holdfast.console.faults import API_HEADERS
from holdfast.console.gate import SESSION, SIGN_IN_PATH, Gate, caller_of
from holdfast.console.openapi import openapi_document
from holdfast.console.pages import Pages
from holdfast.console.ports import CallPath, Drain, ServerFacts
from holdfast.console.sessions import BrowserSessions
from holdfast.errors import NotFound
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Registry


class Console:
    """The console of one server. `gate` lets requests in, `routes` answer them, `sessions` mints links."""

    def __init__(self, sessions: BrowserSessions, is_tenant: Callable[[AuthContext], bool]) -> None:
        self.sessions = sessions
        self.pages = Pages()
        self.gate = Gate(sessions, self.pages.top_files, is_tenant)

    def routes(
        self,
        dispatcher: Dispatcher,
        registry: Registry,
        path: CallPath,
        bulletin: Bulletin,
        drain: Drain,
        facts: ServerFacts,
    ) -> list[BaseRoute]:
        """Return what is served: the API, whose requests a drain waits for, and the app for every other address."""
        server_id = secrets.token_hex(8)
        calls = ConsoleCalls(dispatcher, registry, path, facts.known_roots)
        api = ConsoleApi(calls, path, self.sessions, dispatcher, facts, server_id)
        events = EventStreams(bulletin, self.gate, drain, server_id)

        @cache
        def make_document() -> bytes:
            return to_json(openapi_document(registry))

        async def document(request: Request) -> Response:
            caller = caller_of(request.scope[SESSION], CallerKind.PERSON)
            body = await dispatcher.in_thread(caller, make_document)
            return Response(body, media_type="application/json", headers=API_HEADERS)

        async def page(request: Request) -> Response:
            if request.method not in ("GET", "HEAD"):
                return Response("This address is for GET.\n", 405, {"allow": "GET, HEAD"})
            if not self.gate.is_shell(request.url.path):
                raise NotFound("There is nothing at this address.")
            return await self.pages.page(request)

        def route(address: str, endpoint: Endpoint, method: str = "GET") -> Route:
            return Route(address, _Drained(answering(endpoint), drain), methods=[method])

        return [
            Route("/api/events", answering(events.answer), methods=["GET"]),
            route("/api/me", api.me),
            route(SIGN_IN_PATH, api.sessions),
            route(SIGN_IN_PATH, api.sign_in, "POST"),
            route(SIGN_IN_PATH, api.sign_out, "DELETE"),
            route("/api/session/end", api.end_session, "POST"),
            route("/api/tools", api.tools),
            route("/api/tools/{name}", api.declaration),
            route("/api/workspace", api.workspace),
            route("/api/media", api.media),
            route("/api/openapi.json", document),
            route("/api/{entry}", calls.answer, "POST"),
            route("/assets/{name:path}", self.pages.asset),
            route("/{page:path}", page),
        ]


class _Drained:
    """ASGI endpoint that a drain of the server waits for, until its answer is sent."""

    def __init__(self, endpoint: Endpoint, drain: Drain) -> None:
        self._endpoint = endpoint
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._drain.stream():
            response = await self._endpoint(Request(scope, receive))
            await response(scope, receive, send)
