"""A connection of JSON-RPC messages, one after the other: what the Unix socket, stdio and WebSocket doors share.

`tools/call`, which is nearly all traffic, goes straight to the dispatcher; the handshake and every other method
go to the SDK. Its per-message cost is several times that of the call itself, so the short way is worth its lines.
The first request always goes to the SDK, which fixes the protocol era of the connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from holdfast.auth.context import Caller
from holdfast.call import Elicit, ProgressSink
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import Questions, in_rounds, takes_forms
from holdfast.transport.mcp.parse import HALF_CHARACTERS, Fault, RequestId, as_id, id_of, is_call, parse
from holdfast.transport.mcp.progress import progress_to
from holdfast.transport.mcp.protocol import build_server
from holdfast.transport.mcp.run import run_tool
from holdfast.transport.mcp.stateless_elicitation import BadState

Receive = Callable[[], Awaitable[bytes | None]]
Send = Callable[[bytes], Awaitable[None]]

_log = logging.getLogger(__name__)

_MODERN = MODERN_PROTOCOL_VERSIONS[-1]
_MAX_IN_FLIGHT = 1024
_MAX_AT_ONCE = 32
"""Calls of one connection that run or wait for their answer to be read, so that a client that does not read fills no memory."""
_DRAIN_SECONDS = 5.0
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


async def serve_stream(dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send) -> None:
    """Serve one connection until `receive` gives None; calls then under way have a few seconds to end."""
    await _Connection(dispatcher, caller, receive, send).run()


class _Connection:
    def __init__(self, dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send) -> None:
        self._dispatcher = dispatcher
        self._caller = caller
        self._receive = receive
        self._send = send
        self._server = build_server(dispatcher, lambda _ctx: caller)
        self._to_sdk, self._sdk_reads = anyio.create_memory_object_stream[SessionMessage | Exception]()
        self._sdk_writes, self._from_sdk = anyio.create_memory_object_stream[SessionMessage]()
        self._stamp = self._server.server_info_stamp
        self._writing = anyio.Lock(fast_acquire=True)
        self._turns = anyio.Semaphore(_MAX_AT_ONCE, fast_acquire=True)
        self._calls: dict[RequestId, asyncio.Task[None]] = {}
        self._initialize_id: RequestId | None = None
        self._version: str | None = None
        self._opened = False
        self._asked: set[RequestId] = set()
        self._capabilities: object = None
        self._questions = Questions(self._post)
        self._takes_forms = False

    async def run(self) -> None:
        with self._to_sdk, self._sdk_reads, self._sdk_writes, self._from_sdk:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._run_sdk)
                tasks.start_soon(self._forward_from_sdk)
                try:
                    await self._take_all()
                    self._questions.close()
                    await self._drain()
                finally:
                    self._questions.close()
                    for task in self._calls.values():
                        task.cancel()
                    tasks.cancel_scope.cancel()

    async def _take_all(self) -> None:
        while (raw := await self._receive()) is not None:
            if raw.strip():
                await self._take(raw)

    async def _run_sdk(self) -> None:
        await self._server.run(self._sdk_reads, self._sdk_writes, self._server.create_initialization_options())

    async def _forward_from_sdk(self) -> None:
        async for outgoing in self._from_sdk:
            message = outgoing.message
            if isinstance(message, types.JSONRPCResponse) and message.id == self._initialize_id:
                self._version = str(message.result["protocolVersion"])
                self._takes_forms = takes_forms(self._version, self._capabilities)
            await self._write(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                self._asked.discard(message.id)

    async def _drain(self) -> None:
        with anyio.move_on_after(_DRAIN_SECONDS):
            while self._calls or self._asked:  # noqa: ASYNC110 - two tables that empty by themselves, once a connection
                await anyio.sleep(0.01)

    def _post(self, message: bytes) -> None:
        """Send a message without waiting; what is posted goes out in order."""
        self._tasks.start_soon(self._write, message)

    async def _write(self, message: bytes) -> None:
        with suppress(*_GONE):
            async with self._writing:
                await self._send(message)

    async def _take(self, raw: bytes) -> None:
        message, fault = parse(raw)
        # Half a character in an argument is the tool's to refuse, in its own words; in any other message it is a fault.
        goes_on = fault in (None, HALF_CHARACTERS) and self._opened and await self._take_short_way(message)
        if not goes_on and fault is not None:
            await self._refuse(message, fault)
        elif not goes_on:
            await self._take_long_way(message)

    async def _take_short_way(self, message: dict[str, Any]) -> bool:
        """Handle a message here if it is a call, the cancelling of one, or an answer; False leaves it to the SDK."""
        params = message.get("params")
        if not isinstance(params, dict):
            return self._questions.take(message)
        if message.get("method") == "notifications/cancelled":
            return self._cancel(as_id(params.get("requestId")))
        if message.get("method") != "tools/call" or not is_call(params):
            return False
        number = id_of(message)
        version = self._version_of(params)
        if version is None or number is None:
            return False
        if len(self._calls) >= _MAX_IN_FLIGHT:
            busy = ResourceBusy(f"More than {_MAX_IN_FLIGHT} calls are waiting on this connection; wait for answers.")
            await self._respond(number, version, wire.refused(busy))
            return True
        self._start(number, version, params)
        return True

    def _cancel(self, number: RequestId | None) -> bool:
        task = None if number is None else self._calls.get(number)
        if task is not None:
            task.cancel()
        elif number is not None:
            self._asked.discard(number)
        return task is not None

    def _start(self, number: RequestId, version: str, params: dict[str, Any]) -> None:
        """Run a call beside the others. A plain task: it raises nothing, and costs half of one in a task group."""
        task = asyncio.create_task(self._call(number, version, params))
        self._calls[number] = task
        task.add_done_callback(lambda done: self._forget(number, done))

    def _forget(self, number: RequestId, task: "asyncio.Task[None]") -> None:
        if self._calls.get(number) is task:
            del self._calls[number]

    def _version_of(self, params: dict[str, Any]) -> str | None:
        if self._version is not None:
            modern = types.PROTOCOL_VERSION_META_KEY in (params.get("_meta") or {})
            return None if modern else self._version
        rejected = isinstance(classify_inbound_request({"params": params}), InboundLadderRejection)
        return None if rejected else _MODERN

    async def _call(self, number: RequestId, version: str, params: dict[str, Any]) -> None:
        name, arguments = params["name"], params.get("arguments") or {}
        waits = self._waits(name)
        try:
            elicit = self._elicit(version, params) if waits else None
        except BadState as fault:
            await self._refuse({"id": number}, (types.INVALID_PARAMS, str(fault)))
            return
        async with self._turn(waits):
            with self._progress(params) as progress:
                result = await run_tool(self._dispatcher, self._caller, name, arguments, progress, elicit)
            await self._respond(number, version, result)

    def _elicit(self, version: str, params: dict[str, Any]) -> Elicit | None:
        if version == _MODERN:
            return in_rounds(self._caller, version, params)
        return self._questions.ask if self._takes_forms else None

    def _waits(self, name: str) -> bool:
        """Return whether a tool waits for others, or for a person, without a thread of its own."""
        try:
            return self._dispatcher.find(self._caller, name).run_async is not None
        except HoldfastError:
            return True

    def _turn(self, waits: bool) -> AbstractAsyncContextManager[None] | anyio.Semaphore:
        """Wait for one of the connection's places; a tool that waits takes none."""
        return nullcontext() if waits else self._turns

    async def _respond(self, number: RequestId, version: str, result: dict[str, Any]) -> None:
        if version == _MODERN:
            result = wire.stamped(result, self._stamp)
        try:
            answer = to_json({"jsonrpc": "2.0", "id": number, "result": result})
        except ValueError as error:
            _log.error("an answer could not be written as JSON: %s", type(error).__name__)
            fault = types.INTERNAL_ERROR, "Internal error: the answer holds what cannot be written as JSON"
            await self._refuse({"id": number}, fault)
            return
        await self._write(answer)

    def _progress(self, params: dict[str, Any]) -> AbstractContextManager[ProgressSink | None]:
        token = (params.get("_meta") or {}).get("progressToken")
        if token is None:
            return nullcontext()

        def deliver(done: float, total: float | None, message: str) -> None:
            notice = {"progressToken": token, "progress": done, "message": message}
            if total is not None:
                notice["total"] = total
            body = {"jsonrpc": "2.0", "method": "notifications/progress", "params": notice}
            self._post(to_json(body))

        return progress_to(deliver)

    async def _take_long_way(self, body: dict[str, Any]) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_python(body, by_name=False)
        except ValueError:
            await self._refuse(body, (types.INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message"))
            return
        if isinstance(message, types.JSONRPCRequest):
            self._opened = True
            self._asked.add(message.id)
            if message.method == "initialize":
                self._initialize_id = message.id
                self._capabilities = (message.params or {}).get("capabilities")
        with suppress(*_GONE):
            await self._to_sdk.send(SessionMessage(message))

    async def _refuse(self, message: dict[str, Any], fault: Fault) -> None:
        """Answer what is no JSON-RPC message, under its own id where one can be read."""
        number = id_of(message)
        code, text = fault
        await self._write(to_json({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}))
