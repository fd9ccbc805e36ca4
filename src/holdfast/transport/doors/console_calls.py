"""Gives the console the way that calls take at the other doors: parsing, running and writing in bounds, by caller."""

from contextlib import AbstractContextManager
from typing import Any

from pydantic_core import to_json

from holdfast.auth.context import Caller
from holdfast.errors import InvalidArgument
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.threads import Load
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.run import LARGE_BYTES, check_room, parse_message, run_tool


class DispatchedCalls:
    """Implements the console's `CallPath` with the server's dispatcher."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def check_room(self, caller: Caller) -> None:
        """Raise ResourceBusy when the caller's requests and unread answers hold too much already."""
        check_room(self._dispatcher, caller)

    async def parse(self, caller: Caller, body: bytes) -> dict[str, Any]:
        """Return the arguments in a body. Raises InvalidArgument, and ResourceBusy when the caller holds too much already."""
        self.check_room(caller)
        arguments, fault = await parse_message(self._dispatcher, caller, body or b"{}")
        if fault is not None:
            raise InvalidArgument(f"The body must be one JSON object with the arguments: {fault[1]}.")
        return arguments

    async def run(self, caller: Caller, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool and return the result of `tools/call`; an error is a result, too."""
        return await run_tool(self._dispatcher, caller, name, arguments, None)

    async def write(self, caller: Caller, message: dict[str, Any], size: int) -> bytes:
        """Return a message as JSON, made in a thread of the caller's share when it is large."""
        if size <= LARGE_BYTES:
            return to_json(message)
        return await self._dispatcher.in_thread(caller, wire.dump, message, load=Load.HEAVY)

    def holding(self, caller: Caller, count: int) -> AbstractContextManager[None]:
        """Count the bytes of an answer while they are sent."""
        return self._dispatcher.held_bytes.holding(caller.share, count)
