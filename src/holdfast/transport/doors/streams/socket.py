"""The Unix socket door: serves relays of agents, commands of the person, and control of the server itself.

Only this user's processes get in: the folder is 0700, the socket 0600, and the kernel names the peer's user.
A person, a command of the person and control also prove that they can read `person.key`.
"""

import asyncio
import hmac
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread

from holdfast import __version__
from holdfast.auth.context import LOCAL_USER, Caller, CallerKind, ClientInfo, Door
from holdfast.errors import HoldfastError, Internal, InvalidArgument, PermissionDenied
from holdfast.secret import Secret
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.client.dial import MAX_HELLO_BYTES, peer_uid, prove_key
from holdfast.transport.client.frames import STOP_NOTICE, LineSplitter, OversizedLine, oversized_error, refusal_line
from holdfast.transport.doors.connections import Connections
from holdfast.transport.doors.restrictions import parse_restrictions
from holdfast.transport.doors.streams.client_roots import (
    ConnectionRoots,
    OpenRoots,
    RefusedConnection,
    open_connection_roots,
)
from holdfast.transport.doors.streams.stream import serve_stream
from holdfast.transport.state_folder import SOCKET, StateFolder

_log = logging.getLogger(__name__)

_HELLO_SECONDS = 10.0
_REFUSAL_SECONDS = 1.0
_READ_BYTES = 262_144
_BACKLOG = 128
_KINDS = ("agent", "person", "control")

Control = Callable[[str], Awaitable[dict[str, object]]]


