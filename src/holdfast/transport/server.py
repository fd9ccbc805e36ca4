"""The running server: opens its doors, says where they are, and closes them when it is told to, or when idle."""

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

import anyio
import anyio.to_thread
import uvicorn

from holdfast import __version__
from holdfast.auth.authenticate import Authenticator, KeyList, nobody_listed
from holdfast.auth.context import Caller
from holdfast.clock import utc_now
from holdfast.config.settings import Settings
from holdfast.errors import Internal
from holdfast.secret import Secret
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors.browser_sessions import ConsoleLinks
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import MAX_HEAD_BYTES, Guard, RequestLimits
from holdfast.transport.doors.hosts import HostRules
from holdfast.transport.doors.http import McpDoor, http_app
from holdfast.transport.doors.http_protocol import paced_protocol
from holdfast.transport.doors.listen import address_of, base_url
from holdfast.transport.doors.socket import OpenRoots, SocketDoor
from holdfast.transport.doors.stdio import serve_stdio
from holdfast.transport.lifecycle import BACKGROUND, ready
from holdfast.transport.shutdown import LONGEST_SECONDS, end_within
from holdfast.transport.state_folder import AGENT_TOKEN, PERSON_KEY, StateFolder

_DRAIN_SECONDS = 3.5
_HTTP_GRACE_SECONDS = 1
_KEEP_ALIVE_SECONDS = 5


@dataclass(frozen=True)
class ServerOptions:
    """What a server is to be: its inside, its doors, and its kind.

    `has_work` keeps an idle background server from ending: a review that waits, a job in the queue. `release` is
    called when the server begins to end, so that calls that only wait come back. `index_status` may take its time.
    """

    folder: StateFolder
    settings: Settings
    kind: str
    dispatcher: Dispatcher
    open_roots: OpenRoots
    listeners: tuple[socket.socket, ...] = ()
    roots: tuple[str, ...] = ()
    has_mcp: bool = True
    has_console: bool = True
    stdio: tuple[Caller, int] | None = None
    key_list: KeyList = nobody_listed
    announce: Callable[[str, str | None], None] = lambda _url, _link: None
    has_work: Callable[[], bool] = lambda: False
    release: Callable[[], None] = lambda: None
    index_status: Callable[[], dict[str, object]] = dict


