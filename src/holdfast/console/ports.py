"""Defines what the console needs of the HTTP door that it is mounted in."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.auth.context import AuthContext, Caller
from holdfast.secret import Secret

Value = TypeVar("Value")


class CallPath(Protocol):
    """The way that the calls of every door take, in the JSON of the protocol."""

    def check_room(self, caller: Caller) -> None:
        """Raise ResourceBusy when the caller's requests and unread answers hold too much already."""

    async def parse(self, caller: Caller, body: bytes) -> dict[str, Any]:
        """Return the arguments in a body. Raises InvalidArgument, and ResourceBusy when the caller holds too much already."""

    async def run(self, caller: Caller, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool and return the result of `tools/call`; an error is a result, too."""

    async def write(self, caller: Caller, message: dict[str, Any], size: int) -> bytes:
        """Return a message as JSON; `size` is about its length."""

    def holding(self, caller: Caller, count: int) -> AbstractContextManager[None]:
        """Count the bytes of an answer while they are sent."""


class Drain(Protocol):
    """Tells an answer without an end that the server ends."""

    is_draining: bool

    def event_stream(self) -> AbstractContextManager[None]:
        """Count a stream of events."""

    def stream(self) -> AbstractContextManager[None]:
        """Count a request that a drain waits for."""

    async def next_or_none(self, wait: Callable[[], Awaitable[Value]]) -> Value | None:
        """Wait for something; None when a drain has begun or begins meanwhile."""


@dataclass(frozen=True)
class ServerFacts:
    """What the console says of its server, and how it finds the tenant of a key.

    `known_roots` are the directories that the person's calls of agents' tools may use; it blocks. `identify` returns None
    for a key that opens nothing here, the agent's token among them.
    """

    mode: str
    is_read_only: bool
    known_roots: Callable[[], Sequence[str]]
    identify: Callable[[Secret], AuthContext | None]
