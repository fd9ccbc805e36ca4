"""The stdio door of `--in-process`: this process's own pipes, with nothing but JSON-RPC on stdout."""

import os

import anyio
import anyio.to_thread

from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.frames import LineSplitter, OversizedLine, oversized_error
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.streams.client_roots import ConnectionRoots
from holdfast.transport.doors.streams.stream import serve_stream

_READ_BYTES = 262_144


def claim_stdout() -> int:
    """Return a private descriptor for stdout; whatever else prints in this process goes to stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return private


async def serve_stdio(
    dispatcher: Dispatcher, roots: ConnectionRoots, connections: Connections, stdout: int, max_bytes: int
) -> None:
    """Serve the messages on stdin until it ends; the answers go to the descriptor `stdout`. Raises RefusedConnection."""
    lines = LineSplitter(max_bytes)
    complete: list[bytes | OversizedLine] = []

    def write_all(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(stdout, rest) :]

    async def send(message: bytes) -> None:
        await anyio.to_thread.run_sync(write_all, message + b"\n", abandon_on_cancel=True)

    async def read_more() -> bytes:
        return await anyio.to_thread.run_sync(os.read, 0, _READ_BYTES, abandon_on_cancel=True)

    async def next_message() -> bytes | None:
        while True:
            while complete:
                line = complete.pop(0)
                if isinstance(line, bytes):
                    return line
                await send(oversized_error(line, max_bytes).rstrip())
            data = await connections.next_or_none(read_more)
            if not data:
                return None
            complete.extend(lines.feed(data))

    with connections.stream():
        await serve_stream(dispatcher, roots.caller, next_message, send, roots)
