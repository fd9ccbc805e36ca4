"""Keeps the sessions of browsers: a one-use link or a tenant's key opens one, a cookie together with a second key is one.

Cookies ignore ports, so every web server of this machine that the browser visits is sent ours: alone it opens nothing. The
second key is in the storage of our own origin, and is sent as a header. Of both only hashes are kept; those of the person
are written to disk, so that a restart signs nobody out. A tenant's session holds what its key opened, and ends with the process.
"""

import hmac
import json
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.errors import HoldfastError

_log = logging.getLogger(__name__)

LINK_SECONDS = 60.0
MAX_IDLE_SECONDS = 7 * 86_400.0
MAX_SESSION_SECONDS = 30 * 86_400.0
MAX_USER_AGENT_CHARS = 200
_MAX_LINKS = 32
_MAX_OWN_SESSIONS = 32
_MAX_SESSIONS = 1_000
_SAVE_SECONDS = 300.0
"""How often at most the time of a session's last use is written."""

Kind = Literal["person", "tenant"]


@dataclass(eq=False)
class BrowserSession:
    """One browser that is signed in."""

    id: str
    auth: AuthContext
    cookie_hash: str
    key_hash: str
    created_at: float
    last_used_at: float
    user_agent: str = ""

    @property
    def kind(self) -> Kind:
        """Return whose session it is."""
        return "person" if self.auth.is_local else "tenant"

    def is_valid(self, now: float) -> bool:
        """Return whether it has not run out."""
        return now < self.last_used_at + MAX_IDLE_SECONDS and now < self.created_at + MAX_SESSION_SECONDS


@dataclass(frozen=True)
class SignIn:
    """A session that was just opened, with the two secrets that only its browser has from here on."""

    session: BrowserSession
    cookie: str = field(repr=False)
    key: str = field(repr=False)


class BrowserSessions:
    """Links and sessions. `text` is what `save` wrote last; both are about the person's sessions alone."""

    def __init__(
        self,
        text: str = "",
        save: Callable[[str], None] = lambda _text: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._save = save
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._links: dict[str, float] = {}
        self._sessions = {session.cookie_hash: session for session in _parse(text)}
        self._saved_at = now()

    def create_link_token(self) -> str:
        """Return a token that opens one session within the next minute."""
        now = self._now()
        for expired in [token_hash for token_hash, expires_at in self._links.items() if expires_at <= now]:
            del self._links[expired]
        while len(self._links) >= _MAX_LINKS:
            del self._links[next(iter(self._links))]
        token = secrets.token_urlsafe(32)
        self._links[_hash(token)] = now + LINK_SECONDS
        return token

    def redeem(self, token: str, user_agent: str = "") -> SignIn | None:
        """Exchange a link's token for a session; None when it was used before, has expired or was never issued."""
        expires_at = self._links.pop(_hash(token), 0.0)
        return self.open(LOCAL_USER, user_agent) if self._now() < expires_at else None

    def open(self, auth: AuthContext, user_agent: str = "") -> SignIn:
        """Open a session. Over the limit of one tenant, or of them all, one ends: of the tenant that has the most, the one
        that was not used for longest.
        """
        now = self._now()
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        agent = "".join(char for char in user_agent[:MAX_USER_AGENT_CHARS] if char.isprintable())
        session = BrowserSession(secrets.token_hex(8), auth, _hash(cookie), _hash(key), now, now, agent)
        with self._lock:
            self._forget_expired(now)
            if candidates := self._eviction_candidates(auth):
                del self._sessions[min(candidates, key=lambda each: each.last_used_at).cookie_hash]
            self._sessions[session.cookie_hash] = session
        return SignIn(session, cookie, key)

    def find(self, cookie: str, key: str) -> BrowserSession | None:
        """Return the session that both secrets belong to, and note that it is used."""
        session = self._sessions.get(_hash(cookie))
        now = self._now()
        if session is None or not hmac.compare_digest(session.key_hash, _hash(key)) or not session.is_valid(now):
            return None
        session.last_used_at = now
        return session

    def is_open(self, session: BrowserSession) -> bool:
        """Return whether a session was neither ended nor ran out."""
        return self._sessions.get(session.cookie_hash) is session and session.is_valid(self._now())

    def all_of(self, auth: AuthContext) -> list[BrowserSession]:
        """Return the open sessions of the person or of one tenant, the last used first."""
        now = self._now()
        own = [
            session
            for session in list(self._sessions.values())
            if session.auth.apikey_hash == auth.apikey_hash and session.is_valid(now)
        ]
        return sorted(own, key=lambda session: -session.last_used_at)

    def end(self, auth: AuthContext, session_id: str) -> bool:
        """End a session of the person or of one tenant; False when there is none of that id."""
        with self._lock:
            session = next((each for each in self.all_of(auth) if each.id == session_id), None)
            if session is not None:
                del self._sessions[session.cookie_hash]
        return session is not None

    def end_all(self, auth: AuthContext) -> None:
        """End every session of the person or of one tenant, and for the person every link that is open."""
        with self._lock:
            for session in self.all_of(auth):
                del self._sessions[session.cookie_hash]
        if auth.is_local:
            self._links.clear()

    @property
    def needs_save(self) -> bool:
        """Return whether times of use should be written; a session of the person that begins or ends is saved at once."""
        return self._now() - self._saved_at > _SAVE_SECONDS

    def save(self) -> None:
        """Write the person's sessions; blocks until they are on the disk, and keeps nobody from signing in meanwhile.

        A disk that takes nothing signs nobody out; they only have to sign in again after a restart.
        """
        with self._saving:
            with self._lock:
                self._saved_at = now = self._now()
                self._forget_expired(now)
                own = [session for session in self._sessions.values() if session.kind == "person"]
            rows = [
                {
                    "id": session.id,
                    "cookie_sha256": session.cookie_hash,
                    "key_sha256": session.key_hash,
                    "created_at": session.created_at,
                    "last_used_at": session.last_used_at,
                    "user_agent": session.user_agent,
                }
                for session in own
            ]
            try:
                self._save(json.dumps({"sessions": rows}, indent=1) + "\n")
            except (OSError, HoldfastError) as fault:
                _log.warning("the browsers that are signed in could not be written down: %s", type(fault).__name__)

    def _eviction_candidates(self, auth: AuthContext) -> list[BrowserSession]:
        """Return the sessions of which one must end for a new one of this tenant, or of the person; mostly none."""
        own = self.all_of(auth)
        if auth.is_local or len(own) >= _MAX_OWN_SESSIONS:
            return own if len(own) >= _MAX_OWN_SESSIONS else []
        counts = Counter(each.auth.apikey_hash for each in self._sessions.values() if not each.auth.is_local)
        if counts.total() < _MAX_SESSIONS:
            return []
        busiest = max(counts.values())
        return [each for each in self._sessions.values() if counts[each.auth.apikey_hash] == busiest]

    def _forget_expired(self, now: float) -> None:
        for session in [session for session in self._sessions.values() if not session.is_valid(now)]:
            del self._sessions[session.cookie_hash]


def _parse(text: str) -> list[BrowserSession]:
    """Return the sessions in a kept text; what is damaged only signs somebody out."""
    try:
        rows: list[dict[str, Any]] = json.loads(text)["sessions"]
        return [
            BrowserSession(
                id=str(row["id"]),
                auth=LOCAL_USER,
                cookie_hash=str(row["cookie_sha256"]),
                key_hash=str(row["key_sha256"]),
                created_at=float(row["created_at"]),
                last_used_at=float(row["last_used_at"]),
                user_agent=str(row["user_agent"]),
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError):
        return []


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
