"""Decides whose a request of the console is: by its path, where it comes from, and the two secrets of a session.

The shell and its assets are open to all: they hold nothing, and a strict cookie would not come along from a link in a chat.
Everything else is for a session, and no page of another site or of another port can send what a session takes.
"""

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, replace

from starlette.datastructures import Headers
from starlette.types import Scope

from holdfast import __version__
from holdfast.auth.context import AuthContext, Caller, CallerKind, ClientInfo, Door
from holdfast.console.sessions import BrowserSession, BrowserSessions
from holdfast.errors import HoldfastError, InvalidArgument, PermissionDenied

KEY_HEADER = "x-holdfast-key"
SESSION = "holdfast.session"
"""Where the scope of a request has the session that it belongs to."""
SIGN_IN_PATH = "/api/session"

_API, _CALL_LOG = "/api/", "/api/logs"
_OTHER_DOORS = frozenset({"api", "health", "mcp", "metrics", "ws"})
_CLIENT = "console"
_LOOKING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class ConsoleRefusal:
    """Why a request is not let in."""

    status: int
    error: HoldfastError


class Gate:
    """Stands in front of the console. `is_tenant` says of a tenant's key whether it still opens anything."""

    def __init__(
        self,
        sessions: BrowserSessions,
        top_files: Container[str] = frozenset(),
        is_tenant: Callable[[AuthContext], bool] = lambda _auth: True,
    ) -> None:
        self._sessions = sessions
        self._top_files = top_files
        self._is_tenant = is_tenant

    def is_shell(self, path: str) -> bool:
        """Return whether a path is the app itself: an asset, a file beside the index, or any page, which the app tells apart."""
        first, has_more, _ = path.removeprefix("/").partition("/")
        is_file = "." in first and not has_more
        return first in self._top_files if is_file else first not in _OTHER_DOORS

    def is_api(self, path: str) -> bool:
        """Return whether a path is for sessions; a tenant's log of its own calls is for its key."""
        return path.startswith(_API) and path != _CALL_LOG

    def check(self, scope: Scope, headers: Headers) -> BrowserSession | ConsoleRefusal | None:
        """Return the session of a request to the API, None when it signs in."""
        if scope["type"] != "http":
            return ConsoleRefusal(403, PermissionDenied("The console speaks HTTP."))
        if refusal := _refuse_foreign(scope, headers):
            return refusal
        if scope["path"] == SIGN_IN_PATH and scope["method"] == "POST":
            return None
        session = self._find_session(scope, headers)
        if session is None or not self.is_open(session):
            return ConsoleRefusal(401, PermissionDenied("You are signed out. `holdfast open` signs in."))
        return session

    def _find_session(self, scope: Scope, headers: Headers) -> BrowserSession | None:
        """Return the session of the second key and of any of our cookies: another port can plant one beside ours."""
        key = headers.get(KEY_HEADER, "")
        sessions = (self._sessions.find(cookie, key) for cookie in _own_cookies(scope, headers))
        return next((session for session in sessions if session is not None), None)

    def is_open(self, session: BrowserSession) -> bool:
        """Return whether a session still opens anything: neither ended, nor expired, nor its tenant's key revoked."""
        return self._sessions.is_open(session) and (session.auth.is_local or self._is_tenant(session.auth))


def caller_of(session: BrowserSession, kind: CallerKind) -> Caller:
    """Return the caller of a session's calls; what the person does here is a command of the person."""
    client = ClientInfo(_CLIENT, __version__, is_command=session.auth.is_local)
    return Caller(session.auth, kind, client=client, connection=_CLIENT, door=Door.HTTP)


def agent_of(caller: Caller, roots: tuple[str, ...]) -> Caller:
    """Return the same caller for the entries of agents, with the directories that they work in."""
    return replace(caller, kind=CallerKind.AGENT, roots=roots if caller.auth.is_local else ())


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie; browsers share cookies between the ports of a host, so it names ours."""
    return f"holdfast_session_{(scope.get('server') or ('', 0))[1] or 0}"


def _refuse_foreign(scope: Scope, headers: Headers) -> ConsoleRefusal | None:
    """Refuse what another page sent: its browser says where it comes from, and cannot send JSON unasked."""
    site, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    is_foreign = any(each != "same-origin" for each in site) or any(
        each.partition("://")[2].lower() != headers.get("host", "").lower() for each in origins
    )
    if is_foreign or not (site or origins or scope["method"] in _LOOKING):
        text = "The console's API is for its own page: a request needs its Origin, or Sec-Fetch-Site: same-origin."
        return ConsoleRefusal(403, PermissionDenied(text))
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and media_type != "application/json":
        return ConsoleRefusal(400, InvalidArgument(f"Content-Type must be application/json: {media_type!r:.60}"))
    return None


def _own_cookies(scope: Scope, headers: Headers) -> list[str]:
    """Return the values of our cookie, which nothing quotes: http.cookies may take seconds to unquote what a stranger sends."""
    values = re.findall(rf"(?:^|;)[ \t]*{cookie_name(scope)}=([^;]*)", headers.get("cookie", ""))
    return [value.strip() for value in values]
