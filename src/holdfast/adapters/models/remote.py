"""Sends JSON requests to a model over HTTP, bounded in time and size, without following redirects.

An answer may repeat what was sent, so errors give the status and never quote the answer.
"""

import json
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import urlsplit

from holdfast.config.section import endpoint_fault
from holdfast.errors import InvalidArgument
from holdfast.secret import Secret

MAX_ANSWER_BYTES = 64_000_000
MAX_ATTEMPTS = 3
_READ_BYTES = 65_536
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_BACKOFF_SECONDS = 0.5
_CHECK_SECONDS = 0.25

Answer = TypeVar("Answer")


class RemoteFault(Exception):
    """An endpoint gave no usable answer. `retry_after` is the pause that it asked for, in seconds."""

    def __init__(self, reason: str, *, retryable: bool = True, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: its JSON body, the key that goes with it, and the bounds of its answer.

    `check` is called while the answer arrives, and raises when the caller no longer waits for it.
    """

    body: dict[str, Any]
    key: Secret | None
    timeout_seconds: float
    check: Callable[[], None] = lambda: None
    max_answer_bytes: int = MAX_ANSWER_BYTES


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A pause of `max_pause_seconds` or more is not waited for; all attempts together take `total_seconds` at most."""

    max_pause_seconds: float
    total_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL that requests go to. A key is sent to this host and no other."""

    url: str

    def __post_init__(self) -> None:
        if fault := endpoint_fault(self.url):
            raise InvalidArgument(fault)

    def post(self, request: ModelRequest) -> Any:
        """Send one request and return the JSON of its answer. RemoteFault when none arrives in time."""
        return self._send("POST", request)

    def get(self, timeout_seconds: float, max_answer_bytes: int) -> Any:
        """Return the JSON that is there, without a key. RemoteFault when none arrives in time."""
        return self._send("GET", ModelRequest({}, None, timeout_seconds, max_answer_bytes=max_answer_bytes))

    def _send(self, method: str, request: ModelRequest) -> Any:
        deadline = time.monotonic() + request.timeout_seconds
        connection = self._connection(request.timeout_seconds)
        headers = {"accept": "application/json", "user-agent": "holdfast"}
        body = json.dumps(request.body).encode() if method == "POST" else None
        if body is not None:
            headers["content-type"] = "application/json"
        if request.key is not None and request.key.reveal():
            headers["authorization"] = f"Bearer {request.key.reveal()}"
        parts = urlsplit(self.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.connect()
            with _shut_down_at(connection, deadline):
                connection.request(method, target, body, headers)
                data = _read_answer(connection.getresponse(), request)
            return json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            raise RemoteFault("its answer is not JSON") from None
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, TimeoutError) or time.monotonic() >= deadline:
                raise RemoteFault(f"no answer within {request.timeout_seconds:g} s") from None
            raise RemoteFault(f"the connection failed ({type(error).__name__})") from None
        finally:
            connection.close()

    def _connection(self, timeout_seconds: float) -> HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout_seconds, context=ssl.create_default_context()
            )
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout_seconds)


@contextmanager
def _shut_down_at(connection: HTTPConnection, deadline: float) -> Iterator[None]:
    """Shut the socket down at the deadline, however slowly its bytes arrive; TimeoutError when that happened."""
    connected = connection.sock
    assert connected is not None

    is_over = threading.Event()

    def shut_down() -> None:
        is_over.set()
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError


def _read_answer(response: HTTPResponse, request: ModelRequest) -> bytes:
    if response.status != 200:
        raise RemoteFault(
            f"it answered with status {response.status}",
            retryable=response.status in _RETRYABLE_STATUSES,
            retry_after=_retry_after(response),
        )
    data = bytearray()
    while part := response.read1(_READ_BYTES):
        request.check()
        data += part
        if len(data) > request.max_answer_bytes:
            raise RemoteFault(f"its answer is larger than {request.max_answer_bytes} bytes", retryable=False)
    if response.length:
        raise HTTPException
    return bytes(data)


def _retry_after(response: HTTPResponse) -> float | None:
    """Return the pause that the endpoint asks for; None when it gives a date, which is not worth parsing."""
    text = response.getheader("retry-after") or ""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def send_with_retries(send: Callable[[float], Answer], policy: RetryPolicy, check: Callable[[], None]) -> Answer:
    """Call `send` with the seconds that are left, a few times while the fault is retryable; raises the last RemoteFault.

    The pause before the next attempt is the one that the endpoint asked for, else a growing one.
    """
    deadline = time.monotonic() + policy.total_seconds
    for attempt in range(1, MAX_ATTEMPTS + 1):
        check()
        try:
            return send(deadline - time.monotonic())
        except RemoteFault as fault:
            pause = fault.retry_after if fault.retry_after is not None else _BACKOFF_SECONDS * attempt
            max_pause = min(policy.max_pause_seconds, deadline - time.monotonic())
            if not fault.retryable or attempt == MAX_ATTEMPTS or pause >= max_pause:
                raise
            _pause(pause, check)
    raise AssertionError("the last attempt returns or raises")


def _pause(seconds: float, check: Callable[[], None]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _CHECK_SECONDS))
