"""Run the conformance build: `python -m tests.protocol.serve_fixture STATE_FOLDER`.

This is the product's own server with all its doors, guard and limits. Only what stands behind them is the suite's:
the tool table, and what the suite wants beside tools. It prints its address once the doors are open.
"""

import asyncio
import sys
from typing import Any
from unittest.mock import patch

import mcp_types as types
from mcp.server.lowlevel import Server as ProtocolServer
from mcp.shared.exceptions import MCPError

from holdfast.config.settings import Settings
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.doors import http
from holdfast.transport.doors.http_server import listen_on
from holdfast.transport.doors.streams import stream
from holdfast.transport.lifecycle import FOREGROUND, hold_server_lock
from holdfast.transport.mcp.protocol import Context, GetCaller, build_server
from holdfast.transport.server import Server, ServerOptions
from holdfast.transport.state_folder import StateFolder
from tests.protocol.fixture_server import equip
from tests.protocol.fixture_table import CALLER, dispatcher


def equipped(tools: Dispatcher, caller_of: GetCaller) -> ProtocolServer[Any]:
    """Return the server of the HTTP door with the suite's additions."""
    server = build_server(tools, caller_of)
    equip(server)
    return server


def equipped_without_calls(tools: Dispatcher, caller_of: GetCaller) -> ProtocolServer[Any]:
    """Return the SDK's half of a stream with the suite's additions; a tool call that gets there has lost its way."""
    server = equipped(tools, caller_of)
    server.add_request_handler("tools/call", types.CallToolRequestParams, _astray)
    return server


async def _astray(_ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    raise MCPError(code=types.INTERNAL_ERROR, message=f"{params.name} reached the SDK and not the short way")


def serve(state: str) -> None:
    """Serve until a signal ends it."""
    folder = StateFolder(state)
    folder.prepare()
    settings = Settings()
    with hold_server_lock(folder, FOREGROUND):
        listener = listen_on(settings.server.host, 0)
        plan = ServerOptions(
            folder,
            settings,
            FOREGROUND,
            dispatcher(),
            open_roots=lambda _caller: list(CALLER.roots),
            listeners=(listener,),
            roots=CALLER.roots,
            announce=lambda url: print(url, flush=True),
        )
        with patch.object(http, "build_server", equipped), patch.object(stream, "build_server", equipped_without_calls):
            asyncio.run(_run(plan))


async def _run(plan: ServerOptions) -> None:
    await Server(plan).run()


if __name__ == "__main__":
    serve(sys.argv[1])
