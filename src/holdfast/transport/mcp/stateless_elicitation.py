"""Elicitation in the stateless protocol: a call ends with its question and is made again with the reply.

The questions and answers so far travel through the client as `requestState`. It is authenticated with a key that
only this process has, and valid for one caller, one tool and the same arguments. A reply counts only if the state
shows that this very question was asked; any other is ignored, and the question is asked again.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from typing import Any

from holdfast.auth.context import Caller
from holdfast.call import InputNeeded, Question, Reply
from holdfast.transport.mcp.form import parse_reply

_KEY = secrets.token_bytes(32)
_LIFETIME_SECONDS = 24 * 3600.0


class BadState(Exception):
    """A `requestState` that this server did not issue for this caller and call, or that has expired."""

    def __init__(self) -> None:
        super().__init__("Invalid or expired requestState; make the call again without it")


class StatelessElicitation:
    """The questions of one call. Raises BadState when the client sent a state that this server did not issue."""

    def __init__(self, caller: Caller, params: dict[str, Any]) -> None:
        self._caller = caller
        self._params = params
        self._replies: dict[str, Any] = params.get("inputResponses") or {}
        self._questions: dict[str, str] = {}
        self._answered: dict[str, list[Any]] = {}
        state = params.get("requestState")
        if state is not None:
            self._load(state)

    async def ask(self, question: Question) -> Reply:
        """Return the reply that this request or an earlier one brought; otherwise end the call with the question."""
        digest = _digest([question.key, question.message, question.schema])
        earlier = self._answered.get(question.key)
        if earlier is not None and earlier[0] == digest:
            return Reply(earlier[1], earlier[2])
        if self._questions.get(question.key) == digest and question.key in self._replies:
            reply = parse_reply(question, self._replies[question.key])
            self._answered[question.key] = [digest, reply.action, reply.content]
            return reply
        raise InputNeeded(question, self._build_state({question.key: digest}))

    def _build_state(self, questions: dict[str, str]) -> str:
        claims = {"until": time.time() + _LIFETIME_SECONDS, "asked": questions, "answered": self._answered}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()
        return f"{payload}.{self._signature(payload)}"

    def _load(self, state: object) -> None:
        payload, _, signature = str(state).partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(payload).encode()):
            raise BadState
        claims = json.loads(base64.urlsafe_b64decode(payload))
        if time.time() > claims["until"]:
            raise BadState
        self._questions, self._answered = claims["asked"], claims["answered"]

    def _signature(self, payload: str) -> str:
        caller = self._caller
        call = [self._params["name"], self._params.get("arguments") or {}]
        bound_to = _digest([caller.auth.apikey_hash, caller.kind, caller.door, caller.roots, caller.cwd, call])
        return hmac.new(_KEY, f"{bound_to}.{payload}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
