"""Answers what the page asks beside the entries: who is signed in, sessions, tools and their declarations, media, the document."""

import os
from collections.abc import Awaitable, Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from holdfast import __version__
from holdfast.auth.context import AuthContext, Caller
from holdfast.auth.rates import Rate
from holdfast.clock import format_timestamp
from holdfast.console.calls import ConsoleCalls, HeldResponse
from holdfast.console.faults import API_HEADERS, refuse
from holdfast.console.gate import SESSION, cookie_name
from holdfast.console.ports import CallPath, ServerFacts
from holdfast.console.sessions import MAX_SESSION_SECONDS, BrowserSession, BrowserSessions, SignIn
from holdfast.console.shapes import (
    Done,
    Me,
    SessionEnd,
    SessionFacts,
    SessionList,
    SignInAnswer,
    SignInRequest,
    ToolFacts,
    ToolList,
)
from holdfast.errors import HoldfastError, InvalidArgument, NotFound, PayloadTooLarge, PermissionDenied
from holdfast.secret import Secret
from holdfast.tools.answer import Media
from holdfast.tools.declarations import declare, describe_workspace
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Tool

Endpoint = Callable[[Request], Awaitable[Response]]
Body = TypeVar("Body", bound=BaseModel)
_SHOWN_MEDIA = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif")
_SHOWN_KINDS = ("audio/", "video/")
_MAX_BODY_BYTES = 16_384
"""Of what is parsed here, on the event loop; the arguments of an entry are not."""


