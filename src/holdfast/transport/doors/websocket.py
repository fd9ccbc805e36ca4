"""The WebSocket door: one text frame is one JSON-RPC message, into the same stream as the other doors."""

from starlette.types import Message, Receive, Scope, Send

from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import CALLER
from holdfast.transport.doors.stream import serve_stream

_SUBPROTOCOL = "mcp"
_GOING_AWAY = 1001


class WebSocketDoor:
    """ASGI endpoint; frames over the size limit are refused by the protocol below."""

    def __init__(self, dispatcher: Dispatcher, connections: Connections) -> None:
        self._dispatcher = dispatcher
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept and serve one connection until either side ends it."""
        await receive()
        offered = _SUBPROTOCOL in scope.get("subprotocols", [])
        await send({"type": "websocket.accept", "subprotocol": _SUBPROTOCOL if offered else None})
        is_open = True

        async def next_message() -> bytes | None:
            nonlocal is_open
            event = await self._connections.next_or_none(receive)
            if event is None:
                return None
            is_open = event["type"] == "websocket.receive"
            return _payload(event) if is_open else None

        async def send_message(message: bytes) -> None:
            if is_open:
                await send({"type": "websocket.send", "text": message.decode()})

        with self._connections.stream():
            await serve_stream(self._dispatcher, scope[CALLER], next_message, send_message)
        if is_open:
            await send({"type": "websocket.close", "code": _GOING_AWAY})


def _payload(event: Message) -> bytes:
    text = event.get("text")
    return text.encode() if text is not None else event.get("bytes") or b""
