"""Serves one connection of JSON-RPC messages: what the Unix socket, stdio and WebSocket doors share.

`tools/call`, which is nearly all traffic, goes straight to the dispatcher; the handshake and every other method
go to the SDK, whose cost per message is several times that of the call itself.
The first request always goes to the SDK, which fixes the protocol era of the connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from holdfast.auth.context import Caller, declare_client
from holdfast.call import Elicit, ProgressSink
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.frames import SERVER_ERROR, RequestId
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import OpenQuestions, elicit_statelessly, takes_forms
from holdfast.transport.mcp.protocol import build_server
from holdfast.transport.mcp.run import progress_to, run_tool
from holdfast.transport.mcp.stateless_elicitation import BadState
from holdfast.transport.mcp.turns import LARGE_BYTES
from holdfast.transport.mcp.wire import LONE_SURROGATE, Fault, ToolCall, edge_id, parse, parse_call, parse_id

Receive = Callable[[], Awaitable[bytes | None]]
Send = Callable[[bytes], Awaitable[None]]

_log = logging.getLogger(__name__)

_MODERN = MODERN_PROTOCOL_VERSIONS[-1]
_MAX_IN_FLIGHT = 1024
_MAX_SDK_REQUESTS = 64
_MAX_UNSENT_PROGRESS = 100
_MESSAGES_IN_A_ROW = 8
_MAX_AT_ONCE = 32
"""Calls of one connection that run or wait for their answer to be read, so that a client that does not read fills no memory."""
_DRAIN_SECONDS = 5.0
_CONNECTION_LOST = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


async def serve_stream(dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send) -> None:
    """Serve one connection until `receive` gives None; calls that are still running have a few seconds to end."""
    await _Connection(dispatcher, caller, receive, send).run()


class _Connection:
    def __init__(self, dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send) -> None:
        self._dispatcher = dispatcher
        self._caller = caller
        self._receive = receive
        self._send = send
        self._server = build_server(dispatcher, lambda _ctx: self._caller)
        self._to_sdk, self._sdk_reads = anyio.create_memory_object_stream[SessionMessage | Exception]()
        self._sdk_writes, self._from_sdk = anyio.create_memory_object_stream[SessionMessage]()
        self._server_info = self._server.server_info_stamp
        self._writing = anyio.Lock(fast_acquire=True)
        self._slots = anyio.Semaphore(_MAX_AT_ONCE, fast_acquire=True)
        self._calls: dict[RequestId, asyncio.Task[None]] = {}
        self._initialize_id: RequestId | None = None
        self._version: str | None = None
        self._has_opened = False
        self._sdk_requests: set[RequestId] = set()
        self._unsent_progress = 0
        self._capabilities: object = None
        self._questions = OpenQuestions(self._post)
        self._takes_forms = False

    async def run(self) -> None:
        with self._to_sdk, self._sdk_reads, self._sdk_writes, self._from_sdk:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._run_sdk)
                tasks.start_soon(self._forward_from_sdk)
                try:
                    count = 0
                    while (raw := await self._receive()) is not None:
                        if raw.strip():
                            await self._handle(raw)
                        count += 1
                        if (
                            count % _MESSAGES_IN_A_ROW == 0
                        ):  # many may have come in one piece: the others have their turn
                            await asyncio.sleep(0)
                    self._questions.close()
                    await self._drain()
                finally:
                    self._questions.close()
                    for task in self._calls.values():
                        task.cancel()
                    tasks.cancel_scope.cancel()

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
                self._sdk_requests.discard(message.id)

    async def _drain(self) -> None:
        with anyio.move_on_after(_DRAIN_SECONDS):
            while self._calls or self._sdk_requests:  # noqa: ASYNC110 - they empty by themselves, once a connection
                await anyio.sleep(0.01)

    def _post(self, message: bytes) -> None:
        """Send a message without waiting; posted messages go out in order."""
        self._tasks.start_soon(self._write, message)

    async def _write_progress(self, message: bytes) -> None:
        try:
            await self._write(message)
        finally:
            self._unsent_progress -= 1

    async def _write(self, message: bytes) -> None:
        with suppress(*_CONNECTION_LOST):
            async with self._writing:
                await self._send(message)

    async def _handle(self, raw: bytes) -> None:
        message, fault = await self._parse(raw)
        # A lone surrogate in an argument is the tool's to refuse, in its own words; in any other message it is a fault.
        if fault in (None, LONE_SURROGATE) and self._has_opened and await self._handle_directly(message, len(raw)):
            return
        if fault is not None:
            await self._send_error(parse_id(message.get("id")), fault)
        else:
            await self._hand_to_sdk(message)

    async def _parse(self, raw: bytes) -> tuple[dict[str, Any], Fault | None]:
        """Parse a message, in a thread of the caller's share when it is large."""
        if len(raw) <= LARGE_BYTES:
            return parse(raw)
        try:
            if not self._dispatcher.held_bytes.has_room(self._caller.share):
                raise ResourceBusy("Your requests hold too much memory already; wait for their answers.")
            return await self._dispatcher.in_thread(self._caller, parse, raw)
        except ResourceBusy as busy:
            return {"id": edge_id(raw)}, (SERVER_ERROR, busy.message)

    async def _handle_directly(self, message: dict[str, Any], size: int) -> bool:
        """Handle a tool call, the cancellation of one, or the answer to a question; False leaves a message to the SDK."""
        params = message.get("params")
        if not isinstance(params, dict):
            return self._questions.take_answer(message)
        if message.get("method") == "notifications/cancelled":
            return self._cancel(parse_id(params.get("requestId")))
        call = parse_call(message)
        version = self._version_for(call) if call is not None else None
        if call is None or version is None:
            return False
        if len(self._calls) >= _MAX_IN_FLIGHT:
            busy = ResourceBusy(f"More than {_MAX_IN_FLIGHT} calls are waiting on this connection; wait for answers.")
            await self._respond(call.request_id, version, wire.error_result(busy))
            return True
        # A plain task: it raises nothing, and costs half of one in a task group.
        task = asyncio.create_task(self._run_call(call, version))
        self._calls[call.request_id] = task
        counted_bytes = size if size > LARGE_BYTES else 0
        self._dispatcher.held_bytes.take(self._caller.share, counted_bytes)
        task.add_done_callback(lambda done: self._forget(call.request_id, done, counted_bytes))
        return True

    def _cancel(self, request_id: RequestId | None) -> bool:
        task = None if request_id is None else self._calls.get(request_id)
        if task is not None:
            task.cancel()
        elif request_id is not None:
            self._sdk_requests.discard(request_id)
        return task is not None

    def _forget(self, request_id: RequestId, task: "asyncio.Task[None]", counted_bytes: int) -> None:
        self._dispatcher.held_bytes.give_back(self._caller.share, counted_bytes)
        if self._calls.get(request_id) is task:
            del self._calls[request_id]

    def _version_for(self, call: ToolCall) -> str | None:
        """Return the protocol version to answer a call in, None when the SDK must refuse the call."""
        if self._version is not None:
            return None if types.PROTOCOL_VERSION_META_KEY in call.meta else self._version
        is_rejected = isinstance(classify_inbound_request({"params": call.params}), InboundLadderRejection)
        return None if is_rejected else _MODERN

    async def _run_call(self, call: ToolCall, version: str) -> None:
        is_async = self._is_async(call.name)
        try:
            elicit = self._elicit_for(call, version) if is_async else None
        except BadState as fault:
            await self._send_error(call.request_id, (types.INVALID_PARAMS, str(fault)))
            return
        # A tool that waits for other calls, or for a person, takes no slot.
        async with nullcontext() if is_async else self._slots:
            caller = self._caller
            if version == _MODERN:
                caller = declare_client(caller, call.meta.get(types.CLIENT_INFO_META_KEY))
            with self._progress_of(call) as progress:
                result = await run_tool(self._dispatcher, caller, call.name, call.arguments, progress, elicit)
            await self._respond(call.request_id, version, result)

    def _is_async(self, name: str) -> bool:
        """Return whether a tool runs on the event loop, without a thread of its own; so does the refusal of an unknown name."""
        try:
            return self._dispatcher.find(self._caller, name).run_async is not None
        except HoldfastError:
            return True

    def _elicit_for(self, call: ToolCall, version: str) -> Elicit | None:
        if version == _MODERN:
            return elicit_statelessly(self._caller, version, call.params)
        return self._questions.ask if self._takes_forms else None

    async def _respond(self, request_id: RequestId, version: str, result: dict[str, Any]) -> None:
        if version == _MODERN:
            result = wire.stateless_result(result, self._server_info)
        message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        try:
            if wire.content_size(result) <= LARGE_BYTES:
                response = to_json(message)
            else:
                response = await self._dispatcher.in_thread(self._caller, to_json, message)
        except ValueError as error:
            _log.error("an answer could not be written as JSON: %s", type(error).__name__)
            fault = types.INTERNAL_ERROR, "Internal error: the answer holds what cannot be written as JSON"
            await self._send_error(request_id, fault)
            return
        await self._write(response)

    def _progress_of(self, call: ToolCall) -> AbstractContextManager[ProgressSink | None]:
        token = call.meta.get("progressToken")
        if token is None:
            return nullcontext()

        def deliver(done: float, total: float | None, message: str) -> None:
            params = {"progressToken": token, "progress": done, "message": message}
            if total is not None:
                params["total"] = total
            if self._unsent_progress < _MAX_UNSENT_PROGRESS:
                notification = to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                self._unsent_progress += 1
                self._tasks.start_soon(self._write_progress, notification)

        return progress_to(deliver)

    async def _hand_to_sdk(self, body: dict[str, Any]) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_python(body, by_name=False)
        except ValueError:
            fault = types.INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message"
            await self._send_error(parse_id(body.get("id")), fault)
            return
        if isinstance(message, types.JSONRPCRequest):
            if len(self._sdk_requests) >= _MAX_SDK_REQUESTS:
                text = f"More than {_MAX_SDK_REQUESTS} requests are open on this connection; wait for answers."
                await self._send_error(message.id, (SERVER_ERROR, text))
                return
            self._has_opened = True
            self._sdk_requests.add(message.id)
            if message.method == "initialize":
                self._initialize_id = message.id
                self._capabilities = (message.params or {}).get("capabilities")
                self._caller = declare_client(self._caller, (message.params or {}).get("clientInfo"))
        with suppress(*_CONNECTION_LOST):
            await self._to_sdk.send(SessionMessage(message))

    async def _send_error(self, request_id: RequestId | None, fault: Fault) -> None:
        code, text = fault
        await self._write(to_json({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}))