class ConsoleApi:
    """The endpoints; each answer is made for the session in the request's scope. `on_end` is called when a session ended."""

    def __init__(
        self,
        calls: ConsoleCalls,
        path: CallPath,
        sessions: BrowserSessions,
        dispatcher: Dispatcher,
        facts: ServerFacts,
        server_id: str,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._calls = calls
        self._path = path
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._facts = facts
        self._server_id = server_id
        self._on_end = on_end
        self._home = os.path.realpath(Path.home())

    async def me(self, request: Request) -> Response:
        """Say who is signed in; the page asks it when it begins, so this is where times of use are written."""
        if self._sessions.needs_save:
            await anyio.to_thread.run_sync(self._sessions.save)
        return _respond(await self._describe(request.scope[SESSION]))

    async def sign_in(self, request: Request) -> Response:
        """Open a session by a link or by a tenant's key, which counts as a call of the tenant.

        The words are the same for every link or key that opens none.
        """
        body = await _read(request, SignInRequest)
        agent = request.headers.get("user-agent", "")
        if (body.link is None) == (body.api_key is None):
            raise InvalidArgument("Give either link or api_key.")
        if body.link is not None:
            sign_in = self._sessions.redeem(body.link, agent)
            if sign_in is None:
                raise PermissionDenied(
                    "This link was used before or is older than a minute. Run `holdfast open` for a new one."
                )
        else:
            auth = self._facts.identify(Secret(body.api_key or ""))
            if auth is None:
                raise PermissionDenied("This key opens nothing here.")
            await self._dispatcher.admit(Caller(auth), Rate.READ)
            sign_in = self._sessions.open(auth, agent)
        return await self._welcome(request, sign_in)

    async def _welcome(self, request: Request, sign_in: SignIn) -> Response:
        if sign_in.session.auth.is_local:
            await anyio.to_thread.run_sync(self._sessions.save)
        response = _respond(SignInAnswer(key=sign_in.key, me=await self._describe(sign_in.session)))
        response.set_cookie(
            cookie_name(request.scope),
            sign_in.cookie,
            max_age=int(MAX_SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=_is_encrypted(request),
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End this session."""
        session: BrowserSession = request.scope[SESSION]
        await self._end(session.auth, session.id)
        response = _respond(Done())
        response.delete_cookie(cookie_name(request.scope), path="/", httponly=True, samesite="strict")
        return response

    async def sessions(self, request: Request) -> Response:
        """List the open sessions of the person, or of this tenant."""
        this: BrowserSession = request.scope[SESSION]
        listed = [
            SessionFacts(
                id=session.id,
                kind=session.kind,
                created_at=format_timestamp(session.created_at),
                last_used_at=format_timestamp(session.last_used_at),
                user_agent=session.user_agent,
                is_this=session is this,
            )
            for session in self._sessions.all_of(this.auth)
        ]
        return _respond(SessionList(sessions=listed))

    async def end_session(self, request: Request) -> Response:
        """End one of the person's sessions, or of this tenant's."""
        body = await _read(request, SessionEnd)
        this: BrowserSession = request.scope[SESSION]
        if not await self._end(this.auth, body.id):
            raise NotFound("There is no open session with that id.")
        return _respond(Done())

    async def tools(self, request: Request) -> Response:
        """List every entry that the session may call."""
        entries = await self._calls.offered(request.scope[SESSION])
        return _json(_tool_list(tuple(entries)))

    async def declaration(self, request: Request) -> Response:
        """Return one tool as the function declaration of a model's API."""
        name, form = request.path_params["name"], request.query_params.get("as", "mcp")
        entry = next((each for each in await self._calls.offered(request.scope[SESSION]) if each.name == name), None)
        if entry is None:
            raise NotFound("There is no such tool.")
        if form not in ("mcp", "openai", "gemini"):
            raise InvalidArgument(f"as must be mcp, openai or gemini: {form!r:.60}")
        return _json(to_json(declare(entry, form)))  # type: ignore[arg-type]

    async def workspace(self, request: Request) -> Response:
        """Return the text that tells a model what it may use here."""
        session: BrowserSession = request.scope[SESSION]
        tools, roots = await self._calls.listed(session), await self._calls.roots(session)
        text = describe_workspace(tools, roots, is_read_only=self._facts.is_read_only)
        return PlainTextResponse(text, headers=API_HEADERS)

    async def media(self, request: Request) -> Response:
        """Return the bytes of a local image, sound or other file, to be shown by the page and by nothing else."""
        path = request.query_params.get("path")
        if not path:
            raise InvalidArgument("path is needed.")
        caller = await self._calls.agent(request.scope[SESSION])
        self._path.check_room(caller)
        answer = await self._dispatcher.call(caller, "read_media_file", {"path": path})
        block = next(block for block in answer.blocks if isinstance(block, Media))
        is_shown = block.mime_type in _SHOWN_MEDIA or block.mime_type.startswith(_SHOWN_KINDS)
        headers = {**API_HEADERS, "content-security-policy": "sandbox", "content-disposition": "attachment"}
        media_type = block.mime_type if is_shown else "application/octet-stream"
        return HeldResponse(self._path, caller, block.data, media_type, headers)

    async def _describe(self, session: BrowserSession) -> Me:
        groups = {entry.group.value: None for entry in await self._calls.offered(session)}
        return Me(
            kind=session.kind,
            identity=session.auth.user_identity,
            server_id=self._server_id,
            version=__version__,
            mode=self._facts.mode,
            read_only=self._facts.is_read_only,
            roots=list(await self._calls.roots(session)),
            home=self._home if session.auth.is_local else "",
            groups=list(groups),
        )

    async def _end(self, auth: AuthContext, session_id: str) -> bool:
        has_ended = self._sessions.end(auth, session_id)
        self._on_end()
        if auth.is_local:
            await anyio.to_thread.run_sync(self._sessions.save)
        return has_ended


def answering(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with its errors as answers."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HoldfastError as error:
            return refuse(error)

    return answer


@lru_cache(maxsize=8)
def _tool_list(entries: tuple[Tool, ...]) -> bytes:
    """Return the answer with these entries, kept for the next one who asks: it takes milliseconds to make."""
    listed = ToolList(tools=[ToolFacts.of(entry) for entry in entries])
    return to_json(listed.model_dump(mode="json", by_alias=True, exclude_none=True))


def _is_encrypted(request: Request) -> bool:
    """Return whether the browser speaks TLS, to us or to a proxy in front of us: then its page's origin says so."""
    return request.url.scheme == "https" or request.headers.get("origin", "").lower().startswith("https://")


def _respond(data: BaseModel) -> Response:
    return _json(to_json(data.model_dump(mode="json", by_alias=True, exclude_none=True)))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers=API_HEADERS)


async def _read(request: Request, shape: type[Body]) -> Body:
    """Return a small body in its shape. Raises InvalidArgument, which repeats nothing of it: it may hold a key."""
    body = await request.body()
    if len(body) > _MAX_BODY_BYTES:
        raise PayloadTooLarge(f"The body is larger than {_MAX_BODY_BYTES} bytes; nothing here needs that much.")
    try:
        return shape.model_validate_json(body or b"{}")
    except ValidationError as error:
        names = ", ".join(shape.model_fields)
        places = sorted({".".join(map(str, fault["loc"])) or "the body" for fault in error.errors(include_input=False)})
        wrong = ", ".join(place for place in places if place in shape.model_fields or place == "the body")
        raise InvalidArgument(f"The body must be an object with {names}; wrong: {wrong or 'a name'}.") from None
