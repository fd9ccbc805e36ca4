"""A connection to the server on this machine: its socket, the opening line, the proof of the person's key.

Standard library only: the relay and the commands use it.

    client → {"version", "kind": "agent" | "person" | "control", "roots", "spare_roots", "cwd"}
             and "folders": false from an agent that wants no directories at all
    server → {"challenge": nonce}                     to a person and to control; the answer is {"proof": …}
    server → {"ok": true, "version", "pid", "kind", "max_message_bytes"}   or   {"error": {"code", "message", …}}
"""

import json
import socket

from holdfast import __version__
from holdfast.transport.state_folder import PERSON_KEY, StateFolder

MAX_HELLO_BYTES = 1_048_576
_PATIENCE_SECONDS = 15.0

Message = dict[str, object]


class NoServer(Exception):
    """Nobody answers at the socket."""


class ServerRefusal(Exception):
    """The server answered the opening line with an error."""

    def __init__(self, payload: Message) -> None:
        super().__init__(str(payload.get("message", "The server refused the connection.")))
        self.payload = payload


class Client:
    """Who connects: the directories it was started with, those its environment offers, and where it was started.

    One that wants no `folders` has none, wherever it was started. A command of the person says that it is one.
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


def dial(folder: StateFolder, client: Client) -> tuple[socket.socket, Message]:
    """Connect, introduce ourselves and return the open socket and the server's welcome. Raises NoServer, ServerRefusal."""
    line = connect(folder)
    try:
        welcome = _exchange(line, client.hello)
        if "challenge" in welcome:
            welcome = _exchange(line, {"proof": proof_of(folder.key(PERSON_KEY), str(welcome["challenge"]))})
        error = welcome.get("error")
        if isinstance(error, dict):
            raise ServerRefusal(error)
    except (OSError, ValueError) as fault:
        line.close()
        raise NoServer(f"the server hung up before its welcome ({type(fault).__name__})") from None
    except BaseException:
        line.close()
        raise
    return line, welcome


def connect(folder: StateFolder) -> socket.socket:
    """Return a socket connected to the server. Raises NoServer when nobody listens."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_PATIENCE_SECONDS)
    try:
        with folder.socket_address() as address:
            line.connect(address)
    except OSError as error:
        line.close()
        raise NoServer(f"no server at {folder.path!r} ({error.strerror or error})") from None
    return line


def send_control(folder: StateFolder, action: str) -> Message:
    """Send one control request, proven by the person's key, and return its answer. Raises NoServer, ServerRefusal."""
    line, _welcome = dial(folder, Client("control", [], [], "/"))
    with line:
        try:
            answer = _exchange(line, {"action": action})
        except (OSError, ValueError):
            raise NoServer("the server hung up before its answer") from None
    error = answer.get("error")
    if isinstance(error, dict):
        raise ServerRefusal(error)
    return answer


def proof_of(key: str, challenge: str) -> str:
    """Return what only a holder of the key can say to this challenge."""
    import hmac  # here, because an agent's connection never needs it and hashlib costs the relay milliseconds

    return hmac.new(bytes.fromhex(key), challenge.encode(), "sha256").hexdigest()


def _exchange(line: socket.socket, message: Message) -> Message:
    line.sendall(json.dumps(message).encode() + b"\n")
    return read_line(line)


def read_line(line: socket.socket) -> Message:
    """Read one object; the server says no more than that before it is spoken to."""
    held = b""
    while not held.endswith(b"\n"):
        piece = line.recv(65_536)
        if not piece:
            raise ConnectionResetError("the server hung up")
        held += piece
    found = json.loads(held)
    if not isinstance(found, dict):
        raise ValueError("the server's line is not an object")
    return found
