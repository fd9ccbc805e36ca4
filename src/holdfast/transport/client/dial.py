"""Connects to the server on this machine: its socket, the opening messages, and the proof of the person's key.

Standard library only: the relay and the commands use it.

    client → {"version", "kind": "agent" | "person" | "control", "roots", "spare_roots", "cwd"}
             and "folders": false from an agent that wants no directories at all,
             and "restrictions": {"read_only", "review", "tools"} from an agent that wants fewer rights
             and "is_command": true from a command of the person, which no rule binds
    server → {"challenge": nonce}     to a person, to a command and to control; the answer is {"proof": …}
    server → {"ok": true, "version", "pid", "kind", "max_message_bytes"}   or   {"error": {"code", "message", …}}
             and "restrictions" as they hold
    server → {"holdfast": "refused", "error": …}      later, to an agent without directories whose client declares no roots
"""

import json
import os
import socket
import struct
import sys

from holdfast import __version__
from holdfast.transport.state_folder import PERSON_KEY, SOCKET, StateFault, StateFolder

MAX_HELLO_BYTES = 1_048_576
_TIMEOUT_SECONDS = 15.0

Message = dict[str, object]


class NoServer(Exception):
    """Nobody answers at the socket."""


class ServerRefusal(Exception):
    """The server answered the opening message with an error."""

    def __init__(self, payload: Message) -> None:
        super().__init__(str(payload.get("message", "The server refused the connection.")))
        self.payload = payload


class Client:
    """Who connects: the directories it was started with, those its environment offers, and its working directory.

    `folders=False` is for a client that wants no directories, wherever it was started. `is_command` marks a command
    of the person. `restrictions` are what it gives up: `read_only`, `review`, and the only groups of `tools` that it wants.
    """

    def __init__(
        self,
        kind: str,
        roots: list[str],
        spare_roots: list[str],
        cwd: str,
        *,
        folders: bool = True,
        is_command: bool = False,
        restrictions: Message | None = None,
    ) -> None:
        self.hello: Message = {
            "version": __version__,
            "kind": kind,
            "roots": roots,
            "spare_roots": spare_roots,
            "cwd": cwd,
        }
        if not folders:
            self.hello["folders"] = False
        if is_command:
            self.hello["is_command"] = True
        if restrictions:
            self.hello["restrictions"] = restrictions

    def check_restrictions(self, welcome: Message) -> None:
        """Raise ServerRefusal when the server does not hold to the client's restrictions, as one of an earlier version."""
        if welcome.get("restrictions") != self.hello.get("restrictions"):
            version = welcome.get("version")
            text = f"The running server, version {version}, does not know these options. End it with `holdfast stop`."
            raise ServerRefusal({"code": "INVALID_ARGUMENT", "message": text})


def dial(folder: StateFolder, client: Client) -> tuple[socket.socket, Message]:
    """Connect, introduce the client, and return the open socket and the server's welcome.

    Raises NoServer and ServerRefusal.
    """
    connection = connect(folder)
    try:
        welcome = _exchange(connection, client.hello)
        if "challenge" in welcome:
            proof = prove_key(folder.key(PERSON_KEY), str(welcome["challenge"]))
            welcome = _exchange(connection, {"proof": proof})
        error = welcome.get("error")
        if isinstance(error, dict):
            raise ServerRefusal(error)
    except (OSError, ValueError) as fault:
        connection.close()
        raise NoServer(f"the server closed the connection before answering ({type(fault).__name__})") from None
    except BaseException:
        connection.close()
        raise
    return connection, welcome


def connect(folder: StateFolder) -> socket.socket:
    """Return a socket connected to the server.

    Raises NoServer when no process listens, StateFault when the process that listens is another user's.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIMEOUT_SECONDS)
    try:
        with folder.socket_address() as address:
            connection.connect(address)
    except OSError as error:
        connection.close()
        raise NoServer(f"no server at {folder.path!r} ({error.strerror or error})") from None
    uid = peer_uid(connection)
    if uid is not None and uid != os.geteuid():
        connection.close()
        raise StateFault(
            f"A process of user {uid} listens at {folder.file(SOCKET)!r}, not one of yours ({os.geteuid()}). Nothing was "
            "sent to it. Remove that file, and see who could write to the folder."
        )
    return connection


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user of the process at the other end of a Unix socket, None where the system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", packed)[1])
    if sys.platform == "darwin":
        # LOCAL_PEERCRED at SOL_LOCAL gives struct xucred: version, uid, …
        return int(struct.unpack_from("=II", connection.getsockopt(0, 1, 76))[1])
    return None


def send_control(folder: StateFolder, action: str) -> Message:
    """Send one control request, proven by the person's key, and return its answer.

    Raises NoServer and ServerRefusal.
    """
    connection, _welcome = dial(folder, Client("control", [], [], "/"))
    with connection:
        try:
            answer = _exchange(connection, {"action": action})
        except (OSError, ValueError):
            raise NoServer("the server closed the connection before answering") from None
    error = answer.get("error")
    if isinstance(error, dict):
        raise ServerRefusal(error)
    return answer


def prove_key(key: str, challenge: str) -> str:
    """Return the HMAC of a challenge, which only a holder of the key can compute."""
    import hmac  # here, because an agent's connection never needs it and hashlib costs the relay milliseconds

    return hmac.new(bytes.fromhex(key), challenge.encode(), "sha256").hexdigest()


def _exchange(connection: socket.socket, message: Message) -> Message:
    """Send a message and return the server's reply; the server sends exactly one line for each line it gets here."""
    connection.sendall(json.dumps(message).encode() + b"\n")
    data = b""
    while not data.endswith(b"\n"):
        chunk = connection.recv(65_536)
        if not chunk:
            raise ConnectionResetError("the server hung up")
        data += chunk
    reply = json.loads(data)
    if not isinstance(reply, dict):
        raise ValueError("the server's line is not an object")
    return reply
