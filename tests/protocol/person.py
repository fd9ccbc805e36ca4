"""The person behind a client: answers what is asked, or lets it stand open."""

import threading
from typing import Any

import anyio
import mcp_types as types

LEAVE_OPEN = types.ErrorData(code=0, message="this one is not sent")


def accept(**content: Any) -> types.ElicitResult:
    """Return the reply of a person who filled this in."""
    return types.ElicitResult(action="accept", content=content)


class Person:
    """Gives the replies in order of the questions; LEAVE_OPEN is given none until the client withdraws it."""

    def __init__(self, *replies: types.ElicitResult | types.ErrorData) -> None:
        self._replies = list(replies)
        self.questions: list[types.ElicitRequestFormParams] = []
        self.is_asked = threading.Event()
        self.saw_withdrawal = threading.Event()

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Be asked."""
        assert isinstance(params, types.ElicitRequestFormParams)
        reply = self._replies[len(self.questions)]
        self.questions.append(params)
        self.is_asked.set()
        if reply is LEAVE_OPEN:
            try:
                await anyio.sleep(60)
            finally:
                self.saw_withdrawal.set()
        return reply


class Parrot(Person):
    """Repeats the question in its comment once so many are open, the newest first."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self._together = together
        self._all_are_here = anyio.Event()

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Be asked."""
        assert isinstance(params, types.ElicitRequestFormParams)
        self.questions.append(params)
        place = len(self.questions)
        if place == self._together:
            self._all_are_here.set()
        await self._all_are_here.wait()
        await anyio.sleep(0.01 * (self._together - place))
        return accept(decision="approve", comment=params.message)
