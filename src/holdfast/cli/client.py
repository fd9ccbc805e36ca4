"""How a person's command calls a tool: through the server that is running, or itself while none is."""

import time
from typing import Any

from holdfast.config.environment import state_dir, variable
from holdfast.errors import HoldfastError, ResourceBusy
from holdfast.secret import Secret
from holdfast.transport.client.calls import Result, call_by_http, call_by_socket
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control
from holdfast.transport.lifecycle import COMMAND, LockHeld, hold_server_lock
from holdfast.transport.state_folder import StateFolder

_WAIT_SECONDS = 20.0


def call_tool(tool: str, arguments: dict[str, Any], key: str | None = None, url: str | None = None) -> dict[str, Any]:
    """Call a tool as the user of this machine, or as the tenant of a key; return its data or raise its error."""
    folder = StateFolder(state_dir())
    folder.prepare()
    key = key or variable("HOLDFAST_KEY")
    if key is None:
        return data_of(_local(folder, tool, arguments))
    return data_of(call_by_http(url or _address(folder), Secret(key), tool, arguments))


def call_as_person(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call one of the person's tools, proven by the key that only this user can read; return its data or its error."""
    folder = StateFolder(state_dir())
    folder.prepare()
    return data_of(_local(folder, tool, arguments, "person"))


def _local(folder: StateFolder, tool: str, arguments: dict[str, Any], kind: str = "agent") -> Result:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return call_by_socket(folder, tool, arguments, kind)
        except NoServer:
            pass
        try:
            return _own(folder, tool, arguments, kind)
        except LockHeld:
            # Another command is at work, or a server is on its way up or down.
            if time.monotonic() > deadline:
                raise


def _own(folder: StateFolder, tool: str, arguments: dict[str, Any], kind: str) -> Result:
    import asyncio

    from holdfast.auth.context import LOCAL_USER, Caller, CallerKind
    from holdfast.cli.settings import checked
    from holdfast.config.load import load
    from holdfast.transport.mcp.run import run_tool
    from holdfast.wiring import build

    settings = checked(load(None))
    with hold_server_lock(folder, COMMAND):
        wired = build(settings, folder.path)
        try:
            caller = Caller(LOCAL_USER, CallerKind(kind))
            return asyncio.run(run_tool(wired.dispatcher, caller, tool, arguments, None))
        finally:
            wired.close()


def _address(folder: StateFolder) -> str:
    try:
        url = send_control(folder, "status").get("url")
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    except NoServer:
        url = None
    if not url:
        raise ResourceBusy(
            "A key is for a server with HTTP, and none is running here: start one, or name it with --url."
        )
    return str(url)


def data_of(result: Result) -> dict[str, Any]:
    """Return what a tool answered, or raise its error."""
    data = result.get("structuredContent")
    found: dict[str, Any] = data if isinstance(data, dict) else {}
    if result.get("isError"):
        raise _error_of(found)
    return found


def _error_of(payload: dict[str, Any]) -> HoldfastError:
    kinds = {kind.code: kind for kind in HoldfastError.__subclasses__()}
    details = {name: value for name, value in payload.items() if name not in ("code", "message", "retryable")}
    kind = kinds.get(str(payload.get("code")), HoldfastError)
    return kind(str(payload.get("message", "The call failed.")), **details)
