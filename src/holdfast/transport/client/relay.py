"""`holdfast stdio`: a thin relay between an MCP client's pipes and the server's socket.

Standard library only, and ready in tens of milliseconds: everything heavy is in the server, which is shared.
A client is never left hanging: when the server goes away, every request it still owed an answer gets one that says
"try again", the server is started again, and the opening of the session is played to it anew.
"""

import os
import select
import socket
import stat
import sys
import time

from holdfast import __version__
from holdfast.config.environment import root_dirs, state_dir
from holdfast.transport.client.dial import Client, ServerRefusal
from holdfast.transport.client.frames import (
    FAREWELL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_ERROR,
    Id,
    Lines,
    Overlong,
    answered_id,
    cancelled_id,
    error_line,
    question_id,
    request_of,
    withdrawal_line,
    withdrawn_id,
)
from holdfast.transport.client.launch import CannotStart, reach
from holdfast.transport.state_folder import StateFault, StateFolder

_READ_BYTES = 262_144
_FULL_BYTES = 1_048_576
_MAX_MESSAGE_BYTES = 16 * 1_048_576
_MAX_RESTARTS = 5
_RESTART_WINDOW_SECONDS = 60.0
_LAST_ANSWERS_SECONDS = 30.0
_REPLAY_SECONDS = 15.0
_LINGER_SECONDS = 2.0
_EXIT_STATUS = {"INVALID_ARGUMENT": 2, "ACCESS_DENIED": 13, "PERMISSION_DENIED": 13, "RESOURCE_BUSY": 75}


def main(arguments: list[str]) -> int:
    """Run the relay for `holdfast stdio [DIR…]` and return the exit status."""
    unknown = [argument for argument in arguments if argument.startswith("-") and argument != "--"]
    if unknown:
        _say(f"unknown option {unknown[0]!r}; usage: holdfast stdio [DIR…] [--in-process]")
        return 2
    roots = [argument for argument in arguments if argument != "--"]
    folder = StateFolder(state_dir())
    relay = Relay(folder, Client("agent", roots, root_dirs(), _working_directory()))
    try:
        folder.prepare()
        return relay.run()
    except StateFault as fault:
        return relay.give_up("INTERNAL", str(fault), fault.exit_status)
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


