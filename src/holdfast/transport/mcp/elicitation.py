"""Asks the user through an MCP client, in the form of its protocol era."""

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
from holdfast.transport.mcp.form import parse_reply
from holdfast.transport.mcp.stateless_elicitation import StatelessElicitation

Context = ServerRequestContext[Any, Any]
Post = Callable[[bytes], None]

RESPONSE_ENDED = "holdfast.response_ended"
"""Key in an HTTP request's scope for the event that its response has ended, after which nobody sees a question in it."""

_FIRST_VERSION_WITH_FORMS = "2025-06-18"
_UNANSWERED = Reply("cancel")


def takes_forms(version: str, capabilities: object) -> bool:
    """Return whether a client of that version, with these capabilities, shows forms to its person.

    The capability without any mode means forms; one that names only other modes does not.
    """
    offered = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    if not isinstance(offered, dict) or version < _FIRST_VERSION_WITH_FORMS:
        return False
    return offered.get("form") is not None or offered.get("url") is None


def elicit_statelessly(caller: Caller, version: str, params: dict[str, Any]) -> Elicit | None:
    """Return how a call of the stateless protocol asks, None when its client shows no forms. Raises BadState."""
    offered = (params.get("_meta") or {}).get(types.CLIENT_CAPABILITIES_META_KEY)
    return StatelessElicitation(caller, params).ask if takes_forms(version, offered) else None


def elicit_through_sdk(caller: Caller, ctx: Context) -> Elicit | None:
    """Return how a call that came through the SDK asks: statelessly, or in the stream that answers its POST.

    None for a handshake call that a stream handed to the SDK, because the SDK counts its questions from 1 on every
    connection: see OpenQuestions.
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return elicit_statelessly(caller, ctx.protocol_version, dict(ctx.params or {}))
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


class OpenQuestions:
    """The open questions of one connection of the handshake era.

    Each has an id that was never used before: when a server is started again behind a relay, a late answer to the
    old one must not pass for the answer to a new question.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._open: dict[str, asyncio.Future[object]] = {}
        self._is_closed = False

    async def ask(self, question: Question) -> Reply:
        """Send the question and wait for the reply; a cancelled question is withdrawn."""
        result = await self.request(wire.elicitation_request(question))
        return _UNANSWERED if result is None else parse_reply(question, result)

    async def request(self, message: Mapping[str, Any]) -> object:
        """Send a request and wait for its result, None when the client sends an error or goes away."""
        if self._is_closed:
            return None
        question_id = f"{QUESTION_ID_PREFIX}{secrets.token_hex(12)}"
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._open[question_id] = answer
        self._post(to_json({"jsonrpc": "2.0", "id": question_id, **message}))
        try:
            return await answer
        finally:
            if self._open.pop(question_id, None) is not None:
                self._post(withdrawal_line(question_id).rstrip())

    def take_answer(self, message: Mapping[str, Any]) -> bool:
        """Take a client's message if it answers an open question; an error counts as no answer."""
        question_id = message.get("id")
        if not isinstance(question_id, str) or "method" in message:
            return False
        answer = self._open.pop(question_id, None)
        if answer is not None and not answer.done():
            answer.set_result(message.get("result", {}) if "error" not in message else None)
        return answer is not None

    def close(self) -> None:
        """Withdraw every question: no answer can come any more."""
        self._is_closed = True
        while self._open:
            question_id, answer = self._open.popitem()
            self._post(withdrawal_line(question_id).rstrip())
            if not answer.done():
                answer.set_result(None)


async def _ask_until(ended: anyio.Event, ctx: Context, question: Question) -> Reply:
    """Ask in the response to the call's own POST, until that response has ended."""
    result: object = None
    async with anyio.create_task_group() as tasks:

        async def cancel_at_end() -> None:
            await ended.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel_at_end)
        result = await _send_request(ctx, question)
        tasks.cancel_scope.cancel()
    return _UNANSWERED if result is None else parse_reply(question, result)


async def _send_request(ctx: Context, question: Question) -> object:
    """Return the client's result, None when it sent an error, and an empty one, which fits no form, when it is invalid."""
    request = types.ElicitRequest.model_validate(wire.elicitation_request(question))
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        result = await ctx.session.send_request(request, types.ElicitResult, metadata=metadata)
    except MCPError:
        return None
    except ValidationError:
        return {}
    return result.model_dump(mode="json", exclude_none=True)
