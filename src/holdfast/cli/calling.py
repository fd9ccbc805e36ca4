"""How a person's command calls a tool: through the server that is running, or itself while none is."""

import time
from typing import Any

from holdfast.config.environment import state_dir, variable
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.secret import Secret
from holdfast.transport.calls import Result, call_by_http, call_by_socket
from holdfast.transport.dial import NoServer, Refused, ask
from holdfast.transport.lifecycle import COMMAND, LockHeld, hold_server_lock
from holdfast.transport.state import StateFolder

_WAIT_SECONDS = 20.0


def call_tool(tool: str, arguments: dict[str, Any], key: str | None = None, url: str | None = None) -> dict[str, Any]:
    """Call a tool as the user of this machine, or as the tenant of a key; return its data or raise its error."""
    folder = StateFolder(state_dir())
    folder.prepare()
    key = key or variable("HOLDFAST_KEY")
    if key is None:
        return _data(_local(folder, tool, arguments))
    return _data(call_by_http(url or _address(folder), Secret(key), tool, arguments))


def _local(folder: StateFolder, tool: str, arguments: dict[str, Any]) -> Result:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return call_by_socket(folder, tool, arguments)
        except NoServer:
            pass
        try:
            return _own(folder, tool, arguments)
        except LockHeld:
            # Another command is at work, or a server is on its way up or down.
            if time.monotonic() > deadline:
                raise


def _own(folder: StateFolder, tool: str, arguments: dict[str, Any]) -> Result:
    import asyncio

    from holdfast.auth.context import LOCAL_USER, Caller
    from holdfast.cli.settings import checked
    from holdfast.config.load import load
    from holdfast.transport.protocol import run_tool
    from holdfast.wiring import build

    settings = checked(load(None))
    with hold_server_lock(folder, COMMAND):
        wired = build(settings, folder.path)
        try:
            return asyncio.run(run_tool(wired.dispatcher, Caller(LOCAL_USER), tool, arguments, None))
        finally:
            wired.close()


def _address(folder: StateFolder) -> str:
    try:
        url = ask(folder, "status").get("url")
    except Refused as refusal:
        raise HoldfastError(str(refusal)) from None
    except NoServer:
        url = None
    if not url:
        raise ResourceBusy(
            "A key is for a server with HTTP, and none is running here: start one, or name it with --url."
        )
    return str(url)


def _data(result: Result) -> dict[str, Any]:
    data = result.get("structuredContent")
    found: dict[str, Any] = data if isinstance(data, dict) else {}
    if result.get("isError"):
        raise _error_of(found)
    return found


def _error_of(payload: dict[str, Any]) -> HoldfastError:
    kinds = {kind.code: kind for kind in HoldfastError.__subclasses__()}
    return kinds.get(str(payload.get("code")), HoldfastError)(str(payload.get("message", "The call failed.")))
