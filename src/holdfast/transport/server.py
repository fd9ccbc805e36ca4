"""Runs the server: opens its doors, publishes their addresses, and ends on request, by a signal or when idle."""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import uvicorn
from starlette.routing import BaseRoute

from holdfast import __version__
from holdfast.auth.authenticate import Authenticator, FindTenant, find_no_tenant
from holdfast.auth.context import LOCAL_USER, AuthContext, Caller
from holdfast.auth.tokens import IssuerKeys
from holdfast.bulletin import Bulletin
from holdfast.clock import utc_now
from holdfast.config.environment import default_gateways
from holdfast.config.settings import Settings
from holdfast.console.console import Console
from holdfast.console.ports import ServerFacts
from holdfast.console.sessions import BrowserSessions
from holdfast.secret import Secret
from holdfast.tools import table
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.console_calls import DispatchedCalls
from holdfast.transport.doors.guard import Guard, RequestLimits
from holdfast.transport.doors.hosts import HostRules, parse_networks
from holdfast.transport.doors.http import McpDoor, build_app
from holdfast.transport.doors.http_metrics import CountedRequests
from holdfast.transport.doors.http_server import (
    HttpServer,
    address_of,
    base_url,
    http_config,
)
from holdfast.transport.doors.oauth_door import open_oauth_door
from holdfast.transport.doors.streams.client_roots import ConnectionRoots, OpenRoots, RefusedConnection
from holdfast.transport.doors.streams.socket import SocketDoor
from holdfast.transport.doors.streams.stdio import serve_stdio
from holdfast.transport.doors.tls import RENEWAL_SECONDS, Certificate
from holdfast.transport.lifecycle import BACKGROUND, release_start_lock
from holdfast.transport.shutdown import MAX_SHUTDOWN_SECONDS, exit_within
from holdfast.transport.state_folder import (
    AGENT_TOKEN,
    BROWSER_SESSIONS,
    KEY_FILES,
    METRICS_TOKEN,
    PERSON_KEY,
    StateFolder,
)

_DRAIN_SECONDS = 3.5
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE_BLOCK_BYTES, _HEAP_TOP_BYTES = 1 << 22, 1 << 24
_MAX_DESCRIPTORS = 16_384
_SWITCH_SECONDS = 0.0005
"""How long a thread that computes keeps the interpreter while another wants it: a small call asks for it some twenty times."""