@dataclass(frozen=True)
class SocketDoor:
    """Listens in the state folder.

    `open_roots` checks whether a connection's directories can be used; `spare_roots` are those of the
    settings, for a connection that names none.
    """

    folder: StateFolder
    dispatcher: Dispatcher
    open_roots: OpenRoots
    control: Control
    connections: Connections
    person_key: Callable[[], Secret]
    max_message_bytes: int
    server_kind: str
    spare_roots: tuple[str, ...] = ()

    async def listen(self) -> asyncio.Server:
        """Open the socket; from then on relays can connect."""
        return await asyncio.start_server(self._serve, sock=bind(self.folder), backlog=_BACKLOG)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = _Peer(reader, writer, self.max_message_bytes, self.connections)
        try:
            with self.connections.at_socket():
                await self._serve_peer(peer)
        except HoldfastError as error:
            await peer.refuse(error)
        except asyncio.CancelledError:
            # The server is ending and this call had its time; asyncio would log the cancellation of its own task.
            _log.info("a connection was cut off by the server's end")
        except (OSError, TimeoutError, EOFError) as error:
            _log.info("a connection ended early: %s", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - one connection must never end the server
            _log.error("fault in a connection: %s", type(error).__name__)
            if not peer.was_welcomed:
                await peer.refuse(Internal("The server failed at the opening of the connection; its log says more."))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve_peer(self, peer: "_Peer") -> None:
        check_user(peer.writer.get_extra_info("socket"))
        with anyio.fail_after(_HELLO_SECONDS):
            hello = await peer.read_object()
            kind = _parse_kind(hello)
            if kind != "agent" or hello.get("is_command") is True:
                await self._challenge(peer)
        caller, roots = await self._build_caller(kind, hello)
        welcome = {
            "ok": True,
            "version": __version__,
            "pid": os.getpid(),
            "kind": self.server_kind,
            "max_message_bytes": self.max_message_bytes,
        }
        await peer.send_object(welcome | {name: hello[name] for name in ("restrictions",) if name in hello})
        peer.was_welcomed = True
        if caller is None:
            await self._serve_control(peer)
            return
        with self.connections.stream():
            try:
                await serve_stream(self.dispatcher, caller, peer.next_message, peer.send_message, roots)
            except RefusedConnection as refusal:
                await peer.send_message(refusal_line(refusal.fault.payload()).rstrip())
            finally:
                # Without waiting, because a connection that is cut off may not: its relay must not start a server again.
                if self.connections.is_ending_for_good:
                    peer.writer.writelines((STOP_NOTICE, b"\n"))

    async def _challenge(self, peer: "_Peer") -> None:
        challenge = secrets.token_hex(32)
        await peer.send_object({"challenge": challenge})
        proof = str((await peer.read_object()).get("proof", ""))
        if not hmac.compare_digest(proof.encode(), prove_key(self.person_key().reveal(), challenge).encode()):
            raise PermissionDenied("The proof of person.key is wrong.")

    async def _build_caller(self, kind: str, hello: dict[str, object]) -> tuple[Caller | None, ConnectionRoots | None]:
        """Return the caller, none for control, and the roots that its client may add to or narrow."""
        if kind == "control":
            return None, None
        connection = secrets.token_hex(8)
        roots = _string_list(hello, "roots")
        cwd = hello.get("cwd", "/")
        if not isinstance(cwd, str) or not cwd.startswith("/"):
            raise InvalidArgument(f"cwd must be an absolute path: {cwd!r}")
        restrictions = parse_restrictions(hello.get("restrictions"))
        client = ClientInfo(is_command=hello.get("is_command") is True)
        if not roots and (kind == "person" or hello.get("folders") is False):
            caller = Caller(LOCAL_USER, CallerKind(kind), (), cwd, client, restrictions, connection, Door.SOCKET)
            return caller, None
        roots = roots or self.spare_roots or _string_list(hello, "spare_roots")
        caller = Caller(LOCAL_USER, CallerKind(kind), roots, cwd, client, restrictions, connection, Door.SOCKET)
        connection_roots = await anyio.to_thread.run_sync(partial(open_connection_roots, caller, self.open_roots))
        if connection_roots.fault is not None and client.is_command:
            raise connection_roots.fault
        return connection_roots.caller, connection_roots

    async def _serve_control(self, peer: "_Peer") -> None:
        while (line := await peer.next_message()) is not None:
            await peer.send_object(await self.control(str(_parse_object(line).get("action", ""))))


class _Peer:
    """One connection, read and written as lines; a line over the limit is answered with an error and not held."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int, connections: Connections
    ) -> None:
        self.writer = writer
        self.was_welcomed = False
        self._reader = reader
        self._connections = connections
        self._max_bytes = max_bytes
        self._lines = LineSplitter(MAX_HELLO_BYTES)
        self._complete: list[bytes | OversizedLine] = []
        self._has_read = False

    async def read_object(self) -> dict[str, object]:
        """Return the next message of the opening. Raises EOFError when the connection has ended."""
        line = await self._next()
        self._has_read = True
        self._lines.limit = self._max_bytes
        if line is None:
            raise EOFError
        if isinstance(line, OversizedLine):
            raise InvalidArgument(f"The opening line is longer than {MAX_HELLO_BYTES} bytes.")
        return _parse_object(line)

    async def send_object(self, message: dict[str, object]) -> None:
        """Send one object as a line, and ignore a peer that is gone."""
        with suppress(OSError):
            await self.send_message(json.dumps(message).encode())

    async def refuse(self, error: HoldfastError) -> None:
        """Send an error. What the peer sent first is read before: closing with unread data would discard the error."""
        with anyio.move_on_after(_REFUSAL_SECONDS):
            if not self._has_read:
                await self._next()
        await self.send_object({"error": error.payload()})

    async def next_message(self) -> bytes | None:
        """Return the next message, None at the end of the connection or when the server drains."""
        while isinstance(line := await self._connections.next_or_none(self._next), OversizedLine):
            self.writer.write(oversized_error(line, self._max_bytes))
            await self.writer.drain()
        return line

    async def send_message(self, message: bytes) -> None:
        """Send one message; waits while the peer reads too slowly."""
        self.writer.writelines((message, b"\n"))
        await self.writer.drain()

    async def _next(self) -> bytes | OversizedLine | None:
        while not self._complete:
            try:
                data = await self._reader.read(_READ_BYTES)
            except OSError:
                return None
            if not data:
                return None
            self._complete.extend(self._lines.feed(data))
            self._complete.reverse()
        return self._complete.pop()


def bind(folder: StateFolder) -> socket.socket:
    """Return a listening socket in the state folder, renamed to its name once it can be connected to."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f".{SOCKET}.{os.getpid()}"
    try:
        with suppress(FileNotFoundError):
            os.unlink(folder.file(draft))
        with folder.socket_address(draft) as address:
            listener.bind(address)
        os.chmod(folder.file(draft), 0o600)
        listener.listen(_BACKLOG)
        os.replace(folder.file(draft), folder.file(SOCKET))
    except BaseException:
        listener.close()
        raise
    return listener


def check_user(connection: socket.socket) -> None:
    """Raise PermissionDenied unless the process at the other end is this user's."""
    uid = peer_uid(connection)
    if uid is not None and uid != os.geteuid():
        raise PermissionDenied(f"This server belongs to user {os.geteuid()}; user {uid} has no access.")


def _parse_object(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument("The line must be a JSON object.")
    return value


def _parse_kind(hello: dict[str, object]) -> str:
    kind = hello.get("kind")
    if kind not in _KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(_KINDS)}: {kind!r}")
    return str(kind)


def _string_list(hello: dict[str, object], name: str) -> tuple[str, ...]:
    values = hello.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidArgument(f"{name} must be a list of strings.")
    return tuple(values)
