"""Streamable HTTP for the conformance suite in front of the stdio relay: `python -m tests.protocol.bridge`.

The suite speaks HTTP only. This carries each of its messages through a relay process, and so through the Unix socket
and the short way of the stream door. A handshake client has a relay of its own; stateless requests share one.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from holdfast.transport.doors.http_server import base_url, listen_on
from tests.helpers.agent import command

Message = dict[str, Any]
_LINE_BYTES = 16 * 1024 * 1024
_MODERN = "2026-07-28"
_OPENING: Message = {
    "jsonrpc": "2.0",
    "id": "bridge",
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


class Line:
    """One relay process. Requests get numbers of the line's own, since HTTP clients may use one twice."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._open: dict[int | str, tuple[Any, Any, asyncio.Queue[Message]]] = {}
        self._count = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "Line":
        """Start a relay of the state folder that the environment names."""
        process = await asyncio.create_subprocess_exec(
            *command("stdio", "/"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
        )
        return cls(process)

    async def end(self) -> None:
        """Close the relay's input, after which it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading

    async def send(self, message: Message) -> None:
        """Pass on a notification, or an answer to the server."""
        self._write(message)
        assert self._process.stdin is not None
        await self._process.stdin.drain()

    def _write(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask(self, message: Message) -> AsyncIterator[Message]:
        """Pass on a request and give what belongs to it, its answer last."""
        self._count += 1
        token = ((message.get("params") or {}).get("_meta") or {}).get("progressToken")
        queue: asyncio.Queue[Message] = asyncio.Queue()
        self._open[self._count] = (message["id"], token, queue)
        number = self._count
        await self.send({**message, "id": number})
        try:
            while "method" in (answer := await queue.get()):
                yield answer
            yield answer
        finally:
            if self._open.pop(number, None) is not None:
                self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            message: Message = json.loads(raw)
            if "method" in message:
                self._pass_on(message)
            elif request := self._open.pop(message["id"], None):
                request[2].put_nowait({**message, "id": request[0]})

    def _pass_on(self, message: Message) -> None:
        """Give a notice to the request whose progress it tells, any other to the newest one."""
        progress_token = (message.get("params") or {}).get("progressToken")
        requests = list(self._open.values())
        for entry in [
            entry for entry in requests if progress_token is not None and entry[1] == progress_token
        ] or requests[-1:]:
            entry[2].put_nowait(message)


class Bridge:
    """The HTTP endpoint."""

    def __init__(self) -> None:
        self._sessions: dict[str, Line] = {}
        self._shared: Line | None = None
        self._opening = asyncio.Lock()

    async def post(self, request: Request) -> Response:
        """Carry one message."""
        message = await request.json()
        session = request.headers.get("mcp-session-id", "")
        if message.get("method") == "initialize" and request.headers.get("mcp-protocol-version") != _MODERN:
            session = uuid4().hex
            self._sessions[session] = await Line.start()
        line = self._sessions.get(session) if session else await self._stateless()
        if line is None:
            return JSONResponse({}, 404)
        if "id" not in message or "method" not in message:
            await line.send(message)
            return Response(status_code=202)
        return StreamingResponse(
            _events(line, message), headers={"mcp-session-id": session}, media_type="text/event-stream"
        )

    async def delete(self, request: Request) -> Response:
        """End a session."""
        line = self._sessions.pop(request.headers.get("mcp-session-id", ""), None)
        if line is not None:
            await line.end()
        return Response(status_code=200 if line else 404)

    async def _stateless(self) -> Line:
        async with self._opening:
            if self._shared is None:
                self._shared = await Line.start()
                async for _answer in self._shared.ask(_OPENING):
                    pass
        return self._shared

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """End every relay with the bridge."""
        yield
        for line in [*self._sessions.values(), *([self._shared] if self._shared else [])]:
            await line.end()


async def _events(line: Line, message: Message) -> AsyncIterator[str]:
    async for answer in line.ask(message):
        yield f"event: message\ndata: {json.dumps(answer)}\n\n"


async def main() -> None:
    """Serve until a signal ends it."""
    bridge = Bridge()
    routes = [
        Route("/mcp", bridge.post, methods=["POST"]),
        Route("/mcp", bridge.delete, methods=["DELETE"]),
    ]
    app = Starlette(routes=routes, lifespan=bridge.lifespan)
    listener = listen_on("127.0.0.1", 0)
    listener.listen()
    print(base_url(listener), flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)).serve([listener])


if __name__ == "__main__":
    asyncio.run(main())
