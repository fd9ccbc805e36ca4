"""HTTP connections that may neither dawdle nor crowd: uvicorn's protocol with a deadline for each request's head."""

import asyncio
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


def paced_protocol(head_seconds: float, has_room: Callable[[], bool]) -> type[H11Protocol]:
    """Return the protocol class for one server: over the limit it answers 503, a slow head is cut off."""

    class PacedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            has_place = has_room()
            super().connection_made(transport)
            if has_place:
                self._expect_head()
            else:
                transport.write(_FULL)
                transport.close()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            request = self.cycle
            super().data_received(data)
            if self.cycle is not request:
                self._head_came()
            elif getattr(request, "response_complete", True):
                self._expect_head()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._head_came()
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_came()
            super().connection_lost(exc)

        def _expect_head(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(head_seconds, self._cut_off)

        def _head_came(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _cut_off(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return PacedProtocol
