"""`holdfast stdio`: relays an MCP client's pipes to the server's socket.

Standard library only, and ready in tens of milliseconds: everything heavy is in the server, which is shared.
A client is never left without an answer: when the server goes away, every pending request gets an error that says
"try again", the server is started again, and the client's `initialize` is replayed to it.
"""

import errno
import os
import select
import socket
import stat
import sys
import time

from holdfast import __version__
from holdfast.config.environment import root_dirs, state_dir
from holdfast.transport.client.dial import Client, Message, ServerRefusal
from holdfast.transport.client.frames import (
    INVALID_PARAMS,
    SERVER_ERROR,
    STOP_NOTICE,
    LineSplitter,
    OversizedLine,
    RequestId,
    answered_request_id,
    cancelled_request_id,
    error_line,
    oversized_error,
    parse_refusal,
    parse_request,
    question_id,
    withdrawal_line,
    withdrawn_question_id,
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
_USAGE = "holdfast stdio [DIR…] [--read-only] [--review] [--tools GROUP[,GROUP]] [--in-process]"


def main(arguments: list[str]) -> int:
    """Run the relay for `holdfast stdio [DIR…]` and return the exit status."""
    try:
        roots, restrictions = parse_arguments(arguments)
    except ValueError as fault:
        _print_error(f"{fault}; usage: {_USAGE}")
        return 2
    folder = StateFolder(state_dir())
    relay = Relay(folder, Client("agent", roots, root_dirs(), _working_directory(), restrictions=restrictions))
    try:
        folder.prepare()
        return relay.run()
    except StateFault as fault:
        return relay.give_up("INTERNAL", str(fault), fault.exit_status)
    except BrokenPipeError:
        return 0
    except OSError as error:
        code = "STORAGE_FULL" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "INTERNAL"
        return relay.give_up(code, f"The state folder {folder.path!r} cannot be used: {error.strerror}.", 74)
    except KeyboardInterrupt:
        return 130


def parse_arguments(arguments: list[str]) -> tuple[list[str], Message]:
    """Return the directories and the restrictions that the arguments name; the server judges both.

    Raises ValueError for an option that does not exist or lacks its value.
    """
    roots: list[str] = []
    restrictions: Message = {}
    pending = list(arguments)
    while pending:
        argument = pending.pop(0)
        option, _, value = argument.partition("=")
        if argument == "--":
            roots += pending
            break
        if argument in ("--read-only", "--review"):
            restrictions[argument.strip("-").replace("-", "_")] = True
        elif option == "--tools":
            value = value or (pending.pop(0) if argument == option and pending else "")
            if not value:
                raise ValueError("--tools needs groups, separated by commas")
            restrictions["tools"] = value.split(",")
        elif argument.startswith("-"):
            raise ValueError(f"unknown option {argument!r}")
        else:
            roots.append(argument)
    return roots, restrictions


class Relay:
    """Moves lines both ways in one loop, never blocking on one side while the other has work."""

    def __init__(self, folder: StateFolder, client: Client, stdin: int = 0, stdout: int = 1) -> None:
        self._folder = folder
        self._client = client
        self._stdin = stdin
        self._stdout = stdout
        self._connection: socket.socket | None = None
        self._client_lines = LineSplitter(_MAX_MESSAGE_BYTES)
        self._server_lines = LineSplitter(sys.maxsize)
        self._to_server = bytearray()
        self._to_client = bytearray()
        # The keys are the client's requests without an answer, and the server's questions without one, in order.
        self._pending: dict[RequestId, None] = {}
        self._questions: dict[RequestId, None] = {}
        self._initialize: tuple[RequestId, bytes] | None = None
        self._initialized = b""
        # Set once the client has closed its end: when to stop waiting for the last answers.
        self._exit_at: float | None = None
        self._connected_at: list[float] = []
        if _is_pipe(stdout):
            os.set_blocking(stdout, False)

    def run(self) -> int:
        """Relay until the client closes its end and has its answers. Returns the exit status."""
        try:
            self._connect(own_version=True)
            while not self._is_done():
                self._relay_once()
        except ServerRefusal as refusal:
            from holdfast.errors import error_class  # here, because only a refusal needs it

            code = str(refusal.payload.get("code", "INTERNAL"))
            return self.give_up(code, str(refusal), error_class(code).exit_status)
        except CannotStart as fault:
            return self.give_up("INTERNAL", str(fault), 70)
        finally:
            self._disconnect()
        return 0

    def give_up(self, code: str, message: str, status: int, unanswered: RequestId | None = None) -> int:
        """Print on stderr why there is no server, answer the client's requests and an earlier one with it; return the status."""
        _print_error(message)
        self._pending |= {} if unanswered is None else {unanswered: None}
        for pending_id in self._pending:
            self._send_error(pending_id, code, message)
        has_answered, linger_until = bool(self._pending), time.monotonic() + _LINGER_SECONDS
        while self._exit_at is None and (not has_answered or time.monotonic() < linger_until):
            self._flush_to_client()
            wait = max(0.0, linger_until - time.monotonic()) if has_answered else None
            if not select.select([self._stdin], [], [], wait)[0]:
                break
            for line in self._read_client_lines():
                request_id = line.request_id() if isinstance(line, OversizedLine) else parse_request(line)[0]
                if request_id is not None:
                    self._send_error(request_id, code, message)
                    linger_until = linger_until if has_answered else time.monotonic() + _LINGER_SECONDS
                    has_answered = True
        self._flush_to_client()
        return status

    def _is_done(self) -> bool:
        if self._exit_at is None:
            return False
        return not (self._pending or self._to_client or self._to_server) or time.monotonic() > self._exit_at

    def _relay_once(self) -> None:
        """Wait until a side can be read or written, and move what can be moved."""
        connection = self._connection
        readers: list[int | socket.socket] = []
        writers: list[int | socket.socket] = []
        if self._exit_at is None and len(self._to_server) < _FULL_BYTES:
            readers.append(self._stdin)
        if connection is not None and len(self._to_client) < _FULL_BYTES:
            readers.append(connection)
        if connection is not None and self._to_server:
            writers.append(connection)
        if self._to_client:
            writers.append(self._stdout)
        wait = None if self._exit_at is None else max(0.0, self._exit_at - time.monotonic())
        readable, writable, _ = select.select(readers, writers, [], wait)
        if self._stdin in readable:
            self._handle_client_lines()
        # Handling the client's lines may have replaced the connection.
        if (
            connection is not None
            and self._connection is connection
            and (connection in readable or connection in writable)
        ):
            self._exchange_with_server(connection, connection in readable)
        if self._to_client:
            self._write_to_client()

    def _handle_client_lines(self) -> None:
        for line in self._read_client_lines():
            if isinstance(line, OversizedLine):
                self._to_client += oversized_error(line, self._client_lines.limit)
            elif line.strip():
                self._forward_to_server(line)

    def _read_client_lines(self) -> list[bytes | OversizedLine]:
        try:
            data = os.read(self._stdin, _READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._exit_at = time.monotonic() + _LAST_ANSWERS_SECONDS
            self._fail_questions()
            data = b"\n"
        return list(self._client_lines.feed(data))

    def _forward_to_server(self, line: bytes) -> None:
        """Queue one message of the client for the server, and note what the relay must remember of it."""
        request_id, method = parse_request(line)
        if method == "initialize":
            self._initialize, self._initialized = None, b""
        if request_id is not None and not method:
            self._questions.pop(request_id, None)
            if self._connection is None:
                # An answer, and the server that asked is gone.
                return
        if self._connection is None:
            self._connect(own_version=False)
        if method == "initialize" and request_id is not None:
            self._initialize = (request_id, line)
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled":
            cancelled = cancelled_request_id(line)
            if cancelled is not None:
                self._pending.pop(cancelled, None)
        if request_id is not None and method:
            self._pending[request_id] = None
        self._to_server += line + b"\n"
        if len(self._to_server) == len(line) + 1 and self._connection is not None:
            self._exchange_with_server(self._connection, readable=False)

    def _exchange_with_server(self, connection: socket.socket, readable: bool) -> None:
        try:
            if self._to_server:
                sent = connection.send(memoryview(self._to_server)[:_FULL_BYTES])
                del self._to_server[:sent]
            data = connection.recv(_READ_BYTES) if readable else None
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data is None:
            return
        if not data:
            self._handle_lost_server(restart=True)
            return
        for message in self._server_lines.feed(data):
            if not isinstance(message, bytes):
                continue
            if message == STOP_NOTICE:
                self._handle_lost_server(restart=False)
                return
            if (refusal := parse_refusal(message)) is not None:
                raise ServerRefusal(refusal)
            self._track_server_message(message)
            self._to_client += message
            self._to_client += b"\n"

    def _track_server_message(self, message: bytes) -> None:
        """Note which request a message answers, or which question it asks or withdraws."""
        request_id = answered_request_id(message)
        if request_id is not None:
            self._pending.pop(request_id, None)
        elif (new_question := question_id(message)) is not None:
            self._questions[new_question] = None
            if self._exit_at is not None:
                self._fail_questions()
        elif (withdrawn := withdrawn_question_id(message)) is not None:
            self._questions.pop(withdrawn, None)

    def _fail_questions(self) -> None:
        """Tell the server that its questions will not be answered, since the client has closed its end."""
        for question in self._questions:
            self._to_server += error_line(question, SERVER_ERROR, "The client has closed its end.")
        self._questions.clear()

    def _handle_lost_server(self, restart: bool) -> None:
        """Answer every pending request with an error, and start the server again unless it was told to stop.

        A pending `initialize` gets no error: it is replayed to the new server, which answers it.
        """
        self._disconnect()
        self._to_server.clear()
        for question in self._questions:
            self._to_client += withdrawal_line(question)
        self._questions.clear()
        initialize_id = self._initialize[0] if self._initialize and self._initialize[0] in self._pending else None
        for request_id in [request_id for request_id in self._pending if request_id != initialize_id]:
            text = "The server ended before it answered. Check whether the request took effect before you repeat it."
            self._send_error(request_id, "RESOURCE_BUSY", text)
            del self._pending[request_id]
        if not restart:
            self._connected_at.clear()
        if (restart and self._exit_at is None) or initialize_id is not None:
            self._write_to_client()
            self._connect(own_version=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self, own_version: bool) -> None:
        """Connect to a server and open the client's session on it. Raises ServerRefusal and CannotStart."""
        while True:
            self._count_connect()
            connection, welcome = reach(self._folder, self._client, own_version=own_version)
            self._client.check_restrictions(welcome)
            limit = welcome.get("max_message_bytes")
            self._client_lines.limit = limit if isinstance(limit, int) else _MAX_MESSAGE_BYTES
            self._server_lines = LineSplitter(sys.maxsize)
            if welcome.get("version") != __version__:
                _print_error(f"served by version {welcome.get('version')}; this is {__version__}")
            if self._replay_initialize(connection):
                connection.setblocking(False)
                self._connection = connection
                return
            connection.close()

    def _count_connect(self) -> None:
        now = time.monotonic()
        self._connected_at = [at for at in self._connected_at if now - at < _RESTART_WINDOW_SECONDS] + [now]
        if len(self._connected_at) > _MAX_RESTARTS + 1:
            raise CannotStart(
                f"The server was lost {_MAX_RESTARTS} times within {_RESTART_WINDOW_SECONDS:g} s; "
                f"its log is {self._folder.file('server.log')!r}."
            )

    def _replay_initialize(self, connection: socket.socket) -> bool:
        """Open the session again on a new server as the client once did; the client sees no second answer.

        Returns False when this server is lost too.
        """
        if self._initialize is None:
            return True
        request_id, request = self._initialize
        connection.settimeout(_REPLAY_SECONDS)
        try:
            connection.sendall(request + b"\n")
            if request_id in self._pending:
                return True
            if not self._wait_for_answer(connection, request_id):
                return False
            connection.sendall(self._initialized + b"\n" if self._initialized else b"")
        except OSError:
            return False
        return True

    def _wait_for_answer(self, connection: socket.socket, request_id: RequestId) -> bool:
        while data := connection.recv(_READ_BYTES):
            for message in self._server_lines.feed(data):
                if isinstance(message, bytes) and answered_request_id(message) == request_id:
                    return True
        return False

    def _send_error(self, request_id: RequestId, code: str, message: str) -> None:
        rpc_code = INVALID_PARAMS if code == "INVALID_ARGUMENT" else SERVER_ERROR
        data: dict[str, object] = {"code": code, "message": message, "retryable": code == "RESOURCE_BUSY"}
        self._to_client += error_line(request_id, rpc_code, message, data)

    def _write_to_client(self) -> None:
        try:
            sent = os.write(self._stdout, memoryview(self._to_client)[:_FULL_BYTES])
        except BlockingIOError:
            return
        del self._to_client[:sent]

    def _flush_to_client(self) -> None:
        while self._to_client:
            select.select([], [self._stdout], [])
            self._write_to_client()


def _is_pipe(fd: int) -> bool:
    """Return whether the descriptor is a pipe or socket made for us, so that it may be made non-blocking."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _print_error(message: str) -> None:
    try:
        os.write(2, f"holdfast: {message}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