@dataclass(frozen=True)
class ServerOptions:
    """How to run a server: its settings, its dispatcher, its doors and its kind.

    `has_work` keeps an idle background server from ending: a review that waits, a job in the queue. `release` is
    called when the server begins to end, so that calls that only wait return. `index_status` may be slow. `warnings`
    are what the person should know. `known_roots` are the directories that the person's calls may use, else `roots`.
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
    stdio: tuple[ConnectionRoots, int] | None = None
    find_tenant: FindTenant = find_no_tenant
    announce: Callable[[str], None] = lambda _url: None
    has_work: Callable[[], bool] = lambda: False
    release: Callable[[], None] = lambda: None
    index_status: Callable[[], dict[str, object]] = dict
    warnings: Callable[[], Sequence[str]] = tuple
    known_roots: Callable[[], Sequence[str]] | None = None
    bulletin: Bulletin = field(default_factory=Bulletin)
    issuer_keys: IssuerKeys | None = None


class Server:
    """One run of a server. Raises StateFault when a key of the state folder cannot be used."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._person_key = Secret(options.folder.key(PERSON_KEY))
        self._agent_token = Secret(options.folder.key(AGENT_TOKEN))
        self._metrics = options.dispatcher.metrics
        self._metrics_token = (
            Secret(options.folder.key(METRICS_TOKEN)) if options.settings.observe.metrics.enabled else None
        )
        self._stop = asyncio.Event()
        self._started_at = utc_now()
        self._start_clock = time.monotonic()
        self._authenticator = Authenticator(
            self._agent_token, options.settings.auth.mode, options.find_tenant, self._metrics_token
        )
        self._console = self._build_console() if options.has_console and options.listeners else None
        self._oauth = open_oauth_door(options.settings, options.issuer_keys) if options.issuer_keys else None
        tls = options.settings.server.tls
        self._certificate = Certificate(tls) if tls.is_on and options.listeners else None
        places = min(options.settings.server.max_connections, max(1, _raise_descriptor_limit() // 3))
        self._connections = Connections(places, self._metrics)
        self._socket_listener: asyncio.Server | None = None
        self._http_server: HttpServer | None = None
        self._refusal: RefusedConnection | None = None

    async def run(self) -> None:
        """Serve until a signal, a control request, the end of stdin or idleness ends it.

        Raises RefusedConnection when the client on stdin has no directory that could be served.
        """
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(signal_number, self._end, True)
        async with self._http(), anyio.create_task_group() as tasks:
            self._socket_listener = await self._socket_door().listen()
            _freeze_memory()
            _return_memory()
            sys.setswitchinterval(_SWITCH_SECONDS)
            self._publish()
            if self._options.kind == BACKGROUND:
                tasks.start_soon(self._end_when_idle)
            if self._certificate is not None:
                tasks.start_soon(self._renew_certificate, self._certificate)
            if self._options.stdio is not None:
                tasks.start_soon(self._serve_stdio, *self._options.stdio)
            await self._stop.wait()
            await self._connections.drain(_DRAIN_SECONDS)
            tasks.cancel_scope.cancel()
        if self._refusal is not None:
            raise self._refusal

    def _end(self, for_good: bool) -> None:
        """Stop accepting connections and begin to end. After `for_good` relays start no server before their client calls."""
        self._connections.is_ending_for_good = for_good
        if not self._stop.is_set():
            exit_within(MAX_SHUTDOWN_SECONDS)
        if self._socket_listener is not None and not self._stop.is_set():
            self._socket_listener.close()
            self._options.folder.forget()
        if self._http_server is not None:
            self._http_server.stop_listening()
        self._options.release()
        self._stop.set()

    def _publish(self) -> None:
        options = self._options
        host, port = address_of(options.listeners[0]) if options.listeners else (None, None)
        options.folder.record(
            {
                "pid": os.getpid(),
                "host": host,
                "port": port,
                "version": __version__,
                "started_at": self._started_at,
                "kind": options.kind,
            }
        )
        if self._console is not None:
            options.dispatcher.publish_console(self._url)
        release_start_lock(options.folder)
        if options.listeners:
            options.announce(self._url)

    @property
    def _url(self) -> str:
        """Return the address by which clients and browsers reach the server."""
        settings = self._options.settings.server
        return settings.public_url or base_url(self._options.listeners[0], has_tls=settings.tls.is_on)

    def _build_console(self) -> Console:
        folder, mode = self._options.folder, self._options.settings.auth.mode
        sessions = BrowserSessions(
            folder.read_private(BROWSER_SESSIONS), lambda text: folder.write_private(BROWSER_SESSIONS, text)
        )
        return Console(
            sessions, lambda auth: mode != "listed" or self._options.find_tenant(auth.shown_key_hash) is not None
        )

    def _identify_tenant(self, key: Secret) -> AuthContext | None:
        """Return the tenant of a key; the agent's token names the local user, so here it opens nothing."""
        auth = self._authenticator.identify(key)
        return None if auth is None or auth.is_local else auth

    def _console_link(self) -> str | None:
        if self._console is None:
            return None
        return f"{self._url}/open#{self._console.sessions.create_link_token()}"

    def _socket_door(self) -> SocketDoor:
        options = self._options
        return SocketDoor(
            folder=options.folder,
            dispatcher=options.dispatcher,
            open_roots=options.open_roots,
            control=self._control,
            connections=self._connections,
            person_key=lambda: self._person_key,
            max_message_bytes=options.settings.server.max_body_bytes,
            server_kind=options.kind,
            spare_roots=tuple(options.settings.folders.roots),
        )

    async def _control(self, action: str) -> dict[str, object]:
        if action == "status":
            return self._status()
        if action == "link":
            link = self._console_link()
            return {"ok": True, "url": link} if link else _control_error("This server has no console.")
        if action == "index":
            return {"ok": True, **await anyio.to_thread.run_sync(self._options.index_status)}
        if action == "metrics":
            return {"ok": True, "figures": await anyio.to_thread.run_sync(self._metrics.snapshot)}
        if action in KEY_FILES:
            await anyio.to_thread.run_sync(self._options.folder.rotate_key, action)
            await self._take_keys()
            return {"ok": True, "pid": os.getpid()}
        if action in ("drain", "stop"):
            self._end(action == "stop")
            return {"ok": True}
        return _control_error(
            f"action must be status, link, index, metrics, drain, stop or the name of a key: {action!r}"
        )

    async def _take_keys(self) -> None:
        """Use the keys of the state folder from here on; what was opened by a key that is no longer there ends."""
        folder, authenticator = self._options.folder, self._authenticator
        person, agent = Secret(folder.key(PERSON_KEY)), Secret(folder.key(AGENT_TOKEN))
        if not person.matches(self._person_key.reveal()):
            self._person_key = person
            if self._console is not None:
                self._console.sessions.end_all(LOCAL_USER)
                await anyio.to_thread.run_sync(self._console.sessions.save)
        if not agent.matches(authenticator.local_token.reveal()):
            authenticator.local_token = agent
            self._connections.http.drop_all_of(Caller(LOCAL_USER).share)
        if authenticator.metrics_token is not None:
            authenticator.metrics_token = Secret(folder.key(METRICS_TOKEN))

    def _status(self) -> dict[str, object]:
        options = self._options
        return {
            "ok": True,
            "pid": os.getpid(),
            "version": __version__,
            "kind": options.kind,
            "started_at": self._started_at,
            "uptime_seconds": round(time.monotonic() - self._start_clock, 1),
            "url": self._url if options.listeners else None,
            "port": address_of(options.listeners[0])[1] if options.listeners else None,
            # The connection that asks is not one of those it asks about.
            "connections": self._connections.count - 1,
            "warnings": list(options.warnings()),
        }

    async def _end_when_idle(self) -> None:
        limit = self._options.settings.server.idle_exit_seconds
        last_used = time.monotonic()
        while time.monotonic() - last_used < limit:
            await anyio.sleep(min(1.0, limit / 4))
            if self._connections.count or self._options.has_work():
                last_used = time.monotonic()
        self._end(True)

    async def _renew_certificate(self, certificate: Certificate) -> None:
        while True:
            await anyio.sleep(RENEWAL_SECONDS)
            await anyio.to_thread.run_sync(certificate.renew)

    async def _serve_stdio(self, roots: ConnectionRoots, stdout: int) -> None:
        limit = self._options.settings.server.max_body_bytes
        try:
            await serve_stdio(self._options.dispatcher, roots, self._connections, stdout, limit)
        except RefusedConnection as refusal:
            self._refusal = refusal
        self._end(True)

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[None]:
        """Keep the HTTP door open; leaving it waits a little for running requests."""
        options = self._options
        if not options.listeners:
            yield
            return
        settings = options.settings.server
        mcp = McpDoor(options.dispatcher, settings, self._connections, self._oauth) if options.has_mcp else None
        async with mcp.run() if mcp else nullcontext():
            http = self._http_server = HttpServer(self._http_config(mcp))
            serving = asyncio.create_task(http.serve(sockets=list(options.listeners)))
            try:
                await http.wait_until_listening(serving)
                yield
            finally:
                http.should_exit = True
                await serving

    def _console_routes(self, console: Console) -> list[BaseRoute]:
        options = self._options
        mode, is_read_only = options.settings.auth.mode, options.settings.folders.read_only
        facts = ServerFacts(mode, is_read_only, options.known_roots or (lambda: options.roots), self._identify_tenant)
        calls = DispatchedCalls(options.dispatcher)
        return console.routes(options.dispatcher, table.TOOLS, calls, options.bulletin, self._connections, facts)

    def _http_config(self, mcp: McpDoor | None) -> uvicorn.Config:
        options, limits = self._options, self._options.settings.server
        routes = self._console_routes(self._console) if self._console else []
        has_metrics = self._metrics_token is not None
        app = build_app(options.dispatcher, mcp, self._connections, routes, has_metrics=has_metrics, oauth=self._oauth)
        listening = [address_of(listener)[0] for listener in options.listeners]
        guard = Guard(
            app,
            HostRules(limits.own_hosts, limits.allowed_origins, listening),
            self._authenticator,
            self._console.gate if self._console else None,
            options.roots,
            RequestLimits(
                limits.max_body_bytes,
                limits.slow_client_seconds,
                self._connections.http,
                options.dispatcher.held_bytes,
                parse_networks(limits.trusted_proxies, default_gateways()),
            ),
            self._oauth,
        )
        counted = CountedRequests(guard, self._metrics) if self._metrics_token else guard
        held_bytes = options.dispatcher.held_bytes
        return http_config(counted, limits, self._connections, held_bytes, self._certificate)


def _raise_descriptor_limit() -> int:
    """Let this process open as many files as the system lets it, up to a limit of our own, and return how many.

    Some systems begin with 256. Connections get a third, so that calls have room for the files they open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    return _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _freeze_memory() -> None:
    """Exclude the objects made at start from garbage collection: walking them cost 70 ms in the middle of a call."""
    gc.collect()
    gc.freeze()


def _return_memory() -> None:
    """Let the C library give large blocks back as soon as they are freed, and keep few heaps for all the threads.

    By itself glibc learns from the first large blocks to keep such in its heaps, one for each thread: floods of megabytes
    left a server with half a gigabyte. Told so, it also stops learning how much of a heap's top to keep, and gave 128 kB back
    only to ask for it again: that was half the processor time of an answer of a megabyte.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _HEAP_TOP_BYTES)
        mallopt(_M_ARENA_MAX, 2)


def _control_error(message: str) -> dict[str, object]:
    return {"error": {"code": "INVALID_ARGUMENT", "message": message, "retryable": False}}
