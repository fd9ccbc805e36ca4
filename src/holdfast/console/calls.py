"""Makes the calls of a session: which caller an entry is for, the call itself, and the answer as the page gets it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from holdfast.auth.context import Caller, CallerKind
from holdfast.console.faults import API_HEADERS, fault_response, refuse
from holdfast.console.gate import SESSION, agent_of, caller_of
from holdfast.console.ports import CallPath
from holdfast.console.sessions import BrowserSession
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.tools.answer import length_of
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Group, Registry, Tool

_ROOTS_SECONDS = 2.0
_CLIENT_GONE = 499
_LARGE_BYTES = 65_536
_TENANTS_OWN = frozenset({"list_calls"})
"""Entries of the person that show a tenant what is its own, beside those of the store."""


class ConsoleCalls:
    """Runs entries for a session on the path of every call; each entry is for one kind of caller, so its name decides.

    The directories of the person's calls are those that Holdfast knows, asked for again when they may have changed.
    """

    def __init__(
        self, dispatcher: Dispatcher, registry: Registry, path: CallPath, known_roots: Callable[[], Sequence[str]]
    ) -> None:
        self._dispatcher = dispatcher
        self._registry = registry
        self._path = path
        self._known_roots = known_roots
        self._roots: tuple[str, ...] = ()
        self._roots_at = -_ROOTS_SECONDS

    async def answer(self, request: Request) -> Response:
        """Run the entry that the path names; a client that goes away cancels it."""
        body = await request.body()
        responses: list[Response] = []

        async def run() -> None:
            responses.append(await self._run(request.scope[SESSION], request.path_params["entry"], body))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            tasks.start_soon(_cancel_when_gone, request.receive, tasks.cancel_scope)
        return responses[0] if responses else Response(status_code=_CLIENT_GONE)

    async def _run(self, session: BrowserSession, name: str, body: bytes) -> Response:
        began = time.perf_counter()
        try:
            caller = await self.caller_for(session, name)
            arguments = await self._path.parse(caller, body)
            return await self._respond(caller, await self._path.run(caller, name, arguments), began)
        except HoldfastError as error:
            return refuse(error)

    async def caller_for(self, session: BrowserSession, name: str) -> Caller:
        """Return the caller that an entry is for; for an unknown one an agent's, which is told the nearest name."""
        entry = self._registry.get(name)
        if entry is not None and _is_of_person(session, entry):
            return caller_of(session, CallerKind.PERSON)
        return await self.agent(session)

    async def agent(self, session: BrowserSession) -> Caller:
        """Return the caller of a session for the entries of agents."""
        return agent_of(caller_of(session, CallerKind.AGENT), await self.roots(session))

    async def roots(self, session: BrowserSession) -> tuple[str, ...]:
        """Return the directories that the person's calls may use, none for a tenant."""
        if not session.auth.is_local:
            return ()
        if time.monotonic() - self._roots_at > _ROOTS_SECONDS:
            person = caller_of(session, CallerKind.PERSON)
            self._roots = tuple(await self._dispatcher.in_thread(person, self._known_roots))
            self._roots_at = time.monotonic()
        return self._roots

    async def offered(self, session: BrowserSession) -> list[Tool]:
        """Return every entry that the session may call, the agents' first."""
        person, agent = caller_of(session, CallerKind.PERSON), await self.agent(session)
        entries = sorted(self._registry, key=lambda entry: entry.audience is CallerKind.PERSON)
        return [
            entry
            for entry in entries
            if self._dispatcher.offers(person if _is_of_person(session, entry) else agent, entry)
        ]

    async def listed(self, session: BrowserSession) -> list[Tool]:
        """Return the tools that an agent of the session's owner is shown."""
        return self._dispatcher.list_tools(await self.agent(session))

    async def _respond(self, caller: Caller, result: dict[str, Any], began: float) -> Response:
        if result.get("isError"):
            return fault_response(result["structuredContent"])
        content: list[dict[str, Any]] = result.get("content", [])
        texts = [block["text"] for block in content if block["type"] == "text"]
        message = {
            "data": result.get("structuredContent"),
            "text": texts,
            "content": content,
            "duration_ms": round((time.perf_counter() - began) * 1000, 3),
        }
        answer = await self._path.write(caller, message, length_of(message))
        return HeldResponse(self._path, caller, answer, "application/json", API_HEADERS)


class HeldResponse(Response):
    """An answer whose bytes count as its caller's until they are sent; a large one is refused when too many do already."""

    def __init__(
        self, path: CallPath, caller: Caller, body: bytes, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(body, media_type=media_type, headers=headers)
        self._path = path
        self._caller = caller

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it."""
        try:
            if len(self.body) > _LARGE_BYTES:
                self._path.check_room(self._caller)
        except ResourceBusy as busy:
            await refuse(busy)(scope, receive, send)
            return
        with self._path.holding(self._caller, len(self.body)):
            await super().__call__(scope, receive, send)


def _is_of_person(session: BrowserSession, entry: Tool) -> bool:
    """Return whether a session calls an entry as a person: a tenant is the person of what is its own, and of nothing else."""
    if entry.audience is not CallerKind.PERSON:
        return False
    return session.auth.is_local or entry.group is Group.STORE or entry.name in _TENANTS_OWN


async def _cancel_when_gone(receive: Receive, calls: anyio.CancelScope) -> None:
    """Cancel the call when its page closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    calls.cancel()
