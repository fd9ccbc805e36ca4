"""One JSON request to a model behind HTTP: bounded in time and size, no redirect followed, no answer ever quoted.

An answer may repeat what was sent, so that errors give the status and nothing else.
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
from typing import Any
from urllib.parse import urlsplit

from holdfast.config.endpoint import endpoint_fault
from holdfast.errors import InvalidArgument
from holdfast.secret import Secret

MAX_ANSWER_BYTES = 64_000_000
_PIECE_BYTES = 65_536
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_SLICE_SECONDS = 0.25


class RemoteFault(Exception):
    """An endpoint gave no answer that could be used. `retry_after` is what it asked for, in seconds."""

    def __init__(self, reason: str, *, retryable: bool = True, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. A key is sent to this host and no other."""

    url: str

    def __post_init__(self) -> None:
        if fault := endpoint_fault(self.url):
            raise InvalidArgument(fault)

    def post(
        self,
        body: dict[str, Any],
        key: Secret | None,
        timeout_seconds: float,
        check: Callable[[], None] = lambda: None,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Any:
        """Send one request and return the JSON that came back within the time. RemoteFault otherwise."""
        deadline = time.monotonic() + timeout_seconds
        connection = self._connection(timeout_seconds)
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "holdfast"}
        if key is not None and key.reveal():
            headers["authorization"] = f"Bearer {key.reveal()}"
        try:
            connection.connect()
            with _ending_at(connection, deadline):
                connection.request("POST", self._target(), json.dumps(body).encode(), headers)
                data = _answered(connection, check, max_bytes)
            return json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            raise RemoteFault("its answer is not JSON") from None
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, TimeoutError) or time.monotonic() >= deadline:
                raise RemoteFault(f"no answer within {timeout_seconds:g} s") from None
            raise RemoteFault(f"the connection failed ({type(error).__name__})") from None
        finally:
            connection.close()

    def _target(self) -> str:
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _connection(self, timeout_seconds: float) -> HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout_seconds, context=ssl.create_default_context()
            )
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout_seconds)


@contextmanager
def _ending_at(connection: HTTPConnection, deadline: float) -> Iterator[None]:
    """Break the connection off at the deadline, however slowly its bytes come."""
    line = connection.sock
    assert line is not None

    is_over = threading.Event()

    def break_off() -> None:
        is_over.set()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), break_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError


def _answered(connection: HTTPConnection, check: Callable[[], None], max_bytes: int) -> bytes:
    response = connection.getresponse()
    if response.status != 200:
        raise RemoteFault(
            f"it answered with status {response.status}",
            retryable=response.status in _BUSY,
            retry_after=_retry_after(response),
        )
    return _body(response, check, max_bytes)


def _body(response: HTTPResponse, check: Callable[[], None], max_bytes: int) -> bytes:
    data = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        check()
        data += piece
        if len(data) > max_bytes:
            raise RemoteFault(f"its answer is larger than {max_bytes} bytes", retryable=False)
    if response.length:
        raise HTTPException
    return bytes(data)


def _retry_after(response: HTTPResponse) -> float | None:
    """Return the seconds that the endpoint asks to wait; a date is not worth the parsing."""
    text = response.getheader("retry-after") or ""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def pause(seconds: float, check: Callable[[], None]) -> None:
    """Wait, looking now and then whether the caller still wants it."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _SLICE_SECONDS))
