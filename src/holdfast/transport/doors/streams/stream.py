"""Serves one connection of JSON-RPC messages: what the Unix socket, stdio and WebSocket doors share.

`tools/call`, which is nearly all traffic, goes straight to the dispatcher; the handshake and every other method
go to the SDK, whose cost per message is several times that of the call itself.
The first request always goes to the SDK, which fixes the protocol era of the connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from holdfast.auth.context import Caller, declare_client
from holdfast.call import Elicit, ProgressSink
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.frames import SERVER_ERROR, RequestId
from holdfast.transport.doors.streams.client_roots import NO_ROOTS, ClientRoots, ConnectionRoots, RefusedConnection
from holdfast.transport.mcp import wire
from holdfast.transport.mcp.elicitation import OpenQuestions, elicit_statelessly, takes_forms
from holdfast.transport.mcp.protocol import build_server
from holdfast.transport.mcp.run import (
    check_room,
    parent_span,
    parse_message,
    progress_to,
    run_tool,
    send_result,
)
from holdfast.transport.mcp.stateless_elicitation import BadState
from holdfast.transport.mcp.wire import LONE_SURROGATE, Fault, ToolCall, edge_id, parse_call, parse_id

Receive = Callable[[], Awaitable[bytes | None]]
Send = Callable[[bytes], Awaitable[None]]

_log = logging.getLogger(__name__)

_MODERN = MODERN_PROTOCOL_VERSIONS[-1]
_MAX_IN_FLIGHT = 1024
_MAX_SDK_REQUESTS = 64
_SDK_SECONDS = 1.0
"""How long the next message waits for the answer to one such as `tools/list`: those are made on the event loop, one by one."""
_LASTING_METHODS = frozenset({"tools/call", "subscriptions/listen"})
_MAX_UNSENT_PROGRESS = 100
_MESSAGES_IN_A_ROW = 8
_MAX_AT_ONCE = 16
"""Calls of one connection that run or wait for their answer to be read, so that a client that does not read fills no memory."""
_DRAIN_SECONDS = _ROOTS_SECONDS = 5.0
"""A client that declares roots and does not answer `roots/list` in that time has none."""
_ROOTS_NOTICES = ("notifications/initialized", "notifications/roots/list_changed")
_CONNECTION_LOST = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


async def serve_stream(
    dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send, roots: ConnectionRoots | None = None
) -> None:
    """Serve one connection until `receive` gives None; calls that are still running have a few seconds to end.

    With `roots` the client may declare some. Raises RefusedConnection when there are none and it declares none.
    """
    await _Connection(dispatcher, caller, receive, send, roots).run()


class _Connection:
    def __init__(
        self, dispatcher: Dispatcher, caller: Caller, receive: Receive, send: Send, roots: ConnectionRoots | None
    ) -> None:
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
        self._sdk_answered = anyio.Event()
        self._unsent_progress = 0
        self._capabilities: object = None
        self._questions = OpenQuestions(self._post)
        self._takes_forms = False
        self._roots = ClientRoots(roots, self._ask_for_roots, self._serve_roots) if roots is not None else None
        self._refusal: RefusedConnection | None = None

    async def run(self) -> None:
        with self._to_sdk, self._sdk_reads, self._sdk_writes, self._from_sdk:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._run_sdk)
                tasks.start_soon(self._forward_from_sdk)
                try:
                    count = 0
                    while self._refusal is None and (raw := await self._receive()) is not None:
                        if raw.strip():
                            await self._handle(raw)
                        count += 1
                        if count % _MESSAGES_IN_A_ROW == 0:
                            await asyncio.sleep(0)  # many may have come in one piece: the others have their turn
                    self._questions.close()
                    await self._drain()
                finally:
                    self._questions.close()
                    if self._roots is not None:
                        self._roots.close()
                    for task in self._calls.values():
                        task.cancel()
                    tasks.cancel_scope.cancel()
        if self._refusal is not None:
            raise self._refusal

    async def _run_sdk(self) -> None:
        may_change = self._roots is not None and not self._roots.connection.are_named
        options = self._server.create_initialization_options(NotificationOptions(tools_changed=may_change))
        await self._server.run(self._sdk_reads, self._sdk_writes, options)

    async def _forward_from_sdk(self) -> None:
        async for outgoing in self._from_sdk:
            message = outgoing.message
            if isinstance(message, types.JSONRPCResponse) and message.id == self._initialize_id:
                self._version = str(message.result["protocolVersion"])
                self._takes_forms = takes_forms(self._version, self._capabilities)
            text = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            with self._dispatcher.held_bytes.holding(self._caller.share, len(text)):
                await self._write(text)
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                self._sdk_requests.discard(message.id)
                self._sdk_answered.set()
                self._sdk_answered = anyio.Event()

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
        try:
            return await parse_message(self._dispatcher, self._caller, raw)
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
        try:
            if len(self._calls) >= _MAX_IN_FLIGHT:
                raise ResourceBusy(
                    f"More than {_MAX_IN_FLIGHT} calls are waiting on this connection; wait for answers."
                )
            check_room(self._dispatcher, self._caller)
        except ResourceBusy as busy:
            await self._respond(call.request_id, version, wire.error_result(busy))
            return True
        # A plain task: it raises nothing, and costs half of one in a task group.
        task = asyncio.create_task(self._run_call(call, version))
        self._calls[call.request_id] = task
        self._dispatcher.held_bytes.take(self._caller.share, size)
        task.add_done_callback(lambda done: self._forget(call.request_id, done, size))
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
        if self._roots is not None and not self._roots.is_known:
            await self._roots.settle()
        caller = call.declared(self._caller) if version == _MODERN else self._caller
        if (fault := self._missing_roots(caller, call.name)) is not None:
            await self._respond(call.request_id, version, wire.error_result(fault))
            return
        is_async, may_ask = self._how_it_runs(caller, call.name)
        try:
            elicit = self._elicit_for(call, version) if may_ask else None
        except BadState as fault:
            await self._send_error(call.request_id, (types.INVALID_PARAMS, str(fault)))
            return
        # A tool that waits for other calls, or for a person, takes no slot.
        slot = _Slot(self._slots)
        if not is_async:
            await slot.take()
        try:
            parent = parent_span(call.meta)
            with self._progress_of(call) as progress:
                result = await run_tool(
                    self._dispatcher, caller, call.name, call.arguments, progress, elicit, slot.free, parent
                )
            await self._respond(call.request_id, version, result)
        finally:
            slot.free()

    def _how_it_runs(self, caller: Caller, name: str) -> tuple[bool, bool]:
        """Return whether a tool runs on the event loop, without a thread of its own, and whether it may ask the person.

        The refusal of an unknown name is made on the event loop.
        """
        try:
            tool = self._dispatcher.find(caller, name)
        except HoldfastError:
            return True, False
        is_async = tool.run_async is not None
        return is_async, is_async or tool.may_ask

    def _missing_roots(self, caller: Caller, name: str) -> HoldfastError | None:
        """Return why a tool cannot be called on a connection whose client declared no directory that can be used."""
        if self._roots is None or self._roots.connection.fault is None or caller.roots:
            return None
        try:
            self._dispatcher.find(caller, name)
        except HoldfastError:
            return NO_ROOTS
        return None

    async def _ask_for_roots(self) -> object:
        with anyio.move_on_after(_ROOTS_SECONDS):
            return await self._questions.request({"method": "roots/list"})
        return None

    async def _serve_roots(self, answer: object) -> None:
        """Serve the roots of a client's answer from now on; its list of tools changes with the first and the last one."""
        assert self._roots is not None
        try:
            served = await self._dispatcher.in_thread(self._caller, self._roots.connection.resolve, answer)
        except ResourceBusy:
            _log.warning("the roots of a client were not looked at: too much is waiting")
            return
        has_changed = bool(served.roots) != bool(self._caller.roots)
        self._caller = replace(self._caller, roots=served.roots, named_roots=served.named_roots)
        if has_changed:
            self._post(to_json({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))

    def _elicit_for(self, call: ToolCall, version: str) -> Elicit | None:
        if version == _MODERN:
            return elicit_statelessly(self._caller, version, call.params)
        return self._questions.ask if self._takes_forms else None

    async def _respond(self, request_id: RequestId, version: str, result: dict[str, Any]) -> None:
        if version == _MODERN:
            result = wire.stateless_result(result, self._server_info)
        await send_result(self._dispatcher, self._caller, request_id, result, self._write)

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
        if isinstance(message, types.JSONRPCRequest) and len(self._sdk_requests) >= _MAX_SDK_REQUESTS:
            text = f"More than {_MAX_SDK_REQUESTS} requests are open on this connection; wait for answers."
            await self._send_error(message.id, (SERVER_ERROR, text))
            return
        if not self._note_roots(message):
            return
        if isinstance(message, types.JSONRPCRequest):
            self._has_opened = True
            self._sdk_requests.add(message.id)
            if message.method == "initialize":
                self._initialize_id = message.id
                self._capabilities = (message.params or {}).get("capabilities")
                info = (message.params or {}).get("clientInfo")
                self._caller = declare_client(self._caller, info, self._capabilities)
            elif message.method != "ping" and self._roots is not None and not self._roots.is_known:
                self._tasks.start_soon(self._hand_when_settled, SessionMessage(message))
                return
        await self._hand_over(SessionMessage(message))

    async def _hand_when_settled(self, message: SessionMessage) -> None:
        assert self._roots is not None
        await self._roots.settle()
        await self._hand_over(message)

    async def _hand_over(self, message: SessionMessage) -> None:
        with suppress(*_CONNECTION_LOST):
            await self._to_sdk.send(message)
        request = message.message
        if isinstance(request, types.JSONRPCRequest) and request.method not in _LASTING_METHODS:
            with anyio.move_on_after(_SDK_SECONDS):
                while request.id in self._sdk_requests:
                    await self._sdk_answered.wait()

    def _note_roots(self, message: types.JSONRPCMessage) -> bool:
        """Note what a message says about the client's roots; False when nothing can be served to this client."""
        if self._roots is None:
            return True
        method = getattr(message, "method", "")
        params = getattr(message, "params", None) or {}
        is_declared = method == "initialize" and self._roots.declare(params.get("capabilities"))
        if method in _ROOTS_NOTICES:
            self._roots.ask_again()
        fault = self._roots.connection.fault
        if fault is None or is_declared or self._has_opened:
            return True
        self._refusal = RefusedConnection(fault, getattr(message, "id", None))
        return False

    async def _send_error(self, request_id: RequestId | None, fault: Fault) -> None:
        code, text = fault
        await self._write(to_json({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}))


class _Slot:
    """One of the calls that a connection may have at once; it is freed early by a call that begins to wait for a person."""

    def __init__(self, slots: anyio.Semaphore) -> None:
        self._slots = slots
        self._is_held = False

    async def take(self) -> None:
        """Wait for the slot."""
        await self._slots.acquire()
        self._is_held = True

    def free(self) -> None:
        """Give it back, once."""
        if self._is_held:
            self._is_held = False
            self._slots.release()
