"""Questions of the stateless protocol: a call ends with its question and is made again with the reply beside its arguments.

What was asked and answered so far travels through the client as `requestState`. It is authenticated with a key that
only this process has, and holds for one caller, one tool and the same arguments. A reply counts only if the state
shows that this very question was asked; any other is as if it had not come, and the question is asked again.
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
from holdfast.transport.mcp.form import reply_to

_KEY = secrets.token_bytes(32)
_LIFETIME_SECONDS = 24 * 3600.0


class BadState(Exception):
    """A `requestState` that this server did not give out for this caller and call, or that is too old."""

    def __init__(self) -> None:
        super().__init__("Invalid or expired requestState; make the call again without it")


class Rounds:
    """One round of a call. Raises BadState when the client brought a state that is not ours."""

    def __init__(self, caller: Caller, params: dict[str, Any]) -> None:
        self._caller = caller
        self._params = params
        self._brought: dict[str, Any] = params.get("inputResponses") or {}
        self._asked: dict[str, str] = {}
        self._answered: dict[str, list[Any]] = {}
        state = params.get("requestState")
        if state is not None:
            self._open(state)

    async def ask(self, question: Question) -> Reply:
        """Return the reply that came with this round or an earlier one; else end the call with the question."""
        mark = _digest([question.key, question.message, question.schema])
        earlier = self._answered.get(question.key)
        if earlier is not None and earlier[0] == mark:
            return Reply(earlier[1], earlier[2])
        if self._asked.get(question.key) == mark and question.key in self._brought:
            reply = reply_to(question, self._brought[question.key])
            self._answered[question.key] = [mark, reply.action, reply.content]
            return reply
        raise InputNeeded(question, self._sealed({question.key: mark}))

    def _sealed(self, asked: dict[str, str]) -> str:
        claims = {"until": time.time() + _LIFETIME_SECONDS, "asked": asked, "answered": self._answered}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()
        return f"{payload}.{self._seal_of(payload)}"

    def _open(self, state: object) -> None:
        payload, _, seal = str(state).partition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal_of(payload).encode()):
            raise BadState
        claims = json.loads(base64.urlsafe_b64decode(payload))
        if time.time() > claims["until"]:
            raise BadState
        self._asked, self._answered = claims["asked"], claims["answered"]

    def _seal_of(self, payload: str) -> str:
        caller = self._caller
        call = [self._params["name"], self._params.get("arguments") or {}]
        bound = _digest([caller.auth.apikey_hash, caller.kind, caller.roots, caller.cwd, call])
        return hmac.new(_KEY, f"{bound}.{payload}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
