"""Streams what happens to the page, as ids: from the bulletin, to each session what is its own.

A stream holds no queue: it remembers the last entry it sent and asks the bulletin for what came after. So nobody waits for a
reader, and one that reads too slowly is told to look at everything anew.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress

import anyio
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast import __version__
from holdfast.auth.context import CallerKind
from holdfast.bulletin import Bulletin
from holdfast.console.faults import API_HEADERS, refuse
from holdfast.console.gate import SESSION, Gate, caller_of
from holdfast.console.ports import Drain
from holdfast.console.sessions import BrowserSession
from holdfast.errors import ResourceBusy

MAX_STREAMS = 8
"""Streams of one tenant, or of the person: one browser needs one, whatever tabs it has."""
COMMENT_SECONDS = 15.0
_BATCH_SECONDS = 0.05
"""What happens within it goes out together, so a thousand changes are a few writes."""
_RETRY_MS = 1_000
_HEADERS = {**API_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no"}


class EventStreams:
    """Answers GET /api/events, of which each caller may have only so many open."""

    def __init__(
        self, bulletin: Bulletin, gate: Gate, drain: Drain, server_id: str, comment_seconds: float = COMMENT_SECONDS
    ) -> None:
        self._bulletin = bulletin
        self._gate = gate
        self._drain = drain
        self._server_id = server_id
        self._comment_seconds = comment_seconds
        self._wakes: set[_Wake] = set()
        self._open: Counter[str] = Counter()

    async def answer(self, request: Request) -> Response:
        """Return the stream of a session, or a refusal when its owner has too many."""
        session: BrowserSession = request.scope[SESSION]
        if self._open[_share_of(session)] >= MAX_STREAMS:
            return refuse(ResourceBusy(f"{MAX_STREAMS} streams of yours are open already; close a window."))
        return _StreamResponse(self, session, request.headers.get("last-event-id", ""))

    async def serve(self, session: BrowserSession, last_id: str, receive: Receive, send: Send) -> None:
        """Send events until the client goes, the session ends or the server drains."""
        share = _share_of(session)
        headers = [(name.encode(), text.encode()) for name, text in _HEADERS.items()]
        self._open[share] += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            with self._drain.event_stream():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                    async with aclosing(self._texts(session, last_id)) as texts:
                        async for text in texts:
                            await send({"type": "http.response.body", "body": text, "more_body": True})
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    tasks.cancel_scope.cancel()
        finally:
            self._open[share] -= 1
            if not self._open[share]:
                del self._open[share]

    async def _texts(self, session: BrowserSession, last_id: str) -> AsyncGenerator[bytes]:
        """Return pieces of the stream: what is new, or a comment when nothing is."""
        wake = _Wake()
        with self._bulletin.subscribe(wake.from_any_thread), self._waking(wake):
            seq = self._bulletin.newest_seq
            yield self._hello(seq)
            if last_id:
                resumed = self._seq_of(last_id)
                seq, is_lost = (seq, True) if resumed is None else (resumed, False)
                if is_lost:
                    yield _event("resync", {"reason": "this server does not know what you saw last"}, self._id(seq))
            while True:
                news = self._bulletin.read_after(seq)
                if not self._gate.is_open(session):
                    yield _event("bye", {"reason": "signed out"})
                    return
                if news is None:
                    seq = self._bulletin.newest_seq
                    yield _event("resync", {"reason": "too much happened since"}, self._id(seq))
                elif news:
                    seq = news[-1].seq
                    own = [entry for entry in news if entry.tenant == session.auth.apikey_hash]
                    if own:
                        yield b"".join(_event(entry.kind, entry.fields, self._id(entry.seq)) for entry in own)
                else:
                    has_news = await self._drain.next_or_none(lambda: wake.wait(self._comment_seconds))
                    if has_news is None:
                        yield _event("bye", {"reason": "the server ends"})
                        return
                    if not has_news:
                        yield b": still here\n\n"

    def look_at_sessions(self) -> None:
        """Let every stream look at its session now; those of an ended one say bye."""
        for wake in self._wakes:
            wake.from_any_thread()

    @contextmanager
    def _waking(self, wake: "_Wake") -> Iterator[None]:
        self._wakes.add(wake)
        try:
            yield
        finally:
            self._wakes.discard(wake)

    def _hello(self, seq: int) -> bytes:
        facts = {"server_id": self._server_id, "version": __version__, "seq": seq}
        return f"retry: {_RETRY_MS}\n".encode() + _event("hello", facts)

    def _id(self, seq: int) -> str:
        return f"{self._server_id}-{seq}"

    def _seq_of(self, last_id: str) -> int | None:
        """Return the place of an id that this server gave; None for another server's, and for none at all."""
        server_id, _, seq = last_id.partition("-")
        is_ours = server_id == self._server_id and seq.isascii() and seq.isdigit() and len(seq) < 16
        return int(seq) if is_ours else None


class _StreamResponse(Response):
    """An answer that goes on for as long as the stream lasts."""

    def __init__(self, streams: EventStreams, session: BrowserSession, last_id: str) -> None:
        super().__init__()
        self._streams = streams
        self._session = session
        self._last_id = last_id

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.serve(self._session, self._last_id, receive, send)


class _Wake:
    """Wakes one stream on the event loop; threads that tell news only leave a mark."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_marked = False

    def from_any_thread(self) -> None:
        if not self._is_marked:
            self._is_marked = True
            # A closed loop means that the server is going down, and nobody is left to tell.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait for news; False when there was none for that long."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
            await anyio.sleep(_BATCH_SECONDS)
        has_news = self._event.is_set()
        self._event.clear()
        self._is_marked = False
        return has_news


def _share_of(session: BrowserSession) -> str:
    return caller_of(session, CallerKind.PERSON).share


def _event(name: str, fields: object, event_id: str = "") -> bytes:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: ".encode() + to_json(fields) + b"\n\n"


async def _cancel_when_gone(receive: Receive, stream: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.cancel()