class Server:
    """One run of one plan."""

    def __init__(self, plan: ServerOptions) -> None:
        self._plan = plan
        self._stop = asyncio.Event()
        self._started_at = utc_now()
        self._started = time.monotonic()
        self._links = ConsoleLinks()
        self._connections = Connections(plan.settings.server.max_connections)
        self._socket_listener: asyncio.Server | None = None
        self._uvicorn: _Http | None = None

    async def run(self) -> None:
        """Serve until a signal, a control request, the end of stdin or idleness ends it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, True)
        async with self._http(), anyio.create_task_group() as tasks:
            self._socket_listener = await self._socket_door().listen()
            _settle_memory()
            self._publish()
            if self._plan.kind == BACKGROUND:
                tasks.start_soon(self._end_when_idle)
            if self._plan.stdio is not None:
                tasks.start_soon(self._serve_stdio, *self._plan.stdio)
            await self._stop.wait()
            await self._connections.drain(_DRAIN_SECONDS)
            tasks.cancel_scope.cancel()

    def _end(self, for_good: bool) -> None:
        """Stop accepting at once; the rest follows. `for_good` lets relays wait until they are needed again."""
        self._connections.ending_for_good = for_good
        if not self._stop.is_set():
            end_within(LONGEST_SECONDS)
        if self._socket_listener is not None and not self._stop.is_set():
            self._socket_listener.close()
            self._plan.folder.forget()
        if self._uvicorn is not None:
            self._uvicorn.stop_listening()
        self._plan.release()
        self._stop.set()

    def _publish(self) -> None:
        plan = self._plan
        host, port = address_of(plan.listeners[0]) if plan.listeners else (None, None)
        plan.folder.record(
            {
                "pid": os.getpid(),
                "host": host,
                "port": port,
                "version": __version__,
                "started_at": self._started_at,
                "kind": plan.kind,
            }
        )
        ready(plan.folder)
        if plan.listeners:
            plan.announce(base_url(plan.listeners[0]), self._link())

    def _link(self) -> str | None:
        if not (self._plan.has_console and self._plan.listeners):
            return None
        return f"{base_url(self._plan.listeners[0])}/session?token={self._links.mint()}"

    def _socket_door(self) -> SocketDoor:
        plan = self._plan
        return SocketDoor(
            folder=plan.folder,
            dispatcher=plan.dispatcher,
            open_roots=plan.open_roots,
            control=self._control,
            connections=self._connections,
            person_key=Secret(plan.folder.key(PERSON_KEY)),
            max_message_bytes=plan.settings.server.max_body_bytes,
            server_kind=plan.kind,
            spare_roots=tuple(plan.settings.folders.roots),
        )

    async def _control(self, action: str) -> dict[str, object]:
        if action == "status":
            return self._status()
        if action == "link":
            link = self._link()
            return {"ok": True, "url": link} if link else _refusal("This server has no console.")
        if action == "index":
            return {"ok": True, **await anyio.to_thread.run_sync(self._plan.index_status)}
        if action in ("drain", "stop"):
            self._end(action == "stop")
            return {"ok": True}
        return _refusal(f"action must be status, link, index, drain or stop: {action!r}")

    def _status(self) -> dict[str, object]:
        plan = self._plan
        return {
            "ok": True,
            "pid": os.getpid(),
            "version": __version__,
            "kind": plan.kind,
            "started_at": self._started_at,
            "uptime_seconds": round(time.monotonic() - self._started, 1),
            "url": base_url(plan.listeners[0]) if plan.listeners else None,
            "port": address_of(plan.listeners[0])[1] if plan.listeners else None,
            # The connection that asks is not one of those it asks about.
            "connections": self._connections.count - 1,
        }

    async def _end_when_idle(self) -> None:
        limit = self._plan.settings.server.idle_exit_seconds
        last_used = time.monotonic()
        while time.monotonic() - last_used < limit:
            await anyio.sleep(min(1.0, limit / 4))
            if self._connections.count or self._plan.has_work():
                last_used = time.monotonic()
        self._end(True)

    async def _serve_stdio(self, caller: Caller, stdout: int) -> None:
        limit = self._plan.settings.server.max_body_bytes
        await serve_stdio(self._plan.dispatcher, caller, self._connections, stdout, limit)
        self._end(True)

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[None]:
        """Keep the HTTP door open; leaving waits a little for requests under way."""
        plan = self._plan
        if not plan.listeners:
            yield
            return
        mcp = McpDoor(plan.dispatcher, plan.settings.server.max_body_bytes, self._connections) if plan.has_mcp else None
        async with mcp.run() if mcp else nullcontext():
            http = self._uvicorn = _Http(self._http_config(mcp))
            self._connections.http_count = lambda: len(http.server_state.connections)
            serving = asyncio.create_task(http.serve(sockets=list(plan.listeners)))
            try:
                await _either(http.listening, serving)
                yield
            finally:
                http.should_exit = True
                await serving

    def _http_config(self, mcp: McpDoor | None) -> uvicorn.Config:
        plan, limits = self._plan, self._plan.settings.server
        app = http_app(plan.dispatcher, mcp, self._connections, self._links if plan.has_console else None)
        listening = [address_of(listener)[0] for listener in plan.listeners]
        guard = Guard(
            app,
            HostRules(limits.allowed_hosts, limits.allowed_origins, listening),
            Authenticator(Secret(plan.folder.key(AGENT_TOKEN)), plan.settings.auth.mode, plan.key_list),
            self._links.is_open,
            plan.roots,
            RequestLimits(limits.max_body_bytes, limits.slow_client_seconds),
        )
        return uvicorn.Config(
            guard,
            http=paced_protocol(limits.slow_client_seconds, self._connections.has_room_for_http),
            ws="websockets-sansio",
            ws_max_size=limits.max_body_bytes,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_HTTP_GRACE_SECONDS,
        )


class _Http(uvicorn.Server):
    """uvicorn without its own handling of signals: they end the whole server, not this door alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.listening.set()

    def stop_listening(self) -> None:
        """Take no new connections; those that are open go on."""
        for server in self.servers:
            server.close()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


async def _either(event: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Wait for the event; a task that ends before it has failed, and its error is raised."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            raise Internal("The HTTP door did not open.")
    finally:
        waiting.cancel()


def _settle_memory() -> None:
    """Take what the start left out of the collector's sight: going through it cost 70 ms in the middle of a call."""
    gc.collect()
    gc.freeze()


def _refusal(message: str) -> dict[str, object]:
    return {"error": {"code": "INVALID_ARGUMENT", "message": message, "retryable": False}}
