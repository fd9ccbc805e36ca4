"""Hands what HTTP connections receive to their parsers in small pieces, by turns of callers, for some milliseconds at a time.

Parsers work on the event loop, and what a piece costs depends on its sender: 256 kB may be one body, or forty thousand
chunks of a byte, which hold everybody up for seconds.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.transport.doors.connections import HttpConnection

_log = logging.getLogger(__name__)

PIECE_BYTES = 2048
_TURN_SECONDS = 0.004


class Intake:
    """What waits to be parsed on one event loop. Shares take turns, and so do the connections of a share."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[PacedTransport, None]] = {}
        self._fed_bytes: dict[str, int] = {}
        self._is_scheduled = False

    def has_room(self, share: str, count: int) -> bool:
        """Return whether so many bytes of a share may be parsed at once, and count them: a piece in each turn of the loop."""
        if share in self._waiting or self._fed_bytes.get(share, 0) + count > PIECE_BYTES:
            return False
        if not self._fed_bytes:
            asyncio.get_running_loop().call_soon(self._fed_bytes.clear)
        self._fed_bytes[share] = self._fed_bytes.get(share, 0) + count
        return True

    def add(self, transport: "PacedTransport") -> None:
        """Let a connection take its turns until it has nothing to be parsed."""
        self._waiting.setdefault(transport.share, {})[transport] = None
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turns)

    def _take_turns(self) -> None:
        end_at = time.monotonic() + _TURN_SECONDS
        while self._waiting and time.monotonic() < end_at:
            share = next(iter(self._waiting))
            transports = self._waiting.pop(share)
            transport = next(iter(transports))
            del transports[transport]
            if transports:
                self._waiting[share] = transports
            if transport.parse_piece():
                self._waiting.setdefault(transport.share, {})[transport] = None
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._take_turns)


class PacedTransport:
    """The transport of a connection for its protocol, which `parse`s what was received when it is this connection's turn.

    It reads no more while something waits, or while the protocol paused it. `piece_bytes` tells how much may be parsed next.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        intake: Intake,
        connection: HttpConnection,
        parse: Callable[[bytes], None],
        piece_bytes: Callable[[], int] = lambda: PIECE_BYTES,
    ) -> None:
        self.inner = transport
        self._intake = intake
        self._connection = connection
        self._parse = parse
        self._piece_bytes = piece_bytes
        self._unparsed: deque[bytes] = deque()
        self._offset = 0
        self._is_paused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def share(self) -> str:
        """Return whose turn it waits for: its caller's, or that of its address until it has shown a key."""
        return self._connection.share or f"address {self._connection.address}"

    def receive(self, data: bytes) -> None:
        """Take what the connection received."""
        if not self._unparsed and not self._is_paused and self._intake.has_room(self.share, len(data)):
            self._parse_safely(data)
            return
        self._unparsed.append(data)
        self.inner.pause_reading()
        if not self._is_paused:
            self._intake.add(self)

    def parse_piece(self) -> bool:
        """Let the protocol parse the next piece; returns whether it can go on with another one."""
        if self._unparsed and not self._is_paused and not self.inner.is_closing():
            data, begin = self._unparsed[0], self._offset
            end = self._offset = begin + self._piece_bytes()
            if end >= len(data):
                self._unparsed.popleft()
                self._offset = 0
            self._parse_safely(data[begin:end])
        if self.inner.is_closing():
            self.drop()
        elif not self._unparsed and not self._is_paused:
            self.inner.resume_reading()
        return bool(self._unparsed) and not self._is_paused

    def drop(self) -> None:
        """Forget what was not parsed: the connection is over, or another protocol takes it over."""
        self._unparsed.clear()
        self._offset = 0

    def _parse_safely(self, data: bytes) -> None:
        try:
            self._parse(data)
        except Exception as error:  # noqa: BLE001 - one connection must never end the turns of the others
            _log.error("fault in a parser: %s", type(error).__name__)
            self.inner.abort()

    def pause_reading(self) -> None:
        """Parse no more until `resume_reading`."""
        self._is_paused = True
        self.inner.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        self._is_paused = False
        if self._unparsed:
            self._intake.add(self)
        else:
            self.inner.resume_reading()
