"""The directories of a connection: those it was started with, and the roots that its client declares.

With no directory named, the declared roots are served, as the reference server does, and the working directory where
the client declares none that can be used. With directories named, each of them narrows to the declared roots beneath
it, and one that has none beneath it stays: what a client declares never gives more than the person named.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from holdfast.auth.context import Caller
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.text.decode import has_lone_surrogate
from holdfast.transport.client.frames import RequestId

OpenRoots = Callable[[Caller], list[str]]

_log = logging.getLogger(__name__)

_MAX_ROOTS = 100
NO_ROOTS = InvalidArgument(
    "There is no directory to work in: none was named when Holdfast was started, and the client declares no root that can "
    "be used. Open a folder in the client, or name directories: holdfast stdio DIR…"
)
"""The answer to every call of a folder tool while a client that declares roots has none."""


class RefusedConnection(Exception):
    """There is no directory to serve: the client named none and declares no roots. `request_id` is still unanswered."""

    def __init__(self, fault: HoldfastError, request_id: RequestId | None) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.request_id = request_id


@dataclass(frozen=True)
class ConnectionRoots:
    """What a connection was started with. `fault` says why nothing can be served unless the client declares roots."""

    caller: Caller
    are_named: bool
    open_roots: OpenRoots
    fault: HoldfastError | None = None

    def resolve(self, result: object) -> Caller:
        """Return a caller with the directories to serve when a client answers `roots/list` so, None for no answer."""
        declared, own_roots = self._open(declared_paths(result)), self.caller.roots
        if not self.are_named:
            return replace(self.caller, roots=tuple(declared) or own_roots)
        return replace(self.caller, roots=tuple(narrow(own_roots, declared)), named_roots=own_roots)

    def _open(self, paths: list[str]) -> list[str]:
        if not paths:
            return []
        try:
            return self.open_roots(replace(self.caller, roots=tuple(paths)))
        except InvalidArgument:
            _log.warning("the %d roots that a client declared are skipped: none can be used", len(paths))
            return []


def open_connection_roots(caller: Caller, open_roots: OpenRoots) -> ConnectionRoots:
    """Open the directories that a connection was started with. Raises InvalidArgument when they cannot be used.

    Without any, a working directory that is too wide, or gone, is not yet a fault: the client may declare roots.
    """
    are_named = bool(caller.roots)
    try:
        paths = open_roots(caller)
    except InvalidArgument as fault:
        if are_named or "\0" in caller.cwd or has_lone_surrogate(caller.cwd):
            raise
        return ConnectionRoots(caller, are_named, open_roots, fault)
    return ConnectionRoots(replace(caller, roots=tuple(paths)), are_named, open_roots)


class ClientRoots:
    """Asks a client for its roots, once it has initialized and whenever they change, and says when they are known."""

    def __init__(
        self,
        connection: ConnectionRoots,
        ask: Callable[[], Awaitable[object]],
        serve: Callable[[object], Awaitable[None]],
    ) -> None:
        self.connection = connection
        self._ask = ask
        self._serve = serve
        self._is_declared = False
        self._is_stale = False
        self._asking: asyncio.Task[None] | None = None

    def declare(self, capabilities: object) -> bool:
        """Note what a client declares in `initialize`; return whether it has roots."""
        self._is_declared = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        self._is_stale = self._is_declared
        return self._is_declared

    @property
    def is_known(self) -> bool:
        """Return whether nothing has to be asked or waited for."""
        return not self._is_stale and (self._asking is None or self._asking.done())

    def ask_again(self) -> None:
        """Ask the client, because it has initialized or its roots have changed; without waiting."""
        if self._is_declared:
            self._is_stale = True
            self._start()

    async def settle(self) -> None:
        """Wait until the roots are known."""
        if self._is_stale:
            self._start()
        if self._asking is not None and not self._asking.done():
            await asyncio.wait({self._asking})

    def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()

    def _start(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._is_stale:
            self._is_stale = False
            await self._serve(await self._ask())


def declared_paths(result: object) -> list[str]:
    """Return the directories in a client's answer to `roots/list`; what is no local file is left out."""
    roots = result.get("roots") if isinstance(result, dict) else None
    uris = [root.get("uri") for root in roots[:_MAX_ROOTS] if isinstance(root, dict)] if isinstance(roots, list) else []
    paths = [_path_of(uri) for uri in uris if isinstance(uri, str)]
    return [path for path in paths if path is not None]


def narrow(named_roots: tuple[str, ...], declared: list[str]) -> list[str]:
    """Return the declared roots beneath each named directory, and each named one that has none; all are real paths."""
    narrowed: list[str] = []
    for root in named_roots:
        narrowed += [path for path in declared if _is_beneath(path, root)] or [root]
    return list(dict.fromkeys(narrowed))


def _is_beneath(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root


def _path_of(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    path = unquote(parts.path, errors="surrogateescape") if is_local else ""
    return path if path.startswith("/") and "\0" not in path else None
