"""The HTTP door of a process that is no server, such as a worker: /metrics and /health behind the guard, in a thread of its own."""

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from holdfast.auth.authenticate import Authenticator
from holdfast.config.environment import default_gateways
from holdfast.config.server_settings import ServerSettings
from holdfast.observe.metrics import Metrics
from holdfast.secret import Secret
from holdfast.shares import HALF, Shares
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.guard import METRICS_PATH, Guard, RequestLimits
from holdfast.transport.doors.hosts import HostRules, parse_networks
from holdfast.transport.doors.http import answer_health
from holdfast.transport.doors.http_metrics import CountedRequests, answer_scrapes
from holdfast.transport.doors.http_server import HttpServer, address_of, http_config
from holdfast.transport.doors.tls import Certificate

_MAX_CONNECTIONS = 16
_END_SECONDS = 3.0


@contextmanager
def serve_metrics(listener: socket.socket, token: Secret, settings: ServerSettings, metrics: Metrics) -> Iterator[None]:
    """Answer scrapes on a listening socket until the block ends."""
    connections, held_bytes = Connections(_MAX_CONNECTIONS, metrics), Shares(settings.max_held_bytes, HALF)
    routes = [Route("/health", answer_health), Route(METRICS_PATH, answer_scrapes(metrics))]
    guard = Guard(
        Starlette(routes=routes),
        HostRules(settings.own_hosts, settings.allowed_origins, [address_of(listener)[0]]),
        Authenticator(Secret(secrets.token_hex(32)), metrics_token=token),
        None,
        (),
        RequestLimits(
            settings.max_body_bytes,
            settings.slow_client_seconds,
            connections.http,
            held_bytes,
            parse_networks(settings.trusted_proxies, default_gateways()),
        ),
    )
    certificate = Certificate(settings.tls) if settings.tls.is_on else None
    server = HttpServer(http_config(CountedRequests(guard, metrics), settings, connections, held_bytes, certificate))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), name="holdfast-metrics", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_END_SECONDS)
