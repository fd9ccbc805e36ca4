"""Runs one tool call, with progress and a result in the JSON of the protocol, without importing the SDK."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from pydantic_core import to_json

from holdfast.auth.context import Caller
from holdfast.call import Elicit, InputNeeded, ProgressSink
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.observe.spans import SpanContext, parse_traceparent
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.threads import Load
from holdfast.transport.client.frames import SERVER_ERROR, RequestId
from holdfast.transport.mcp import wire

_log = logging.getLogger(__name__)

LARGE_BYTES = 1 << 16
"""Above it, what is ours to do with a message is done in a thread."""
TURN_BYTES = 1 << 19
"""Above it, a message waits for its turn at what the SDK does on the event loop."""
TURN = "holdfast.turn"
"""Where the scope of an HTTP request has its turn."""

_INTERNAL_ERROR = -32603
_TOO_MUCH_HELD = "Your requests and unread answers hold too much memory already; read what was answered."


async def run_tool(
    dispatcher: Dispatcher,
    caller: Caller,
    name: str,
    arguments: dict[str, Any],
    progress: ProgressSink | None,
    elicit: Elicit | None = None,
    on_wait: Callable[[], None] = lambda: None,
    parent: SpanContext | None = None,
) -> dict[str, Any]:
    """Run one tool and return the result of `tools/call`; an error is a result too, and so is a question to the person."""
    try:
        answer = await dispatcher.call(caller, name, arguments, progress, elicit, on_wait, parent=parent)
        if answer.size <= LARGE_BYTES:
            return wire.answer_result(answer)
        return await dispatcher.in_thread(caller, wire.answer_result, answer, load=Load.HEAVY)
    except HoldfastError as error:
        return wire.error_result(error)
    except InputNeeded as needed:
        return wire.input_required_result(needed)


def parent_span(meta: Mapping[str, Any] | None, header: str | None = None) -> SpanContext | None:
    """Return the span of the caller's own trace: that of the message comes before that of the HTTP request around it."""
    return parse_traceparent((meta or {}).get("traceparent")) or parse_traceparent(header)


async def parse_message(dispatcher: Dispatcher, caller: Caller, raw: bytes) -> tuple[dict[str, Any], wire.Fault | None]:
    """Parse a message, in a thread of the caller's share when it is large. ResourceBusy when too much of the caller waits."""
    if len(raw) <= LARGE_BYTES:
        return wire.parse(raw)
    check_room(dispatcher, caller)
    return await dispatcher.in_thread(caller, wire.parse, raw, load=Load.HEAVY)


async def write_result(dispatcher: Dispatcher, caller: Caller, request_id: RequestId, result: dict[str, Any]) -> bytes:
    """Return the response with a result, made in a thread of the caller's share when it is large."""
    message = {"jsonrpc": "2.0", "id": request_id, "result": result}
    try:
        if wire.content_size(result) <= LARGE_BYTES:
            return to_json(message)
        return await dispatcher.in_thread(caller, wire.dump, message, load=Load.HEAVY)
    except ValueError as error:
        _log.error("an answer could not be written as JSON: %s", type(error).__name__)
        fault = {"code": _INTERNAL_ERROR, "message": "Internal error: the answer holds what cannot be written as JSON"}
    except ResourceBusy as busy:
        fault = {"code": SERVER_ERROR, "message": busy.message}
    return to_json({"jsonrpc": "2.0", "id": request_id, "error": fault})


def check_room(dispatcher: Dispatcher, caller: Caller) -> None:
    """Raise ResourceBusy when the caller's requests and unread answers hold too much memory already."""
    if not dispatcher.held_bytes.has_room(caller.share):
        raise ResourceBusy(_TOO_MUCH_HELD)


@contextmanager
def held_response(dispatcher: Dispatcher, caller: Caller, request_id: RequestId, response: bytes) -> Iterator[bytes]:
    """Give a response, counted as its caller's bytes until the context is left; an error for a large one without room.

    Calls are refused before they run as well; but many may have begun before the first of them had its answer.
    """
    if len(response) > LARGE_BYTES and not dispatcher.held_bytes.has_room(caller.share):
        fault = {"code": SERVER_ERROR, "message": _TOO_MUCH_HELD}
        response = to_json({"jsonrpc": "2.0", "id": request_id, "error": fault})
    with dispatcher.held_bytes.holding(caller.share, len(response)):
        yield response


async def send_result(
    dispatcher: Dispatcher,
    caller: Caller,
    request_id: RequestId,
    result: dict[str, Any],
    send: Callable[[bytes], Awaitable[None]],
) -> None:
    """Send the response with a result; it counts as its caller's bytes until it is sent."""
    response = await write_result(dispatcher, caller, request_id, result)
    with held_response(dispatcher, caller, request_id, response) as counted_response:
        await send(counted_response)


_INTERVAL_SECONDS = 0.1


@contextmanager
def progress_to(deliver: ProgressSink) -> Iterator[ProgressSink]:
    """Give a sink that any thread may call; `deliver` runs on the running event loop.

    A report within a tenth of a second of the last one is dropped, unless it completes the total. So is one that does
    not go beyond the last one, since the protocol requires progress to increase, and any after the block was left: a
    cancelled call may take a moment to notice.
    """
    loop = asyncio.get_running_loop()
    last_at, last_done, is_over = 0.0, -1.0, False

    def sink(done: float, total: float | None, message: str) -> None:
        nonlocal last_at, last_done
        now = time.monotonic()
        if done <= last_done or (now - last_at < _INTERVAL_SECONDS and done != total):
            return
        last_at, last_done = now, done
        # A closed loop means that the server is going down, and no receiver is left.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if is_over else deliver(done, total, message))

    try:
        yield sink
    finally:
        is_over = True


class Turn:
    """One request's turn, which it takes when it turns out to be large."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> None:
        """Wait until no other large message of the caller is under way."""
        if not self._is_taken:
            await self._lock.acquire()
            self._is_taken = True

    def end(self) -> None:
        """Let the next one go on."""
        if self._is_taken:
            self._is_taken = False
            self._lock.release()


class Turns:
    """Lets one large message of each caller at a time through the event loop, which they belong to.

    The SDK copies and writes an answer of megabytes in steps that each hold the loop; the steps of many at once would
    keep a small call waiting for their sum.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, share: str) -> Turn:
        """Return a turn of a caller, not taken yet."""
        return Turn(self._locks.setdefault(share, asyncio.Lock()))
