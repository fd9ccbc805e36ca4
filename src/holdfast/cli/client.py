"""Calls tools for a command: through the running server, or on the state itself while none is running."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.cli.startup import load_settings, open_state_folder
from holdfast.config.environment import variable
from holdfast.errors import HoldfastError, ResourceBusy, error_from_payload
from holdfast.secret import Secret
from holdfast.transport.client.calls import Progress, Result, call_by_http, call_by_socket
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control
from holdfast.transport.lifecycle import COMMAND, LockHeld, hold_server_lock
from holdfast.transport.state_folder import StateFolder

if TYPE_CHECKING:
    from holdfast.wiring.server_parts import ServerParts

_MAX_WAIT_SECONDS = 20.0


def call_tool(tool: str, arguments: dict[str, Any], key: str | None = None, url: str | None = None) -> dict[str, Any]:
    """Call a tool as the user of this machine, or as the tenant of a key; return its data or raise its error."""
    key = key or variable("HOLDFAST_KEY")
    if key is None:
        with open_session() as session:
            return session.call("agent", (), tool, arguments)
    url = url or _url_of_running_server(open_state_folder())
    return _data_or_error(call_by_http(url, Secret(key), tool, arguments))


def call_as_person(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call one of the person's tools; return its data or raise its error."""
    with open_session() as session:
        return session.call("person", (), tool, arguments)


@contextmanager
def open_session() -> Iterator["Session"]:
    """Give a session for the calls of one command."""
    with ExitStack() as stack:
        yield Session(open_state_folder(), stack)


class Session:
    """The calls of one command, as the user of this machine: as the person, or as an agent with some directories.

    They go to the server that is running. When none is, the state folder is this process's own from the first call
    until the end of the session.
    """

    def __init__(self, folder: StateFolder, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._has_server = False
        self._own: ServerParts | None = None

    def call_as_person(self, tool: str, roots: Sequence[str] = (), **arguments: Any) -> dict[str, Any]:
        """Call one of the person's tools, on directories where it needs some; return its data or raise its error."""
        return self.call("person", roots, tool, arguments)

    def call_on_roots(
        self, roots: Sequence[str], tool: str, progress: Progress | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Call one of an agent's tools on directories; return its data or raise its error."""
        return self.call("agent", roots, tool, arguments, progress)

    def call(
        self,
        kind: str,
        roots: Sequence[str],
        tool: str,
        arguments: dict[str, Any],
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Call a tool as `person` or `agent`; return its data or raise its error."""
        return _data_or_error(self.call_whole(kind, roots, tool, arguments, progress))

    def call_whole(
        self,
        kind: str,
        roots: Sequence[str],
        tool: str,
        arguments: dict[str, Any],
        progress: Progress | None = None,
    ) -> Result:
        """Call a tool; return the whole result of `tools/call`, be it an error."""
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while self._own is None:
            try:
                result = call_by_socket(self._folder, tool, arguments, kind, roots, progress)
            except NoServer:
                if self._has_server:
                    raise ResourceBusy("The server stopped during the call; repeat the command.") from None
            else:
                self._has_server = True
                return result
            try:
                self._own = self._stack.enter_context(_open_own_state(self._folder))
            except LockHeld:
                # Another command is at work, or a server is starting or ending. Taking the lock has waited a little.
                if time.monotonic() > deadline:
                    raise

        import asyncio

        from holdfast.auth.context import LOCAL_USER, Caller, CallerKind, ClientInfo
        from holdfast.transport.mcp.run import run_tool

        caller = Caller(LOCAL_USER, CallerKind(kind), tuple(roots), client=ClientInfo(is_command=True))
        return asyncio.run(run_tool(self._own.dispatcher, caller, tool, arguments, progress))


@contextmanager
def _open_own_state(folder: StateFolder) -> Iterator["ServerParts"]:
    from holdfast.wiring.build import build

    settings = load_settings(None).settings
    with hold_server_lock(folder, COMMAND):
        parts = build(settings, folder.path)
        try:
            yield parts
        finally:
            parts.close()


def _url_of_running_server(folder: StateFolder) -> str:
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


def _data_or_error(result: Result) -> dict[str, Any]:
    data = result.get("structuredContent")
    payload: dict[str, Any] = data if isinstance(data, dict) else {}
    if result.get("isError"):
        raise error_from_payload(payload)
    return payload
