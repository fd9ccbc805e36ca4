"""The stdio door of `--in-process`: this process's own pipes, with nothing but JSON-RPC on stdout."""

import os
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from holdfast.auth.context import Caller
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.frames import INVALID_REQUEST, Lines, Overlong, error_line
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.stream import serve_stream

_READ_BYTES = 262_144


def claim_stdout() -> int:
    """Return a private descriptor for stdout; whatever else prints in this process goes to stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return private


async def serve_stdio(
    dispatcher: Dispatcher, caller: Caller, connections: Connections, stdout: int, max_bytes: int
) -> None:
    """Serve stdin until it ends."""
    lines = Lines(max_bytes)
    ready: list[bytes | Overlong] = []
    send = _sender(stdout)

    async def read_more() -> bytes:
        return await anyio.to_thread.run_sync(os.read, 0, _READ_BYTES, abandon_on_cancel=True)

    async def next_message() -> bytes | None:
        while True:
            while ready:
                line = ready.pop(0)
                if isinstance(line, bytes):
                    return line
                text = f"The message is larger than {max_bytes} bytes, the largest that is taken."
                await send(error_line(line.request_id(), INVALID_REQUEST, text).rstrip())
            data = await connections.next_or_none(read_more)
            if not data:
                return None
            ready.extend(lines.feed(data))

    with connections.stream():
        await serve_stream(dispatcher, caller, next_message, send)


def _sender(stdout: int) -> Callable[[bytes], Awaitable[None]]:
    def write_all(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(stdout, rest) :]

    async def send(message: bytes) -> None:
        await anyio.to_thread.run_sync(write_all, message + b"\n", abandon_on_cancel=True)

    return send
