"""Questions to the person behind a client: which clients can be asked, and how each protocol era asks them."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import Request

from holdfast.auth.context import Caller
from holdfast.call import Elicit, Question, Reply
from holdfast.transport.client.frames import QUESTION_ID_PREFIX, withdrawal_line
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.form import reply_to
from holdfast.transport.mcp.stateless_elicitation import Rounds

Context = ServerRequestContext[Any, Any]
Post = Callable[[bytes], None]

RESPONSE_ENDED = "holdfast.response_ended"
"""Where an HTTP request's scope keeps the event that its response has ended, so that nobody sees what is asked in it."""

_FIRST_VERSION = "2025-06-18"
_UNANSWERED = Reply("cancel")


def takes_forms(version: str, capabilities: object) -> bool:
    """Return whether a client of that version, with these capabilities, shows forms to its person.

    The capability without any mode means forms; one that names only other modes does not.
    """
    offered = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    if not isinstance(offered, dict) or version < _FIRST_VERSION:
        return False
    return offered.get("form") is not None or offered.get("url") is None


def in_rounds(caller: Caller, version: str, params: dict[str, Any]) -> Elicit | None:
    """Return how a call of the stateless protocol asks, None when its client has no forms. Raises BadState."""
    offered = (params.get("_meta") or {}).get(types.CLIENT_CAPABILITIES_META_KEY)
    return Rounds(caller, params).ask if takes_forms(version, offered) else None


def through_sdk(caller: Caller, ctx: Context) -> Elicit | None:
    """Return how a call that came through the SDK asks: in rounds, or in the stream that answers its POST.

    A handshake call that took the long way of a connection does not ask, because the SDK counts its questions from 1
    on every connection: see Questions.
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return in_rounds(caller, ctx.protocol_version, dict(ctx.params or {}))
    declared = ctx.session.client_capabilities
    if declared is None or declared.elicitation is None or not isinstance(ctx.request, Request):
        return None
    offered = {"elicitation": declared.elicitation.model_dump(exclude_none=True)}
    if not takes_forms(ctx.protocol_version, offered) or not ctx.session.can_send_request:
        return None
    ended: anyio.Event = ctx.request.scope[RESPONSE_ENDED]

    async def ask(question: Question) -> Reply:
        return await _ask_until(ended, ctx, question)

    return ask


class Questions:
    """The questions open on one connection of the handshake era.

    Each has an id that was never used before: when a server is started again behind a relay, a late answer to the
    old one must not pass for the answer to a new question.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._open: dict[str, asyncio.Future[object]] = {}
        self._is_over = False

    async def ask(self, question: Question) -> Reply:
        """Send the question and wait; a question that is given up is withdrawn."""
        if self._is_over:
            return _UNANSWERED
        number = f"{QUESTION_ID_PREFIX}{secrets.token_hex(12)}"
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        self._post(to_json({"jsonrpc": "2.0", "id": number, **wire.question(question)}))
        try:
            found = await answer
        finally:
            if self._open.pop(number, None) is not None:
                self._post(withdrawal_line(number).rstrip())
        return _UNANSWERED if found is None else reply_to(question, found)

    def take(self, message: Mapping[str, Any]) -> bool:
        """Take a client's message if it answers an open question; an error is as good as no answer."""
        number = message.get("id")
        waiting = self._open.pop(number, None) if isinstance(number, str) and "method" not in message else None
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(message.get("result", {}) if "error" not in message else None)
        return True

    def close(self) -> None:
        """Give every question up: no answer can come any more."""
        self._is_over = True
        while self._open:
            number, answer = self._open.popitem()
            self._post(withdrawal_line(number).rstrip())
            if not answer.done():
                answer.set_result(None)


async def _ask_until(ended: anyio.Event, ctx: Context, question: Question) -> Reply:
    """Ask in the response to the call's own POST, until that response has ended."""
    found: object = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_after, ended, tasks.cancel_scope)
        found = await _sent(ctx, question)
        tasks.cancel_scope.cancel()
    return _UNANSWERED if found is None else reply_to(question, found)


async def _cancel_after(ended: anyio.Event, scope: anyio.CancelScope) -> None:
    await ended.wait()
    scope.cancel()


async def _sent(ctx: Context, question: Question) -> object:
    """Return the client's result, None when it gave none, and what fits no form when it is no result of the protocol."""
    form = types.ElicitRequest.model_validate(wire.question(question))
    answering = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        result = await ctx.session.send_request(form, types.ElicitResult, metadata=answering)
    except MCPError:
        return None
    except ValidationError:
        return {}
    return result.model_dump(mode="json", exclude_none=True)
