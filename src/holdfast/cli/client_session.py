"""Several calls in a row for one command: by the server that is running, or on the state itself, held until the end."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.auth.context import LOCAL_USER, Caller, CallerKind
from holdfast.cli.client import data_of
from holdfast.config.environment import state_dir
from holdfast.errors import ResourceBusy
from holdfast.transport.client.calls import Progress, Result, call_by_socket
from holdfast.transport.client.dial import NoServer, send_control
from holdfast.transport.lifecycle import COMMAND, LockHeld, hold_server_lock
from holdfast.transport.state_folder import StateFolder

if TYPE_CHECKING:
    from holdfast.wiring import Wired

_WAIT_SECONDS = 20.0
_PAUSE_SECONDS = 0.1


class _Line(Protocol):
    def call(
        self, kind: str, roots: Sequence[str], tool: str, arguments: dict[str, Any], progress: Progress | None
    ) -> Result:
        """Return the protocol's result of a call."""


@dataclass(frozen=True)
class Talk:
    """Calls of the user of this machine: as the person, or as an agent that was started with some directories."""

    line: _Line

    def as_person(self, tool: str, roots: Sequence[str] = (), **arguments: Any) -> dict[str, Any]:
        """Call one of the person's tools, on directories where it needs some; return its data or raise its error."""
        return data_of(self.line.call("person", roots, tool, arguments, None))

    def with_roots(
        self, roots: Sequence[str], tool: str, progress: Progress | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Call a tool on directories; return its data or raise its error."""
        return data_of(self.line.call("agent", roots, tool, arguments, progress))


@contextmanager
def conversation() -> Iterator[Talk]:
    """Give a way to make calls; without a server the state folder is this process's own until the end."""
    folder = StateFolder(state_dir())
    folder.prepare()
    with ExitStack() as held:
        yield Talk(_line(folder, held))


def _line(folder: StateFolder, held: ExitStack) -> _Line:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            send_control(folder, "status")
        except NoServer:
            pass
        else:
            return _Server(folder)
        try:
            held.enter_context(hold_server_lock(folder, COMMAND))
            return held.enter_context(_opened(folder))
        except LockHeld:
            # Another command is at work, or a server is on its way up or down.
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True)
class _Server:
    folder: StateFolder

    def call(
        self, kind: str, roots: Sequence[str], tool: str, arguments: dict[str, Any], progress: Progress | None
    ) -> Result:
        try:
            return call_by_socket(self.folder, tool, arguments, kind, roots, progress)
        except NoServer:
            raise ResourceBusy("The server ended meanwhile; repeat the command.") from None


@dataclass(frozen=True)
class _Own:
    wired: "Wired"

    def call(
        self, kind: str, roots: Sequence[str], tool: str, arguments: dict[str, Any], progress: Progress | None
    ) -> Result:
        from holdfast.transport.mcp.run import run_tool

        caller = Caller(LOCAL_USER, CallerKind(kind), tuple(roots), client=COMMAND)
        return asyncio.run(run_tool(self.wired.dispatcher, caller, tool, arguments, progress))


@contextmanager
def _opened(folder: StateFolder) -> Iterator[_Own]:
    from holdfast.cli.settings import checked
    from holdfast.config.load import load
    from holdfast.wiring import build

    wired = build(checked(load(None)), folder.path)
    try:
        yield _Own(wired)
    finally:
        wired.close()