class Relay:
    """Moves lines both ways in one loop, never blocking on one side while the other has work."""

    def __init__(self, folder: StateFolder, client: Client, stdin: int = 0, stdout: int = 1) -> None:
        self._folder = folder
        self._client = client
        self._stdin = stdin
        self._stdout = stdout
        self._line: socket.socket | None = None
        self._client_lines = Lines(_MAX_MESSAGE_BYTES)
        self._server_lines = Lines(sys.maxsize)
        self._to_server = bytearray()
        self._to_client = bytearray()
        self._owed: dict[Id, None] = {}
        self._questions: dict[Id, None] = {}
        self._initialize: tuple[Id, bytes] | None = None
        self._initialized = b""
        self._ends_at: float | None = None
        self._starts: list[float] = []
        if _is_pipe(stdout):
            os.set_blocking(stdout, False)

    def run(self) -> int:
        """Relay until the client closes its end and has its answers. Returns the exit status."""
        try:
            self._connect(own_version=True)
            while not self._is_done():
                self._move()
        except ServerRefusal as refusal:
            code = str(refusal.payload.get("code", "INTERNAL"))
            return self.give_up(code, str(refusal), _EXIT_STATUS.get(code, 1))
        except CannotStart as fault:
            return self.give_up("INTERNAL", str(fault), 70)
        finally:
            self._hang_up()
        return 0

    def give_up(self, code: str, message: str, status: int) -> int:
        """Say on stderr why there is no server, answer with it what the client asks, and return the status."""
        _say(message)
        for owed in self._owed:
            self._refuse(owed, code, message)
        answered = bool(self._owed)
        ends_at = time.monotonic() + _LINGER_SECONDS
        while self._ends_at is None and (not answered or time.monotonic() < ends_at):
            self._deliver_all()
            wait = max(0.0, ends_at - time.monotonic()) if answered else None
            if not select.select([self._stdin], [], [], wait)[0]:
                break
            for line in self._read_client():
                number = line.request_id() if isinstance(line, Overlong) else request_of(line)[0]
                if number is not None:
                    self._refuse(number, code, message)
                    ends_at = ends_at if answered else time.monotonic() + _LINGER_SECONDS
                    answered = True
        self._deliver_all()
        return status

    def _is_done(self) -> bool:
        if self._ends_at is None:
            return False
        return not (self._owed or self._to_client or self._to_server) or time.monotonic() > self._ends_at

    def _move(self) -> None:
        line = self._line
        readers: list[int | socket.socket] = []
        writers: list[int | socket.socket] = []
        if self._ends_at is None and len(self._to_server) < _FULL_BYTES:
            readers.append(self._stdin)
        if line is not None and len(self._to_client) < _FULL_BYTES:
            readers.append(line)
        if line is not None and self._to_server:
            writers.append(line)
        if self._to_client:
            writers.append(self._stdout)
        wait = None if self._ends_at is None else max(0.0, self._ends_at - time.monotonic())
        readable, writable, _ = select.select(readers, writers, [], wait)
        if self._stdin in readable:
            self._from_client()
        if self._line is line and line is not None and (line in readable or line in writable):
            self._with_server(line, line in readable)
        if self._to_client:
            self._deliver()

    def _from_client(self) -> None:
        for line in self._read_client():
            if isinstance(line, Overlong):
                limit = self._client_lines.limit
                number = line.request_id()
                data: dict[str, object] = {"code": "PAYLOAD_TOO_LARGE", "retryable": False}
                message = f"The message is larger than {limit} bytes, the largest that is taken."
                self._to_client += error_line(number, INVALID_REQUEST, message, data)
            elif line.strip():
                self._take(line)

    def _read_client(self) -> list[bytes | Overlong]:
        try:
            data = os.read(self._stdin, _READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._ends_at = time.monotonic() + _LAST_ANSWERS_SECONDS
            self._answer_questions()
            data = b"\n"
        return list(self._client_lines.feed(data))

    def _take(self, line: bytes) -> None:
        number, method = request_of(line)
        if method == "initialize":
            self._initialize, self._initialized = None, b""
        if number is not None and not method:
            self._questions.pop(number, None)
            if self._line is None:
                # An answer, and the server that asked is gone.
                return
        if self._line is None:
            self._connect(own_version=False)
        if method == "initialize" and number is not None:
            self._initialize = (number, line)
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled":
            given_up = cancelled_id(line)
            if given_up is not None:
                self._owed.pop(given_up, None)
        if number is not None and method:
            self._owed[number] = None
        self._to_server += line + b"\n"
        if len(self._to_server) == len(line) + 1 and self._line is not None:
            self._with_server(self._line, readable=False)

    def _with_server(self, line: socket.socket, readable: bool) -> None:
        try:
            if self._to_server:
                sent = line.send(memoryview(self._to_server)[:_FULL_BYTES])
                del self._to_server[:sent]
            data = line.recv(_READ_BYTES) if readable else None
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data is None:
            return
        if not data:
            self._lost(wanted_back=True)
            return
        for message in self._server_lines.feed(data):
            if not isinstance(message, bytes):
                continue
            if message == FAREWELL:
                self._lost(wanted_back=False)
                return
            self._note(message)
            self._to_client += message
            self._to_client += b"\n"

    def _note(self, message: bytes) -> None:
        """Keep account of what the server still owes the client, and of what it asked."""
        number = answered_id(message)
        if number is not None:
            self._owed.pop(number, None)
        elif (asked := question_id(message)) is not None:
            self._questions[asked] = None
            if self._ends_at is not None:
                self._answer_questions()
        elif (withdrawn := withdrawn_id(message)) is not None:
            self._questions.pop(withdrawn, None)

    def _answer_questions(self) -> None:
        """Tell the server that nobody will answer, since the client has closed its end."""
        for asked in self._questions:
            self._to_server += error_line(asked, SERVER_ERROR, "The client has closed its end.")
        self._questions.clear()

    def _lost(self, wanted_back: bool) -> None:
        """Tell the client which requests got no answer; start the server again unless it was told to stop."""
        self._hang_up()
        self._to_server.clear()
        for asked in self._questions:
            self._to_client += withdrawal_line(asked)
        self._questions.clear()
        opening = self._initialize[0] if self._initialize and self._initialize[0] in self._owed else None
        for number in [number for number in self._owed if number != opening]:
            text = "The server ended before it answered. Nothing more of this request will happen; try again."
            self._refuse(number, "RESOURCE_BUSY", text)
            del self._owed[number]
        if not wanted_back:
            self._starts.clear()
        if (wanted_back and self._ends_at is None) or opening is not None:
            self._deliver()
            self._connect(own_version=False)

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self, own_version: bool) -> None:
        """Have a server that knows this session. Raises ServerRefusal and CannotStart."""
        while True:
            self._count_start()
            line, welcome = reach(self._folder, self._client, own_version=own_version)
            limit = welcome.get("max_message_bytes")
            self._client_lines.limit = limit if isinstance(limit, int) else _MAX_MESSAGE_BYTES
            self._server_lines = Lines(sys.maxsize)
            if welcome.get("version") != __version__:
                _say(f"served by version {welcome.get('version')}; this is {__version__}")
            if self._replayed(line):
                line.setblocking(False)
                self._line = line
                return
            line.close()

    def _count_start(self) -> None:
        now = time.monotonic()
        self._starts = [start for start in self._starts if now - start < _RESTART_WINDOW_SECONDS] + [now]
        if len(self._starts) > _MAX_RESTARTS + 1:
            raise CannotStart(
                f"The server was lost {_MAX_RESTARTS} times within {_RESTART_WINDOW_SECONDS:g} s; "
                f"its log is {self._folder.file('server.log')!r}."
            )

    def _replayed(self, line: socket.socket) -> bool:
        """Open the session again on a new server as the client once did; the client sees no second answer."""
        if self._initialize is None:
            return True
        number, request = self._initialize
        line.settimeout(_REPLAY_SECONDS)
        try:
            line.sendall(request + b"\n")
            if number in self._owed:
                return True
            if not self._awaited(line, number):
                return False
            line.sendall(self._initialized + b"\n" if self._initialized else b"")
        except OSError:
            return False
        return True

    def _awaited(self, line: socket.socket, number: Id) -> bool:
        while data := line.recv(_READ_BYTES):
            for message in self._server_lines.feed(data):
                if isinstance(message, bytes) and answered_id(message) == number:
                    return True
        return False

    def _refuse(self, number: Id, code: str, message: str) -> None:
        retryable = code == "RESOURCE_BUSY"
        kind = INVALID_PARAMS if code == "INVALID_ARGUMENT" else SERVER_ERROR
        data: dict[str, object] = {"code": code, "message": message, "retryable": retryable}
        self._to_client += error_line(number, kind, message, data)

    def _deliver(self) -> None:
        try:
            sent = os.write(self._stdout, memoryview(self._to_client)[:_FULL_BYTES])
        except BlockingIOError:
            return
        del self._to_client[:sent]

    def _deliver_all(self) -> None:
        while self._to_client:
            select.select([], [self._stdout], [])
            self._deliver()


def _is_pipe(fd: int) -> bool:
    """Return whether the descriptor is a pipe or socket made for us, so that it may be switched to not blocking."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _say(message: str) -> None:
    try:
        os.write(2, f"holdfast: {message}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
