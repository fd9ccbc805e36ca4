"""The event stream: what a session is told, in which order, from where on, and when it ends."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import pytest

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.bulletin import Bulletin, NewsKind
from holdfast.console.events import MAX_STREAMS, EventStreams
from holdfast.console.gate import Gate
from holdfast.console.sessions import BrowserSession, BrowserSessions

Value = TypeVar("Value")
SERVER = "abcd"
TENANT = AuthContext("t" * 64, "tenant")


class Drain:
    """A door that drains when it is told to."""

    def __init__(self) -> None:
        self.is_draining = False
        self._scopes: list[anyio.CancelScope] = []

    @contextmanager
    def event_stream(self) -> Iterator[None]:
        yield

    @contextmanager
    def stream(self) -> Iterator[None]:
        yield

    async def next_or_none(self, wait: Callable[[], Awaitable[Value]]) -> Value | None:
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            if self.is_draining:
                return None
            return await wait()
        return None

    def begin(self) -> None:
        self.is_draining = True
        for scope in self._scopes:
            scope.cancel()


class Desk:
    """A bulletin with streams, and one client that collects what it is sent."""

    def __init__(self, comment_seconds: float = 30.0, max_entries: int = 1_000) -> None:
        self.bulletin = Bulletin(max_entries)
        self.sessions = BrowserSessions()
        self.gate = Gate(self.sessions)
        self.drain = Drain()
        self.streams = EventStreams(self.bulletin, self.gate, self.drain, SERVER, comment_seconds)
        self.session = self.sessions.open(LOCAL_USER).session
        self.text = ""
        self.is_over = False

    async def listen(self, last_id: str = "", session: BrowserSession | None = None) -> None:
        async def receive() -> dict[str, Any]:
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Any) -> None:
            self.text += message.get("body", b"").decode()
            self.is_over = message.get("more_body") is False and message["type"] == "http.response.body"

        await self.streams.serve(session or self.session, last_id, receive, send)

    async def until(self, text: str, seconds: float = 5.0) -> None:
        with anyio.fail_after(seconds):
            while text not in self.text:
                await anyio.sleep(0.01)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(20):
            await scenario()

    anyio.run(bounded)


def test_news_arrive_in_order_with_their_place_and_from_any_thread() -> None:
    desk = Desk()

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen)
            await desk.until("event: hello")
            thread = threading.Thread(
                target=lambda: desk.bulletin.tell(NewsKind.CHANGE_MADE, id="c1", status="done", kind="write")
            )
            thread.start()
            await desk.until("c1")
            desk.bulletin.tell(NewsKind.REVIEW_OPENED, review_id="r1", action="edit", round=1)
            await desk.until("r1")
            tasks.cancel_scope.cancel()

    run(scenario)
    assert 'id: abcd-1\nevent: change.made\ndata: {"id":"c1","status":"done","kind":"write"}\n\n' in desk.text
    assert "id: abcd-2\nevent: review.opened\n" in desk.text
    assert desk.text.startswith("retry: ")


def test_a_stream_goes_on_where_the_last_one_ended() -> None:
    desk = Desk()
    for number in range(5):
        desk.bulletin.tell(NewsKind.CHANGE_MADE, id=f"c{number}", status="done", kind="write")

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen, "abcd-3")
            await desk.until("abcd-5")
            tasks.cancel_scope.cancel()

    run(scenario)
    assert "resync" not in desk.text
    assert "abcd-3\n" not in desk.text
    assert desk.text.count("event: change.made") == 2


@pytest.mark.parametrize("last_id", ["other-3", "abcd-99", "abcd-", "abcd-x", "nonsense", "abcd-٣", "abcd-" + "9" * 99])
def test_a_place_that_is_not_known_here_means_to_look_at_everything_anew(last_id: str) -> None:
    desk = Desk()
    desk.bulletin.tell(NewsKind.CHANGE_MADE, id="c1", status="done", kind="write")

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen, last_id)
            await desk.until("event: resync")
            tasks.cancel_scope.cancel()

    run(scenario)
    assert "c1" not in desk.text


def test_a_reader_that_comes_too_late_is_told_so_and_goes_on_from_there() -> None:
    desk = Desk(max_entries=10)
    for number in range(30):
        desk.bulletin.tell(NewsKind.CHANGE_MADE, id=f"c{number}", status="done", kind="write")

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen, "abcd-5")
            await desk.until("event: resync")
            desk.bulletin.tell(NewsKind.CHANGE_MADE, id="later", status="done", kind="write")
            await desk.until("later")
            tasks.cancel_scope.cancel()

    run(scenario)
    assert desk.text.count("event: change.made") == 1


def test_the_stream_of_an_ended_session_says_bye_at_once_and_others_go_on() -> None:
    desk, other = Desk(), Desk()
    other.streams = desk.streams
    other.session = desk.sessions.open(LOCAL_USER).session

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen)
            tasks.start_soon(other.listen)
            await desk.until("event: hello")
            await other.until("event: hello")
            desk.sessions.end(LOCAL_USER, desk.session.id)
            desk.streams.look_at_sessions()
            await desk.until('event: bye\ndata: {"reason":"signed out"}')
            desk.bulletin.tell(NewsKind.CHANGE_MADE, id="c1", status="done", kind="write")
            await other.until("c1")
            tasks.cancel_scope.cancel()

    run(scenario)
    assert desk.is_over
    assert "bye" not in other.text


def test_a_silent_stream_has_comments_and_a_drain_says_bye() -> None:
    desk = Desk(comment_seconds=0.05)

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen)
            await desk.until(": still here\n\n: still here")
            desk.drain.begin()
            await desk.until('event: bye\ndata: {"reason":"the server ends"}')

    run(scenario)
    assert desk.is_over


def test_who_signs_out_is_told_no_more_news() -> None:
    desk = Desk()

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen)
            await desk.until("hello")
            desk.sessions.end(LOCAL_USER, desk.session.id)
            desk.bulletin.tell(NewsKind.CHANGE_MADE, id="secret", status="done", kind="write")
            await desk.until("signed out")

    run(scenario)
    assert "secret" not in desk.text
    assert desk.is_over


def test_each_tenant_is_told_its_own_news_and_nobody_elses() -> None:
    desk = Desk()
    tenant = desk.sessions.open(TENANT).session

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.listen, "", tenant)
            await desk.until("hello")
            desk.bulletin.tell(NewsKind.CHANGE_MADE, id="persons", status="done", kind="write")
            desk.bulletin.tell(NewsKind.CHANGE_MADE, tenant="o" * 64, id="others", status="done", kind="write")
            desk.bulletin.tell(NewsKind.CHANGE_MADE, tenant=TENANT.apikey_hash, id="own", status="done", kind="write")
            await desk.until('"own"')
            tasks.cancel_scope.cancel()

    run(scenario)
    assert "persons" not in desk.text
    assert "others" not in desk.text


def test_a_thousand_news_at_once_are_few_writes_and_hold_up_nobody_who_tells() -> None:
    desk, writes = Desk(), 0

    async def scenario() -> None:
        nonlocal writes

        async def receive() -> dict[str, Any]:
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Any) -> None:
            nonlocal writes
            writes += 1
            desk.text += message.get("body", b"").decode()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.streams.serve, desk.session, "", receive, send)
            await desk.until("hello")
            for number in range(900):
                desk.bulletin.tell(NewsKind.CHANGE_MADE, id=f"c{number}", status="done", kind="write")
            await desk.until('"c899"')
            tasks.cancel_scope.cancel()

    run(scenario)
    assert desk.text.count("event: change.made") == 900
    assert writes < 20


def test_a_caller_has_only_so_many_streams() -> None:
    desk = Desk()

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            for _stream in range(MAX_STREAMS):
                tasks.start_soon(desk.listen)
            await anyio.sleep(0.1)
            refused = await desk.streams.answer(_request(desk.session))
            assert refused.status_code == 503
            tenants = await desk.streams.answer(_request(desk.sessions.open(TENANT).session))
            assert tenants.status_code == 200
            tasks.cancel_scope.cancel()
        assert (await desk.streams.answer(_request(desk.session))).status_code == 200

    run(scenario)


def _request(session: BrowserSession) -> Any:
    from starlette.requests import Request

    from holdfast.console.gate import SESSION

    return Request({"type": "http", "method": "GET", "path": "/api/events", "headers": [], SESSION: session})
