"""Divides the sessions of HTTP clients between callers: over its share, a caller's oldest idle session ends for a new one."""

from dataclasses import dataclass

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from holdfast.shares import HALF, Shares

SESSION_HEADER = "mcp-session-id"
_NOT_FOUND = 404


@dataclass(eq=False)
class _Session:
    id: str
    share: str
    user: object
    requests: int = 0


class HttpSessions:
    """Passes requests to the SDK's manager of sessions, and knows whose sessions are open and which are idle.

    One that the manager ended by itself, because it was idle for long, counts until its caller has it evicted.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, limit: int) -> None:
        self._manager = manager
        self._shares = Shares(limit, HALF)
        self._sessions: dict[str, _Session] = {}

    def __len__(self) -> int:
        """Return how many sessions are open."""
        return len(self._sessions)

    async def open(self, share: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve the request that opens a session; False, with nothing sent, when the caller has no room for one."""
        while not self._shares.has_room(share):
            idle = next((own for own in self._sessions.values() if own.share == share and not own.requests), None)
            if idle is None:
                return False
            await self._end(idle)
        session = _Session("", share, scope.get("user"), 1)
        self._shares.take(share)

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session.id = Headers(raw=message["headers"]).get(SESSION_HEADER, "")
                self._sessions[session.id] = session
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, note_session)
        finally:
            session.requests -= 1
            if not session.id:
                self._shares.give_back(share)
        return True

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an open session; one that is not open is the manager's to refuse."""
        session = self._sessions.get(Headers(scope=scope).get(SESSION_HEADER, ""))
        if session is None:
            await self._manager.handle_request(scope, receive, send)
            return
        if session.user == scope.get("user"):
            self._sessions[session.id] = self._sessions.pop(session.id)  # at the end: the longest idle one comes first

        async def note_end(message: Message) -> None:
            if message["type"] == "http.response.start" and session.user == scope.get("user"):
                is_deleted = scope["method"] == "DELETE" and message["status"] < 300
                if is_deleted or message["status"] == _NOT_FOUND:
                    self._forget(session)
            await send(message)

        session.requests += 1
        try:
            await self._manager.handle_request(scope, receive, note_end)
        finally:
            session.requests -= 1

    async def _end(self, session: _Session) -> None:
        """End a session as its own client would."""
        self._forget(session)
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(SESSION_HEADER.encode(), session.id.encode())],
            "user": session.user,
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_message: Message) -> None:
            return None

        await self._manager.handle_request(scope, receive, send)

    def _forget(self, session: _Session) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self._shares.give_back(session.share)
