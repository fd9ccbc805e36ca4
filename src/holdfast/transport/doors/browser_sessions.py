"""Issues one-use links and the browser sessions they open."""

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

LINK_SECONDS = 60.0
SESSION_SECONDS = 12 * 3600.0
COOKIE = "holdfast_session"
_MAX_LINKS = 32
_MAX_SESSIONS = 64


class BrowserSessions:
    """Links and sessions, kept in memory only and as hashes; a restart ends them all."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._links: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    def create_link_token(self) -> str:
        """Return a token that opens one session within the next minute."""
        return self._issue(self._links, LINK_SECONDS, _MAX_LINKS)

    def redeem(self, token: str) -> str | None:
        """Exchange a link's token for a new session; None when it was used before, has expired or was never issued."""
        expires_at = self._links.pop(_hash(token), 0.0)
        if self._now() >= expires_at:
            return None
        return self._issue(self._sessions, SESSION_SECONDS, _MAX_SESSIONS)

    def is_open(self, session: str) -> bool:
        """Return whether this session was opened by a link and has not expired."""
        return self._now() < self._sessions.get(_hash(session), 0.0)

    def _issue(self, expiries: dict[str, float], seconds: float, limit: int) -> str:
        now = self._now()
        for expired in [token_hash for token_hash, expires_at in expiries.items() if expires_at <= now]:
            del expiries[expired]
        while len(expiries) >= limit:
            del expiries[next(iter(expiries))]
        token = secrets.token_urlsafe(32)
        expiries[_hash(token)] = now + seconds
        return token


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
